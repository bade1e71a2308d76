import ctypes
import json
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, strategies as st

from boathouse_task import __main__, contract, counters, environment, progress, runner
from boathouse_task.contract import Plan, Split, TaskResult, TaskSpec, TaskType, Timing
from tests.builders.tasks import SUM, start_pod, termination


def test_the_order_in_a_pods_environment_is_decoded_as_it_was():
    spec = TaskSpec(
        job_uid="u", job_name="j", namespace="n", task_type=TaskType.MAP, work_url="s3://b/w", output_url="s3://b",
        split=Split(url="s3://b/k", offset_bytes=1, length_bytes=2, size_bytes=9), maps=3, mapper=["cat"],
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(spec), type=TaskSpec) == spec


def test_fields_of_a_newer_operator_do_not_matter():
    order = {"version": 1, "maps_total": 2, "later": True}
    assert msgspec.json.decode(json.dumps(order), type=contract.Orders).maps_total == 2


@given(st.integers(0, 300).flatmap(lambda total: st.tuples(st.just(total), st.sets(st.integers(0, max(0, total - 1))))))
def test_a_bitmap_keeps_its_set(total_and_done):
    total, done = total_and_done
    done = done if total else set()
    assert contract.decode_bitmap(contract.encode_bitmap(done, total), total) == done


def test_the_plans_digest_is_of_its_json():
    plan = Plan(splits=[Split(url="u", offset_bytes=0, length_bytes=1, size_bytes=1)], bytes_total=1)
    assert contract.plan_digest(plan) == contract.plan_digest(msgspec.json.decode(msgspec.json.encode(plan), type=Plan))
    assert contract.plan_digest(plan) != contract.plan_digest(Plan(splits=[], bytes_total=1))


def test_tasks_of_all_types_can_be_run():
    assert set(runner.RUNS) == set(TaskType)


def test_task_names_are_those_of_the_pods():
    assert contract.attempt_name(TaskType.MAP, 42, 1) == "m-00042-a1"
    assert contract.attempt_name(TaskType.REDUCE, 7, 3) == "r-00007-a3"
    assert contract.task_name(TaskType.SETUP, 0) == "setup"


def big_result(**fields) -> TaskResult:
    users = {f"counter with a name {number}": number for number in range(200)}
    values = {"mine": users, counters.TASK: {counters.MAP_INPUT_RECORDS: 7}}
    return TaskResult(outcome="succeeded", timings=[Timing("read", 1, 2)], **{"counters": values, **fields})


def test_a_result_that_fits_is_kept_whole():
    result = TaskResult(outcome="failed", stderr_tail="x" * 1000)
    assert msgspec.json.decode(runner.encode(result), type=TaskResult) == result


def test_of_a_large_result_the_users_counters_go_first_and_are_counted():
    encoded = runner.encode(big_result())
    kept = msgspec.json.decode(encoded, type=TaskResult)
    assert len(encoded) <= contract.TERMINATION_LOG_MAX_BYTES
    assert kept.counters[counters.TASK] == {counters.MAP_INPUT_RECORDS: 7}
    assert kept.counters[counters.BOATHOUSE][counters.DROPPED] + len(kept.counters["mine"]) == 200
    assert kept.timings == [Timing("read", 1, 2)]


@given(st.text(max_size=3000), st.text(max_size=800))
def test_any_result_fits_the_termination_message(tail, message):
    encoded = runner.encode(big_result(stderr_tail=tail, message=message))
    assert len(encoded) <= contract.TERMINATION_LOG_MAX_BYTES
    assert msgspec.json.decode(encoded, type=TaskResult).message == message


@pytest.mark.parametrize(
    ("reason", "user_error", "status"),
    [("", False, 0), ("UserCommandFailed", True, 10), ("StorageError", False, 20), ("Terminated", False, 143)],
)
def test_the_exit_status_tells_whose_fault_it_was(reason, user_error, status):
    outcome = "failed" if reason else "succeeded"
    assert runner.exit_status(TaskResult(outcome=outcome, reason=reason, user_error=user_error)) == status


def test_the_sort_buffer_follows_the_memory_limit():
    small, large = (environment.Environment(memory_limit_bytes=mib << 20).sort_bytes for mib in (64, 1072))
    assert small == 8 << 20
    assert large == 512 << 20


def test_a_pod_without_a_limit_has_a_default():
    assert environment.from_variables({contract.MEMORY_LIMIT_ENV: "0"}).memory_limit_bytes > 0
    assert environment.from_variables({contract.MEMORY_LIMIT_ENV: "1000"}).memory_limit_bytes == 1000


def test_a_pod_leaves_its_result_as_termination_message(job_folder):
    order = job_folder.map_spec(b"x\n", ["sh", "-c", "cat; echo why >&2; exit 4"])
    status, result = termination(job_folder, start_pod(job_folder, msgspec.json.encode(order)))
    assert status == contract.EXIT_USER_ERROR
    assert (result.reason, result.stderr_tail) == ("UserCommandFailed", "why")


def test_an_order_that_cannot_be_read_is_a_result_too(job_folder):
    status, result = termination(job_folder, start_pod(job_folder, b"{}"))
    assert status == contract.EXIT_INFRASTRUCTURE
    assert "of the same version" in result.message


class Stopped:
    """A pod whose command has started two processes, to be stopped."""

    def __init__(self, job_folder) -> None:
        self.job_folder, self._pids = job_folder, job_folder.folder / "pids"
        new = f"{self._pids}.new"
        command = ["sh", "-c", f"sleep 1000 & echo $! $$ > {new}; mv {new} {self._pids}; echo ready >&2; wait"]
        self.process = start_pod(job_folder, msgspec.json.encode(job_folder.map_spec(b"x\n", command)))
        assert self.process.stderr is not None
        while self.process.stderr.readline() != b"ready\n":
            pass

    def threads(self) -> list[int]:
        return sorted(int(one.name) for one in Path(f"/proc/{self.process.pid}/task").iterdir())

    def assert_ended(self) -> None:
        assert self.process.stderr is not None
        self.process.stderr.read()
        self.process.stderr.close()
        assert self.process.wait(timeout=30) == contract.EXIT_TERMINATED
        result = msgspec.json.decode((self.job_folder.folder / "log").read_bytes(), type=TaskResult)
        assert result.reason == "Terminated"
        assert not any(is_running(int(pid)) for pid in self._pids.read_text().split())


def test_sigterm_ends_the_command_with_all_it_started_and_says_so(job_folder):
    pod = Stopped(job_folder)
    pod.process.send_signal(signal.SIGTERM)
    pod.assert_ended()


def test_sigterm_is_answered_also_where_it_does_not_wake_the_main_thread(job_folder):
    pod = Stopped(job_folder)
    ctypes.CDLL(None).tgkill(pod.process.pid, pod.threads()[-1], signal.SIGTERM)
    pod.assert_ended()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


DONE = TaskResult(outcome=contract.SUCCEEDED)


def test_a_task_with_an_endpoint_reports_while_it_runs(job_folder, monkeypatch):
    reported = threading.Event()

    def work(_task):
        assert reported.wait(timeout=60)
        return DONE

    monkeypatch.setattr(runner, "REPORT_S", 0.01)
    monkeypatch.setattr(runner, "_report", lambda *_: reported.set())
    monkeypatch.setattr(runner, "RUNS", {TaskType.SETUP: work})
    result = job_folder.run_task(job_folder.setup_spec(progress_url="https://localhost:9"))
    assert result.outcome == contract.SUCCEEDED


def test_a_task_ends_without_waiting_for_the_answer_to_its_report(job_folder, monkeypatch):
    is_sent, has_ended = threading.Event(), threading.Event()
    waited = []

    def report(*_):
        is_sent.set()
        waited.append(has_ended.wait(timeout=10))

    monkeypatch.setattr(runner, "REPORT_S", 0.01)
    monkeypatch.setattr(runner, "_report", report)
    monkeypatch.setattr(runner, "RUNS", {TaskType.SETUP: lambda _task: is_sent.wait(timeout=60) and DONE})
    job_folder.run_task(job_folder.setup_spec(progress_url="https://localhost:9"))
    assert waited == []
    has_ended.set()


def test_a_report_that_cannot_be_sent_is_left_to_the_next():
    class Away:
        def report(self, _):
            raise progress.Unavailable(503, "away")

    assert runner._report(SimpleNamespace(report=dict), Away()) is None


def test_without_an_order_the_console_script_says_what_to_do(capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main([])
    assert ended.value.code == 2
    assert "boathouse-task local --help" in capsys.readouterr().err


def test_a_local_job_is_run_from_the_command_line(job_folder, capfd):
    job_folder.write_input("a", b"b a b\n")
    quoted = ['sh -c \'tr " " "\\n" | sed s/$/\\\\t1/\'', " ".join(f"'{word}'" for word in SUM)]
    arguments = [
        "--input",
        str(job_folder.input),
        "--output",
        str(job_folder.output),
        "--mapper",
        quoted[0],
        "--reducer",
        quoted[1],
    ]
    assert __main__.main(["local", *arguments]) == 0
    assert job_folder.parts() == [b"a\t1\nb\t2\n"]
    assert "Map input records=1" in capfd.readouterr().err
    assert __main__.main(["local", *arguments]) == contract.EXIT_USER_ERROR
    assert "OutputExists" in capfd.readouterr().err


@pytest.mark.parametrize("size", ["0", "1K", "x", "-1"])
def test_a_size_that_is_none_is_refused(size, capsys):
    with pytest.raises(SystemExit):
        __main__.main(["local", "--input", "a", "--output", "b", "--mapper", "cat", f"--memory={size}"])
    assert "is not a size such as 64Mi" in capsys.readouterr().err
