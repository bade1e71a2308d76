"""What observers are told of jobs on the fake API server, and what of it outlives the process."""

from __future__ import annotations

import pytest

from boathouse.services.learned import KEY, NAME, SavedState
from boathouse_policies import framework, model
from tests.builders.operators.mrjobs import RunningMRJob, ended, failing, mrjob


class Witness(framework.Observer):
    """An observer that keeps what it was told."""

    def __init__(self):
        self.events = []

    def observe(self, event):
        self.events.append(event)

    def dump(self):
        return {"events": len(self.events)}

    def load(self, state):
        self.loaded = state

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
async def cluster(api, client, witness):
    made = RunningMRJob(api, client, 3)
    made.observers = (witness,)
    return made


async def test_observers_see_a_job_come_run_and_end(cluster, witness, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: witness.of(model.Ended))
    placed = [event.task.rpartition("-s0-")[2] for event in witness.of(model.Placed)]
    assert sorted(placed) == ["commit-a1", "m-00000-a1", "m-00001-a1", "m-00002-a1", "r-00000-a1", "setup-a1"]
    assert len(witness.of(model.Finished)) == len(witness.of(model.Started)) == 6
    assert witness.of(model.Ended)[0].succeeded
    classes = [[one.stage for one in event.classes] for event in witness.of(model.Submitted)]
    assert [model.Stage.SETUP] in classes
    assert [model.Stage.MAP, model.Stage.REDUCE, model.Stage.COMMIT] in classes


async def test_what_is_left_to_place_agrees_with_what_is_placed(cluster, witness, eventually):
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: witness.of(model.Ended))
    first = next(e for e in witness.of(model.Submitted) if len(e.classes) == 3)
    after = witness.events[witness.events.index(first) :]
    for one in first.classes:
        placed = [e for e in after if isinstance(e, model.Placed) and e.task_class == one.id]
        assert first.tasks[one.id] == len(placed), one.id


async def test_a_failed_attempt_is_reported_as_failed(cluster, witness, eventually):
    cluster.kubelet.script["m-00001", 1] = failing()
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(ended(cluster))
    assert [(e.task.rpartition("-s0-")[2], e.reason) for e in witness.of(model.Failed)] == [
        ("m-00001-a1", "UserCommandFailed")
    ]


async def test_an_operator_that_restarts_tells_of_what_runs_again(cluster, witness, eventually):
    cluster.kubelet.script["m-00002", 1] = None
    cluster.api.add(mrjob())
    async with cluster.running():
        await eventually(lambda: cluster.status.get("maps", {}).get("succeeded") == 2)
    witness.events.clear()
    cluster.kubelet.script.clear()
    async with cluster.running():
        await eventually(lambda: witness.of(model.Ended))
    assert {e.task.rpartition("-s0-")[2] for e in witness.of(model.Placed)} >= {"m-00000-a1", "m-00002-a1"}
    assert isinstance(witness.events[0], model.Submitted)


async def test_what_was_learnt_is_kept_and_read_by_the_next_leader(api, client, witness):
    before = SavedState(client, "boathouse-system", {"witness": witness}, lambda: True)
    await before.load()
    witness.observe(model.Tick(now_s=1.0))
    await before.save()
    await before.save()
    assert len(api.called("create configmaps")) == 1
    heir = Witness()
    await SavedState(client, "boathouse-system", {"witness": heir}, lambda: True).load()
    assert heir.loaded == {"events": 1}


async def test_what_cannot_be_read_is_begun_anew(api, client, witness):
    api.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "boathouse-system"},
            "binaryData": {KEY: "bm90IGd6aXA="},
        }
    )
    await SavedState(client, "boathouse-system", {"witness": witness}, lambda: True).load()
    assert not hasattr(witness, "loaded")


async def test_who_does_not_lead_writes_nothing(api, client, witness):
    await SavedState(client, "boathouse-system", {"witness": witness}, lambda: False).save()
    assert api.called("create configmaps") == api.called("update configmaps") == []
