"""Probes of jobs of unknown size, on the fake API server."""

from __future__ import annotations

import json

import msgspec
import pytest

from boathouse.resources import names
from boathouse_policies import framework, fspy
from boathouse_task import contract
from tests.builders.operators.mrjobs import CONFIG, KEY, Killed, RunningMRJob, failing, mrjob

SPLITS = 4
PROBE = ("probe", 1)
HELD = {PROBE: None, **{(f"m-{index:05d}", 1): None for index in range(SPLITS)}}


class Witness(framework.Observer):
    def __init__(self):
        self.events = []

    def observe(self, event):
        self.events.append(event)

    def of_probe(self, uid):
        """Return the types of the events of the job that is the probe."""
        jobs = ((event, getattr(event, "job", None)) for event in self.events)
        return [type(event).__name__ for event, job in jobs if getattr(job, "id", job) == f"{uid}/probe"]


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
async def cluster(api, client, witness):
    made = RunningMRJob(api, client, SPLITS)
    prediction = {"least_maps": SPLITS, "probe_seconds": 500}
    made.config = CONFIG.model_copy(update={"prediction": CONFIG.prediction.model_copy(update=prediction)})
    made.order = fspy.SizeBased(fspy.Config())
    made.observers = (made.order, witness)
    made.kubelet.script |= HELD
    return made


def prediction(cluster):
    return cluster.status.get("prediction") or {}


def phase(cluster, wanted):
    return lambda: prediction(cluster).get("probe") == wanted


def probes(cluster):
    return [key for key in cluster.pods() if key == "probe-a1"]


def probed(**counters):
    """What a probe leaves behind that read half of the input."""
    found = {"Boathouse": {"Sampled bytes": 2, "Map function milliseconds": 100, **counters}, "g": {"probe": 1}}
    result = contract.TaskResult(outcome="succeeded", winner_attempt=1, counters=found)
    return {"message": msgspec.json.encode(result).decode()}


async def ended(cluster, eventually):
    cluster.kubelet.script.clear()
    await eventually(lambda: cluster.status.get("phase") in {"Succeeded", "Failed"})


async def test_a_job_of_unknown_size_is_probed_once_and_its_counters_are_its_own(cluster, witness, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        assert cluster.condition("SizePredicted") == ("False", "Probing")
        cluster.kubelet.script[PROBE] = probed()
        await eventually(phase(cluster, "Succeeded"))
        assert prediction(cluster)["sampledFraction"] == 0.5
        await eventually(lambda: "Ended" in witness.of_probe(cluster.uid))
        assert witness.of_probe(cluster.uid) == ["Submitted", "Placed", "Started", "Finished", "Ended"]
        await ended(cluster, eventually)
    assert cluster.status["counters"] == {"g": {"map": SPLITS, "reduce": 1}}
    assert len(probes(cluster)) == 1


async def test_the_probe_reads_a_sample_and_writes_nothing(cluster, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        pod = cluster.api.get("pods", cluster.pod("probe-a1"))
    assert pod["metadata"]["labels"][names.LABEL_PROBE] == "true"
    env = {variable["name"]: variable.get("value") for variable in pod["spec"]["containers"][0]["env"]}
    spec = json.loads(env[contract.TASK_ENV])
    assert spec["probe_s"] == 500
    assert (spec["task_type"], len(spec["splits"]), spec.get("progress_url")) == ("probe", SPLITS, None)
    assert spec["sample_bytes"] == [1] * SPLITS


async def test_a_new_leader_carries_on_with_the_probe(cluster, eventually, monkeypatch):
    kills = ["before-mrjob.submit"]

    def hit(name):
        if phase(cluster, "Pending")() and name in kills:
            kills.remove(name)
            raise Killed

    monkeypatch.setattr("boathouse.failpoints.hit", hit)
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        assert (cluster.lives, kills) == (2, [])
        cluster.kubelet.script[PROBE] = probed()
        await eventually(phase(cluster, "Succeeded"))


@pytest.mark.parametrize(
    ("spec", "settings"), [({"probing": "Never"}, {}), ({}, {"probe": False}), ({}, {"least_maps": SPLITS + 1})]
)
async def test_a_job_is_not_probed_if_its_author_or_the_chart_says_so_or_if_it_is_small(
    cluster, eventually, spec, settings
):
    prediction_settings = cluster.config.prediction.model_copy(update=settings)
    cluster.config = cluster.config.model_copy(update={"prediction": prediction_settings})
    cluster.api.add(mrjob(**spec))
    async with cluster.running():
        await eventually(lambda: "m-00003-a1" in cluster.pods())
        await ended(cluster, eventually)
    assert probes(cluster) == []
    assert "probe" not in {name for name, value in prediction(cluster).items() if value is not None}


async def test_a_probe_that_fails_leaves_the_job_as_it_is(cluster, eventually):
    cluster.kubelet.script[PROBE] = failing()
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(phase(cluster, "Failed"))
        assert prediction(cluster)["reason"] == "UserCommandFailed"
        assert cluster.condition("SizePredicted") == ("False", "ProbeFailed")
        await ended(cluster, eventually)
    assert cluster.status["phase"] == "Succeeded"
    assert cluster.status["failures"] == {"user": 0, "infrastructure": 0}


async def test_the_probe_of_a_job_that_ends_first_is_withdrawn(cluster, witness, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        cluster.kubelet.script = {PROBE: None}
        await eventually(phase(cluster, "Withdrawn"))
        await eventually(lambda: not probes(cluster))
        assert cluster.status["phase"] == "Succeeded"
        await eventually(lambda: f"{cluster.uid}/probe" not in cluster.operator.scheduler.waiting)
    assert witness.of_probe(cluster.uid)[-2:] == ["Failed", "Ended"]


async def test_the_probe_of_a_suspended_job_is_withdrawn(cluster, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        cluster.api.change("mrjobs", KEY, {"spec": {"suspend": True}})
        await eventually(phase(cluster, "Withdrawn"))
        await eventually(lambda: not probes(cluster))


def by_fair_share(cluster):
    cluster.order, cluster.observers = None, ()


def without_probes(cluster):
    settings = cluster.config.prediction.model_copy(update={"probe": False})
    cluster.config = cluster.config.model_copy(update={"prediction": settings})


@pytest.mark.parametrize("change", [by_fair_share, without_probes])
async def test_a_probe_is_withdrawn_if_the_profile_or_the_chart_has_none_any_more(cluster, eventually, change):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
    change(cluster)
    async with cluster.running():
        await eventually(phase(cluster, "Withdrawn"))
        await eventually(lambda: not probes(cluster))
        assert cluster.condition("SizePredicted") == ("False", "ProbeWithdrawn")
        await ended(cluster, eventually)
    assert cluster.status["phase"] == "Succeeded"


async def test_a_deleted_job_has_no_probe(cluster, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: probes(cluster))
        uid = cluster.uid
        cluster.api.remove("mrjobs", KEY)
        await eventually(lambda: f"{uid}/probe" not in cluster.operator.scheduler.waiting)


async def test_probes_are_counted(cluster, eventually):
    cluster.kubelet.script[PROBE] = failing()
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(phase(cluster, "Failed"))
        sample = cluster.operator.telemetry.registry.get_sample_value
        await eventually(lambda: sample("boathouse_probes_total", {"result": "Failed"}) == 1)
