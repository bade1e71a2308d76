"""Say whether the policies get the measurements of nodes that they use, and what to do if not."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from boathouse.resources.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.telemetry import logs

_log = logs.get(__name__)

STATES: Final[Mapping[str, int]] = {"fresh": 0, "stale": 0, "failed": 0, "off": 0}
"""No nodes in any state."""
UNCHANGED: Final = "unchanged"
"""Kind of failure of a kubelet that answers with old measurements."""
_ENOUGH: Final = 0.5
"""Share of the nodes of which measurements are recent, from which on signals count as available."""
_ADVICE: Final[Mapping[str, str]] = {
    "unauthorized": "grant get on nodes/metrics to the service account boathouse-signals",
    "certificate": "set signals.kubelets.caConfigMap to the authority that signs the kubelets' serving certificates",
    "timeout": "allow connections from the operator to the kubelets' port",
    "connection": "allow connections from the operator to the kubelets' port",
    "no_address": "nodes need an InternalIP that is an IP address",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SignalStatus:
    """How many nodes are measured.

    Attributes:
        nodes: Nodes by state; `stale` if they were measured too long ago, or not yet.
        failures: Nodes whose last read failed, by result; `UNCHANGED` if it had no new measurement.
        error: Why no kubelet can be read, such as a token that was refused.
    """

    nodes: Mapping[str, int]
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    error: str = ""
    is_needed: bool = True
    is_enabled: bool = True

    def problem(self) -> Problem | None:
        """Return why policies decide without measurements; None if they have them, or use none."""
        if not self.is_needed:
            return None
        if not self.is_enabled:
            message = "tasks are placed by requests, because no kubelet is read: set signals.kubelets.enabled"
            return Problem(reason=Reason.KUBELETS_NOT_READ, message=message)
        total, failed = sum(self.nodes.values()), sum(self.failures.values())
        if self.nodes.get("fresh", 0) >= _ENOUGH * total or not (failed or self.error):
            return None
        return Problem(reason=Reason.KUBELETS_FAILING, message=f"tasks are placed by requests: {self._failing()}")

    def _failing(self) -> str:
        """Return the most frequent failure, without numbers, which would change the status of each job often."""
        if self.error:
            return f"no token for kubelets: {self.error}"
        worst = max(self.failures, key=lambda result: self.failures[result])
        if worst == UNCHANGED:
            return "most kubelets answer with old measurements: look for errors in the kubelets' logs"
        text = f"most kubelets cannot be read ({worst})"
        return f"{text}: {_ADVICE[worst]}" if worst in _ADVICE else text


class Signals:
    """The problem if the policies do not get the measurements of nodes that they use, or None."""

    def __init__(self) -> None:
        self.problem: Problem | None = None

    def update(self, status: SignalStatus) -> None:
        """Note how many nodes are measured; log a change."""
        before, self.problem = self.problem, status.problem()
        if self.problem is not None and (before is None or before.reason != self.problem.reason):
            _log.warning("policies have no measurements of nodes", reason=self.problem.reason, why=self.problem.message)
        elif self.problem is None and before is not None:
            _log.info("policies have measurements of nodes")
