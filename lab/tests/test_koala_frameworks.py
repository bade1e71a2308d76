"""Dynamic Hadoop clusters: what jobs take on them, worked out by hand, and what must always hold."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_lab.invariants import Invariants
from boathouse_lab.koala import Disks, Hadoop, HadoopJob, Program
from boathouse_lab.koala.tracker import JobBook, Tracker
from boathouse_policies import koala, model
from boathouse_policies.koala import Config, Policy
from boathouse_sim import conditions, topology, work
from boathouse_sim.conditions import Outage, Outages
from boathouse_sim.topology import Host
from boathouse_sim.workload import Cluster
from tests.builders import simulations

COUNT = Program(name="count", map_s_per_mb=0.1, map_output=0.0, reduce_s_per_mb=0.0, output=0.0, start_s=0.0)
COPY = Program(name="copy", map_s_per_mb=0.0, map_output=1.0, reduce_s_per_mb=0.0, output=1.0, start_s=0.0)
EVEN = conditions.Saturation(cpu_flat=1.0, cpu_power=1.0, seek=0.0, ceiling=1e9)


def hadoop_job(name="j", maps=4, program=COUNT, reduces=1, **fields) -> HadoopJob:
    return HadoopJob(id=name, program=program, maps=maps, block_mb=100.0, reduces=reduces, **fields)


def hadoop_app(*jobs, name="c", core=2, **fields) -> Hadoop:
    plain = {"map_slots": 2, "reduce_slots": 1, "boot_ms": 0, "replicas": 1, "slow_start": 1.0}
    disks = Disks(read_mb_per_s=100.0, write_mb_per_s=100.0, copy_mb_per_s=100.0)
    node = work.Container(mem_mb=1000, cores=4)
    return Hadoop(id=name, jobs=jobs or (hadoop_job(),), core=core, node=node, disks=disks, **(plain | fields))


def simulate_clusters(*clusters, nodes=4, config=None, outages=(), watch=None, seed=0):
    """The courses of the clusters, by name, after all is over."""
    machines = topology.machines(nodes, cores=4, mem_mb=1000, disk_mb_per_s=100.0, network_mb_per_s=1000.0)
    link = Host(name="link", cores=1, network_mb_per_s=50.0)
    workload = simulations.live_workload(
        *clusters,
        cluster=Cluster.of(machines, (link,)),
        contention=EVEN,
        outages=Outages(given=tuple(outages)),
        records=False,
    )
    world = simulations.live_world(workload, koala.build(config or Config(policy=Policy.STATIC)), seed, watch)
    return {run.spec.id: run.course for run in world.runs.values()}


def course_of(*args, **fields):
    """The course of the only cluster."""
    (course,) = simulate_clusters(*args, **fields).values()
    return course


def times(course) -> dict[str, float]:
    return {record.id: record.time_s for record in course.records}


# Jobs by hand


def test_maps_run_in_waves_of_the_slots():
    assert times(course_of(hadoop_app(hadoop_job(maps=4)))) == {"j": pytest.approx(10.0, abs=0.01)}
    assert times(course_of(hadoop_app(hadoop_job(maps=5)))) == {"j": pytest.approx(20.0, abs=0.01)}


def test_jobs_are_served_first_in_first_out():
    found = times(course_of(hadoop_app(hadoop_job("a", maps=8), hadoop_job("b", maps=4, submit_ms=1))))
    assert found == {"a": pytest.approx(20.0, abs=0.05), "b": pytest.approx(30.0, abs=0.05)}


def test_a_sorting_job_spills_copies_merges_and_writes():
    course = course_of(hadoop_app(hadoop_job(maps=1, program=COPY), core=1), nodes=1)
    # read 1 s, spill 1 s, copy 1 s, merge 1 + 1 s, write 1 s
    assert times(course) == {"j": pytest.approx(6.0, abs=0.02)}


def test_replicas_are_written_to_other_core_nodes_at_the_same_time():
    alone = times(course_of(hadoop_app(hadoop_job(maps=1, program=COPY), core=3)))["j"]
    thrice = times(course_of(hadoop_app(hadoop_job(maps=1, program=COPY), core=3, replicas=3)))["j"]
    assert thrice == pytest.approx(alone, abs=0.02)
    shared = times(course_of(hadoop_app(hadoop_job(maps=2, program=COPY, reduces=2), core=2, replicas=2)))["j"]
    single = times(course_of(hadoop_app(hadoop_job(maps=2, program=COPY, reduces=2), core=2, replicas=1)))["j"]
    assert shared == pytest.approx(single + 1.0, abs=0.05)  # each node writes two instead of one


def on_both(**fields):
    """A map and a reducer on a core node, and the same on a transient one."""
    sort = hadoop_job(maps=2, program=COPY, reduces=2)
    course = course_of(hadoop_app(sort, core=1, transient=1, map_slots=1, **fields))
    return times(course)["j"], course.work.stored_mb


def test_a_transient_node_reads_from_and_writes_to_core_nodes():
    # The core node's disk serves both maps (2 s); spills 1 s, copies 1 s, merges 2 s; and takes both outputs (2 s).
    assert on_both() == (pytest.approx(8.0, abs=0.05), 100.0)


def test_transient_nodes_send_over_a_link_where_there_is_one():
    # The map's block crosses it while the disk is read; the output is sent (2 s) before it is written (1 s).
    assert on_both(link="link") == (pytest.approx(9.0, abs=0.05), 100.0)


def test_sending_and_writing_may_overlap():
    assert on_both(link="link", pipelined=True) == (pytest.approx(8.0, abs=0.05), 100.0)


def test_reducers_may_start_early_and_copy_what_there_is():
    late = times(course_of(hadoop_app(hadoop_job(maps=8, program=COPY), core=1, reduce_slots=1), nodes=1))["j"]
    early = times(
        course_of(hadoop_app(hadoop_job(maps=8, program=COPY), core=1, reduce_slots=1, slow_start=0.05), nodes=1)
    )["j"]
    assert early < late


# The book of jobs


def book(maps=3, reduces=2, slow_start=1.0, blocks=(("a",), ("b",), ("b",))) -> JobBook:
    return JobBook(hadoop_job(maps=maps, reduces=reduces), blocks, slow_start, 0)


def test_a_node_takes_maps_with_a_block_on_it_first():
    job_book = book()
    assert [job_book.take_map("b"), job_book.take_map("b"), job_book.take_map("b"), job_book.take_map("b")] == [
        1,
        2,
        0,
        None,
    ]
    assert job_book.local_maps == 2


def test_reducers_wait_for_their_share_of_maps():
    job_book = book(slow_start=0.5)
    assert job_book.take_reduce() is None
    job_book.mapped(0, "a", 1)
    assert job_book.waiting_reduces == 0
    job_book.mapped(1, "b", 2)
    assert (job_book.take_reduce(), job_book.take_reduce(), job_book.take_reduce()) == (0, 1, None)


def test_output_of_maps_is_needed_until_the_last_reducer_has_copied():
    job_book = book(reduces=1)
    job_book.mapped(0, "a", 1)
    assert job_book.needs("a")
    assert not job_book.needs("b")
    job_book.past_copy.add(0)
    assert not job_book.needs("a")


def test_waiting_tasks_are_maps_and_reducers_that_may_start():
    tracker = Tracker()
    tracker.jobs = {"x": book(), "y": book(slow_start=0.0)}
    assert tracker.waiting == 3 + 3 + 2


# Growing and shrinking

HOUR = dataclasses.replace(COUNT, map_s_per_mb=0.3)


def sizes(course) -> list[tuple[float, int, int]]:
    return [(size.at_ms / 1000, size.core, size.transient) for size in course.sizes if size.at_ms > course.ready_ms]


def test_gsp_grows_while_tasks_wait_and_shrinks_when_few_run():
    jobs = (hadoop_job("wide", maps=60, program=HOUR), hadoop_job("thin", maps=1, program=HOUR, submit_ms=400_000))
    course = course_of(hadoop_app(*jobs, core=2), nodes=12, config=Config())
    assert sizes(course)[:5] == [(35.0, 2, transient) for transient in (1, 2, 3, 4, 5)]  # 30 s after the first report
    assert max(transient for _, _, transient in sizes(course)) == 10
    assert sizes(course)[-1][1:] == (2, 0)


def test_ggp_and_ggdp_grow_by_two_each_two_minutes_whatever_there_is_to_do():
    lone = hadoop_job(maps=1, program=dataclasses.replace(COUNT, map_s_per_mb=5.0))
    ggp, ggdp = (
        course_of(hadoop_app(lone), nodes=12, config=Config(policy=policy)) for policy in (Policy.GGP, Policy.GGDP)
    )
    assert sizes(ggp)[1::2] == [(5.0 + 120.0 * i, 2, 2 * i) for i in (1, 2, 3, 4)]
    assert sizes(ggdp)[1::2] == [(5.0 + 120.0 * i, 2 + 2 * i, 0) for i in (1, 2, 3, 4)]


def test_ggp_shrinks_to_its_core_nodes_when_its_workload_is_over_and_ggdp_does_not():
    lone = hadoop_job(maps=1, program=dataclasses.replace(COUNT, map_s_per_mb=1.5))
    ggp, ggdp = (
        course_of(hadoop_app(lone, linger_ms=300_000), nodes=8, config=Config(policy=policy))
        for policy in (Policy.GGP, Policy.GGDP)
    )
    assert sizes(ggp)[-1][1:] == (2, 0)
    assert sizes(ggdp)[-1][1:] == (4, 0)


def test_of_transient_nodes_the_one_with_the_fewest_tasks_leaves():
    jobs = (hadoop_job("five", maps=5), hadoop_job("late", maps=1, submit_ms=6000))
    kept = course_with_nodes_given_back(*jobs, transient=2, workers=3, at_s=5.0)
    assert times(kept)["late"] == pytest.approx(10.0, abs=0.5)  # the node with one task has a free slot
    left = course_with_nodes_given_back(*jobs, transient=2, workers=2, at_s=5.0)
    assert times(left)["late"] == pytest.approx(14.0, abs=0.5)  # that node leaves


def test_a_node_that_leaves_ends_its_tasks_and_takes_no_more():
    course = course_with_nodes_given_back(hadoop_job(maps=8), at_s=5.0)
    assert times(course) == {"j": pytest.approx(30.0, abs=0.5)}  # two nodes until 10 s, then one
    assert sizes(course)[-1][1:] == (1, 0)


def test_a_node_that_leaves_stays_until_jobs_with_map_output_on_it_end():
    course = course_with_nodes_given_back(
        hadoop_job(maps=4, program=dataclasses.replace(COPY, map_s_per_mb=0.1)), at_s=5.0
    )
    (record,) = course.records
    assert sizes(course)[-1] == (record.ended_ms / 1000, 1, 0)
    assert record.mapped_ms < record.ended_ms - 10_000


def test_nodes_take_tasks_once_they_have_booted():
    course = course_of(hadoop_app(boot_ms=7000))
    assert (course.ready_ms, course.records[0].submitted_ms) == (7000, 7000)


def course_with_nodes_given_back(*jobs: HadoopJob, at_s: float, transient: int = 1, workers: int = 1):
    """Jobs on a core node and transient nodes, of which some are given back at a time."""
    machines = topology.machines(1 + transient, cores=4, mem_mb=1000, disk_mb_per_s=100.0)
    cluster = hadoop_app(*jobs, core=1, transient=transient, linger_ms=60_000)
    workload = simulations.live_workload(cluster, cluster=Cluster.of(machines), contention=EVEN, records=False)
    decision = model.Scale(job=model.JobId("c"), workers=workers, reason="test")
    script = simulations.Script({at_s: lambda _: [decision]})
    world = simulations.live_world(workload, dataclasses.replace(koala.build(), controllers=(script,)))
    (found,) = world.runs.values()
    return found.course


def test_a_new_core_node_holds_output_and_a_transient_one_does_not():
    grown = hadoop_job(maps=30, program=dataclasses.replace(COPY, map_s_per_mb=0.3), reduces=12)
    ggp, ggdp = (
        course_of(hadoop_app(grown, core=1, map_slots=1), nodes=8, config=fast(policy)) for policy in ("ggp", "ggdp")
    )
    assert ggp.work.stored_mb > 0.0
    assert ggdp.work.stored_mb == 0.0


def fast(policy: str) -> Config:
    return Config(policy=Policy(policy), greedy_every_s=10.0)


# What goes wrong


def test_a_lost_node_is_replaced_and_its_work_done_again():
    calm = course_of(hadoop_app(hadoop_job(maps=8, program=COPY, reduces=2), core=3, replicas=2), nodes=4)
    lost = course_of(
        hadoop_app(hadoop_job(maps=8, program=COPY, reduces=2), core=3, replicas=2),
        nodes=4,
        outages=[Outage(node="n1", from_s=9.0)],
    )
    assert (calm.records[0].mapped_ms, lost.records[0].mapped_ms) == (8000, 11_000)  # its output is made again
    assert [size.core for size in lost.sizes[-2:]] == [2, 3]
    assert "n3" in lost.nodes


def test_a_failure_in_one_cluster_is_not_felt_in_another():
    pair = [hadoop_app(hadoop_job(maps=8, program=COPY), name=name, core=2) for name in ("a", "b")]
    calm, failing = (
        simulate_clusters(*pair),
        simulate_clusters(*pair, outages=[Outage(node="n0", from_s=3.0, to_s=20.0)]),
    )
    assert times(failing["b"]) == times(calm["b"])
    assert times(failing["a"])["j"] > times(calm["a"])["j"]
    assert not calm["a"].nodes & calm["b"].nodes


# Always

clusters = st.builds(
    hadoop_app,
    st.builds(hadoop_job, st.just("x"), st.integers(1, 12), st.sampled_from([COUNT, COPY]), st.integers(1, 4)),
    st.builds(hadoop_job, st.just("y"), st.integers(1, 6), st.just(COPY), submit_ms=st.integers(0, 40_000)),
    core=st.integers(1, 3),
    transient=st.integers(0, 2),
    replicas=st.integers(1, 3),
    slow_start=st.sampled_from([0.0, 0.3, 1.0]),
    boot_ms=st.sampled_from([0, 7000]),
    link=st.sampled_from(["", "link"]),
    pipelined=st.booleans(),
    jitter=st.sampled_from([0.0, 0.5]),
)
configs = st.builds(
    lambda policy, every_s: Config(policy=policy, greedy_every_s=every_s, gsp_every_s=every_s, shrink_below=0.2),
    st.sampled_from(list(Policy)),
    st.sampled_from([5.0, 15.0]),
)
outages = st.lists(
    st.builds(
        lambda node, from_s: Outage(node=f"n{node}", from_s=from_s, to_s=from_s + 10.0),
        st.integers(0, 6),
        st.floats(1.0, 40.0),
    ),
    max_size=2,
)


@hypothesis.settings(max_examples=8, deadline=None)
@hypothesis.given(cluster=clusters, other=clusters, config=configs, failing=outages, seed=st.integers(0, 9))
def test_clusters_keep_their_core_nodes_within_the_pool_and_end_all_jobs(cluster, other, config, failing, seed):
    pair = (cluster, dataclasses.replace(other, id="d"))
    found = simulate_clusters(*pair, nodes=10, config=config, outages=failing, watch=Invariants(), seed=seed)
    for spec in pair:
        course = found[spec.id]
        assert sorted(times(course)) == ["x", "y"]
        assert max(size.core + size.transient for size in course.sizes) <= 10
        if not failing:
            since = [size for size in course.sizes if size.at_ms > course.ready_ms]
            assert all(size.core >= spec.core for size in since)


@hypothesis.settings(max_examples=3, deadline=None)
@hypothesis.given(cluster=clusters, config=configs, failing=outages)
def test_equal_seeds_give_equal_runs(cluster, config, failing):
    first, again = (course_of(cluster, nodes=8, config=config, outages=failing, seed=1) for _ in range(2))
    assert (first.records, first.sizes) == (again.records, again.sizes)
