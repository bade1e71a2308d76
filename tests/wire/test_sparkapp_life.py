"""SparkApps from their creation to their end, with the real scheduler and drivers that create executors."""

import pytest

from tests.wire.sparkapp_world import KEY, Script, World, account, sparkapp


@pytest.fixture
async def world(api):
    api.add(account())
    async with World(api).running() as made:
        yield made


async def test_an_application_gets_a_config_map_a_service_a_driver_and_executors(api, world, eventually):
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: world.status().get("executors", {}).get("running") == 2)
    status = world.status()
    pod = api.get("pods", world.driver())
    assert (pod["spec"]["nodeName"], status["driver"]["node"]) == ("n1", "n1")
    assert len(api.objects("configmaps")) == len(api.objects("services")) == 1
    assert status["driver"]["uiAddress"] == f"http://{status['driver']['serviceName']}.demo.svc:4040"
    assert f"demo/{status['driver']['serviceName']}" in api.objects("services")
    assert status["requests"]["driver"] == {"cpu": "1", "memory": "1433Mi"}
    assert world.condition("ExecutorsReady") == ("True", "MinimumRunning")


async def test_an_application_goes_through_its_phases_and_succeeds(api, world, eventually):
    world.nodes.scripts[0] = Script(runs=False, ends=False)
    api.add(sparkapp())
    await eventually(lambda: world.phase() == "Starting")
    world.nodes.scripts[0].runs = True
    await eventually(lambda: world.phase() == "Running")
    world.nodes.scripts[0].ends = True
    await eventually(lambda: world.phase() == "Succeeded")
    assert world.condition("Succeeded") == ("True", "Succeeded")
    assert list(world.nodes.created.values()) == [1]
    assert world.status()["executors"] == {"minimum": 2, "pending": 0, "running": 0, "failed": 0}


async def test_the_last_lines_of_a_driver_that_failed_are_in_the_status(api, world, eventually):
    world.nodes.scripts[0].exit_code, world.nodes.scripts[0].log = 1, "Traceback\nValueError: no"
    api.add(sparkapp())
    await eventually(lambda: world.phase() == "Failed")
    status = world.status()
    assert status["lastLog"] == "Traceback\nValueError: no"
    assert (status["reason"], status["pastAttempts"][0]["exitCode"]) == ("ApplicationFailed", 1)
    assert status["failures"]["application"] == 1


async def test_no_driver_starts_in_a_namespace_without_the_account(api, world, eventually):
    api.remove("serviceaccounts", "demo/boathouse-spark")
    api.add(sparkapp())
    await eventually(lambda: world.condition("Admitted") == ("False", "ServiceAccountNotFound"))
    assert world.drivers() == []
    assert KEY in api.objects("sparkapps")
