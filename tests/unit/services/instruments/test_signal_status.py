"""Problems that users see when policies have no measurements."""

import pytest

from boathouse.resources.names import Reason
from boathouse.services.instruments.poller import STATES, UNCHANGED, Signals, SignalStatus


def problem_of(failures=(), error="", **nodes):
    return SignalStatus(nodes={**STATES, **nodes}, failures=dict(failures), error=error).problem()


def test_a_profile_that_needs_none_has_no_problem():
    assert SignalStatus(nodes=STATES, is_needed=False, is_enabled=False).problem() is None


def test_kubelets_that_are_not_read_are_a_problem_with_a_way_out():
    found = SignalStatus(nodes=STATES, is_enabled=False).problem()
    assert found.reason == Reason.KUBELETS_NOT_READ
    assert "signals.kubelets.enabled" in found.message


def test_nodes_that_were_not_read_yet_are_no_problem():
    assert problem_of(stale=4) is None


def test_one_node_of_many_that_fails_is_no_problem():
    assert problem_of({"timeout": 1}, fresh=9, failed=1) is None


@pytest.mark.parametrize(
    ("result", "advice"),
    [("unauthorized", "nodes/metrics"), ("certificate", "caConfigMap"), ("timeout", "allow connections")],
)
def test_most_nodes_that_fail_are_a_problem_with_a_way_out(result, advice):
    found = problem_of({result: 3, "status": 1}, fresh=1, failed=4)
    assert found.reason == Reason.KUBELETS_FAILING
    assert f"most kubelets cannot be read ({result})" in found.message
    assert advice in found.message


def test_kubelets_that_respond_with_old_measurements_are_a_problem():
    found = problem_of({UNCHANGED: 2}, stale=2, fresh=1)
    assert found.reason == Reason.KUBELETS_FAILING
    assert "old measurements" in found.message


def test_a_token_that_is_refused_is_named():
    assert "no token for kubelets: 403" in problem_of(error="403", stale=2).message


def test_signals_that_come_back_are_no_problem_any_more():
    signals = Signals()
    signals.update(SignalStatus(nodes={**STATES, "failed": 1}, failures={"status": 1}))
    assert signals.problem.reason == Reason.KUBELETS_FAILING
    signals.update(SignalStatus(nodes={**STATES, "fresh": 1}))
    assert signals.problem is None
