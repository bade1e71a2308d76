"""Jobs of several steps, small files together, and whole steps in one task."""

import collections
from pathlib import Path

import msgspec
import pytest

from boathouse_task import commits, contract, local, runner
from boathouse_task.contract import CommitRecord, Plan, Reason, TaskType
from boathouse_task.formats import OutputFormat
from boathouse_task.layout import Layout
from boathouse_task.processes import Processes

TEXT = b"the boat and the house\nand the lake\n" * 40


def run_steps(workshop, *later, **first):
    return local.run_job(workshop.spec(**first), workshop.environment(), later=later)


def plan(workshop, **fields) -> Plan:
    spec = workshop.spec(**fields)
    assert workshop.run(spec).succeeded
    made = plan_of(spec)
    assert workshop.run(msgspec.structs.replace(spec, task_type="cleanup")).succeeded  # another job may have the output
    return made


def plan_of(spec) -> Plan:
    return msgspec.json.decode(Path(f"/{Layout(spec).plan.path}").read_bytes(), type=Plan)


def test_the_second_step_reads_what_the_first_wrote(workshop, words, total):
    workshop.given("a", TEXT)
    swap = ["awk", '{ print "all\\t" $0 }']
    run_steps(
        workshop,
        {"mapper": swap, "reducer": ["sort", "-k3,3nr"], "reduces": 1},
        mapper=words,
        combiner=total,
        reducer=total,
        reduces=3,
    )
    counts = collections.Counter(TEXT.split())
    assert sorted(b"".join(workshop.parts()).splitlines()) == sorted(
        b"all\t%b\t%d" % (word, number) for word, number in counts.items()
    )


def test_only_the_output_is_left_after_several_steps(workshop, words, total):
    workshop.given("a", TEXT)
    run_steps(workshop, {"reducer": total, "reduces": 2}, mapper=words, reducer=total, reduces=2)
    assert workshop.listing() == ["_SUCCESS", "part-00000", "part-00001"]


def test_a_step_without_mapper_passes_lines_and_one_without_reducer_writes_them(workshop, total):
    workshop.given("a", b"b 1\na 2\nb 3\n")
    run_steps(workshop, {"reducer": total, "reduces": 1}, {"mapper": ["tr", "a-z", "A-Z"]}, mapper=["tr", " ", "\t"])
    assert workshop.parts() == [b"A\t2\nB\t4\n"]


def test_the_first_steps_counters_are_in_the_jobs_sums(workshop, words, total):
    workshop.given("a", TEXT)
    result = run_steps(workshop, {"mapper": ["cat"]}, mapper=words, reducer=total)
    task = result.counters["org.apache.hadoop.mapreduce.TaskCounter"]
    assert task["Map input records"] == 80 + len(set(TEXT.split()))


def test_empty_output_between_steps_is_one_empty_split(workshop):
    workshop.given("a", TEXT)
    run_steps(workshop, {"mapper": ["cat"]}, mapper=["true"], reducer=["cat"], reduces=3)
    assert workshop.parts() == [b""]


def test_a_commit_missing_between_steps_is_the_infrastructures_fault(workshop):
    workshop.given("a", TEXT)
    spec = msgspec.structs.replace(workshop.spec(), step=1, steps=2, previous_reduces=2)
    result = workshop.run(spec)
    assert (result.reason, result.user_error) == (Reason.COMMIT_MISSING, False)


def test_ten_thousand_small_files_are_few_splits_and_each_line_is_read_once(workshop):
    for number in range(10_000):
        workshop.given(f"{number // 100}/{number}", b"line %d" % number)
    made = plan(workshop, combine_files=True, split_max_bytes=30_000)
    assert len(made.splits) == 3
    assert sum(split.combined for split in made.splits) == 10_000
    assert len(msgspec.json.encode(made)) < 3000
    workshop.run_job(["cat"], combine_files=True, split_max_bytes=30_000, output_format=OutputFormat(key_only=True))
    assert sorted(b"".join(workshop.parts()).splitlines()) == sorted(b"line %d" % number for number in range(10_000))


def test_a_large_file_among_small_ones_is_split(workshop):
    for name, size in (("a", 10), ("b", 1000), ("c", 10), ("d", 10)):
        workshop.given(name, b"x" * (size - 1) + b"\n")
    made = plan(workshop, combine_files=True, split_max_bytes=300)
    assert [(split.length_bytes, split.combined) for split in made.splits] == [
        (300, 0), (300, 0), (300, 0), (100, 0), (20, 2), (10, 0)
    ]  # fmt: skip


def uber(workshop, attempt=1, **fields):
    workshop.given("a", TEXT)
    spec = workshop.spec(split_max_bytes=500, **fields)
    assert workshop.run(spec).succeeded
    splits = plan_of(spec).splits
    return msgspec.structs.replace(
        spec, task_type=TaskType.UBER, splits=splits, maps=len(splits), input_urls=[], attempt=attempt
    )


def test_an_uber_task_does_the_whole_job(workshop, words, total):
    order = uber(workshop, mapper=words, reducer=total, reduces=2)
    result = workshop.run(order)
    assert (result.succeeded, result.winner_attempt, len(order.splits)) == (True, 1, 3)
    assert workshop.listing() == ["_SUCCESS", "part-00000", "part-00001"]
    found = dict(line.split(b"\t") for line in b"".join(workshop.parts()).splitlines())
    assert {word: int(number) for word, number in found.items()} == collections.Counter(TEXT.split())
    assert result.counters["org.apache.hadoop.mapreduce.TaskCounter"]["Map input records"] == 80


def test_an_uber_task_before_the_last_step_leaves_its_commits_for_the_next(workshop, words, total):
    order = msgspec.structs.replace(uber(workshop, mapper=words, reducer=total), steps=2)
    assert workshop.run(order).succeeded
    task = workshop.task(order)
    assert list(commits.every(task.storage, task.layout.step, TaskType.REDUCE)) == [0]
    assert not list(workshop.output.glob("part-*"))


def test_another_attempt_at_an_uber_task_goes_on_where_the_first_ended(workshop, words, total):
    order = uber(workshop, mapper=words, reducer=total)
    first = msgspec.structs.replace(order, task_type=TaskType.MAP, index=0, split=order.splits[0], splits=[])
    assert workshop.run(first).succeeded
    second = msgspec.structs.replace(order, attempt=2)
    assert workshop.run(msgspec.structs.replace(second, steps=2)).succeeded
    task = workshop.task(second)
    records = commits.every(task.storage, task.layout.step, TaskType.MAP)
    assert [records[index].attempt for index in range(3)] == [1, 2, 2]


def test_an_uber_task_whose_output_was_taken_over_does_not_commit(workshop, words, total):
    order = uber(workshop, mapper=words, reducer=total)
    task = workshop.task(order)
    task.storage.write(task.layout.owner(2), b'{"job_uid":"another","namespace":"local","name":"another"}')
    result = workshop.run(order)
    assert (result.reason, result.user_error) == (Reason.OUTPUT_EXISTS, True)
    assert result.message.startswith("commit: the output")
    assert workshop.parts() == []


def test_a_later_step_leaves_the_owner_as_it_is(workshop, words, total):
    first = workshop.spec(words, reducer=total)
    workshop.given("a", TEXT)
    assert workshop.run(first).succeeded
    for order in local.orders(first, plan_of(first)):
        if order.task_type is not TaskType.COMMIT:
            assert workshop.run(order).succeeded
    second = msgspec.structs.replace(
        first, step=1, steps=2, previous_reduces=1, mapper=["cat"], reducer=None, reduces=0
    )
    assert workshop.run(second).succeeded
    assert [name for name in workshop.listing() if "owner-" in name] == ["_temporary/owner-00001"]


def test_a_failure_in_an_uber_task_names_the_task(workshop, total):
    result = workshop.run(uber(workshop, mapper=["sh", "-c", "echo bad >&2; exit 3"], reducer=total))
    assert (result.reason, result.user_error) == (Reason.USER_COMMAND_FAILED, True)
    assert result.message.startswith("m-00000: ")
    assert "bad" in result.stderr_tail


def test_a_stop_reaches_the_commands_of_an_uber_task(workshop, total):
    order = uber(workshop, mapper=["sleep", "60"], reducer=total)
    processes = Processes()
    processes.stop_all(0)
    assert not runner.run(order, workshop.environment(), processes).succeeded


def test_commits_of_both_kinds_are_told_apart(workshop, words, total):
    order = msgspec.structs.replace(uber(workshop, mapper=words, reducer=total, reduces=2), steps=2)
    workshop.run(order)
    task = workshop.task(order)
    names = sorted(record.task for record in commits.every(task.storage, task.layout.step).values())
    assert names == ["m-00000", "m-00001", "m-00002", "r-00000", "r-00001"]
    assert isinstance(commits.every(task.storage, task.layout.step, TaskType.MAP)[2], CommitRecord)


@pytest.mark.parametrize("task_type", [TaskType.UBER, TaskType.SETUP, TaskType.COMMIT])
def test_single_tasks_are_named_after_their_kind(task_type):
    assert contract.attempt_name(task_type, 0, 2) == f"{task_type}-a2"
