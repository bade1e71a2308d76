"""Commands that do nothing, what is left of tasks that are killed, and secrets."""

import dataclasses
import types

import msgspec
import pytest

from boathouse_task import contract, masking, runner
from boathouse_task.contract import Reason, TaskResult
from boathouse_task.watch import Watch


def timeout(spec, seconds):
    return msgspec.structs.replace(spec, task_timeout_s=seconds)


def test_a_command_that_does_nothing_for_too_long_is_ended_and_the_job_is_at_fault(workshop):
    spec = workshop.map_spec(b"a\n" * 10, ["sh", "-c", "echo thinking >&2; exec sleep 60"])
    result = workshop.run(timeout(spec, 1))
    assert (result.reason, result.user_error, result.exit_code) == (Reason.TASK_TIMEOUT, True, -9)
    assert "spec.taskTimeoutSeconds" in result.message
    assert result.stderr_tail == "thinking"


def test_a_command_that_only_reports_its_status_goes_on(workshop):
    talk = "for i in 1 2 3 4 5 6; do echo reporter:status:$i >&2; sleep 0.4; done; cat"
    assert workshop.run(timeout(workshop.map_spec(b"a\n", ["sh", "-c", talk]), 1)).succeeded


def test_without_a_timeout_a_command_may_be_silent(workshop):
    assert workshop.run(timeout(workshop.map_spec(b"a\n", ["sh", "-c", "sleep 2; cat"]), 0)).succeeded


def test_the_exit_code_of_the_command_is_in_the_result(workshop):
    assert workshop.run(workshop.map_spec(b"a\n", ["sh", "-c", "cat >/dev/null; exit 42"])).exit_code == 42


@pytest.fixture
def watched(tmp_path):
    """A task whose command has said something, and what its watch wrote down."""
    log = tmp_path / "termination-log"
    log.touch()
    commands = types.SimpleNamespace(running=False, moved=0, tail="the key is tops3cret")
    task = types.SimpleNamespace(
        commands=commands,
        counters=types.SimpleNamespace(status=""),
        spec=types.SimpleNamespace(task_timeout_s=0),
        environment=types.SimpleNamespace(termination_log_path=log),
    )
    return Watch(task, encode=runner.encode, hidden=["tops3cret"]), log


def test_what_a_command_said_is_there_when_its_container_is_killed_but_no_secret_of_it(watched):
    watch, log = watched
    watch.look()
    written = msgspec.json.decode(log.read_bytes(), type=TaskResult)
    assert (written.outcome, written.stderr_tail) == (contract.UNFINISHED, "the key is ***")


def test_values_of_secrets_are_masked_in_message_and_tail(workshop):
    spec = workshop.map_spec(b"a\n", ["sh", "-c", "echo $DB_PASSWORD $PLAIN >&2; exit 1"])
    spec = msgspec.structs.replace(spec, secret_variables=["PLAIN"])
    given = workshop.environment()
    variables = {**given.variables, "DB_PASSWORD": "hunter22", "PLAIN": "from-a-secret"}
    result = runner.run(spec, dataclasses.replace(given, variables=variables), runner.Processes())
    assert result.stderr_tail == "*** ***"
    assert "hunter22" not in result.message


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "db-password", "API_KEY"])
def test_variables_with_telling_names_are_secrets(name):
    assert masking.secrets({name: "value-1"}, ()) == ("value-1",)


def test_short_values_and_our_own_variables_mask_nothing():
    assert masking.secrets({"TOKEN": "ab", "BOATHOUSE_TOKEN_PATH": "/var/run/x", "LANG": "C.UTF-8"}, ["MISSING"]) == ()


def test_a_value_that_contains_another_is_masked_whole():
    assert masking.mask("abcd-efgh abcd", masking.secrets({"a_token": "abcd", "b_token": "abcd-efgh"}, ())) == "*** ***"
