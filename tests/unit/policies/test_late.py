"""LATE: the tasks that are thought to end last get second attempts, where slots are free."""

import dataclasses

import pytest

from boathouse_policies import framework, model, profiles
from boathouse_policies.baselines import late
from boathouse_sim import topology
from boathouse_sim.conditions import Outage, Outages
from boathouse_sim.invariants import Invariants
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster
from tests.unit.policies import builders
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
    size, here = model.Resources(cpu_milli=1000), model.Distance.ANYWHERE
    slow = late._Attempt(framework.RunningTask("t", "c", "j", "n", size, here, 0.0, 0.0), progress=0.1, reported_s=10.0)
    decision = late._speculate(slow, model.NodeName("other"))
    assert decision.reason == "10% done at 1.00% a second: 90 s left"
    assert (decision.task.id, decision.attempt, decision.node) == ("t", "t-second", "other")


# Whom, and where


class Watched(builders.World):
    """Ten nodes of four slots each, unless told, whose tasks LATE hears of."""

    def __init__(self, nodes=10, **config) -> None:
        super().__init__(builders.nodes(nodes), profile=late.build(config=late.Config(**config)))
        self.late = self.profile.controllers[0]

    def runs(self, progress, name="job", *, started=None, first=0, waits=0, size=None):
        """A job of one map on each of some nodes, by what it has done until second 10; others of it may wait."""
        job = builders.job(name)
        one = builders.task_class(job, size)
        tasks = builders.tasks(one, len(progress) + waits)
        self.hear(model.Submitted(now_s=0.0, job=job, classes=(one,), tasks={one.id: len(tasks)}))
        for i, done in enumerate(progress):
            node = f"n{first + i}"
            self.ledger.observe(builders.pod(f"{one.id}-{i}", node, size, job=job.id, queue=job.queue))
            self.tell(model.Placed, tasks[i], node, resources=one.resources, distance=model.Distance.ANYWHERE)
            self.tell(model.Started, tasks[i], node, now_s=(started or {}).get(i, 0.0))
            self.tell(model.Progress, tasks[i], node, now_s=10.0, fraction=done, phase="map", counters={})
        self.room.submit(job, [one], tasks, placed=self.ledger)
        self.now_s = 10.0
        return tasks

    def hear(self, event) -> None:
        for one in self.profile.observers:
            one.observe(event)

    def tell(self, event, task, node, *, now_s=0.0, **fields) -> None:
        job = task.task_class.split("/")[0]
        ids = {"task": task.id, "task_class": task.task_class, "job": job, "node": node}
        self.hear(event(now_s=now_s, **ids, **fields))

    def seconds(self):
        """(task, node) of each second attempt that is decided."""
        found = self.late.advise(self.room, self.view())
        return [(one.task.id.removeprefix("ns/"), one.node) for one in found]


USUAL = (0.5,) * 8


def test_the_slowest_runs_again_where_most_was_done():
    world = Watched()
    world.runs([0.2, *USUAL, 0.8])
    assert world.seconds() == [("job/map-0", "n9")]


def test_a_rate_is_progress_over_the_time_that_a_task_ran():
    world = Watched()
    world.runs([0.5, 0.4, *USUAL], started={0: 2.0, 1: 5.0})  # 0.06 and 0.08 a second, the others 0.05
    assert world.seconds() == []
    world = Watched()
    world.runs([0.5, *(0.2,) * 9], started=dict.fromkeys(range(1, 10), 7.0))
    assert world.seconds()[:1] == [("job/map-0", "n1")]


def test_of_several_the_one_with_the_longest_time_left_goes_first():
    world = Watched(speculative_cap=1 / 40)
    world.runs([0.2, 0.1, *USUAL])
    assert [task for task, _ in world.seconds()] == ["job/map-1"]
    world = Watched(speculative_cap=1 / 40)
    world.runs([0.8, 0.15, *USUAL], started={0: -30.0, 1: 5.0})  # 10 s left at 2 % a second, 28 s at 3 %
    assert [task for task, _ in world.seconds()] == ["job/map-1"]


def test_nobody_is_judged_before_he_has_run_for_a_while():
    world = Watched(least_run_s=5.0)
    world.runs([0.1, *USUAL], started={0: 5.5})
    assert world.seconds() == []


def test_too_few_tasks_are_not_compared():
    world = Watched()
    world.runs([0.1, 0.5, 0.5])
    assert world.seconds() == []


def test_tasks_that_ended_are_compared_with_too():
    world = Watched()
    tasks = world.runs([0.1, 0.5, 0.5, 0.5])
    for i in (1, 2, 3):
        world.tell(model.Finished, tasks[i], f"n{i}", now_s=10.0, duration_s=10.0, counters={})
    assert [task for task, _ in world.seconds()] == ["job/map-0"]


def test_the_cap_is_of_all_slots_for_the_smallest_tasks():
    world = Watched(nodes=11, speculative_cap=0.06, slow_task_percentile=50.0)
    world.runs([0.1, 0.12, 0.14, *USUAL[:7]])
    world.runs([0.5], "large", first=10, size=builders.amount(4000, 1))
    assert len(world.seconds()) == 3  # of 44 slots; of those that are free it would be 2, of large ones 1


def test_room_that_one_takes_is_not_there_for_the_next():
    world = Watched(nodes=4, slow_task_percentile=60.0, slow_node_percentile=0.0, speculative_cap=1.0)
    for node, free in (("n0", 0), ("n1", 0), ("n2", 1), ("n3", 1)):
        world.ledger.observe(builders.pod(f"other-{node}", node, builders.amount(1000 * (3 - free), 1)))
    world.runs([0.1, 0.2, 0.5, 0.6])
    assert world.seconds() == [("job/map-0", "n3"), ("job/map-1", "n2")]


def test_a_slow_node_gets_none_and_neither_does_its_own():
    world = Watched(nodes=5)
    world.runs([0.1, 0.5, 0.5, 0.5])  # n4 has done nothing
    for node in ("n1", "n2", "n3"):
        world.ledger.observe(builders.pod(f"full-{node}", node, builders.amount(3000, 1)))
    assert world.seconds() == []
    world = Watched(nodes=5)
    world.runs([0.1, 0.5, 0.5, 0.5, 0.5])
    world.runs([0.9], "other")  # n0 has done most
    assert world.seconds() == [("job/map-0", "n1")]


def test_a_decision_names_the_slow_nodes():
    world = Watched(nodes=5)
    world.runs([0.1, 0.5, 0.5, 0.5, 0.5])
    world.runs([0.9], "other")
    (found,) = world.late.advise(world.room, world.view())
    assert found.avoids == ()  # n0 has done most: its task is slow, and it is not
    world = Watched()
    world.runs([0.2, *USUAL, 0.8])
    (found,) = world.late.advise(world.room, world.view())
    assert found.avoids == ("n0",)


def test_a_job_whose_second_attempts_wait_gets_no_more_of_that_stage():
    world = Watched()
    tasks = world.runs([0.2, *USUAL, 0.1])
    job, one = builders.job("job"), builders.task_class(builders.job("job"))
    apart = dataclasses.replace(one, id=f"{one.id}/not-on-n0")
    second = model.Task(id=model.TaskId("ns/second"), task_class=apart.id)
    world.room.submit(job, [one, apart], [*tasks, second], placed=world.ledger)
    assert world.seconds() == []


def test_the_job_that_holds_least_goes_first():
    world = Watched(speculative_cap=1 / 40)
    world.runs([0.1, *USUAL], "large")
    world.runs([0.2, 0.5, 0.5, 0.5])
    assert [task for task, _ in world.seconds()] == ["job/map-0"]


def test_the_rates_of_a_job_that_is_over_are_forgotten():
    world = Watched()
    for task in world.runs(USUAL):
        world.tell(model.Finished, task, "n0", now_s=10.0, duration_s=10.0, counters={})
    world.late.observe(model.Ended(now_s=10.0, job=model.JobId("job"), succeeded=True))
    world.runs([0.1])
    assert world.seconds() == []


def test_it_does_not_know_which_virtual_machines_share_a_host():
    nodes = [builders.node(name, server="host", rack="r0") for name in ("n0", "n1")]
    world = builders.World(nodes, profile=profiles.build("late"))
    world.ledger.observe(builders.pod("busy", "n0", builders.amount(4000, 1)))
    world.submit(locations=("n0",))
    assert [one.distance for one in builders.placements(world.cycle())] == [model.Distance.RACK]


def test_it_is_due_after_a_report_only():
    world = Watched(speculative_cap=1 / 40)
    tasks = world.runs([0.2, *USUAL])
    world.seconds()
    second = model.Task(id=model.TaskId(f"{tasks[0].id}-second"), task_class=tasks[0].task_class)
    size, far = model.Resources(cpu_milli=1000), model.Distance.ANYWHERE
    world.tell(model.Placed, second, "n9", resources=size, distance=far, second_of=tasks[0].id)
    world.tell(model.Failed, second, "n9", now_s=11.0, reason="lost")
    assert world.seconds() == []
    world.tell(model.Progress, tasks[1], "n1", now_s=15.0, fraction=0.7, phase="map", counters={})
    assert [task for task, _ in world.seconds()] == ["job/map-0"]


def has_second(world, tasks):
    """The second attempt of the first task runs on n9, and reports at second 20."""
    second = model.Task(id=model.TaskId(f"{tasks[0].id}-second"), task_class=tasks[0].task_class)
    size, far = model.Resources(cpu_milli=1000), model.Distance.ANYWHERE
    world.tell(model.Placed, second, "n9", resources=size, distance=far, second_of=tasks[0].id)
    world.tell(model.Started, second, "n9", now_s=10.0)
    world.tell(model.Progress, second, "n9", now_s=20.0, fraction=0.01, phase="map", counters={})
    world.now_s = 20.0


def test_who_has_a_second_attempt_gets_no_third():
    world = Watched()
    tasks = world.runs([0.2, *USUAL])
    assert len(world.seconds()) == 1
    has_second(world, tasks)
    assert world.seconds() == []


def test_who_was_placed_again_gets_no_third_attempt_while_its_second_runs():
    world = Watched()
    tasks = world.runs([0.2, *USUAL])
    has_second(world, tasks)
    size = model.Resources(cpu_milli=1000)
    world.tell(model.Placed, tasks[0], "n8", now_s=11.0, resources=size, distance=model.Distance.ANYWHERE)
    world.tell(model.Started, tasks[0], "n8", now_s=11.0)
    world.tell(model.Progress, tasks[0], "n8", now_s=20.0, fraction=0.01, phase="map", counters={})
    assert world.seconds() == []


def test_a_job_of_which_tasks_wait_gets_none():
    world = Watched()
    world.runs([0.2, *USUAL], waits=1)
    assert world.seconds() == []


def test_who_holds_more_than_a_job_that_waits_gets_none():
    world = Watched()
    world.runs([0.2, *USUAL])
    world.submit("waits")
    assert world.seconds() == []


def test_what_was_done_on_a_node_that_is_gone_or_by_a_failed_task_does_not_count():
    world = Watched()
    tasks = world.runs([0.2, *USUAL, 0.8])
    world.tell(model.Failed, tasks[9], "n9", now_s=10.0, reason="lost")
    assert world.seconds() == [("job/map-0", "n1")]
    world = Watched()
    world.runs([0.2, *USUAL, 0.8])
    world.late.observe(model.NodeChanged(now_s=10.0, name=model.NodeName("n9"), node=None))
    assert world.seconds() == [("job/map-0", "n1")]


def test_a_task_has_one_second_attempt_whatever_its_name_and_none_of_that():
    world = Watched()
    tasks = world.runs([0.2, *USUAL, 0.8])
    again = builders.tasks(builders.task_class(builders.job("job")), 20)[15]
    size, far = builders.amount(1000, 1), model.Distance.ANYWHERE
    world.tell(model.Placed, again, "n9", resources=size, distance=far, second_of=tasks[0].id)
    world.tell(model.Started, again, "n9", now_s=0.0)
    world.tell(model.Progress, again, "n9", now_s=10.0, fraction=0.1, phase="map", counters={})
    assert world.seconds() == []
    world.tell(model.Failed, again, "n9", now_s=10.0, reason="PodLost")
    world.tell(model.Progress, tasks[0], "n0", now_s=10.0, fraction=0.2, phase="map", counters={})
    assert world.seconds() == [("job/map-0", "n9")]


def test_a_cycle_is_due_once_a_task_has_reported():
    world = Watched()
    assert world.late.is_idle()
    world.runs(USUAL)
    assert not world.late.is_idle()
    world.seconds()
    assert world.late.is_idle()


@pytest.mark.parametrize("name", profiles.names())
def test_any_profile_speculates_where_the_switch_says_so(name):
    plain, switched = (profiles.build(name, switches=profiles.Switches(speculate=on)) for on in (False, True))
    lates = [[one for one in each.controllers if isinstance(one, late.Late)] for each in (plain, switched)]
    assert [len(found) for found in lates] == [name == "late", 1]
    assert [type(one) for one in switched.observers].count(framework.RunningTasks) == 1
    assert lates[1][0] in switched.observers
    assert lates[1][0]._running is switched.running
