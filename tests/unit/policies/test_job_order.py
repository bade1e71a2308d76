"""Orders of jobs: those that are written wrong are refused when the class is made; what is learnt is forgotten."""

import types

import pytest

from boathouse_policies import model
from boathouse_policies.baselines import plain
from boathouse_policies.framework import JobOrder
from tests.builders import core


class ById(JobOrder):
    keyed_by_usage = True

    def key(self, job, usage, layout):  # noqa: ARG002 - the protocol's
        return float(len(job.id))


def test_an_order_keyed_by_usage_without_a_key_is_refused():
    with pytest.raises(
        TypeError, match="Keyless sets keyed_by_usage but does not override key: override key, or unset it"
    ):

        class Keyless(JobOrder):
            keyed_by_usage = True

            def keys(self, jobs, state):  # noqa: ARG002 - the protocol's
                return [0.0 for _ in jobs]


def test_a_key_of_a_base_is_enough():
    class Derived(ById):
        constant = True

    assert Derived.keyed_by_usage


def test_an_order_that_does_not_last_needs_no_key():
    class Other(ById):
        keyed_by_usage = False
        key = JobOrder.key

    assert not Other.keyed_by_usage


def test_shortest_remaining_forgets_a_job_that_ended():
    order, job = plain.ShortestRemaining(), core.job()
    task_class = core.task_class(job, estimates=model.Fixed(seconds=10.0))
    state = types.SimpleNamespace(view=types.SimpleNamespace(by_class={}), placed=lambda _: 0)
    order.observe(core.submitted(job, task_class, count=3))
    assert order.keys([job], state) == [30.0]
    order.observe(model.Ended(now_s=1.0, job=job.id, succeeded=True))
    assert order.keys([job], state) == [0]
