"""From a custom resource to an application, or why it cannot run; its status, and the names of its attempts."""

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources.config import OperatorConfig
from boathouse.resources.sparkapp.status import Attempt, FailureCounts
from boathouse.services.frame.status_codec import stripped
from boathouse.services.sparkapp import model
from boathouse.services.sparkapp.model import AppState, AttemptNames
from tests.builders.sparkapps import UID, app, app_refusal, sparkapp

WRONG = [
    ({"type": "R"}, "type"),
    ({"mainApplicationFile": None}, "mainApplicationFile"),
    ({"sparkConf": {"spark.master": "local"}}, "spark.master: set by Boathouse"),
    ({"sparkConf": {"spark.executor.memory": "lots"}}, "is not a size for Spark"),
    ({"sparkConf": {"spark.executor.memory": "999999999t"}}, "more than 256Ti"),
    ({"sparkConf": {"spark.executor.cores": "2147483647"}}, "not between 1m and 1M"),
    ({"sparkConf": {"spark.kubernetes.executor.request.cores": "0"}}, "not between 1m and 1M"),
    ({"sparkConf": {"spark.executor.instances": "2147483647"}}, "more than 10000"),
    ({"sparkConf": {"spark.executor.instances": "many"}}, "not a whole number"),
    ({"sparkConf": {"spark.ui.port": "http"}}, "not a port"),
    ({"sparkConf": {"spark.driver.port": "99999"}}, "not a port"),
    ({"sparkConf": {"spark.a": "b\nspark.master=local"}}, "line end or a NUL"),
    ({"sparkConf": {"spark.a": "b\0"}}, "line end or a NUL"),
    ({"arguments": ["a\0"]}, "arguments have no NUL"),
    ({"driver": {"ephemeralStorage": "much"}}, "is not a quantity"),
    ({"executor": {"extendedResources": {"example.com/a": "x"}}}, "is not a quantity"),
    (
        {
            "dynamicAllocation": {"enabled": True, "maxExecutors": 2},
            "sparkConf": {"spark.dynamicAllocation.minExecutors": "3"},
        },
        "more than the maximum",
    ),
    ({"hadoopConf": {str(n): "x" * 16000 for n in range(40)}}, "the properties have"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_the_api_server_would_have_let_through_is_refused(wrong, message):
    found = app_refusal(**wrong)
    assert found.reason == "InvalidSpec"
    assert message in found.message


def test_an_application_needs_an_image():
    found = model.from_resource(sparkapp(), OperatorConfig())
    assert "no image: set spec.image" in found.message
    assert app(image="other:1").image == "other:1"


def test_an_unknown_queue_is_refused():
    assert app_refusal(queue="gold").reason == "QueueNotFound"


def test_the_keys_of_the_storage_are_in_the_environment_and_nowhere_else():
    s3 = {"endpointURL": "https://s3.example.com", "secretRef": {"name": "keys"}}
    found = app(storage={"s3": s3}, env=[{"name": "AWS_ACCESS_KEY_ID", "value": "mine"}])
    assert found.conf["spark.hadoop.fs.s3a.endpoint"] == "https://s3.example.com"
    assert found.conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "true"
    assert "EnvironmentVariableCredentialsProvider" in found.conf["spark.hadoop.fs.s3a.aws.credentials.provider"]
    assert not any("key" in key for key in found.conf)


def test_fields_of_the_user_win_over_the_defaults():
    found = app(storage={"s3": {}}, hadoopConf={"fs.s3a.committer.name": "directory"})
    assert found.conf["spark.hadoop.fs.s3a.committer.name"] == "directory"
    assert "Anonymous" in found.conf["spark.hadoop.fs.s3a.aws.credentials.provider"]


def test_an_application_may_have_as_many_executors_pending_as_its_minimum():
    key = "spark.kubernetes.allocation.maxPendingPods"
    assert app().conf[key] == "5"
    assert app(executor={"instances": 40}).conf[key] == "40"
    assert app(sparkConf={key: "7"}).conf[key] == "7"


TIMES = st.none() | st.integers(1, 4 * 10**9).map(float)
TEXTS = st.sampled_from(["", "DriverLost"])
ATTEMPTS = st.builds(Attempt, number=st.integers(1, 9), application_id=TEXTS, start_s=TIMES, end_s=TIMES, reason=TEXTS)
STATES = st.builds(
    AppState,
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    queue=TEXTS,
    start_s=TIMES,
    attempt=st.integers(9, 99),
    failures=st.builds(FailureCounts, application=st.integers(0, 9), retry_s=TIMES),
    past_attempts=st.lists(ATTEMPTS, max_size=5).map(tuple),
    last_log=TEXTS,
)


@settings(max_examples=40)
@given(STATES)
def test_a_state_is_restored_from_what_the_api_server_keeps_of_its_status(state):
    status = model.to_status(state)
    assert model.from_status(json.loads(json.dumps(stripped(status)))) == state
    assert model.from_status(status) == state


@pytest.mark.parametrize("text", ["soon", 7, ""])
def test_a_time_that_cannot_be_read_costs_neither_its_attempt_nor_the_failures(text):
    status = {
        "pastAttempts": [{"number": 3, "applicationId": "a", "startTime": text}],
        "failures": {"application": 2, "infrastructure": -1, "retryTime": text},
    }
    state = model.from_status(status)
    assert (state.attempt, state.past_attempts[0].start_s) == (3, None)
    assert state.failures == FailureCounts(application=2)


LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
PARTS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)
OBJECT_NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join)
NUMBERS = st.integers(1, 10**6)
UIDS = st.uuids().map(str)


def attempt_names(name=None, uid=UID, attempt=1):
    return AttemptNames.of(name or "pi", uid, attempt)


@settings(max_examples=40)
@given(OBJECT_NAMES, UIDS, NUMBERS)
def test_every_name_is_a_dns_label_within_its_bound(name, uid, attempt):
    names = attempt_names(name, uid, attempt)
    for text in (names.driver_pod, names.config_map, names.service):
        assert len(text) <= 63
        assert LABEL.fullmatch(text)
    assert len(names.executor_prefix) <= 38
    assert LABEL.fullmatch(names.executor_prefix)
    assert len(f"{names.executor_prefix}-exec-{2**31 - 1}") <= 63
    assert len(names.application_id) <= 63


@settings(max_examples=40)
@given(OBJECT_NAMES, OBJECT_NAMES, UIDS, NUMBERS, NUMBERS)
def test_no_two_attempts_have_a_name_in_common(one, other, uid, first, second):
    a, b = attempt_names(one, uid, first), attempt_names(other, uid, second)
    if (one, first) == (other, second):
        return
    assert a.driver_pod != b.driver_pod
    assert a.config_map != b.config_map
    assert a.executor_prefix != b.executor_prefix
    if first != second:
        assert a.application_id != b.application_id


def test_an_application_that_is_created_again_has_other_names():
    old, new = attempt_names(), attempt_names(uid="1" + UID[1:])
    assert old.driver_pod != new.driver_pod
    assert old.application_id != new.application_id


@pytest.mark.parametrize(("first", "second"), [("a" * 60, "a" * 59 + "b"), ("a.b", "a-b")], ids=["long", "dots"])
def test_names_that_would_be_truncated_or_replaced_to_the_same_differ(first, second):
    a, b = attempt_names(first), attempt_names(second)
    assert a.driver_pod != b.driver_pod
    assert a.executor_prefix != b.executor_prefix


def test_a_short_name_is_kept():
    names = attempt_names("word-count", attempt=3)
    assert names.driver_pod == "word-count-0a1b2c3d-a3-driver"
    assert names.executor_prefix == "word-count-0a1b2c3d-a3"
    assert names.service == "word-count-0a1b2c3d-ui"
    assert names.application_id == "spark-0a1b2c3d4e5f6789abcdef0123456789-3"
