"""Kubernetes reads `$$` and `$(NAME)` in commands, arguments and variables: what a user wrote arrives unchanged."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from boathouse.resources.pod_environment import literal
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders import mrjobs
from tests.builders.sparkapps import app, submission
from tests.unit.cli.conversion import test_streaming_lines as lines
from tests.unit.services import test_pod_builder as pods
from tests.unit.services.mrjob_hadoop import test_client as clients

WRITTEN = ["$$", "$$(HOME)", "$(HOME)", "$HOME", "a$", "$(", "$$$(X)$$", "kill $$; echo $(id) $"]
VARIABLES = {"HOME": "/root", "X": "x"}


def expanded(text: str) -> str:
    """As Kubernetes' `third_party/forked/golang/expansion` does."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out, at = out + text[at], at + 1
        elif text[at + 1] == "$":
            out, at = out + "$", at + 2
        elif text[at + 1] == "(" and (end := text.find(")", at)) > 0:
            name = text[at + 2 : end]
            out, at = out + VARIABLES.get(name, f"$({name})"), end + 1
        else:
            out, at = out + text[at : at + 2], at + 2
    return out


@given(text=st.text("$()HOME X", max_size=12))
def test_any_text_arrives_as_it_was_written(text):
    assert expanded(literal(text)) == text


def test_a_driver_gets_its_arguments_as_they_were_written():
    (container,) = submission(app(arguments=WRITTEN)).driver["spec"]["containers"]
    assert [expanded(argument) for argument in container["args"]][-len(WRITTEN) :] == WRITTEN


@pytest.mark.parametrize("task_type", [TaskType.MAP, TaskType.UBER, TaskType.PROBE])
def test_a_task_gets_its_command_as_it_was_written(task_type):
    pod = pods.manifest(mrjobs.job(**{**pods.FULL, "mapper": {"command": WRITTEN}}), task_type)
    order = msgspec.json.decode(expanded(pods.variables(pod)[contract.TASK_ENV]["value"]), type=contract.TaskSpec)
    assert order.mapper == WRITTEN


def test_a_program_on_a_cluster_gets_its_arguments_as_they_were_written():
    pod = clients.client_manifest(jar={"url": "local:///opt/j.jar", "arguments": WRITTEN})
    assert [expanded(word) for word in pod["spec"]["containers"][0]["command"]][-len(WRITTEN) :] == WRITTEN


def test_a_variable_of_a_streaming_line_keeps_its_dollar_signs():
    (variable,) = lines.spec_of(f"{lines.URLS} -cmdenv 'PRICE=5$$(HOME)'")["env"]
    assert expanded(variable["value"]) == "5$$(HOME)"
