"""LATE: the tasks that are thought to end last get second attempts, where slots are free."""

import pytest

from boathouse_policies import model, profiles
from boathouse_policies.baselines import late
from boathouse_sim import topology
from boathouse_sim.conditions import Outage, Outages
from boathouse_sim.invariants import Invariants
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster
from tests.unit.sim.live import make


def cluster(slow=0.1, count=12):
    """Machines of two slots, one of them slow."""
    machines = topology.machines(count, cores=2, mem_mb=8000, prefix="quick")
    return Cluster.of([*machines[1:], *topology.machines(1, cores=2, mem_mb=8000, prefix="slow", speed=slow)])


def maps(count=20, name="0", seconds=20, **options):
    return make.mapreduce(name, maps=count, one=make.container(make.cpu(seconds)), **options)


def run(*apps, profile="late", config=None, where=None, **conditions):
    built = late.build(config=config) if config is not None else profiles.build(profile)
    driver = Live(make.workload(*apps, cluster=where or cluster(), **conditions), built, seed=1)
    watch = Invariants()
    while driver.advance():
        watch(driver.world)
    return driver.world, driver.world.finished()


def test_maps_on_a_slow_node_are_run_again_elsewhere_and_the_first_to_end_wins():
    _, fair = run(maps(), profile="fair")
    _, found = run(maps())
    assert fair.job_times_s == (200.0,)
    assert found.job_times_s == (25.0,)  # it is seen at the first report, and run anew
    assert found.speculative_attempts == 1


def test_a_map_that_was_run_twice_counts_once():
    world, found = run(maps())
    assert found.tasks == 20
    assert found.busy_cpu_utilisation * found.makespan_s * 24 == pytest.approx(20 * 20)
    assert sorted(one.index for one in world.records if not one.lost) == list(range(20))
    assert not world.pods


def test_at_most_a_tenth_of_the_slots_have_second_attempts():
    half_slow = Cluster.of(
        [
            *topology.machines(10, cores=2, mem_mb=8000, prefix="quick"),
            *topology.machines(6, cores=2, mem_mb=8000, prefix="slow", speed=0.1),
        ]
    )
    world, found = run(maps(count=30), config=late.Config(slow_task_percentile=90), where=half_slow)
    seconds = [one for one in world.records if one.started_ms > 0]
    at_once = max(sum(a.started_ms <= b.started_ms < a.ended_ms for a in seconds) for b in seconds)
    assert found.speculative_attempts > 3
    assert at_once <= 4  # a tenth of 32, begun


def test_a_job_whose_tasks_wait_and_that_has_less_of_the_cluster_goes_before():
    other = maps(count=40, name="1", seconds=10, submit_ms=1000)
    _, found = run(maps(count=20), other)
    _, alone = run(maps(count=20))
    assert alone.speculative_attempts == 1
    assert alone.job_times_s[0] == 25.0 < found.job_times_s[0]


def test_reducers_have_second_attempts_too():
    job = maps(count=4, seconds=4, reduces=18, reduce=make.reducer(copy_s=1, reduce_s=30))
    _, fair = run(job, profile="fair")
    _, found = run(job)
    assert found.speculative_attempts > 0
    assert found.job_times_s[0] < fair.job_times_s[0] / 2


def test_the_loss_of_one_attempt_leaves_the_other():
    gone = Outages(given=(Outage(node="slow0", from_s=9.0),))
    world, found = run(maps(), outages=gone)
    assert (found.speculative_attempts, found.lost_tasks) == (1, 1)
    assert sorted(one.index for one in world.records if not one.lost) == list(range(20))
    assert found.job_times_s == (25.0,)


def test_a_second_attempt_says_why():
    policy = late.Late(late.Config())
    slow = late._Attempt("t", "c", "j", "n", model.Resources(cpu_milli=1000), started_s=0.0, progress=0.1, told_s=10.0)
    decision = policy._speculate(slow, model.NodeName("other"))
    assert decision.reason == "10% done at 1.00% a second: 90 s left"
    assert (decision.task.id, decision.attempt, decision.node) == ("t", "t-second", "other")
