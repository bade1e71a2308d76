"""Algorithm 1 in the cycle: who gets how much, where, and who may pass a reserved node."""

import dataclasses

import pytest

from boathouse_policies import framework, model, yarn_me
from boathouse_policies.framework import questions
from boathouse_sim.simulation import Instant
from tests.builders import core, simulations
from tests.builders.core_elastic import elastic_estimates


def simulate_yarn_me(workload, **config):
    """The world after a simulation by YARN-ME."""
    return simulations.run(Instant(workload, yarn_me.build(config=yarn_me.Config(**config))))


def yarn_me_times_s(workload, **config):
    return simulate_yarn_me(workload, **config).finished().job_times_s


SIZE = core.amount(1000, 4)


def spilling(tasks=1, seconds=100.0, mb=4000, factor=1.5):
    return simulations.phase(tasks, seconds, mb, model="sawtooth", factor=factor)


def test_a_task_gets_its_ideal_where_it_fits():
    assert simulate_yarn_me(simulations.workload(simulations.job("0", spilling(2)))).finished().elastic_tasks == 0


def test_the_least_memory_with_the_lowest_run_time_is_taken():
    # 10,000 MB: two regular ones of 4,000 leave 2,000, half of the ideal: a spill of half the input.
    found = simulate_yarn_me(simulations.workload(simulations.job("0", spilling(4))))
    assert found.finished().elastic_tasks == 1
    assert found.tally.mb_ms == 4000 * 300_000 + 2000 * 125_000


def test_an_elastic_task_that_would_end_last_is_not_started():
    # The other job's task ends after 5 s and leaves room for the ideal: 5 + 100 s is earlier than 150 s in a tenth.
    jobs = simulations.job("0", simulations.phase(1, 5, 9000)), simulations.job("1", spilling(1, 100, 9500))
    assert yarn_me_times_s(simulations.workload(*jobs)) == (5.0, 105.0)


def placed_sizes(workload):
    """(job, MB) of each task, in the order of the decisions."""
    placements = simulations.placement_log(Instant(workload, yarn_me.build()))
    return [(task.split("/")[0], size_mib) for _, task, _, size_mib in placements]


def test_a_node_with_room_for_the_ideal_is_preferred_to_one_without():
    jobs = simulations.job("0", simulations.phase(1, 500, 7000)), simulations.job("1", spilling(3, 100, 8000), at_s=1)
    assert placed_sizes(simulations.workload(*jobs, nodes=2))[1] == ("1", 8000)


def test_a_task_that_needs_all_of_its_node_is_regular():
    workload = simulations.workload(simulations.job("0", spilling(1, 100, 4050, factor=3.0)), node_mb=4050)
    assert yarn_me_times_s(workload) == (100.0,)


def test_the_job_that_holds_least_memory_is_next():
    jobs = simulations.job("0", simulations.phase(2, 100, 4000)), simulations.job("1", simulations.phase(1, 100, 4000))
    assert [job for job, _ in placed_sizes(simulations.workload(*jobs))][:2] == ["0", "1"]


BESIDE_A_RESERVATION = (
    simulations.job("0", simulations.phase(1, 50, 6000)),
    simulations.job("1", simulations.phase(1, 50, 9000, factor=3.0), at_s=1),
)


@pytest.mark.parametrize(
    ("seconds", "ends_s"),
    [
        pytest.param(40, 40.0, id="it ends before the reserved task could start"),
        pytest.param(60, 158.0, id="it would be in the way"),
    ],
)
def test_a_reserved_node_is_passed_only_without_harm(seconds, ends_s):
    small = simulations.job("2", simulations.phase(1, seconds, 3500, factor=3.0), at_s=2)
    times_s = yarn_me_times_s(simulations.workload(*BESIDE_A_RESERVATION, small))
    assert times_s == (50.0, 99.0, ends_s)


@pytest.mark.parametrize("nodes", [1, 2])
def test_who_ends_when_the_reserved_task_could_start_may_pass(nodes):
    jobs = (
        simulations.job("0", simulations.phase(nodes, 50, 6000)),
        simulations.job("1", simulations.phase(nodes, 50, 9000, factor=3.0), at_s=1),
        simulations.job("2", simulations.phase(nodes, 48, 3500, factor=3.0), at_s=2),
    )
    assert yarn_me_times_s(simulations.workload(*jobs, nodes=nodes)) == (50.0, 99.0, 48.0)


def most_elastic_at_once(workload, **config):
    """Elastic tasks that ran together at the most."""
    counts = []

    def watch(world):
        running, outlook, _ = world.profile.observers
        sizes = [(outlook.classes[task.task_class].resources, task.resources) for task in running.tasks.values()]
        counts.append(sum(size.memory_bytes < ideal.memory_bytes for ideal, size in sizes))

    simulations.run(Instant(workload, yarn_me.build(config=yarn_me.Config(**config))), watch)
    return max(counts)


@pytest.mark.parametrize(("budget_in_tasks", "at_once"), [(None, 2), (2.5, 2), (1.5, 1), (0.9, 0)])
def test_the_disk_budget_bounds_the_elastic_tasks_of_a_node(budget_in_tasks, at_once):
    # Maps of 8,000 MB take 800: two beside a regular one. Each writes its output once more and reads it, in 110 s.
    workload = simulations.workload(simulations.job("0", simulations.phase(12, 100, 8000, factor=1.1)))
    spill_rate = 2 * 8000 * (1 << 20) / 110
    rate = None if budget_in_tasks is None else 2 * budget_in_tasks * spill_rate
    assert most_elastic_at_once(workload, disk_bytes_per_s=rate, disk_share=0.5) == at_once


def test_a_regular_task_needs_nothing_of_a_disk_that_is_busy_beyond_its_budget():
    profile = yarn_me.build(config=yarn_me.Config(disk_bytes_per_s=1.0))
    shell = core.ReportingShell(core.nodes(1), profile=profile)
    spilling = elastic_estimates(SIZE, 10.0, output_bytes=core.GIB)
    spills = core.task(shell.submit("spills", 1, SIZE, estimates=spilling))
    shell.queue.withdraw(model.JobId("spills"))
    shell.report_task(model.Placed, spills, resources=core.amount(1000, 1))
    shell.submit("regular", 1, SIZE, estimates=spilling)
    assert [placed.resources for placed in core.placements(shell.plan())] == [SIZE]


class StubLookAhead:
    """A look-ahead that answers what it is told to, and remembers when it was made."""

    def __init__(self):
        self.made_s, self.answer = [], True

    def __call__(self, _outlook, view, _kept):
        self.made_s.append(view.now_s)
        return self

    def reaches(self, *_):
        return self.answer


class Policy:
    """A policy with one job, which advises cycle by cycle."""

    def __init__(self):
        self.ahead, self.shell = StubLookAhead(), core.Shell(core.nodes(1))
        self.running = framework.RunningTasks()
        config, outlook = yarn_me.Config(refresh_s=10.0), yarn_me.Outlook(self.running)
        self.elasticity = yarn_me.Elasticity(config, questions.NO_PREFERENCE, outlook, self.ahead)
        self.task_class = core.task_class(core.job("a"), estimates=elastic_estimates(core.amount(1000, 1), 10.0))
        self.submit("a", self.task_class)

    def submit(self, name, *classes):
        self.report(core.submitted(core.job(name), *classes, now_s=self.shell.now_s, count=3))

    def report(self, event):
        self.running.observe(event)
        self.elasticity.outlook.observe(event)

    def cycle(self, now_s):
        self.shell.now_s = now_s
        self.elasticity.advise(self.shell.queue, self.shell.view())

    def start(self, index):
        self.report(core.task_event(model.Placed, core.task(self.task_class, index), now_s=self.shell.now_s))


def test_the_timeline_is_recomputed_when_it_is_old_and_something_changed():
    policy = Policy()
    for now_s in (0.0, 5.0, 15.0):
        policy.cycle(now_s)
    policy.start(0)
    for now_s in (16.0, 17.0):
        policy.cycle(now_s)
    assert policy.ahead.made_s == [0.0, 16.0]


def test_the_timeline_is_recomputed_when_a_job_arrives_or_ends():
    policy = Policy()
    policy.cycle(0.0)
    policy.submit("b")
    policy.cycle(1.0)
    policy.report(model.Ended(now_s=1.0, job=model.JobId("b"), succeeded=True))
    policy.cycle(2.0)
    policy.cycle(3.0)
    assert policy.ahead.made_s == [0.0, 1.0, 2.0]


def test_among_many_jobs_a_new_one_does_not_at_once_renew_the_prediction():
    policy = Policy()
    for i in range(200):
        policy.submit(f"first-{i}")
    for now_s in (0.0, 1.0, 2.0, 3.0, 13.0):
        policy.cycle(now_s)
        policy.submit(f"then-{now_s}")
    assert policy.ahead.made_s == [0.0, 3.0, 13.0]


def test_a_task_that_starts_counts_before_the_timeline_is_recomputed():
    policy = Policy()
    policy.cycle(0.0)
    policy.ahead.answer = False
    job, state = policy.task_class.job, framework.CycleState(policy.shell.view())
    assert not policy.elasticity.ends_in_time(job, 10.0, state)
    policy.start(0)
    assert [policy.elasticity.ends_in_time(job, seconds, state) for seconds in (10.0, 10.1)] == [True, False]


def test_tasks_of_which_nothing_is_known_are_never_elastic():
    driver = Instant(simulations.workload(simulations.job("0", spilling(4))), yarn_me.build())
    submit = driver.world.submit

    def submit_without_estimates(run, task_class, tasks):
        submit(run, dataclasses.replace(task_class, estimates=model.UNKNOWN), tasks)

    driver.world.submit = submit_without_estimates
    assert simulations.run(driver).finished().elastic_tasks == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("disk_bytes_per_s", 0.0), ("disk_share", 0.0), ("disk_share", 1.1), ("refresh_s", -1.0), ("refresh_share", 1.1)],
)
def test_constants_without_meaning_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        yarn_me.Config(**{field: value})
