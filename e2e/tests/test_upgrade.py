"""Upgrade from a previous version and rollback to it, each while a job runs: chart, CRD and images of both."""

import contextlib

import pytest

from boathouse.resources import names
from boathouse_e2e import faults, images, install, previous
from e2e.tests import harness
from e2e.tests.conftest import VALUES

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.long]

INPUT_BYTES = 8_000_000


@pytest.fixture(scope="session", params=previous.COMMITS)
def earlier(request, installed, tmp_path_factory):
    """A commit of a previous version, and its checkout, whose images the nodes have."""
    checkout = previous.checkout(tmp_path_factory.mktemp("previous") / "boathouse", request.param)
    images.load_archives(installed, images.ensure_version(checkout, request.param).values())
    return request.param, checkout


@contextlib.contextmanager
def rolled_back(cluster, earlier):
    """The previous version runs until the block ends, however it ends."""
    commit, checkout = earlier
    install.install(cluster, VALUES, checkout=checkout, tag=commit)
    try:
        yield
    finally:
        install.install(cluster, VALUES)


def begin(place, name):
    """Start a job whose maps wait for its gate; return its name when they run."""
    wait = f"until getent hosts {gate(name)}; do sleep 0.2; done >&2"
    mapper = {"command": ["sh", "-c", f"{wait}; exec python3 mapper.py"], "resources": harness.SMALL}
    place.start(name, mapper=mapper)
    harness.until(lambda: place.look(name).maps.running, "a map runs")
    return name


def gate(name):
    """The Service for whose name the maps of a job wait."""
    return f"gate-of-{name}"


def open_gate(place, name):
    """Let the maps of a job go on."""
    metadata = {"name": gate(name), "namespace": place.namespace}
    place.cluster.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
    )


def check(place, name, data):
    """The job goes on and ends well, and its pods are of operators of both versions."""
    open_gate(place, name)
    place.succeed(name)
    assert harness.pairs(output(place, name)) == harness.counted(data)
    epochs = {pod["metadata"]["annotations"][names.ANNOTATION_EPOCH] for pod in place.raw_pods(name)}
    assert len(epochs) > 1, "all of the job's pods are of one operator"


def output(place, name):
    """A job's parts; a commit of the previous version leaves the mark by which its output was owned."""
    files = place.files(f"out-{name}")
    assert b"job_uid" in files.pop("_SUCCESS")
    files.pop("_temporary/owner-00001", None)
    assert sorted(files) == ["part-00000", "part-00001"]
    return files


def test_jobs_run_on_through_a_rollback_and_an_upgrade(place, earlier):
    data = harness.text(INPUT_BYTES)
    place.put("in/a.txt", data)
    first_epoch = faults.epoch(place.cluster)
    ours = begin(place, "ours")
    with rolled_back(place.cluster, earlier):
        check(place, ours, data)
        theirs = begin(place, "theirs")
    check(place, theirs, data)
    assert faults.epoch(place.cluster) >= first_epoch + 2
