"""SparkApps in a namespace whose admission adds a node selector, and kubelets that reject what it excludes."""

import pytest

from tests.builders import manifests
from tests.builders.operators import sparkapps
from tests.builders.operators.sparkapps import RunningSparkApp, account, sparkapp

ZONE = {"zone": "b"}


class RejectingNodes(sparkapps.Nodes):
    """Kubelets; that of n1 is in no zone, and rejects the pods that admission wants in one.

    Attributes:
        rejected: The keys of the pods that were rejected.
    """

    def __init__(self, api):
        super().__init__(api)
        self.rejected = []

    def _step(self, key, pod):
        is_excluded = pod["spec"]["nodeName"] == "n1" and pod["spec"].get("nodeSelector") == ZONE
        if is_excluded and pod["status"]["phase"] == "Pending" and not pod["metadata"].get("deletionTimestamp"):
            self.rejected.append(key)
            self._api.set_phase(key, "Failed", reason="NodeAffinity", message="Pod was rejected: no zone")
        else:
            super()._step(key, pod)


@pytest.fixture
async def world(api):
    api.add(account())
    api.add(manifests.node("n1", cpu="16", memory="32Gi"))
    made = RunningSparkApp(api)
    made.nodes = RejectingNodes(api)
    async with made.running():
        yield made


def selecting(of=""):
    """Return a webhook that wants the pods whose names end so in a zone."""

    def mutate(pod):
        if pod["metadata"]["name"].endswith(of):
            pod["spec"]["nodeSelector"] = ZONE

    return mutate


def submit(api):
    never = {"type": "Never", "onFailureRetryInterval": 1}
    api.add(sparkapp(executor={"instances": 1}, restartPolicy=never))


async def test_a_driver_that_a_kubelet_rejected_for_what_admission_added_costs_no_attempt(api, world, eventually):
    api.mutate = selecting("-driver")
    submit(api)
    await eventually(lambda: world.nodes.rejected)
    api.add(manifests.node("n2", cpu="16", memory="32Gi", labels=ZONE))
    await eventually(lambda: world.phase() == "Succeeded")
    assert len(world.nodes.rejected) == 1
    assert world.status()["failures"] == {"application": 0, "infrastructure": 1}


async def test_a_new_leader_learns_what_admission_adds_from_an_executor_before_a_driver_is_rejected(
    api, world, eventually
):
    api.mutate = selecting()
    submit(api)
    await eventually(lambda: any(call.query.get("dryRun") for call in api.calls))
    await world.restart()
    api.add(manifests.node("n2", cpu="16", memory="32Gi", labels=ZONE))
    await eventually(lambda: world.phase() == "Succeeded")
    assert world.nodes.rejected == []
