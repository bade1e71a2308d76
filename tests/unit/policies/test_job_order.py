"""Orders of jobs that are written wrong are refused when the class is made."""

import pytest

from boathouse_policies.framework import JobOrder


class ById(JobOrder):
    lasts = True

    def key(self, job, usage, layout):  # noqa: ARG002 - the protocol's
        return float(len(job.id))


def test_an_order_that_lasts_without_a_key_is_refused():
    with pytest.raises(TypeError, match="Keyless sets lasts but does not override key: override key, or unset lasts"):

        class Keyless(JobOrder):
            lasts = True

            def keys(self, jobs, state):  # noqa: ARG002 - the protocol's
                return [0.0 for _ in jobs]


def test_a_key_of_a_base_is_enough():
    class Derived(ById):
        constant = True

    assert Derived.lasts


def test_an_order_that_does_not_last_needs_no_key():
    class Other(ById):
        lasts = False
        key = JobOrder.key

    assert not Other.lasts
