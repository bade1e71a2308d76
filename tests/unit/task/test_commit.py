"""The exclusive commit of attempts, and the job's commit, which may crash anywhere and be repeated."""

import shutil
import threading

import msgspec
import pytest

from boathouse_task import commit_task, uber_task
from boathouse_task.contract import Plan, Reason, TaskSpec
from boathouse_task.storage import Storage


class Crash(Exception):  # noqa: N818 - it stands for what happens
    """Stands for the end of the pod."""


class CrashingStorage(Storage):
    """Counts the calls that change something, and crashes after one of them."""

    def __init__(self, crash_at: int) -> None:
        super().__init__(None, {}, part_bytes=1 << 20)
        self._lock = threading.Lock()
        self._left = crash_at

    def _change(self, change, *arguments):
        with self._lock:
            self._left -= 1
            result = change(*arguments)
            if self._left <= 0:
                raise Crash
            return result

    def write(self, location, content):
        self._change(super().write, location, content)

    def move(self, source, target, size_bytes):
        self._change(super().move, source, target, size_bytes)

    def delete(self, locations):
        for location in list(locations):
            self._change(super().delete, [location])


def ready_to_commit(job_folder, **fields) -> TaskSpec:
    """Runs a job up to its commit, whose order is returned."""
    job_folder.write_input("a", b"a\t1\nb\t2\nc\t3\n")
    spec = job_folder.setup_spec(**fields)
    assert job_folder.run_task(spec).succeeded
    plan = msgspec.json.decode(
        (job_folder.output / spec.work_url.partition("/out/")[2] / "s0/plan.json").read_bytes(), type=Plan
    )
    *tasks, commit = uber_task.orders(spec, plan.splits)
    for order in tasks:
        assert job_folder.run_task(order).succeeded
    return commit


@pytest.mark.parametrize("reduces", [0, 3], ids=["map-only", "reduces"])
def test_a_commit_that_crashed_at_any_change_is_completed_by_the_next(job_folder, reduces):
    commit = ready_to_commit(job_folder, split_max_bytes=5, reducer=["cat"] if reduces else None, reduces=reduces)
    shutil.copytree(job_folder.output, job_folder.folder / "before")
    crashes = 0
    while crash_at(job_folder, commit, crashes + 1):
        crashes += 1
        assert job_folder.run_task(commit).succeeded
        assert sorted(b"".join(job_folder.parts()).splitlines()) == [b"a\t1", b"b\t2", b"c\t3"]
        assert job_folder.output_names() == ["_SUCCESS", *(f"part-{number:05d}" for number in range(3))]
        shutil.rmtree(job_folder.output)
        shutil.copytree(job_folder.folder / "before", job_folder.output)
    assert crashes >= 10


def crash_at(job_folder, commit: TaskSpec, change: int) -> bool:
    """Run a commit that crashes after a change; return whether it has so many changes."""
    task = job_folder.task(commit)
    task.storage = CrashingStorage(change)
    try:
        commit_task.run(task)
    except Crash:
        return True
    return False


def test_commits_that_crash_one_after_another_get_further_each_time(job_folder):
    commit = ready_to_commit(job_folder, reducer=["cat"], reduces=1)
    crashes = sum(crash_at(job_folder, commit, change) for change in (1, 2, 3, 1))
    assert crashes == 4
    assert job_folder.run_task(commit).succeeded
    assert job_folder.parts() == [b"a\t1\nb\t2\nc\t3\n"]


def test_a_commit_repeated_after_success_changes_nothing_and_says_the_same(job_folder):
    commit = ready_to_commit(job_folder, reducer=["cat"], reduces=2)
    first, before = job_folder.run_task(commit), job_folder.parts()
    again = job_folder.run_task(commit)
    assert (again.digest, again.bytes_total) == (first.digest, first.bytes_total)
    assert job_folder.parts() == before


def test_success_is_not_declared_while_a_task_has_not_committed(job_folder):
    commit = ready_to_commit(job_folder, reducer=["cat"], reduces=2)
    (record,) = job_folder.output.rglob("_commit/r-00001")
    record.unlink()
    result = job_folder.run_task(commit)
    assert (result.reason, result.user_error) == (Reason.COMMIT_MISSING, False)
    assert "r-00001" in result.message
    assert not (job_folder.output / "_SUCCESS").exists()
    assert job_folder.parts() == []


def test_the_digest_is_that_of_the_parts(job_folder):
    one = job_folder.run_task(ready_to_commit(job_folder, reducer=["cat"], reduces=2)).digest
    job_folder.output.rename(job_folder.folder / "first")
    two = job_folder.run_task(ready_to_commit(job_folder, reducer=["cat"], reduces=2)).digest
    job_folder.output.rename(job_folder.folder / "second")
    other = job_folder.run_task(ready_to_commit(job_folder, reducer=["tac"], reduces=2)).digest
    assert one == two != other


def test_of_attempts_at_once_one_wins_and_all_know_it(job_folder):
    spec = job_folder.map_spec(b"x\t1\n", reducer=["cat"])
    results = run_at_once(job_folder, [msgspec.structs.replace(spec, attempt=number) for number in range(1, 7)])
    assert all(result.succeeded for result in results)
    (record,) = job_folder.output.rglob("_commit/m-00000")
    assert {result.winner_attempt for result in results} == {msgspec.json.decode(record.read_bytes())["attempt"]}


def run_at_once(job_folder, orders):
    results = []
    threads = [
        threading.Thread(target=lambda order=order: results.append(job_folder.run_task(order))) for order in orders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_later_attempt_leaves_the_winners_output_alone(job_folder):
    first = job_folder.map_spec(b"x\n", ["echo", "first"])
    job_folder.run_task(first)
    second = job_folder.run_task(msgspec.structs.replace(first, mapper=["echo", "second"], attempt=2))
    assert (second.succeeded, second.winner_attempt) == (True, 1)
    job_folder.run_task(msgspec.structs.replace(first, task_type="commit", reduces=0))
    assert job_folder.parts() == [b"first\t\n"]


def test_an_attempt_whose_answer_was_lost_finds_itself_the_winner(job_folder):
    task = job_folder.task(job_folder.map_spec(b"x\n", attempt=3))
    for _ in range(2):
        assert task.commit(digest="d", size_bytes=1, records=1).attempt == 3


def test_a_reduce_takes_the_winners_data(job_folder):
    losing = job_folder.map_spec(b"x\t1\n", reducer=["cat"])
    winning = msgspec.structs.replace(losing, mapper=["echo", "winner"], attempt=2)
    assert job_folder.run_task(winning).winner_attempt == 2
    assert job_folder.run_task(losing).winner_attempt == 2
    job_folder.run_task(msgspec.structs.replace(losing, task_type="reduce"))
    job_folder.run_task(msgspec.structs.replace(losing, task_type="commit"))
    assert job_folder.parts() == [b"winner\t\n"]


@pytest.mark.parametrize(("suffix", "damage"), [("data", b"z\t9\n"), ("index", b"")])
def test_damaged_map_output_fails_the_shuffle(job_folder, suffix, damage):
    order = job_folder.map_spec(b"x\t1\n", reducer=["cat"])
    job_folder.run_task(order)
    (data,) = job_folder.output.rglob(f"*.{suffix}")
    data.write_bytes(damage)
    result = job_folder.run_task(msgspec.structs.replace(order, task_type="reduce"))
    assert (result.succeeded, result.user_error) == (False, False)
    assert result.reason in (Reason.SHUFFLE_ERROR, Reason.STORAGE_ERROR)


def test_map_output_that_has_gone_fails_the_shuffle(job_folder):
    order = job_folder.map_spec(b"x\t1\n", reducer=["cat"])
    job_folder.run_task(order)
    (data,) = job_folder.output.rglob("*.data")
    data.unlink()
    result = job_folder.run_task(msgspec.structs.replace(order, task_type="reduce"))
    assert result.reason == Reason.SHUFFLE_ERROR
    assert "map 0, attempt 1" in result.message


def test_a_large_shuffle_spills_and_counts_what_it_spills(job_folder):
    content = b"".join(b"%05d\t%s\n" % (number * 7919 % 100_000, b"v" * 20) for number in range(20_000))
    job_folder.write_input("a", content)
    result = job_folder.run_job(reducer=["cat"], split_max_bytes=60_000, buffer_bytes=300_000)
    assert b"".join(job_folder.parts()) == b"".join(sorted(content.splitlines(keepends=True)))
    assert result.counters["Boathouse"]["Spilled bytes"] >= len(content)
