"""Applications that start whole, among others: all of them end, and one that cannot start keeps nobody waiting."""

import pytest

from boathouse_policies import framework, model, profiles
from boathouse_sim.live import Live
from tests.builders import simulations

PROFILES = ["ikayak", "boathouse", "fair"]


def application(name: str, members: int, *, cores: int = 2, driver_cores: int = 1, at_s: int = 0, **fields):
    """An application of a driver and its executors, which start together."""
    return simulations.spark(
        name,
        members,
        (members * 2,),
        cores=cores,
        driver=simulations.container(mb=500, cores=driver_cores),
        min_executors=members,
        submit_ms=at_s * 1000,
        **fields,
    )


def maps(name: str, count: int, *, at_s: int = 0, seconds: float = 10.0, **fields):
    """A job of maps of one core."""
    return simulations.mapreduce(name, count, simulations.mapper(seconds), submit_ms=at_s * 1000, **fields)


@pytest.mark.parametrize("profile", PROFILES)
def test_four_applications_and_two_jobs_on_a_third_of_their_room_all_end(profile):
    apps = [application(f"a{number}", 4) for number in range(4)]
    found = simulations.results(
        simulations.live_workload(*apps, maps("m0", 12), maps("m1", 12), nodes=3, cores=4), profile
    )
    assert found.jobs == 6


@pytest.mark.parametrize("profile", ["boathouse", "fair"])
def test_three_hundred_applications_and_a_hundred_jobs_all_end(profile):
    apps = [application(f"a{number:03}", 2, cores=1, at_s=number // 8) for number in range(300)]
    jobs = [maps(f"m{number:03}", 2, at_s=number // 3, seconds=5.0) for number in range(100)]
    found = simulations.results(simulations.live_workload(*apps, *jobs, nodes=40, cores=8), profile)
    assert found.jobs == 400


@pytest.mark.parametrize("profile", PROFILES)
def test_a_large_application_starts_long_before_a_stream_of_small_jobs_ends(profile):
    stream = [maps(f"m{number:03}", 4, at_s=5 * number, namespace="small") for number in range(150)]
    large = application("large", 7, cores=2, at_s=20, namespace="large")
    found = simulations.live_world(simulations.live_workload(large, *stream, nodes=4, cores=4), profile)
    ended_s = {run.spec.id: run.ended_ms / 1000 for run in found.runs.values()}
    assert ended_s["large"] < 300
    assert max(ended_s.values()) > 700


@pytest.mark.parametrize("profile", PROFILES)
def test_an_application_that_cannot_fit_beside_a_pod_that_stays_keeps_nobody_waiting(profile):
    large = application("large", 9, cores=4, driver_cores=4, namespace="large")
    small = maps("small", 36, at_s=1, namespace="small")
    live = Live(simulations.live_workload(large, small, nodes=10, cores=4), profiles.build(profile))
    live.world.ledger.observe(
        framework.Account(
            id=model.TaskId("ns/stays"),
            node=live.world.nodes[0].name,
            resources=model.Resources(cpu_milli=1500, memory_bytes=1 << 30),
            is_long_running=True,
        )
    )
    while live.advance() and live.world.clock.now_s < 60:
        pass
    (job,) = [run for run in live.world.runs.values() if run.spec.id == "small"]
    assert 0 < job.ended_ms <= 25_000


def speculate_first(events):
    """A decision to start a second attempt of the task that started first, beside it."""
    (first,) = simulations.suspend_first(events)
    size = model.Resources(cpu_milli=1000, memory_bytes=1 << 30)
    attempt = model.TaskId(f"{first.task.id}-second")
    return [model.Speculate(task=first.task, attempt=attempt, node=first.node, resources=size, reason="test")]


@pytest.mark.parametrize("decide", [simulations.resize_first(2000), speculate_first], ids=["resize", "speculate"])
def test_running_tasks_get_nothing_that_is_kept_for_a_gang(decide):
    script = simulations.Script({5.0: lambda _: [], 40.0: decide})
    script.run(simulations.live_workload(maps("m", 2, seconds=60.0), application("app", 2, cores=1), nodes=1, cores=4))
    assert [(refused.now_s, refused.reason) for refused in script.of(model.Refused)] == [(40.0, "KeptForGang")]


@pytest.mark.parametrize(("profile", "keeps"), [("boathouse", True), ("fair", False)])
def test_the_outcome_has_the_wait_of_gangs_and_what_was_free_on_nodes_kept_for_them(profile, keeps):
    first = maps("m", 4, seconds=20.0)
    large = application("large", 3, at_s=1)
    small = maps("n", 2, at_s=2, seconds=5.0)
    outcome = simulations.results(simulations.live_workload(first, large, small, nodes=2, cores=4), profile)
    assert outcome.gang_wait_s > 0
    assert (outcome.kept_idle_share > 0) is keeps


@pytest.mark.parametrize(("profile", "kept_core_s"), [("fair", 2 * 29), ("ikayak", 2 * 59)])
def test_what_is_kept_and_idle_is_two_cores_from_when_they_are_kept_until_the_gang_starts(profile, kept_core_s):
    first, app = maps("m", 2, seconds=60.0), application("app", 2, cores=1, at_s=1)
    outcome = simulations.results(simulations.live_workload(first, app, nodes=1, cores=4), profile)
    assert outcome.gang_wait_s == 59.0
    assert outcome.kept_idle_share * outcome.makespan_s * 4 == pytest.approx(kept_core_s)


# A driver that requests its executors some time after it has started


def requesting(members: int, *, seconds: float = 20.0, **fields):
    """An application whose driver requests its executors after so long."""
    return application("app", members, cores=1, request_ms=round(seconds * 1000), **fields)


def executors_s(world) -> list[float]:
    """When each executor got its node, without those that were lost."""
    return [one.placed_ms / 1000 for one in world.records if one.kind == "executor" and not one.lost]


@pytest.mark.parametrize("profile", PROFILES)
def test_room_is_reserved_for_the_minimum_until_the_driver_requests_it(profile):
    small = maps("m", 4, at_s=1)
    world = simulations.live_world(simulations.live_workload(requesting(2), small, nodes=1, cores=4), profile)
    assert executors_s(world) == [20.0, 20.0]
    outcome = world.finished()
    assert outcome.gang_wait_s == 0.0
    assert outcome.kept_idle_share * outcome.makespan_s * 4 == pytest.approx(2 * 20)
    assert world.ledger.snapshot(0.0).by_node.plain == {}


@pytest.mark.parametrize("profile", PROFILES)
def test_executors_that_were_lost_go_before_what_waits(profile):
    workload = simulations.live_workload(
        requesting(3), maps("m", 60, at_s=1), nodes=2, cores=2, outages=simulations.outages(("n0", 25.0, 30.0))
    )
    world = simulations.live_world(workload, profile)
    assert sorted(executors_s(world)) == [20.0, 30.0, 30.0]


@pytest.mark.parametrize("profile", PROFILES)
def test_places_on_a_node_that_is_lost_are_reserved_elsewhere(profile):
    workload = simulations.live_workload(
        requesting(3), nodes=3, cores=2, outages=simulations.outages(("n1", 10.0, None))
    )
    assert executors_s(simulations.live_world(workload, profile)) == [20.0, 20.0, 20.0]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_driver_that_is_lost_starts_again_with_its_minimum(profile):
    workload = simulations.live_workload(
        requesting(2), nodes=2, cores=4, outages=simulations.outages(("n0", 10.0, None))
    )
    assert executors_s(simulations.live_world(workload, profile)) == [30.0, 30.0]


def test_executors_beyond_the_minimum_come_one_after_the_other_as_there_is_room():
    app = simulations.spark(
        "app",
        4,
        (4,),
        cores=1,
        mb=1000,
        driver=simulations.container(mb=500),
        min_executors=2,
        request_ms=20_000,
        seconds=40.0,
        registered=0.1,
    )
    busy = maps("m", 2, seconds=30.0)
    world = simulations.live_world(simulations.live_workload(busy, app, nodes=1, cores=5), "fair")
    assert executors_s(world) == [20.0, 20.0, 30.0, 30.0]
