"""Jobs of several steps, small files together, and whole steps in one task."""

import collections

import msgspec
import pytest

from boathouse_task import commit_task, contract, runner, uber_task
from boathouse_task.contract import CommitRecord, OutputFormat, Plan, Reason, TaskType
from boathouse_task.processes import Processes
from tests.builders.tasks import SUM, WORDS, plan_of

TEXT = b"the boat and the house\nand the lake\n" * 40


def plan(job_folder, **fields) -> Plan:
    spec = job_folder.setup_spec(**fields)
    assert job_folder.run_task(spec).succeeded
    made = plan_of(spec)
    assert job_folder.run_task(
        msgspec.structs.replace(spec, task_type="cleanup")
    ).succeeded  # another job may have the output
    return made


def test_the_second_step_reads_what_the_first_wrote(job_folder):
    job_folder.write_input("a", TEXT)
    swap = ["awk", '{ print "all\\t" $0 }']
    job_folder.run_steps(
        {"mapper": swap, "reducer": ["sort", "-k3,3nr"], "reduces": 1},
        mapper=WORDS,
        combiner=SUM,
        reducer=SUM,
        reduces=3,
    )
    counts = collections.Counter(TEXT.split())
    assert sorted(b"".join(job_folder.parts()).splitlines()) == sorted(
        b"all\t%b\t%d" % (word, number) for word, number in counts.items()
    )


def test_only_the_output_is_left_after_several_steps(job_folder):
    job_folder.write_input("a", TEXT)
    job_folder.run_steps({"reducer": SUM, "reduces": 2}, mapper=WORDS, reducer=SUM, reduces=2)
    assert job_folder.output_names() == ["_SUCCESS", "part-00000", "part-00001"]


def test_a_step_without_mapper_passes_lines_and_one_without_reducer_writes_them(job_folder):
    job_folder.write_input("a", b"b 1\na 2\nb 3\n")
    job_folder.run_steps({"reducer": SUM, "reduces": 1}, {"mapper": ["tr", "a-z", "A-Z"]}, mapper=["tr", " ", "\t"])
    assert job_folder.parts() == [b"A\t2\nB\t4\n"]


def test_a_carriage_return_within_a_line_stays_in_it_between_steps(job_folder):
    job_folder.write_input("a", b"x\n")
    job_folder.run_steps({"mapper": ["cat"], "keeps_returns": True}, mapper=["printf", r"a\rb\n"], keeps_returns=True)
    assert job_folder.parts() == [b"a\rb\t\n"]


def test_the_first_steps_counters_are_in_the_jobs_sums(job_folder):
    job_folder.write_input("a", TEXT)
    result = job_folder.run_steps({"mapper": ["cat"]}, mapper=WORDS, reducer=SUM)
    task = result.counters["org.apache.hadoop.mapreduce.TaskCounter"]
    assert task["Map input records"] == 80 + len(set(TEXT.split()))


def test_empty_output_between_steps_is_one_empty_split(job_folder):
    job_folder.write_input("a", TEXT)
    job_folder.run_steps({"mapper": ["cat"]}, mapper=["true"], reducer=["cat"], reduces=3)
    assert job_folder.parts() == [b""]


def test_a_commit_missing_between_steps_is_the_infrastructures_fault(job_folder):
    job_folder.write_input("a", TEXT)
    spec = msgspec.structs.replace(job_folder.setup_spec(), step=1, steps=2, previous_reduces=2)
    result = job_folder.run_task(spec)
    assert (result.reason, result.user_error) == (Reason.COMMIT_MISSING, False)


def test_a_thousand_small_files_are_few_splits_and_each_line_is_read_once(job_folder):
    for number in range(1000):
        job_folder.write_input(f"{number // 100}/{number}", b"line %d" % number)
    made = plan(job_folder, combine_files=True, split_max_bytes=3000)
    assert len(made.splits) == 3
    assert sum(split.combined for split in made.splits) == 1000
    assert len(msgspec.json.encode(made)) < 3000
    job_folder.run_job(["cat"], combine_files=True, split_max_bytes=3000, output_format=OutputFormat(key_only=True))
    assert sorted(b"".join(job_folder.parts()).splitlines()) == sorted(b"line %d" % number for number in range(1000))


def test_a_large_file_among_small_ones_is_split(job_folder):
    for name, size in (("a", 10), ("b", 1000), ("c", 10), ("d", 10)):
        job_folder.write_input(name, b"x" * (size - 1) + b"\n")
    made = plan(job_folder, combine_files=True, split_max_bytes=300)
    assert [(split.length_bytes, split.combined) for split in made.splits] == [
        (300, 0), (300, 0), (300, 0), (100, 0), (20, 2), (10, 0)
    ]  # fmt: skip


def uber(job_folder, attempt=1, **fields):
    job_folder.write_input("a", TEXT)
    spec = job_folder.setup_spec(split_max_bytes=500, **fields)
    assert job_folder.run_task(spec).succeeded
    splits = plan_of(spec).splits
    return msgspec.structs.replace(
        spec, task_type=TaskType.UBER, splits=splits, maps=len(splits), input_urls=[], attempt=attempt
    )


def test_an_uber_task_does_the_whole_job(job_folder):
    order = uber(job_folder, mapper=WORDS, reducer=SUM, reduces=2)
    result = job_folder.run_task(order)
    assert (result.succeeded, result.winner_attempt, len(order.splits)) == (True, 1, 3)
    assert job_folder.output_names() == ["_SUCCESS", "part-00000", "part-00001"]
    found = dict(line.split(b"\t") for line in b"".join(job_folder.parts()).splitlines())
    assert {word: int(number) for word, number in found.items()} == collections.Counter(TEXT.split())
    assert result.counters["org.apache.hadoop.mapreduce.TaskCounter"]["Map input records"] == 80


def test_an_uber_task_before_the_last_step_leaves_its_commits_for_the_next(job_folder):
    order = msgspec.structs.replace(uber(job_folder, mapper=WORDS, reducer=SUM), steps=2)
    assert job_folder.run_task(order).succeeded
    task = job_folder.task(order)
    assert list(commit_task.committed(task.storage, task.layout.step, TaskType.REDUCE)) == [0]
    assert not list(job_folder.output.glob("part-*"))


def test_another_attempt_at_an_uber_task_continues_where_the_first_ended(job_folder):
    order = uber(job_folder, mapper=WORDS, reducer=SUM)
    first = msgspec.structs.replace(order, task_type=TaskType.MAP, index=0, split=order.splits[0], splits=[])
    assert job_folder.run_task(first).succeeded
    second = msgspec.structs.replace(order, attempt=2)
    assert job_folder.run_task(msgspec.structs.replace(second, steps=2)).succeeded
    task = job_folder.task(second)
    records = commit_task.committed(task.storage, task.layout.step, TaskType.MAP)
    assert [records[index].attempt for index in range(3)] == [1, 2, 2]


def test_an_uber_task_whose_output_was_taken_over_does_not_commit(job_folder):
    order = uber(job_folder, mapper=WORDS, reducer=SUM)
    task = job_folder.task(order)
    task.storage.write(task.layout.owner(2), b'{"job_uid":"another","namespace":"local","name":"another"}')
    result = job_folder.run_task(order)
    assert (result.reason, result.user_error) == (Reason.OUTPUT_EXISTS, True)
    assert result.message.startswith("commit: the output")
    assert job_folder.parts() == []


def test_a_later_step_leaves_the_owner_as_it_is(job_folder):
    first = job_folder.setup_spec(WORDS, reducer=SUM)
    job_folder.write_input("a", TEXT)
    assert job_folder.run_task(first).succeeded
    for order in uber_task.orders(first, plan_of(first).splits):
        if order.task_type is not TaskType.COMMIT:
            assert job_folder.run_task(order).succeeded
    second = msgspec.structs.replace(
        first, step=1, steps=2, previous_reduces=1, mapper=["cat"], reducer=None, reduces=0
    )
    assert job_folder.run_task(second).succeeded
    assert [name for name in job_folder.output_names() if "owner-" in name] == ["_temporary/owner-00001"]


def test_a_failure_in_an_uber_task_names_the_task(job_folder):
    result = job_folder.run_task(uber(job_folder, mapper=["sh", "-c", "echo bad >&2; exit 3"], reducer=SUM))
    assert (result.reason, result.user_error) == (Reason.USER_COMMAND_FAILED, True)
    assert result.message.startswith("m-00000: ")
    assert "bad" in result.stderr_tail


def test_a_stop_reaches_the_commands_of_an_uber_task(job_folder):
    order = uber(job_folder, mapper=["sleep", "60"], reducer=SUM)
    processes = Processes()
    processes.stop_all(0)
    assert not runner.run(order, job_folder.environment(), processes).succeeded


def test_commits_of_maps_and_reduces_have_different_names(job_folder):
    order = msgspec.structs.replace(uber(job_folder, mapper=WORDS, reducer=SUM, reduces=2), steps=2)
    job_folder.run_task(order)
    task = job_folder.task(order)
    names = sorted(record.task for record in commit_task.committed(task.storage, task.layout.step).values())
    assert names == ["m-00000", "m-00001", "m-00002", "r-00000", "r-00001"]
    assert isinstance(commit_task.committed(task.storage, task.layout.step, TaskType.MAP)[2], CommitRecord)


@pytest.mark.parametrize("task_type", [TaskType.UBER, TaskType.SETUP, TaskType.COMMIT])
def test_single_tasks_are_named_after_their_kind(task_type):
    assert contract.attempt_name(task_type, 0, 2) == f"{task_type}-a2"
