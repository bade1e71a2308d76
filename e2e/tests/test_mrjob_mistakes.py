"""Common mistakes: each ends with one clear condition that says what to do."""

import pytest

from boathouse.resources import names
from boathouse_e2e import errors
from e2e.tests import harness

pytestmark = pytest.mark.cluster

CAT = {"command": ["cat"], "resources": harness.SMALL}


def failure_of(place, name, **spec):
    """Run a job that must fail; return its Failed condition."""
    job = place.finish(place.start(name, **spec))
    assert job.phase == "Failed"
    failed = job.condition(names.ConditionType.FAILED)
    assert failed is not None
    assert failed.status == "True"
    return failed


def test_missing_input(place):
    failed = failure_of(place, "mistake", input=[place.url("nothing-here/*.txt")])
    assert failed.reason == "InputNotFound"
    assert "nothing-here" in failed.message


def test_existing_output(place):
    place.put("in/a.txt", b"a\n")
    place.put("out-mistake/part-00000", b"the results of last night\n")
    failed = failure_of(place, "mistake")
    assert failed.reason == "OutputExists"
    assert "out-mistake" in failed.message
    assert place.files("out-mistake") == {"part-00000": b"the results of last night\n"}


def test_command_not_found(place):
    place.put("in/a.txt", b"a\n")
    failed = failure_of(place, "mistake", mapper={"command": ["no-such-program"], "resources": harness.SMALL})
    assert failed.reason == "CommandNotFound"
    assert "no-such-program" in failed.message


def test_a_command_that_exits_with_1(place):
    place.put("in/a.txt", b"a\n")
    broken = {"command": ["sh", "-c", "cat >/dev/null; echo 'no such column: price' >&2; exit 1"], "maxAttempts": 2}
    failed = failure_of(place, "mistake", mapper=broken | {"resources": harness.SMALL})
    assert failed.reason == "TaskFailed"
    assert "no such column: price" in failed.message or "exit" in failed.message
    job = place.look("mistake")
    assert [(failure.task, failure.user_error) for failure in job.failures] == [("m-00000", True)] * 2
    assert any("no such column: price" in line for pod in place.pods("mistake") for line in log_of(place, pod))


def log_of(place, pod):
    return list(place.gateway.log(pod.name, pod.container, tail=50, follow=False)) if pod.task == "m-00000" else []


def test_resources_that_no_node_has(place):
    place.put("in/a.txt", b"a\n")
    place.start("mistake", mapper=CAT | {"resources": {"requests": {"cpu": "64", "memory": "128Mi"}}})

    def never_fits():
        scheduled = place.look("mistake").condition(names.ConditionType.SCHEDULED)
        return scheduled if scheduled and scheduled.status == "False" and "64" in scheduled.message else None

    scheduled = harness.until(never_fits, "the job says that no node is large enough")
    assert scheduled.reason == "NeverFits"
    assert "cpu" in scheduled.message.lower()


def test_a_missing_secret(place):
    place.put("in/a.txt", b"a\n")
    s3 = place.job("mistake")["spec"]["storage"]["s3"] | {"secretRef": {"name": "no-such-secret"}}
    place.start("mistake", storage={"s3": s3})

    def says_so():
        conditions = place.look("mistake").conditions.values()
        return next((condition for condition in conditions if condition.reason == "SecretNotFound"), None)

    assert "no-such-secret" in harness.until(says_so, "the job names the secret").message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"reducer": None}, "reducer", id="reduces-without-reducer"),
        pytest.param({"output": "hdfs-but-no-scheme"}, "output", id="output-without-scheme"),
        pytest.param({"storage": None}, "storage.s3", id="s3-without-storage"),
    ],
)
def test_what_cannot_be_is_refused_at_once(place, spec, message):
    with pytest.raises(errors.ClusterError, match=message):
        place.start("mistake", **spec)
