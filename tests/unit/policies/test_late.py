"""LATE: the tasks that are thought to end last get second attempts, where slots are free."""

import dataclasses

import pytest

from boathouse_lab.invariants import Invariants
from boathouse_policies import framework, model, profiles
from boathouse_policies.baselines import late
from boathouse_sim import topology
from boathouse_sim.workload import Cluster
from tests.builders import core, simulations


def machines_with_slow_ones(quick=11, slow=1):
    """Machines of two slots, some of them slow."""
    return Cluster.of(
        [
            *topology.machines(quick, cores=2, mem_mb=8000, prefix="quick"),
            *topology.machines(slow, cores=2, mem_mb=8000, prefix="slow", speed=0.1),
        ]
    )


def job_of_maps(count=20, name="0", seconds=20, **options):
    return simulations.mapreduce(name, count, simulations.mapper(seconds), **options)


def simulate_late(*apps, profile="late", machines=None, **conditions):
    """The world after a simulation, and what it measured."""
    workload = simulations.live_workload(*apps, cluster=machines or machines_with_slow_ones(), **conditions)
    world = simulations.live_world(workload, profile, seed=1, watch=Invariants())
    return world, world.finished()


@pytest.fixture(scope="module")
def twenty_maps():
    """Twenty maps alone."""
    return simulate_late(job_of_maps())


def test_maps_on_a_slow_node_are_run_again_elsewhere_and_the_first_to_end_wins(twenty_maps):
    _, fair = simulate_late(job_of_maps(), profile="fair")
    _, found = twenty_maps
    assert fair.job_times_s == (200.0,)
    assert found.job_times_s == (25.0,)  # it is seen at the first report, and run anew
    assert found.speculative_attempts == 1


def test_a_map_that_was_run_twice_counts_once(twenty_maps):
    world, found = twenty_maps
    assert found.tasks == 20
    assert found.busy_cpu_utilisation * found.makespan_s * 24 == pytest.approx(20 * 20)
    assert sorted(record.index for record in world.records if not record.lost) == list(range(20))
    assert not world.pods


def test_at_most_a_tenth_of_the_slots_have_second_attempts():
    profile = late.build(config=late.Config(slow_task_percentile=90))
    world, found = simulate_late(job_of_maps(count=30), profile=profile, machines=machines_with_slow_ones(10, 6))
    seconds = [record for record in world.records if record.started_ms > 0]
    at_once = max(sum(a.started_ms <= b.started_ms < a.ended_ms for a in seconds) for b in seconds)
    assert found.speculative_attempts > 3
    assert at_once <= 4  # a tenth of 32, begun


def test_a_job_with_pending_tasks_and_less_of_the_cluster_is_before_a_second_attempt(twenty_maps):
    _, alone = twenty_maps
    _, found = simulate_late(job_of_maps(), job_of_maps(count=40, name="1", seconds=10, submit_ms=1000))
    assert alone.speculative_attempts == 1
    assert alone.job_times_s[0] == 25.0 < found.job_times_s[0]


def test_reducers_have_second_attempts_too():
    job = job_of_maps(count=4, seconds=4, reduces=18, reduce=simulations.reducer(copy_s=1, reduce_s=30))
    _, fair = simulate_late(job, profile="fair")
    _, found = simulate_late(job)
    assert found.speculative_attempts > 0
    assert found.job_times_s[0] < fair.job_times_s[0] / 2


def test_the_loss_of_one_attempt_leaves_the_other():
    world, found = simulate_late(job_of_maps(), outages=simulations.outages(("slow0", 9.0, None)))
    assert (found.speculative_attempts, found.lost_tasks) == (1, 1)
    assert sorted(record.index for record in world.records if not record.lost) == list(range(20))
    assert found.job_times_s == (25.0,)


def test_a_second_attempt_says_why():
    size, here = model.Resources(cpu_milli=1000), model.Distance.ANYWHERE
    slow = late._Attempt(framework.RunningTask("t", "c", "j", "n", size, here, 0.0, 0.0), progress=0.1, reported_s=10.0)
    decision = late._speculate(slow, model.NodeName("other"), ())
    assert decision.reason == "10% done at 1.00% a second: 90 s left"
    assert (decision.task.id, decision.attempt, decision.node) == ("t", "t-second", "other")


# Whom, and where


class SpeculatingShell(core.ReportingShell):
    """Nodes of four slots each, whose tasks have reported at second 10."""

    def __init__(self, nodes=10, **config) -> None:
        super().__init__(core.nodes(nodes), profile=late.build(config=late.Config(**config)))
        self.late = self.profile.controllers[0]

    def run(self, progress, name="job", *, started=None, first=0, waiting=0, size=None):
        """A job of one map on each of some nodes, by what it has done until second 10; others of it may wait."""
        job = core.job(name)
        of = core.task_class(job, size)
        tasks = core.tasks(of, len(progress) + waiting)
        self.report(core.submitted(job, of, count=len(tasks)))
        for i, done in enumerate(progress):
            self.ledger.observe(core.account(f"{of.id}-{i}", f"n{first + i}", size, job=job.id, queue=job.queue))
            self.attempt(tasks[i], f"n{first + i}", (started or {}).get(i, 0.0), 10.0, done, resources=of.resources)
        self.queue.submit(job, [of], tasks, placed=self.ledger)
        self.now_s = 10.0
        return tasks

    def attempt(self, task, node, started_s, reported_s, done, **fields):
        """An attempt of a task, and its report."""
        self.report_task(model.Placed, task, node, now_s=started_s, **fields)
        self.report_task(model.Started, task, node, now_s=started_s)
        self.progress(task, node, reported_s, done)

    def second_attempt(self, task, reported_s=20.0):
        """The second attempt of a task runs on n9."""
        second = model.Task(id=model.TaskId(f"{task.id}-second"), task_class=task.task_class)
        self.attempt(second, "n9", 10.0, reported_s, 0.01, second_of=task.id)
        self.now_s = reported_s

    def progress(self, task, node, now_s, done):
        self.report_task(model.Progress, task, node, now_s=now_s, fraction=done)

    def seconds(self):
        """(task, node) of each second attempt that is decided."""
        return [
            (decision.task.id.removeprefix("ns/"), decision.node)
            for decision in self.late.advise(self.queue, self.view())
        ]


USUAL = (0.5,) * 8


def test_the_slowest_runs_again_where_most_was_done():
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL, 0.8])
    assert shell.seconds() == [("job/map-0", "n9")]


def test_a_rate_is_progress_over_the_time_that_a_task_ran():
    shell = SpeculatingShell()
    shell.run([0.5, 0.4, *USUAL], started={0: 2.0, 1: 5.0})  # 0.06 and 0.08 a second, the others 0.05
    assert shell.seconds() == []
    shell = SpeculatingShell()
    shell.run([0.5, *(0.2,) * 9], started=dict.fromkeys(range(1, 10), 7.0))
    assert shell.seconds()[:1] == [("job/map-0", "n1")]


def test_the_task_with_the_longest_time_left_is_speculated_first():
    shell = SpeculatingShell(speculative_cap=1 / 40)
    shell.run([0.2, 0.1, *USUAL])
    assert [task for task, _ in shell.seconds()] == ["job/map-1"]
    shell = SpeculatingShell(speculative_cap=1 / 40)
    shell.run([0.8, 0.15, *USUAL], started={0: -30.0, 1: 5.0})  # 10 s left at 2 % a second, 28 s at 3 %
    assert [task for task, _ in shell.seconds()] == ["job/map-1"]


def test_nobody_is_judged_before_he_has_run_for_a_while():
    shell = SpeculatingShell(least_run_s=5.0)
    shell.run([0.1, *USUAL], started={0: 5.5})
    assert shell.seconds() == []


def test_too_few_tasks_are_not_compared():
    shell = SpeculatingShell()
    shell.run([0.1, 0.5, 0.5])
    assert shell.seconds() == []


def test_tasks_that_ended_are_compared_with_too():
    shell = SpeculatingShell()
    tasks = shell.run([0.1, 0.5, 0.5, 0.5])
    for i in (1, 2, 3):
        shell.report_task(model.Finished, tasks[i], f"n{i}")
    assert [task for task, _ in shell.seconds()] == ["job/map-0"]


def test_the_cap_is_of_all_slots_for_the_smallest_tasks():
    shell = SpeculatingShell(nodes=11, speculative_cap=0.06, slow_task_percentile=50.0)
    shell.run([0.1, 0.12, 0.14, *USUAL[:7]])
    shell.run([0.5], "large", first=10, size=core.amount(4000, 1))
    assert len(shell.seconds()) == 3  # of 44 slots; of those that are free it would be 2, of large ones 1


def test_room_that_one_takes_is_not_there_for_the_next():
    shell = SpeculatingShell(nodes=4, slow_task_percentile=60.0, slow_node_percentile=0.0, speculative_cap=1.0)
    for node, free in (("n0", 0), ("n1", 0), ("n2", 1), ("n3", 1)):
        shell.ledger.observe(core.account(f"other-{node}", node, core.amount(1000 * (3 - free), 1)))
    shell.run([0.1, 0.2, 0.5, 0.6])
    assert shell.seconds() == [("job/map-0", "n3"), ("job/map-1", "n2")]


def test_a_node_that_is_kept_for_a_gang_gets_none():
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL, 0.8])
    gang = shell.submit("gang", 50, gang_min=50, class_name="executor")
    for node in ("n1", "n2", "n3", "n4"):  # else the gang's job would go before
        shell.ledger.observe(core.account(f"held-{node}", node, core.amount(3000, 1), job=gang.job, queue="default"))
    assert shell.seconds() == [("job/map-0", "n9")]
    shell.late._is_due = True
    shell.queue.reserved.reserve(model.NodeName("n9"), gang.id, 0.0)
    assert shell.seconds() == [("job/map-0", "n5")]


def test_a_slow_node_gets_none_and_neither_does_its_own():
    shell = SpeculatingShell(nodes=5)
    shell.run([0.1, 0.5, 0.5, 0.5])  # n4 has done nothing
    for node in ("n1", "n2", "n3"):
        shell.ledger.observe(core.account(f"full-{node}", node, core.amount(3000, 1)))
    assert shell.seconds() == []
    shell = SpeculatingShell(nodes=5)
    shell.run([0.1, 0.5, 0.5, 0.5, 0.5])
    shell.run([0.9], "other")  # n0 has done most
    assert shell.seconds() == [("job/map-0", "n1")]


def test_a_decision_names_the_slow_nodes():
    shell = SpeculatingShell(nodes=5)
    shell.run([0.1, 0.5, 0.5, 0.5, 0.5])
    shell.run([0.9], "other")
    (found,) = shell.late.advise(shell.queue, shell.view())
    assert found.avoids == ()  # n0 has done most: its task is slow, and it is not
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL, 0.8])
    (found,) = shell.late.advise(shell.queue, shell.view())
    assert found.avoids == ("n0",)


def test_a_job_whose_second_attempts_wait_gets_no_more_of_that_stage():
    shell = SpeculatingShell()
    tasks = shell.run([0.2, *USUAL, 0.1])
    of = core.task_class(core.job())
    apart = dataclasses.replace(of, id=f"{of.id}/not-on-n0")
    second = model.Task(id=model.TaskId("ns/second"), task_class=apart.id)
    shell.queue.submit(core.job(), [of, apart], [*tasks, second], placed=shell.ledger)
    assert shell.seconds() == []


def test_the_job_that_holds_least_is_first():
    shell = SpeculatingShell(speculative_cap=1 / 40)
    shell.run([0.1, *USUAL], "large")
    shell.run([0.2, 0.5, 0.5, 0.5])
    assert [task for task, _ in shell.seconds()] == ["job/map-0"]


def test_the_rates_of_a_job_that_is_over_are_forgotten():
    shell = SpeculatingShell()
    for task in shell.run(USUAL):
        shell.report_task(model.Finished, task, "n0")
    shell.late.observe(model.Ended(now_s=10.0, job=model.JobId("job"), succeeded=True))
    shell.run([0.1])
    assert shell.seconds() == []


def test_it_does_not_know_which_virtual_machines_share_a_host():
    nodes = [core.node(name, server="host", rack="r0") for name in ("n0", "n1")]
    shell = core.Shell(nodes, profile="late")
    shell.ledger.observe(core.account("busy", "n0", core.amount(4000, 1)))
    shell.submit(locations=["n0"])
    assert [placed.distance for placed in core.placements(shell.cycle())] == [model.Distance.RACK]


def test_it_is_due_after_a_report_only():
    shell = SpeculatingShell(speculative_cap=1 / 40)
    tasks = shell.run([0.2, *USUAL])
    shell.seconds()
    second = model.Task(id=model.TaskId(f"{tasks[0].id}-second"), task_class=tasks[0].task_class)
    shell.report_task(model.Placed, second, "n9", second_of=tasks[0].id)
    shell.report_task(model.Failed, second, "n9", now_s=11.0)
    assert shell.seconds() == []
    shell.progress(tasks[1], "n1", 15.0, 0.7)
    assert [task for task, _ in shell.seconds()] == ["job/map-0"]


def test_who_has_a_second_attempt_gets_no_third():
    shell = SpeculatingShell()
    tasks = shell.run([0.2, *USUAL])
    assert len(shell.seconds()) == 1
    shell.second_attempt(tasks[0])
    assert shell.seconds() == []


def test_who_was_placed_again_gets_no_third_attempt_while_its_second_runs():
    shell = SpeculatingShell()
    tasks = shell.run([0.2, *USUAL])
    shell.second_attempt(tasks[0])
    shell.attempt(tasks[0], "n8", 11.0, 20.0, 0.01)
    assert shell.seconds() == []


def test_a_job_of_which_tasks_wait_gets_none():
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL], waiting=1)
    assert shell.seconds() == []


def test_who_holds_more_than_a_job_that_waits_gets_none():
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL])
    shell.submit("waits")
    assert shell.seconds() == []


def test_what_was_done_on_a_node_that_is_gone_or_by_a_failed_task_does_not_count():
    shell = SpeculatingShell()
    tasks = shell.run([0.2, *USUAL, 0.8])
    shell.report_task(model.Failed, tasks[9], "n9")
    assert shell.seconds() == [("job/map-0", "n1")]
    shell = SpeculatingShell()
    shell.run([0.2, *USUAL, 0.8])
    shell.late.observe(model.NodeChanged(now_s=10.0, name=model.NodeName("n9"), node=None))
    assert shell.seconds() == [("job/map-0", "n1")]


def test_a_task_has_one_second_attempt_whatever_its_name_and_none_of_that():
    shell = SpeculatingShell()
    tasks = shell.run([0.2, *USUAL, 0.8])
    second = core.task(core.task_class(core.job("job")), 15)
    shell.attempt(second, "n9", 0.0, 10.0, 0.1, second_of=tasks[0].id)
    assert shell.seconds() == []
    shell.report_task(model.Failed, second, "n9")
    shell.progress(tasks[0], "n0", 10.0, 0.2)
    assert shell.seconds() == [("job/map-0", "n9")]


def test_a_cycle_is_due_once_a_task_has_reported():
    shell = SpeculatingShell()
    assert shell.late.is_idle()
    shell.run(USUAL)
    assert not shell.late.is_idle()
    shell.seconds()
    assert shell.late.is_idle()


@pytest.mark.parametrize("name", profiles.names())
def test_any_profile_speculates_where_the_switch_says_so(name):
    plain, switched = (profiles.build(name, switches=profiles.Switches(speculate=on)) for on in (False, True))
    lates = [
        [controller for controller in profile.controllers if isinstance(controller, late.Late)]
        for profile in (plain, switched)
    ]
    assert [len(found) for found in lates] == [name == "late", 1]
    assert [type(observer) for observer in switched.observers].count(framework.RunningTasks) == 1
    assert lates[1][0] in switched.observers
    assert lates[1][0]._running is switched.running
