"""Detect pods that a kubelet rejected after their placement, and exclude their nodes for some time.

A kubelet checks the scheduler's decision. If another scheduler was faster, or the node has less capacity, the pod
fails at once with a reason such as OutOfcpu. It is not moved; its owner creates another.
"""

from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import override

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse_policies import framework, model

EXCLUDED_S = 30.0
_REASONS = {"NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "UnsupportedPod", "InvalidNodeInfo"}
_REASONS |= {"AdmissionError", "NodeShutdown", "Terminated", "Taint", "PodOSNotSupported", "Preempting"}


def rejection(pod: wire.Pod) -> str | None:
    """Return the reason if a kubelet rejected the pod, or None if its container failed."""
    reason = pod.status.reason
    if pod.status.phase != "Failed" or not (reason.startswith("OutOf") or reason in _REASONS):
        return None
    ran = any(status.state.terminated or status.state.running for status in pod.status.container_statuses)
    return None if ran else names.pod_reason(reason, reason)


class Exclusions(framework.Filter):
    """Nodes that recently rejected a pod of a class, as a filter of the cycle.

    Args:
        clock: Returns the scheduler's time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_s: dict[model.ClassId, dict[model.NodeName, float]] = {}

    def exclude(self, task_class: model.ClassId, node: model.NodeName, *, duration_s: float = EXCLUDED_S) -> float:
        """Exclude a class from a node for some time; return when this ends."""
        until_s = self._clock() + duration_s
        self._until_s.setdefault(task_class, {})[node] = until_s
        return until_s

    def expire(self) -> bool:
        """Drop expired exclusions; return whether any expired, so that pending tasks are considered again."""
        before, now_s = len(self), self._clock()
        for task_class, nodes in list(self._until_s.items()):
            self._until_s[task_class] = {node: until for node, until in nodes.items() if until > now_s}
        self._until_s = {task_class: nodes for task_class, nodes in self._until_s.items() if nodes}
        return len(self) < before

    def __len__(self) -> int:
        return sum(map(len, self._until_s.values()))

    def next_s(self) -> float:
        """Return when the next exclusion ends; infinity without exclusions."""
        return min((until for nodes in self._until_s.values() for until in nodes.values()), default=float("inf"))

    # framework.Filter

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        """Return whether a node recently rejected a pod of the class."""
        return pending.task_class.id in self._until_s

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        """Return True for nodes that the class may use; None for all nodes."""
        excluded = self._until_s.get(pending.task_class.id)
        if not excluded:
            return None
        return np.array([node.name not in excluded for node in state.view.nodes], np.bool_)[where]

    @override
    def refusals(
        self, pending: framework.PendingClass, state: framework.CycleState, among: model.BoolVector
    ) -> Sequence[model.Refusal]:
        """Return the number of these nodes that are excluded."""
        mask = self.mask(pending, state, slice(None))
        count = 0 if mask is None else int((~mask & among).sum())
        return (
            [model.Refusal(reason="node(s) rejected a pod of this class less than 30 s ago", nodes=count)]
            if count
            else []
        )
