"""SparkApps in a namespace whose admission injects a proxy into every pod, which runs until it is killed."""

import pytest

from boathouse.resources import names
from boathouse.scheduling import outlived
from boathouse.services.sparkapp import pods
from tests.builders.operators import sparkapps
from tests.builders.operators.sparkapps import RunningSparkApp, account, sparkapp

PROXY = {"name": "proxy", "state": {"running": {}}}


class NodesWithProxies(sparkapps.Nodes):
    """Kubelets whose drivers have a proxy beside them."""

    def set_state(self, key, _phase, state):
        status = [{"name": pods.DRIVER_CONTAINER, "state": state}, PROXY]
        self._api.set_phase(key, "Running", podIP="10.0.0.1", containerStatuses=status)

    def _step(self, key, pod):
        statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
        if pod["spec"].get("activeDeadlineSeconds") and pod["status"]["phase"] == "Running":
            self._api.set_phase(key, "Failed", reason="DeadlineExceeded")
        elif "terminated" not in statuses[0]["state"]:
            super()._step(key, pod)


@pytest.fixture
async def world(api, monkeypatch):
    monkeypatch.setattr(outlived, "PATIENCE_S", 0.0)
    api.add(account())
    made = RunningSparkApp(api)
    made.nodes = NodesWithProxies(api)
    async with made.running():
        yield made


async def test_an_application_succeeds_and_its_driver_is_ended_with_object_and_logs(api, world, eventually):
    api.add(sparkapp())
    await eventually(lambda: world.phase() == "Succeeded" and world.executors() == [])
    await eventually(lambda: api.get("pods", world.driver())["status"]["phase"] == "Failed")
    assert api.get("pods", world.driver())["metadata"]["annotations"][names.ANNOTATION_EXIT_CODE] == "0"
    await world.restart()
    assert world.phase() == "Succeeded"


async def test_an_application_that_fails_says_so_with_its_exit_code(api, world, eventually):
    world.nodes.scripts[0].exit_code, world.nodes.scripts[0].log = 4, "no"
    api.add(sparkapp())
    await eventually(lambda: world.phase() == "Failed")
    status = world.status()
    assert (status["reason"], status["pastAttempts"][0]["exitCode"], status["lastLog"]) == (
        "ApplicationFailed",
        4,
        "no",
    )
