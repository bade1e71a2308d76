"""Responses of Spark's REST interface as the operator decodes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.services.sparkapp import rest

EXPECTED = {"spark.master": "k8s://https://kubernetes.default.svc", "spark.executor.memory": "1g"}


def environment_response(**changed):
    properties = {key: value for key, value in (EXPECTED | changed).items() if value is not None}
    return json.dumps({"sparkProperties": [list(pair) for pair in properties.items()]}).encode()


def test_the_running_jobs_are_summed_up():
    job = {"jobId": 1, "numTasks": 10, "numCompletedTasks": 4, "numActiveTasks": 2, "numActiveStages": 1, "x": []}
    found = rest.progress(json.dumps([job, job]).encode())
    assert (found.tasks.total, found.tasks.completed, found.stages.active, found.percent) == (20, 8, 2, 40)


def test_without_running_jobs_there_is_no_percentage():
    assert rest.progress(b"[]").percent is None


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'[{"numTasks": "many"}]', b"[" * 100_000, b'[{"numTasks": 1e99}]', b"\xff"]
)
def test_a_response_that_cannot_be_decoded_is_no_report(body):
    assert rest.progress(body) is None
    assert rest.overridden(body, EXPECTED) is None or body == b"{}"


@given(st.lists(st.dictionaries(st.sampled_from(["numTasks", "numCompletedTasks"]), st.integers(-(2**63), 2**63 - 1))))
def test_whatever_numbers_a_driver_sends_the_status_takes_them(jobs):
    found = rest.progress(json.dumps(jobs).encode())
    assert 0 <= found.tasks.total < 2**31
    assert found.percent is None or 0 <= found.percent <= 100


def test_the_spills_of_the_completed_stages_are_summed_up():
    stage = {"stageId": 1, "diskBytesSpilled": 100, "memoryBytesSpilled": 400}
    assert rest.spilled_bytes(json.dumps([stage, stage, {"diskBytesSpilled": -5}, {}]).encode()) == 200
    assert rest.spilled_bytes(json.dumps([{"diskBytesSpilled": 2**62}] * 4).encode()) == 2**60


@pytest.mark.parametrize("body", [b"", b"{}", b'[{"diskBytesSpilled": "many"}]', b"[" * 100_000])
def test_spills_that_cannot_be_decoded_are_no_report(body):
    assert rest.spilled_bytes(body) is None


def test_a_program_that_keeps_its_properties_overrides_nothing():
    assert rest.overridden(environment_response(**{"spark.sql.shuffle.partitions": "7"}), EXPECTED) == []


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({"spark.executor.memory": "8g"}, ["spark.executor.memory"]),
        ({"spark.executor.memory": None}, ["spark.executor.memory"]),
        ({"spark.master": "local[4]"}, ["spark.master"]),
        ({"spark.master": "k8s://https://kubernetes.default.svc:443"}, []),
        ({"spark.executor.memory": "*********(redacted)"}, []),
    ],
)
def test_properties_that_a_program_sets_itself_are_named(changed, keys):
    assert rest.overridden(environment_response(**changed), EXPECTED) == keys


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("10.1.2.3", "http://10.1.2.3:4040/x"),
        ("fd00::7", "http://[fd00::7]:4040/x"),
        *(
            (wrong, None)
            for wrong in ("127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "a.b", "", "1.2.3.4@x")
        ),
    ],
)
def test_only_addresses_of_pods_are_read(address, url):
    assert rest.url_of(address, 4040, "x") == url
