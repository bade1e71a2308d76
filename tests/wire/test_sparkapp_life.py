"""SparkApps from their creation to their end, with the real scheduler and drivers that create executors."""

import pytest
from aiohttp import web

from boathouse.services.sparkapp import rest
from tests.builders.mrclusters import cluster_facts
from tests.builders.operators.sparkapps import KEY, RunningSparkApp, Script, account, sparkapp


async def test_an_application_gets_a_config_map_a_service_a_driver_and_executors(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: spark.status().get("executors", {}).get("running") == 2)
    status = spark.status()
    pod = api.get("pods", spark.driver())
    assert (pod["spec"]["nodeName"], status["driver"]["node"]) == ("n1", "n1")
    assert len(api.objects("configmaps")) == len(api.objects("services")) == 1
    assert status["driver"]["uiAddress"] == f"http://{status['driver']['serviceName']}.demo.svc:4040"
    assert f"demo/{status['driver']['serviceName']}" in api.objects("services")
    assert status["requests"]["driver"] == {"cpu": "1", "memory": "1433Mi"}
    assert spark.condition("ExecutorsReady") == ("True", "MinimumRunning")


async def test_an_application_passes_through_its_phases_and_succeeds(api, spark, eventually):
    spark.nodes.scripts[0] = Script(runs=False, ends=False)
    api.add(sparkapp())
    await eventually(lambda: spark.phase() == "Starting")
    spark.nodes.scripts[0].runs = True
    await eventually(lambda: spark.phase() == "Running")
    spark.nodes.scripts[0].ends = True
    await eventually(lambda: spark.phase() == "Succeeded")
    assert spark.condition("Succeeded") == ("True", "Succeeded")
    assert list(spark.nodes.created.values()) == [1]
    assert spark.status()["executors"] == {"minimum": 2, "pending": 0, "running": 0, "failed": 0}


async def test_the_last_lines_of_a_driver_that_failed_are_in_the_status(api, spark, eventually):
    spark.nodes.scripts[0].exit_code, spark.nodes.scripts[0].log = 1, "Traceback\nValueError: no"
    api.add(sparkapp())
    await eventually(lambda: spark.phase() == "Failed")
    status = spark.status()
    assert status["lastLog"] == "Traceback\nValueError: no"
    assert (status["reason"], status["pastAttempts"][0]["exitCode"]) == ("ApplicationFailed", 1)
    assert status["failures"]["application"] == 1


async def test_no_driver_starts_in_a_namespace_without_the_account(api, spark, eventually):
    api.remove("serviceaccounts", "demo/boathouse-spark")
    api.add(sparkapp())
    await eventually(lambda: spark.condition("Admitted") == ("False", "ServiceAccountNotFound"))
    assert spark.drivers() == []
    assert KEY in api.objects("sparkapps")


@pytest.fixture
async def interface(monkeypatch):
    """Serve Spark's REST interface for all drivers."""
    answers = {
        "jobs": [{"numTasks": 10, "numCompletedTasks": 3, "numActiveStages": 1}],
        "environment": {"sparkProperties": [["spark.master", "local[2]"]]},
    }

    async def answer(request):
        return web.json_response(answers[request.match_info["what"]])

    app = web.Application()
    app.router.add_get("/api/v1/applications/{id}/{what}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setattr(rest, "url_of", lambda _address, _port, path: f"{base}/{path}")
    yield
    await runner.cleanup()


@pytest.mark.usefixtures("interface")
async def test_what_the_driver_says_of_itself_is_in_the_status(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: spark.status().get("progressPercent") == 30)
    assert spark.condition("ConfigOverridden") == ("True", "PropertiesChangedInProgram")
    assert spark.status()["stages"] == {"active": 1, "completed": 0, "failed": 0}


async def test_a_driver_whose_address_changes_is_read_at_the_new_one(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp())
    read = spark.kind.reports._followed
    await eventually(lambda: [driver.target.address for driver in read.values()] == ["10.0.0.1"])
    (driver,) = (key for key in api.objects("pods") if key.endswith("-driver"))
    api.change("pods", driver, {"status": {"podIP": "10.0.0.2"}})
    await eventually(lambda: [driver.target.address for driver in read.values()] == ["10.0.0.2"])


async def test_nothing_stays_reserved_for_a_driver_that_requests_no_executors(api, spark, eventually):
    spark.nodes.scripts[0] = Script(executors=0, ends=False)
    api.add(sparkapp())
    await eventually(lambda: spark.phase() == "Running")
    spark.later(310)
    await eventually(lambda: spark.condition("ExecutorsReady") == ("False", "NoExecutorsRequested"))
    await eventually(lambda: spark.kind._scheduler.state.jobs.entry(spark.uid()).gang is None)


async def test_executors_that_fail_are_counted_over_the_attempt(api, eventually):
    api.add(account())
    spark = RunningSparkApp(api)
    spark.nodes.scripts[0].ends = False
    async with spark.running():
        api.add(sparkapp())
        await eventually(lambda: spark.status().get("executors", {}).get("running") == 2)
        api.set_phase(spark.executors()[0], "Failed")
        await eventually(lambda: spark.status()["executors"]["failed"] == 1)
    async with spark.running():
        await eventually(spark.leader.controllers.loops[-1].synced.is_set)
        api.set_phase(spark.executors()[1], "Failed")
        await eventually(lambda: spark.status()["executors"]["failed"] == 2)
    assert spark.phase() == "Running"


async def test_a_deleted_application_is_forgotten(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: spark.status().get("executors", {}).get("running") == 2)
    kind, uid = spark.kind, spark.uid()
    api.remove("sparkapps", KEY)
    await eventually(lambda: not api.objects("pods") and not kind.drivers.of(uid))
    await eventually(lambda: kind._scheduler.state.jobs.entry(uid) is None and not kind.reports._followed)
    await eventually(lambda: not kind.executors._of_app and not kind.executors._drivers)


async def test_executors_that_are_deleted_after_their_application_are_forgotten_with_the_driver(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: spark.status().get("executors", {}).get("running") == 2)
    kind, uid = spark.kind, spark.uid()
    spark.nodes.step = lambda: None  # the garbage collector is slow
    api.remove("sparkapps", KEY)
    await eventually(lambda: not kind.executors._of_app)
    for key in [*spark.executors(), spark.driver()]:
        api.remove("pods", key)
    await eventually(lambda: not kind.drivers.of(uid) and not kind.executors._due)
    assert not kind.executors._drivers


async def test_an_application_of_a_cluster_that_is_not_reconciled_yet_says_so(api, spark, eventually):
    api.add({"kind": "MRCluster", "metadata": {"name": "lake", "namespace": "demo"}, "spec": {}})
    api.add(sparkapp(hadoopClusters=["lake"]))
    await eventually(lambda: spark.condition("Admitted") == ("False", "ClusterNotReady"))


async def test_an_application_waits_for_the_hadoop_clusters_that_it_names(api, spark, eventually):
    spark.nodes.scripts[0].ends = False
    api.add(sparkapp(hadoopClusters=["lake"]))
    await eventually(lambda: spark.condition("Admitted") == ("False", "ClusterNotFound"))
    lake = cluster_facts(uid="c-1", name="lake", namespace="demo")
    spark.leader.clusters.put(lake)
    spark.later(60)
    await eventually(lambda: spark.phase() == "Running")
    (made,) = api.objects("configmaps").values()
    assert made["metadata"]["annotations"] == {"boathouse.dev/hadoop-clusters": "lake=c-1"}
    assert spark.leader.clusters.users(lake.uid) == 1
