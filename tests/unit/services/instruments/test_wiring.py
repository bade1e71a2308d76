"""What runs for the settings of the signals and the observers of a profile, and the metrics of nodes."""

import types

import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.resources.names import Reason
from boathouse.services import observers
from boathouse.services.instruments import poller, wiring
from boathouse.telemetry import metrics
from boathouse_policies import profiles

READ = {"signals": {"kubelets": {"enabled": True, "insecureSkipVerify": True, "intervalSeconds": 30}}}


def wired(profile, settings=None):
    """Return the signals, what must run, and the nodes by state."""
    measured, figures = (
        observers.GuardedObservers(profiles.build(profile).observers, metrics.Metrics().gauges),
        metrics.Metrics(),
    )
    nodes = types.SimpleNamespace(objects={"a": 1, "b": 2}, subscribe=lambda _: None)
    scheduling = types.SimpleNamespace(nodes=nodes)
    signals, running = wiring.build(None, OperatorConfig(**settings or {}), measured, scheduling, figures)
    shown = {
        state: figures.registry.get_sample_value("boathouse_node_signals", {"state": state}) for state in poller.STATES
    }
    return signals, running, shown


def test_a_profile_without_measurements_reads_no_kubelet_and_has_no_problem():
    signals, running, nodes = wired("fair", READ)
    assert (signals.problem, running, nodes["off"]) == (None, [], 2)


@pytest.mark.parametrize("profile", ["ila", "boathouse"])
def test_a_profile_that_measures_says_that_no_kubelet_is_read(profile):
    signals, running, nodes = wired(profile)
    assert (signals.problem.reason, running, nodes["off"]) == (Reason.KUBELETS_NOT_READ, [], 2)


def test_a_profile_that_measures_reads_kubelets_where_the_settings_say_so():
    signals, running, nodes = wired("ila", READ)
    assert (signals.problem, len(running), nodes["off"]) == (None, 1, 0)
