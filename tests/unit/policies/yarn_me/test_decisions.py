"""Algorithm 1 in the cycle: who gets how much, where, and who may pass a reserved node."""

import dataclasses

import pytest

from boathouse_policies import framework, model, yarn_me
from boathouse_policies.framework import questions
from boathouse_sim.instant import Instant
from boathouse_sim.workload import Workload
from tests.unit.policies import builders
from tests.unit.policies.yarn_me.test_timeline import estimates
from tests.unit.sim import make


def drive(workload: Workload, **config) -> Instant:
    """A simulation by YARN-ME, run to its end."""
    driver = Instant(workload, yarn_me.build(config=yarn_me.Config(**config)))
    while driver.advance():
        pass
    return driver


def job_times_s(workload, **options):
    return drive(workload, **options).world.finished().job_times_s


def spilling(tasks=1, seconds=100.0, mb=4000, factor=1.5):
    return make.phase(tasks, seconds, mb, model="sawtooth", factor=factor)


def test_a_task_gets_its_ideal_where_it_fits():
    assert drive(make.workload(make.job("0", spilling(2)))).world.finished().elastic_tasks == 0


def test_the_least_memory_with_the_lowest_run_time_is_taken():
    # 10,000 MB: two regular ones of 4,000 leave 2,000, half of the ideal: a spill of half the input.
    found = drive(make.workload(make.job("0", spilling(4)))).world
    assert found.finished().elastic_tasks == 1
    assert found.tally.mb_ms == 4000 * 300_000 + 2000 * 125_000


def test_an_elastic_task_that_would_end_last_is_not_started():
    # The other job's task ends after 5 s and leaves room for the ideal: 5 + 100 s is earlier than 150 s in a tenth.
    jobs = make.job("0", make.phase(1, 5, 9000)), make.job("1", spilling(1, 100, 9500))
    assert job_times_s(make.workload(*jobs)) == (5.0, 105.0)


def placed(workload):
    """(job, MB) of each task, in the order of the decisions."""
    driver = Instant(workload, yarn_me.build())
    found, place = [], driver.world.place

    def remember(decision):
        found.append((decision.job.name, decision.resources.memory_bytes >> 20))
        return place(decision)

    driver.world.place = remember
    while driver.advance():
        pass
    return found


def test_a_node_with_room_for_the_ideal_goes_before_one_without():
    jobs = make.job("0", make.phase(1, 500, 7000)), make.job("1", spilling(3, 100, 8000), at_s=1)
    assert placed(make.workload(*jobs, nodes=2))[1] == ("1", 8000)


def test_a_task_that_needs_all_of_its_node_is_regular():
    workload = make.workload(make.job("0", spilling(1, 100, 4050, factor=3.0)), node_mb=4050)
    assert job_times_s(workload) == (100.0,)


def test_the_job_that_holds_least_memory_is_next():
    jobs = make.job("0", make.phase(2, 100, 4000)), make.job("1", make.phase(1, 100, 4000))
    assert [job for job, _ in placed(make.workload(*jobs))][:2] == ["0", "1"]


BESIDE_A_RESERVATION = (
    make.job("0", make.phase(1, 50, 6000)),
    make.job("1", make.phase(1, 50, 9000, factor=3.0), at_s=1),
)


@pytest.mark.parametrize(
    ("seconds", "passing", "ends_s"),
    [
        pytest.param(40, True, 40.0, id="it ends before the reserved task could start"),
        pytest.param(60, True, 158.0, id="it would be in the way"),
        pytest.param(40, False, 138.0, id="nobody may pass"),
    ],
)
def test_a_reserved_node_is_passed_only_without_harm(seconds, passing, ends_s):
    small = make.job("2", make.phase(1, seconds, 3500, factor=3.0), at_s=2)
    times_s = job_times_s(make.workload(*BESIDE_A_RESERVATION, small), passing=passing)
    assert times_s == (50.0, 99.0, ends_s)


@pytest.mark.parametrize("nodes", [1, 2])
def test_who_ends_when_the_reserved_task_could_start_may_pass(nodes):
    jobs = (
        make.job("0", make.phase(nodes, 50, 6000)),
        make.job("1", make.phase(nodes, 50, 9000, factor=3.0), at_s=1),
        make.job("2", make.phase(nodes, 48, 3500, factor=3.0), at_s=2),
    )
    assert job_times_s(make.workload(*jobs, nodes=nodes)) == (50.0, 99.0, 48.0)


def most_elastic_at_once(workload, **config):
    """Elastic tasks that ran together at the most."""
    driver = Instant(workload, yarn_me.build(config=yarn_me.Config(**config)))
    most = 0
    while driver.advance():
        running, outlook, _ = driver.world.profile.observers
        sizes = [(outlook.classes[task.task_class].resources, task.resources) for task in running.tasks.values()]
        most = max(most, sum(size.memory_bytes < ideal.memory_bytes for ideal, size in sizes))
    return most


@pytest.mark.parametrize(("budget_in_tasks", "at_once"), [(None, 2), (2.5, 2), (1.5, 1), (0.9, 0)])
def test_the_disk_budget_bounds_the_elastic_tasks_of_a_node(budget_in_tasks, at_once):
    # Maps of 8,000 MB take 800: two beside a regular one. Each writes its output once more and reads it, in 110 s.
    workload = make.workload(make.job("0", make.phase(12, 100, 8000, factor=1.1)))
    one = 2 * 8000 * (1 << 20) / 110
    rate = None if budget_in_tasks is None else 2 * budget_in_tasks * one
    assert most_elastic_at_once(workload, disk_bytes_per_s=rate, disk_share=0.5) == at_once


def test_a_regular_task_needs_nothing_of_a_disk_that_is_busy_beyond_its_budget():
    world = builders.World(builders.nodes(1), profile=yarn_me.build(config=yarn_me.Config(disk_bytes_per_s=1.0)))
    known = estimates(4, 10.0, output_gib=1)
    spills = world.submit("spills", 1, size=builders.amount(1000, 4), estimates=known)
    world.room.withdraw(spills.job)
    told(world, builders.job("spills"), spills, builders.amount(1000, 1))
    regular = world.submit("regular", 1, size=builders.amount(1000, 4), estimates=known)
    assert [one.resources for one in builders.placements(world.plan())] == [regular.resources]


def told(world, job, one, size):
    """The profile's observers hear of a task that got so much."""
    submitted = model.Submitted(now_s=0.0, job=job, classes=(one,), tasks={one.id: 1})
    for event in (submitted, was_placed(one, size)):
        for observer in world.profile.observers:
            observer.observe(event)


def was_placed(one, size, index=0, now_s=0.0):
    return model.Placed(
        now_s=now_s,
        task=builders.task(one, index).id,
        task_class=one.id,
        job=one.job,
        node=model.NodeName("n0"),
        resources=size,
        distance=model.Distance.ANYWHERE,
    )


class Ahead:
    """A look-ahead that answers what it is told to, and remembers when it was made."""

    def __init__(self):
        self.made_s, self.answer = [], True

    def __call__(self, _outlook, view, _kept):
        self.made_s.append(view.now_s)
        return self

    def reaches(self, *_):
        return self.answer


class Looking:
    """A policy with one job, asked cycle by cycle."""

    def __init__(self):
        self.ahead, self.world = Ahead(), builders.World(builders.nodes(1))
        self.running = framework.RunningTasks()
        config, outlook = yarn_me.Config(refresh_s=10.0), yarn_me.Outlook(self.running)
        self.policy = yarn_me.Elasticity(config, questions.NO_PREFERENCE, outlook, self.ahead)
        self.one = builders.task_class(builders.job("a"), estimates=estimates(1, 10.0))
        self.comes("a", self.one)

    def comes(self, name, *classes):
        tasks = {one.id: 3 for one in classes}
        self.observe(model.Submitted(now_s=self.world.now_s, job=builders.job(name), classes=classes, tasks=tasks))

    def observe(self, event):
        self.running.observe(event)
        self.policy.outlook.observe(event)

    def cycle(self, now_s):
        self.world.now_s = now_s
        self.policy.advise(self.world.room, self.world.view())

    def starts(self, index):
        self.observe(was_placed(self.one, self.one.resources, index, now_s=self.world.now_s))


def test_the_timeline_is_recomputed_when_it_is_old_and_something_changed():
    looking = Looking()
    for now_s in (0.0, 5.0, 15.0):
        looking.cycle(now_s)
    looking.starts(0)
    for now_s in (16.0, 17.0):
        looking.cycle(now_s)
    assert looking.ahead.made_s == [0.0, 16.0]


def test_the_timeline_is_recomputed_when_a_job_arrives_or_ends():
    looking = Looking()
    looking.cycle(0.0)
    looking.comes("b")
    looking.cycle(1.0)
    looking.observe(model.Ended(now_s=1.0, job=model.JobId("b"), succeeded=True))
    looking.cycle(2.0)
    looking.cycle(3.0)
    assert looking.ahead.made_s == [0.0, 1.0, 2.0]


def test_among_many_jobs_one_that_comes_does_not_yet_make_the_future_look_different():
    looking = Looking()
    for i in range(200):
        looking.comes(f"first-{i}")
    for now_s in (0.0, 1.0, 2.0, 3.0, 13.0):
        looking.cycle(now_s)
        looking.comes(f"then-{now_s}")
    assert looking.ahead.made_s == [0.0, 3.0, 13.0]


def test_a_task_that_starts_counts_before_the_timeline_is_recomputed():
    looking = Looking()
    looking.cycle(0.0)
    looking.ahead.answer = False
    job, state = looking.one.job, framework.CycleState(looking.world.view())
    assert not looking.policy.ends_in_time(job, 10.0, state)
    looking.starts(0)
    assert [looking.policy.ends_in_time(job, seconds, state) for seconds in (10.0, 10.1)] == [True, False]


def test_tasks_of_which_nothing_is_known_are_never_elastic():
    workload = make.workload(make.job("0", spilling(4)))
    driver = Instant(workload, yarn_me.build())
    strip_estimates(driver)
    while driver.advance():
        pass
    assert driver.world.finished().elastic_tasks == 0


def strip_estimates(driver: Instant) -> None:
    submit = driver.world.submit

    def without(run, one, tasks):
        submit(run, dataclasses.replace(one, estimates=model.UNKNOWN), tasks)

    driver.world.submit = without


@pytest.mark.parametrize(
    ("field", "value"),
    [("disk_bytes_per_s", 0.0), ("disk_share", 0.0), ("disk_share", 1.1), ("refresh_s", -1.0), ("refresh_share", 1.1)],
)
def test_constants_without_meaning_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        yarn_me.Config(**{field: value})
