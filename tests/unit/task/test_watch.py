"""Commands without progress, what is left of tasks that are killed, and secrets."""

import dataclasses
import functools
import types

import msgspec
import pytest

from boathouse_task import contract, errors, runner
from boathouse_task.contract import Reason, TaskResult
from boathouse_task.runner import Watch


@pytest.fixture
def watched(tmp_path, clock):
    """A watch of a task whose command is running and has a timeout of 10 s, and the task's parts."""
    log, messages = tmp_path / "termination-log", []
    log.touch()
    task = types.SimpleNamespace(
        commands=types.SimpleNamespace(running=True, moved=0, tail="the key is tops3cret", give_up=messages.append),
        counters=types.SimpleNamespace(status=""),
        spec=types.SimpleNamespace(task_timeout_s=10),
        environment=types.SimpleNamespace(termination_log_path=log),
        messages=messages,
    )
    return Watch(task, hidden=["tops3cret"], monotonic=clock.monotonic), task


def seconds_until_given_up(watched, clock, change=lambda _task, _now_s: None):
    """Look once a second, after a change of the task; return when the command was given up, None if it was not."""
    watch, task = watched
    for _ in range(60):
        change(task, clock.now_s)
        watch.look()
        if task.messages:
            return clock.now_s
        clock.sleep(1)
    return None


def test_a_command_that_does_nothing_for_its_timeout_is_given_up(watched, clock):
    assert seconds_until_given_up(watched, clock) == 10
    assert "for 10 s: make it write reporter:status: lines" in watched[1].messages[0]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        pytest.param("commands", "moved", id="reads or writes"),
        pytest.param("counters", "status", id="reports its status"),
    ],
)
def test_a_command_with_progress_has_its_timeout_again(watched, clock, part, name):
    def change(task, now_s):
        setattr(getattr(task, part), name, min(now_s // 9, 3))

    assert seconds_until_given_up(watched, clock, change) == 27 + 10


def test_time_without_a_running_command_does_not_count(watched, clock):
    def change(task, now_s):
        task.commands.running = now_s >= 25

    assert seconds_until_given_up(watched, clock, change) == 24 + 10


def test_without_a_timeout_a_command_may_do_nothing(watched, clock):
    watched[1].spec.task_timeout_s = 0
    assert seconds_until_given_up(watched, clock) is None


def test_the_end_of_standard_error_is_in_the_termination_message_of_a_killed_container_without_secrets(watched):
    watch, task = watched
    watch.look()
    written = msgspec.json.decode(task.environment.termination_log_path.read_bytes(), type=TaskResult)
    assert (written.outcome, written.stderr_tail) == (contract.UNFINISHED, "the key is ***")


def test_a_command_without_progress_is_ended_and_the_job_is_at_fault(job_folder, monkeypatch, clock):
    started = job_folder.folder / "started"

    def monotonic():
        clock.sleep(1 if started.exists() else 0)
        return clock.now_s

    monkeypatch.setattr(runner, "LOOK_S", 0.01)
    monkeypatch.setattr(runner, "Watch", functools.partial(Watch, monotonic=monotonic))
    spec = job_folder.map_spec(b"a\n" * 10, ["sh", "-c", f"echo thinking >&2; touch {started}; exec sleep 600"])
    result = job_folder.run_task(msgspec.structs.replace(spec, task_timeout_s=10))
    assert (result.reason, result.user_error, result.exit_code) == (Reason.TASK_TIMEOUT, True, -9)
    assert "spec.taskTimeoutSeconds" in result.message
    assert result.stderr_tail == "thinking"


def test_the_exit_code_of_the_command_is_in_the_result(job_folder):
    assert job_folder.run_task(job_folder.map_spec(b"a\n", ["sh", "-c", "cat >/dev/null; exit 42"])).exit_code == 42


def test_values_of_secrets_are_masked_in_message_and_tail(job_folder):
    spec = job_folder.map_spec(b"a\n", ["sh", "-c", "echo $DB_PASSWORD $PLAIN >&2; exit 1"])
    spec = msgspec.structs.replace(spec, secret_variables=["PLAIN"])
    environment = job_folder.environment()
    variables = {**environment.variables, "DB_PASSWORD": "hunter22", "PLAIN": "from-a-secret"}
    result = runner.run(spec, dataclasses.replace(environment, variables=variables), runner.Processes())
    assert result.stderr_tail == "*** ***"
    assert "hunter22" not in result.message


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "db-password", "API_KEY"])
def test_variables_with_telling_names_are_secrets(name):
    assert errors.secrets({name: "value-1"}, ()) == ("value-1",)


def test_short_values_and_our_own_variables_mask_nothing():
    assert errors.secrets({"TOKEN": "ab", "BOATHOUSE_TOKEN_PATH": "/var/run/x", "LANG": "C.UTF-8"}, ["MISSING"]) == ()


def test_a_value_that_contains_another_is_masked_whole():
    assert errors.mask("abcd-efgh abcd", errors.secrets({"a_token": "abcd", "b_token": "abcd-efgh"}, ())) == "*** ***"
