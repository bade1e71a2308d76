"""The capacity scheduler: guaranteed shares, elastic up to a maximum."""

import dataclasses

import pytest

from tests.builders import core, simulations


def queues(a=0.6, b=0.4, most_b=10_000):
    """Two queues with these shares; the second holds so many millicores at most."""
    return core.queue("a", weight=a), core.queue("b", weight=b, cpu=most_b)


def job_in(queue, name, tasks, seconds=10, at_s=0.0):
    return dataclasses.replace(simulations.job(name, simulations.phase(tasks, seconds, 1000), at_s=at_s), queue=queue)


def capacity_times_s(*jobs, **shares):
    found = simulations.workload(*jobs, node_mb=10_000, cores=10)
    return simulations.job_times_s(dataclasses.replace(found, queues=queues(**shares)), "capacity")


def test_queues_that_are_full_of_work_hold_what_they_are_guaranteed():
    # Ten slots: six and four of them. Twelve tasks in two waves, eight in two waves.
    assert capacity_times_s(job_in("a", "0", 12), job_in("b", "1", 8)) == (20.0, 20.0)
    assert capacity_times_s(job_in("a", "0", 12), job_in("b", "1", 8), a=0.8, b=0.2) == (20.0, 20.0)
    assert capacity_times_s(job_in("a", "0", 8), job_in("b", "1", 12), a=0.8, b=0.2) == (10.0, 20.0)


def test_what_a_queue_leaves_idle_others_take_up_to_their_maximum():
    assert capacity_times_s(job_in("b", "0", 10)) == (10.0,)
    assert capacity_times_s(job_in("b", "0", 10), most_b=5000) == (20.0,)


def test_a_queue_gets_its_share_back_as_tasks_end_and_not_by_force():
    assert capacity_times_s(job_in("b", "0", 10), job_in("a", "1", 6, at_s=1)) == (10.0, 19.0)


def test_within_a_queue_the_first_come_is_served_first_and_its_node_is_kept_for_it():
    small = simulations.job("0", simulations.phase(1, 10, 6000))
    large = simulations.job("1", simulations.phase(1, 10, 10_000), at_s=1)
    late = simulations.job("2", simulations.phase(1, 30, 1000), at_s=2)
    assert simulations.job_times_s(simulations.workload(small, large, late), "capacity") == (10.0, 19.0, 48.0)


def test_a_job_of_no_queue_is_refused():
    with pytest.raises(ValueError, match="there is no queue 'c'"):
        capacity_times_s(job_in("c", "0", 1))
