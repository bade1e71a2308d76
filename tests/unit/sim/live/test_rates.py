"""Contention, suspension, CPU shares: what changes a running task's rate, and what does not."""

import dataclasses

import numpy as np
import pytest

from boathouse_policies import model, profiles
from boathouse_sim import contention, topology, work
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster
from tests.unit.sim.live import make

SATURATION = contention.Saturation()


def slow(cpu=0.0, disk=0.0, network=0.0, streams=0.0):
    load, capacity = np.array([[cpu, disk, network, 0.0]]), np.array([[10.0, 100.0, 100.0, 1.0]])
    return SATURATION.slowdown(load, capacity, np.array([streams]))[0]


def test_cpu_is_flat_until_800_percent_of_10_cores_are_busy():
    assert slow(cpu=8.0)[contention.CPU] == 1.0
    assert slow(cpu=12.0)[contention.CPU] == pytest.approx(1.5**1.5)


def test_one_stream_that_fills_a_disk_is_not_slowed_and_six_are_more_than_six_times():
    assert slow(disk=100.0, streams=1)[contention.DISK] == 1.0
    assert slow(disk=300.0, streams=6)[contention.DISK] == pytest.approx(3 * 1.75)
    assert slow(disk=600.0, streams=6)[contention.DISK] == SATURATION.ceiling


def test_a_network_is_shared_and_no_more():
    assert slow(network=150.0)[contention.NETWORK] == 1.5


def test_tasks_on_one_host_slow_each_other_down_and_speed_up_when_a_neighbour_ends():
    # Two cores' worth of 2 busy cores each on 4: 4 / (0.8 · 4) = 1.25, to the power of 1.5: 1.3975.
    two = make.container(make.cpu(10, cores=2.0), cores=2)
    short = make.container(make.cpu(5, cores=2.0), cores=2)
    found = make.workload(make.mapreduce("0", one=two), make.mapreduce("1", one=short), cores=4, contention=SATURATION)
    both_s = 5 * 1.25**1.5
    assert make.run(found).job_times_s == pytest.approx((both_s + 5, both_s), abs=0.002)


def test_virtual_machines_of_one_host_share_its_disk_and_those_of_others_do_not():
    one = make.container(work.segment("map", read_mb=500))
    jobs = [make.mapreduce(str(i), one=one) for i in range(2)]

    def times_s(hosts):
        nodes, shared = topology.virtual(hosts, each=2 // hosts, cores=1, mem_mb=1000, host_cores=10)
        return make.run(make.workload(*jobs, cluster=Cluster.of(nodes, shared), contention=SATURATION)).job_times_s

    assert times_s(1) == pytest.approx((5 * 2 * 1.15,) * 2, abs=0.002)
    assert times_s(2) == (5.0, 5.0)


def test_a_pool_is_shared_by_all_wherever_they_run():
    one = make.container(work.segment("map", pool_mb=500, pool="hdfs"))
    pools = (work.Pool(name="hdfs", mb_per_s=100.0),)
    found = make.workload(make.mapreduce(maps=4, one=one), nodes=4, cores=1, contention=SATURATION, pools=pools)
    assert make.run(found).job_times_s == pytest.approx((20.0,), abs=0.002)


# Decisions


def suspended(events, until_s=None):
    started = next(event for event in events if isinstance(event, model.Started))
    task = model.Task(id=started.task, task_class=started.task_class)
    size = model.Resources(cpu_milli=0, memory_bytes=4000 << 20)
    return [model.Suspend(task=task, node=started.node, resources=size, until_s=until_s, reason="test")]


def resumed(events):
    suspend = suspended(events)[0]
    return [model.Resume(task=suspend.task, node=suspend.node, resources=suspend.resources, reason="test")]


def with_script(found, script, watch=None):
    profile = dataclasses.replace(profiles.build("fifo"), controllers=(script,), observers=(script,))
    driver = Live(found, profile)
    while driver.advance():
        if watch is not None:
            watch(driver.world)
    return driver.world.finished()


@pytest.mark.parametrize("truth", [None, SATURATION], ids=["alone", "with contention"])
def test_a_suspended_task_stands_still_and_goes_on_where_it_was(truth):
    found = make.workload(make.mapreduce(one=make.container(make.cpu(30))), tick_ms=1000, contention=truth)
    assert with_script(found, make.Script({5.0: suspended, 12.0: resumed})).job_times_s == (37.0,)
    assert with_script(found, make.Script({5.0: lambda e: suspended(e, until_s=9.0)})).job_times_s == (34.0,)


def test_a_suspended_tasks_cpu_is_given_to_others_and_its_memory_is_not():
    jobs = [make.mapreduce("0", one=make.container(make.cpu(30), mb=4000))]
    jobs += [make.mapreduce(str(i), submit_ms=1, one=make.container(make.cpu(4), mb=4000)) for i in (1, 2)]
    found = make.workload(*jobs, cores=1, mb=8000, tick_ms=1000)
    outcome = with_script(found, make.Script({5.0: lambda e: suspended(e, until_s=20.0)}))
    assert (outcome.job_times_s, outcome.suspensions) == ((45.0, 8.999, 12.999), 1)


def test_a_resumed_task_waits_for_its_cpu_and_is_first_in_line_for_it():
    jobs = [make.mapreduce("0", one=make.container(make.cpu(10), mb=4000))]
    jobs += [make.mapreduce(str(i), submit_ms=1, one=make.container(make.cpu(20))) for i in (1, 2)]
    outcome = with_script(make.workload(*jobs, cores=1, tick_ms=1000), make.Script({5.0: suspended, 8.0: resumed}))
    # The next job has the CPU from 5 to 25, then the first goes on until 30, then the last.
    assert outcome.job_times_s == (30.0, 24.999, 49.999)


def test_the_cpu_of_a_suspended_task_is_free_after_a_while():
    jobs = [make.mapreduce(str(i), submit_ms=i, one=make.container(make.cpu(20), mb=4000)) for i in range(2)]
    found = make.workload(*jobs, cores=1, tick_ms=1000, suspend_ms=2700)
    placed = [event.now_s for event in _placed(found, make.Script({5.0: suspended, 6.0: resumed}))]
    assert placed == [0.0, 21.0]
    placed = [event.now_s for event in _placed(found, make.Script({5.0: suspended, 9.0: resumed}))]
    assert placed == [0.0, 7.7]


def _placed(found, script):
    with_script(found, script)
    return script.seen(model.Placed)


def resized(cpu_milli):
    def decide(events):
        task = suspended(events)[0]
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=1000 << 20)
        return [model.Resize(task=task.task, node=task.node, resources=size, reason="test")]

    return decide


def test_a_task_resized_to_half_its_cpu_computes_at_half_its_rate():
    found = make.workload(make.mapreduce(one=make.container(make.cpu(10))), tick_ms=1000)
    assert with_script(found, make.Script({4.0: resized(500)})).job_times_s == (16.0,)
    assert with_script(found, make.Script({4.0: resized(500), 8.0: resized(1000)})).job_times_s == (12.0,)


def test_a_decision_to_scale_what_has_no_workers_is_refused():
    found = make.workload(make.mapreduce(), tick_ms=1000)
    with pytest.raises(ValueError, match="fixed number of tasks"):
        with_script(found, make.Script({3.0: lambda _: [model.Scale(job=model.JobId("0"), workers=3, reason="test")]}))


# Observers


def test_reducers_report_their_progress_and_nodes_what_they_use():
    script = make.Script({})
    script.report_every_s, script.measure_every_s = 1.0, 3.0
    with_script(make.workload(make.mapreduce(maps=1, reduces=1, slow_start=1.0)), script)
    reports = [event for event in script.seen(model.Progress) if "/reduce" in event.task]
    assert [event.phase for event in reports] == ["shuffle"] * 3 + ["reduce"] * 6
    assert [event.fraction for event in reports[:5]] == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5 + 1 / 12])
    assert [event.usage["cpu_cores"] for event in script.seen(model.Measured)] == [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]


def test_a_finished_task_reports_what_it_computed_and_moved():
    script = make.Script({})
    one = make.container(work.segment("map", cpu_s=3, read_mb=100, write_mb=50))
    with_script(make.workload(make.mapreduce(one=one)), script)
    (event,) = script.seen(model.Finished)
    assert (event.counters["cpu_s"], event.counters["read_bytes"], event.counters["written_bytes"]) == (
        3.0,
        100 << 20,
        50 << 20,
    )
