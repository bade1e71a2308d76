"""Deadlines of real leaders while this machine's clock differs from the API server's by an hour or a day."""

import pytest

from boathouse.cluster import catalogue, server_time
from boathouse.suspension import stages as suspension_record
from tests.builders import manifests
from tests.builders.operators import mrclusters, running_tasks, schedulers, server_clocks
from tests.builders.operators.sparkapps import KEY, RunningSparkApp, Script, account, sparkapp

ON_FAILURE = {"type": "OnFailure", "onFailureRetryInterval": 600}


@pytest.fixture(params=server_clocks.STEPS_S)
async def clock(api, client, monkeypatch, request):
    """Return the clock of an API server that the operator knows by its responses."""
    made = server_clocks.ServerClock(api, request.param)
    await meet_server(client, monkeypatch)
    return made


async def meet_server(client, monkeypatch):
    """Begin a process, which knows the API server's clock by its first response."""
    server_clocks.forget_server_time(monkeypatch)
    await client.list(catalogue.NODES)


@pytest.fixture
async def spark(api, clock):
    """A leader of SparkApps with the clocks of the operator."""
    api.add(account())
    made = RunningSparkApp(api)
    made.now = server_clocks.OPERATOR_NOW
    async with made.running():
        assert server_time.SERVER_TIME.now_s() == pytest.approx(clock(), abs=2)
        yield made


@pytest.fixture
def becomes(spark, eventually):
    """Return a function that waits until the application has a phase."""

    async def wait(phase):
        await eventually(lambda: spark.phase() == phase, phase)

    return wait


async def reconciled(spark, eventually):
    """Let a new leader reconcile the application."""
    await spark.restart()
    reconciler = spark.leader.controllers._reconcilers["SparkApp"]
    await eventually(lambda: reconciler._objects.get(KEY))
    await reconciler.reconcile(KEY)


@pytest.fixture
def pass_time(spark, client, clock):
    """Return a function that lets time pass, and the operator look at the application."""

    async def go_on(seconds):
        clock.advance(seconds)
        await client.list(catalogue.NODES)  # no answer that was written before it is read after it
        spark.kind._mark(spark.uid())

    return go_on


async def test_a_starting_driver_is_lost_when_its_time_is_over_and_not_before(spark, pass_time, becomes, eventually):
    spark.nodes.scripts[1].runs = False
    spark.api.add(sparkapp(restartPolicy=ON_FAILURE))
    await becomes("Starting")
    await reconciled(spark, eventually)
    assert (spark.status()["attempt"], spark.phase()) == (1, "Starting")
    await pass_time(601)
    await eventually(lambda: spark.status()["failures"]["infrastructure"] == 1)


async def test_a_driver_of_a_dead_node_is_followed_by_another_only_when_it_is_taken_to_have_ended(
    spark, client, pass_time, becomes, eventually
):
    spark.nodes.scripts[1].ends = False
    spark.api.add(sparkapp(restartPolicy=ON_FAILURE | {"onFailureRetryInterval": 1}))
    await becomes("Running")
    spark.nodes.lost.add("n1")
    spark.api.add(manifests.node("n2", cpu="16", memory="32Gi"))
    await client.delete(catalogue.PODS, *reversed(spark.driver().split("/")))
    await reconciled(spark, eventually)
    assert (spark.phase(), spark.drivers()) == ("Running", [spark.driver(1)])
    await pass_time(331)
    await eventually(lambda: spark.driver(2))


async def test_an_application_whose_executors_do_not_run_in_time_fails(spark, pass_time, becomes, eventually):
    spark.nodes.scripts[1] = Script(executors=1, ends=False)
    spark.api.add(sparkapp(restartPolicy=ON_FAILURE, executor={"instances": 2}))
    await becomes("Running")
    await reconciled(spark, eventually)
    assert spark.phase() == "Running"
    await pass_time(601)
    await becomes("Restarting")


async def test_an_application_is_deleted_when_it_expires(spark, pass_time, becomes, eventually):
    spark.api.add(sparkapp(ttlSecondsAfterFinished=600))
    await becomes("Succeeded")
    await reconciled(spark, eventually)
    assert spark.phase() == "Succeeded"
    await pass_time(601)
    await eventually(lambda: not spark.api.objects("sparkapps"))


async def test_the_next_attempt_begins_after_the_back_off(spark, pass_time, becomes, eventually):
    spark.nodes.scripts[1].exit_code = 1
    spark.api.add(sparkapp(restartPolicy=ON_FAILURE))
    await becomes("Restarting")
    await reconciled(spark, eventually)
    assert list(spark.nodes.created.values()) == [1]
    await pass_time(601)
    await becomes("Succeeded")
    assert spark.status()["attempt"] == 2


async def test_a_suspension_ends_in_time_for_a_successor_on_another_machine(
    api, client, clock, monkeypatch, eventually
):
    async with running_tasks.scene(api, eventually) as s:
        s.suspend(for_s=1.0)
        await eventually(lambda: s.size() == running_tasks.SHRUNK)
        assert suspension_record.parse(s.record()).until_s == pytest.approx(clock() + 1, abs=2)
        api.actuate_resize(running_tasks.FIRST)
    await meet_server(client, monkeypatch)
    async with running_tasks.scene(api, eventually, running=3, leader=schedulers.Leader(2)) as s:
        await eventually(lambda: s.size() == running_tasks.CONTINUED)


async def test_a_step_of_the_servers_clock_does_not_move_the_end_of_a_suspension(api, clock, eventually):
    async with running_tasks.scene(api, eventually) as s:
        s.suspend(for_s=1.0)
        await eventually(lambda: s.size() == running_tasks.SHRUNK)
        api.actuate_resize(running_tasks.FIRST)
        clock.advance(-server_clocks.HOUR_S)
        await eventually(lambda: s.size() == running_tasks.CONTINUED)


async def test_a_cluster_expires_when_it_was_idle_for_long_enough(api, clock, monkeypatch):
    hadoop = mrclusters.RunningMRCluster(api)
    hadoop.now = server_clocks.OPERATOR_NOW
    monkeypatch.setattr(hadoop, "later", lambda seconds: (clock.advance(seconds), hadoop.kind._mark(hadoop.uid())))
    async with hadoop.running():
        api.add(mrclusters.mrcluster(ttlSecondsAfterIdle=600))
        await hadoop.until(lambda: hadoop.phase() == "Ready")
        ready_s = clock()
        await hadoop.until(lambda: not api.objects("mrclusters"), step_s=50)
    assert clock() - ready_s > 550
