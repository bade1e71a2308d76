"""Contention, suspension, CPU shares: what changes a running task's rate, and what does not."""

import numpy as np
import pytest

from boathouse_policies import model
from boathouse_sim import conditions, topology, work
from boathouse_sim.clock import Clock
from boathouse_sim.live.rates import Activity
from boathouse_sim.live.shared import SharedRates
from boathouse_sim.workload import Cluster
from tests.builders import simulations
from tests.builders.simulations import Script, resize_first, resume_first, suspend_first, suspend_until

SATURATION = conditions.Saturation()


def slowdown_by(cpu=0.0, disk=0.0, network=0.0, streams=0.0):
    load, capacity = np.array([[cpu, disk, network, 0.0]]), np.array([[10.0, 100.0, 100.0, 1.0]])
    return SATURATION.slowdown(load, capacity, np.array([streams]))[0]


def test_cpu_is_flat_until_800_percent_of_10_cores_are_busy():
    assert slowdown_by(cpu=8.0)[conditions.CPU] == 1.0
    assert slowdown_by(cpu=12.0)[conditions.CPU] == pytest.approx(1.5**1.5)


def test_one_stream_that_fills_a_disk_is_not_slowed_and_six_are_more_than_six_times():
    assert slowdown_by(disk=100.0, streams=1)[conditions.DISK] == 1.0
    assert slowdown_by(disk=300.0, streams=6)[conditions.DISK] == pytest.approx(3 * 1.75)
    assert slowdown_by(disk=600.0, streams=6)[conditions.DISK] == SATURATION.ceiling


def test_a_network_is_shared_and_no_more():
    assert slowdown_by(network=150.0)[conditions.NETWORK] == 1.5


def test_tasks_on_one_host_slow_each_other_down_and_speed_up_when_a_neighbour_ends():
    # Two cores' worth of 2 busy cores each on 4: 4 / (0.8 · 4) = 1.25, to the power of 1.5: 1.3975.
    two = simulations.container(simulations.cpu(10, cores=2.0), cores=2)
    short = simulations.container(simulations.cpu(5, cores=2.0), cores=2)
    found = simulations.live_workload(
        simulations.mapreduce("0", map=two), simulations.mapreduce("1", map=short), cores=4, contention=SATURATION
    )
    both_s = 5 * 1.25**1.5
    assert simulations.results(found).job_times_s == pytest.approx((both_s + 5, both_s), abs=0.002)


def test_virtual_machines_of_one_host_share_its_disk_and_those_of_others_do_not():
    mapper = simulations.container(work.segment("map", read_mb=500))
    jobs = [simulations.mapreduce(str(i), map=mapper) for i in range(2)]

    def times_s(hosts):
        nodes, shared = topology.virtual(hosts, machines_per_host=2 // hosts, cores=1, mem_mb=1000, host_cores=10)
        return simulations.results(
            simulations.live_workload(*jobs, cluster=Cluster.of(nodes, shared), contention=SATURATION)
        ).job_times_s

    assert times_s(1) == pytest.approx((5 * 2 * 1.15,) * 2, abs=0.002)
    assert times_s(2) == (5.0, 5.0)


def test_a_pool_is_shared_by_all_wherever_they_run():
    mapper = simulations.container(work.segment("map", pool_mb=500, pool="hdfs"))
    pools = (work.Pool(name="hdfs", mb_per_s=100.0),)
    found = simulations.live_workload(
        simulations.mapreduce(maps=4, map=mapper), nodes=4, cores=1, contention=SATURATION, pools=pools
    )
    assert simulations.results(found).job_times_s == pytest.approx((20.0,), abs=0.002)


def test_what_rounding_leaves_of_quick_work_keeps_no_clock_from_going_on():
    clock, ended_ms = Clock(), []
    rates = SharedRates(clock, [topology.Host(name="h0", cores=4)], SATURATION)
    quick = (0.8, 0.0, 0.0, 0.0)  # 1,000 ms of work take 800 ms
    rates.start(Activity("h0", 1000 + 1.1e-6, quick, (1.0, 0.0, 0.0, 0.0), lambda: ended_ms.append(clock.now_ms)))
    rates.settle()
    while clock.step():
        assert clock.events < 10
        rates.settle()
    assert ended_ms == [800]


# Decisions


@pytest.mark.parametrize("truth", [None, SATURATION], ids=["alone", "with contention"])
def test_a_suspended_task_stands_still_and_resumes_where_it_was(truth):
    found = simulations.live_workload(simulations.mapreduce(map=simulations.mapper(30)), tick_ms=1000, contention=truth)
    assert Script({5.0: suspend_first, 12.0: resume_first}).run(found).job_times_s == (37.0,)
    assert Script({5.0: suspend_until(9.0)}).run(found).job_times_s == (34.0,)


def test_a_suspended_tasks_cpu_is_given_to_others_and_its_memory_is_not():
    jobs = [simulations.mapreduce("0", map=simulations.mapper(30, mb=4000))]
    jobs += [simulations.mapreduce(str(i), submit_ms=1, map=simulations.mapper(4, mb=4000)) for i in (1, 2)]
    found = simulations.live_workload(*jobs, cores=1, mb=8000, tick_ms=1000)
    outcome = Script({5.0: suspend_until(20.0)}).run(found)
    assert (outcome.job_times_s, outcome.suspensions) == ((45.0, 8.999, 12.999), 1)


def test_a_resumed_task_waits_for_its_cpu_and_is_first_in_line_for_it():
    jobs = [simulations.mapreduce("0", map=simulations.mapper(10, mb=4000))]
    jobs += [simulations.mapreduce(str(i), submit_ms=1, map=simulations.mapper(20)) for i in (1, 2)]
    found = simulations.live_workload(*jobs, cores=1, tick_ms=1000)
    # The next job has the CPU from 5 to 25, then the first goes on until 30, then the last.
    assert Script({5.0: suspend_first, 8.0: resume_first}).run(found).job_times_s == (30.0, 24.999, 49.999)


def test_the_cpu_of_a_suspended_task_is_free_after_a_while():
    jobs = [simulations.mapreduce(str(i), submit_ms=i, map=simulations.mapper(20, mb=4000)) for i in range(2)]
    found = simulations.live_workload(*jobs, cores=1, tick_ms=1000, suspend_ms=2700)
    for resumed_s, placed_s in ((6.0, [0.0, 21.0]), (9.0, [0.0, 7.7])):
        script = Script({5.0: suspend_first, resumed_s: resume_first})
        script.run(found)
        assert [event.now_s for event in script.of(model.Placed)] == placed_s


def test_a_resumed_task_has_its_cpu_at_once_and_goes_on_a_little_later():
    found = simulations.live_workload(simulations.mapreduce("0"), cores=1, tick_ms=1000, resume_ms=2000)
    assert Script({5.0: suspend_first, 8.0: resume_first}).run(found).job_times_s == (15.0,)


def test_a_task_that_is_about_to_go_on_is_not_resumed_twice():
    found = simulations.live_workload(simulations.mapreduce("0"), cores=1, tick_ms=1000, resume_ms=2000)
    script = Script({5.0: suspend_first, 8.0: resume_first, 9.0: resume_first})
    assert script.run(found).job_times_s == (15.0,)
    assert len(script.of(model.Resumed)) == len(script.of(model.Refused)) == 1


def test_what_a_task_with_less_memory_spills_is_in_the_way_of_its_neighbours():
    writes = work.segment("map", cpu_s=6, write_mb=400)
    elastic = simulations.mapreduce("0", maps=2, map=simulations.container(writes, mb=6000, factor=1.5))
    other = simulations.mapreduce("1", map=simulations.container(work.segment("map", read_mb=2000), mb=500))

    def time_s(**conditions):
        found = simulations.live_workload(elastic, other, cores=4, mb=10_500, contention=SATURATION, **conditions)
        outcome = simulations.results(found, "yarn-me")
        assert outcome.elastic_tasks == 1
        return outcome.job_times_s[1]

    assert time_s(spills_load_disks=True) > 1.05 * time_s()


def test_a_task_resized_to_half_its_cpu_computes_at_half_its_rate():
    found = simulations.live_workload(simulations.mapreduce(map=simulations.mapper(10)), tick_ms=1000)
    assert Script({4.0: resize_first(500)}).run(found).job_times_s == (16.0,)
    assert Script({4.0: resize_first(500), 8.0: resize_first(1000)}).run(found).job_times_s == (12.0,)


def test_a_decision_to_scale_what_has_no_workers_is_refused():
    found = simulations.live_workload(simulations.mapreduce(), tick_ms=1000)
    with pytest.raises(ValueError, match="fixed number of tasks"):
        Script({3.0: lambda _: [model.Scale(job=model.JobId("0"), workers=3, reason="test")]}).run(found)


# Observers


def test_reducers_report_their_progress_and_nodes_what_they_use():
    script = Script({})
    script.report_every_s, script.measure_every_s = 1.0, 3.0
    script.run(simulations.live_workload(simulations.mapreduce(maps=1, reduces=1, slow_start=1.0)))
    reports = [event for event in script.of(model.Progress) if "/reduce" in event.task]
    assert [event.phase for event in reports] == ["shuffle"] * 3 + ["reduce"] * 6
    assert [event.fraction for event in reports[:5]] == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5 + 1 / 12])
    assert [event.usage["cpu_cores"] for event in script.of(model.Measured)] == [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]


def test_a_finished_task_reports_what_it_computed_and_moved():
    script = Script({})
    mapper = simulations.container(work.segment("map", cpu_s=3, read_mb=100, write_mb=50))
    script.run(simulations.live_workload(simulations.mapreduce(map=mapper)))
    (event,) = script.of(model.Finished)
    counters = [event.counters[name] for name in ("cpu_s", "read_bytes", "written_bytes")]
    assert counters == [3.0, 100 << 20, 50 << 20]
