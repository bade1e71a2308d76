"""Options of Hadoop Streaming that the recorded jobs show as a whole, each for itself."""

import msgspec
import pytest

from boathouse_task import counters, uber_task
from boathouse_task.contract import OutputFormat, Partitioner, Reason, ReduceFields, TaskType
from boathouse_task.environment import command_variables
from tests.builders.tasks import plan_of

TABS = ["sed", "s/\t/<TAB>/g"]
PLAIN = OutputFormat(key_only=True)


def test_lines_without_a_tab_end_with_one_in_the_output(job_folder):
    job_folder.write_input("a", b"abc\nd\te\n")
    job_folder.run_job()
    assert job_folder.parts() == [b"abc\t\nd\te\n"]


def test_a_map_only_job_separates_its_key_fields(job_folder):
    job_folder.write_input("a", b"a.b.c.d\ne.f\ng\n")
    result = job_folder.run_job(partitioner=Partitioner(field_separator=".", num_key_fields=2))
    assert job_folder.parts() == [b"a.b\tc.d\ne.f\t\ng\t\n"]
    assert result.counters[counters.TASK][counters.MAP_OUTPUT_BYTES] == len(b"".join(job_folder.parts()))


@pytest.mark.parametrize("combiner", [None, ["cat"]])
def test_two_key_fields_have_one_tab_behind_them(job_folder, combiner):
    job_folder.write_input("a", b"a\tb\tc\na\tb\na\na\tb\tc\td\n")
    job_folder.run_job(reducer=TABS, combiner=combiner, partitioner=Partitioner(num_key_fields=2), output_format=PLAIN)
    (part,) = job_folder.parts()
    assert sorted(part.splitlines()) == [b"a<TAB>", b"a<TAB>b<TAB>", b"a<TAB>b<TAB>c", b"a<TAB>b<TAB>c<TAB>d"]


@pytest.mark.parametrize("buffer_bytes", [None, 300])
def test_keys_with_bytes_below_tab_are_in_their_order(job_folder, buffer_bytes):
    keys = [b"", b"\x00", b"\x01", b"a", b"a\x00", b"a\x01", b"a\x08", b"a\x0b", b"aa"]
    job_folder.write_input("a", b"".join(b"%b\t1\n" % key for key in keys[::-1] * 5))
    job_folder.write_input("b", b"".join(b"%b\t1\n" % key for key in (b"a", b"aa", b"b") * 5))
    job_folder.run_job(reducer=["cut", "-f1"], output_format=PLAIN, buffer_bytes=buffer_bytes)
    (part,) = job_folder.parts()
    assert part[:-1].split(b"\n") == sorted([*keys * 5, *[b"a", b"aa", b"b"] * 5])


def test_what_commands_write_may_end_with_cr(job_folder):
    job_folder.write_input("a", b"x\n")
    job_folder.run_job(["printf", r"a\tb\rc\r\nd\n\ne\r"], output_format=PLAIN)
    assert job_folder.parts() == [b"a\tb\nc\nd\n\ne\n"]


def test_fields_of_the_reducers_lines_are_separated(job_folder):
    job_folder.write_input("a", b"k\t1,2,3\nno\na,b\n")
    job_folder.run_job(reducer=["cat"], reduce_fields=ReduceFields(output_separator=",", num_output_key_fields=2))
    assert job_folder.parts() == [b"a,b\t\t\nk\t1,2\t3\nno\t\t\n"]


def test_the_reducer_may_read_another_separator(job_folder):
    job_folder.write_input("a", b"k\t1,2\nno\n")
    job_folder.run_job(reducer=TABS, reduce_fields=ReduceFields(input_separator="#"), output_format=PLAIN)
    assert job_folder.parts() == [b"k#1,2\nno#\n"]


def test_the_output_may_have_another_separator(job_folder):
    job_folder.write_input("a", b"k\t1\nno\na\tb\tc\n")
    job_folder.run_job(output_format=OutputFormat(separator="||"))
    assert job_folder.parts() == [b"k||1\nno||\na||b\tc\n"]


def test_steps_before_the_last_separate_by_tabs(job_folder):
    job_folder.write_input("a", b"k\t1\n")
    job_folder.run_steps({"mapper": ["cat"]}, output_format=OutputFormat(separator=","))
    assert job_folder.parts() == [b"k,1\n"]


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_lazy_output_has_no_part_without_a_line(job_folder, compression):
    job_folder.write_input("a", b"k\t1\n")
    job_folder.run_job(
        reducer=["cat"], reduces=3, output_format=OutputFormat(lazy=True), output_compression=compression
    )
    assert [name.partition(".")[0] for name in job_folder.output_names()] == ["_SUCCESS", "part-00000"]


def test_lazy_output_of_nothing_is_a_mark_of_success(job_folder):
    job_folder.write_input("a", b"")
    job_folder.run_job(output_format=OutputFormat(lazy=True))
    assert job_folder.output_names() == ["_SUCCESS"]


@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_an_exit_code_need_not_be_a_failure(job_folder, end):
    job_folder.write_input("a", b"k\t1\n")
    command = ["sh", "-c", f"cat; {end}"]
    job_folder.run_job(command, combiner=command, reducer=command, is_exit_checked=False)
    assert job_folder.parts() == [b"k\t1\n"]


def test_a_command_that_is_not_there_is_a_failure_all_the_same(job_folder):
    job_folder.write_input("a", b"k\t1\n")
    assert job_folder.fail_job(["nowhere"], is_exit_checked=False).reason == Reason.COMMAND_NOT_FOUND


@pytest.mark.parametrize("reduces", [0, 2])
def test_a_task_that_is_given_up_commits_nothing(job_folder, reduces):
    job_folder.write_input("a", b"a\t1\n")
    job_folder.write_input("b", b"longer\t2\n")
    spec = job_folder.setup_spec(["false"], reducer=["cat"] if reduces else None, reduces=reduces)
    assert job_folder.run_task(spec).succeeded
    for order in uber_task.orders(spec, plan_of(spec).splits):
        gives_up = order.task_type is TaskType.MAP and order.index == 0
        result = job_folder.run_task(
            msgspec.structs.replace(order, is_given_up=gives_up, mapper=["false"] if gives_up else ["cat"])
        )
        assert result.succeeded
    assert b"".join(job_folder.parts()) == b"a\t1\n"
    assert result.counters["Boathouse"]["Tasks given up"] == 1
    assert job_folder.output_names() == ["_SUCCESS", *(["part-00000"] if reduces else []), "part-00001"]


def test_properties_are_variables_with_hadoops_names(job_folder):
    spec = job_folder.setup_spec(
        conf={"my.own-key": "v $x", "my.\u00e9": "w", "empty": "", "HOME": "/conf"}, queue="night"
    )
    variables = command_variables(spec, {"HOME": "/pod"}, job_folder.folder)
    assert (variables["my_own_key"], variables["my__"]) == ("v $x", "w")
    assert (variables["HOME"], variables["mapreduce_job_queuename"]) == ("/pod", "night")
    assert "empty" not in variables


def test_old_names_of_hadoops_variables_are_set(job_folder):
    spec = msgspec.structs.replace(job_folder.map_spec(b"x\n"), index=7, attempt=2)
    variables = command_variables(spec, {}, job_folder.folder)
    assert variables["map_input_file"] == variables["mapreduce_map_input_file"] == spec.split.url
    assert (variables["map_input_start"], variables["map_input_length"]) == ("0", "2")
    assert variables["mapred_tip_id"].endswith("_m_000007")
    assert variables["mapred_task_id"].endswith("_m_000007_1")
    assert (variables["mapred_task_partition"], variables["mapred_task_is_map"]) == ("7", "true")
