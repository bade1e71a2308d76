"""Pods that a kubelet refused after they were placed, and the nodes that are left alone for a while because of it.

A kubelet checks again what the scheduler decided. Where another scheduler was quicker, or the node shrank, the pod
fails at once with a reason such as OutOfcpu, and nothing moves it elsewhere: its owner makes another.
"""

from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import override

from boathouse.cluster import wire
from boathouse.resources import pod_reasons
from boathouse_policies import framework, model

EXCLUDED_S = 30.0
_REASONS = {"NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "UnsupportedPod", "InvalidNodeInfo"}
_REASONS |= {"AdmissionError", "NodeShutdown", "Terminated", "Taint", "PodOSNotSupported", "Preempting"}


def rejection(pod: wire.Pod) -> str | None:
    """Return why a kubelet refused a pod, or None if it did not: then the failure is the container's."""
    reason = pod.status.reason
    if pod.status.phase != "Failed" or not (reason.startswith("OutOf") or reason in _REASONS):
        return None
    ran = any(status.state.terminated or status.state.running for status in pod.status.container_statuses)
    return None if ran else pod_reasons.known(reason, reason)


class Exclusions(framework.Filter):
    """Nodes that refused a pod of a class lately: a filter for the cycle.

    Args:
        clock: The scheduler's seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_s: dict[model.ClassId, dict[model.NodeName, float]] = {}

    def exclude(self, task_class: model.ClassId, node: model.NodeName, *, duration_s: float = EXCLUDED_S) -> float:
        """Keep a class from a node for a while, and return when that ends."""
        until_s = self._clock() + duration_s
        self._until_s.setdefault(task_class, {})[node] = until_s
        return until_s

    def expire(self) -> bool:
        """Forget what has ended; return whether anything had, so that those who wait may be looked at again."""
        before, now_s = len(self), self._clock()
        for task_class, nodes in list(self._until_s.items()):
            self._until_s[task_class] = {node: until for node, until in nodes.items() if until > now_s}
        self._until_s = {task_class: nodes for task_class, nodes in self._until_s.items() if nodes}
        return len(self) < before

    def __len__(self) -> int:
        return sum(map(len, self._until_s.values()))

    def next_s(self) -> float:
        """Return when the next exclusion ends; infinity if there is none."""
        return min((until for nodes in self._until_s.values() for until in nodes.values()), default=float("inf"))

    # framework.Filter

    @override
    def concerns(self, pending: framework.PendingClass) -> bool:
        """Return whether a node refused a pod of the class lately."""
        return pending.task_class.id in self._until_s

    @override
    def mask(
        self, pending: framework.PendingClass, state: framework.CycleState, where: framework.Where
    ) -> model.BoolVector | None:
        """Return True where the class may go; None for everywhere."""
        excluded = self._until_s.get(pending.task_class.id)
        if not excluded:
            return None
        return np.array([node.name not in excluded for node in state.view.nodes], np.bool_)[where]

    @override
    def refusals(
        self, pending: framework.PendingClass, state: framework.CycleState, among: model.BoolVector
    ) -> Sequence[model.Refusal]:
        """Return how many of these nodes are left alone."""
        mask = self.mask(pending, state, slice(None))
        count = 0 if mask is None else int((~mask & among).sum())
        return (
            [model.Refusal(reason="node(s) rejected a pod of this class less than 30 s ago", nodes=count)]
            if count
            else []
        )
