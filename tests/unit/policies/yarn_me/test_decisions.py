"""Algorithm 1 in the cycle: who gets how much, where, and who may pass a reserved node."""

import dataclasses

import pytest

from boathouse_policies import model, yarn_me
from boathouse_sim.instant import Instant
from boathouse_sim.workload import Workload
from tests.unit.sim import make


def drive(workload: Workload, **config) -> Instant:
    """A simulation by YARN-ME, run to its end."""
    driver = Instant(workload, yarn_me.build(config=yarn_me.Config(**config)))
    while driver.advance():
        pass
    return driver


def job_times_s(workload, **config):
    return drive(workload, **config).world.finished().job_times_s


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


def most_elastic_at_once(workload, **config):
    """Elastic tasks that ran together at the most."""
    driver = Instant(workload, yarn_me.build(config=yarn_me.Config(**config)))
    most = 0
    while driver.advance():
        running = driver.world.profile.observers[0].book.nodes.values()
        most = max(most, sum(task.disk_bytes_per_s > 0 for tasks in running for task in tasks.values()))
    return most


@pytest.mark.parametrize(("budget_in_tasks", "at_once"), [(None, 2), (2.5, 2), (1.5, 1), (0.9, 0)])
def test_the_disk_budget_bounds_the_elastic_tasks_of_a_node(budget_in_tasks, at_once):
    # Maps of 8,000 MB take 800: two beside a regular one. Each writes its output once more and reads it, in 110 s.
    workload = make.workload(make.job("0", make.phase(12, 100, 8000, factor=1.1)))
    one = 2 * 8000 * (1 << 20) / 110
    rate = None if budget_in_tasks is None else 2 * budget_in_tasks * one
    assert most_elastic_at_once(workload, disk_bytes_per_s=rate, disk_share=0.5) == at_once


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
    ("field", "value"), [("disk_bytes_per_s", 0.0), ("disk_share", 0.0), ("disk_share", 1.1), ("refresh_s", -1.0)]
)
def test_constants_without_meaning_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        yarn_me.Config(**{field: value})
