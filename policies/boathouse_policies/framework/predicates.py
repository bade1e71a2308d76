"""What a node must satisfy: Kubernetes' predicates as filters, in the order in which kube-scheduler names failures."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from boathouse_policies.framework.cycle_state import CycleState, PendingClass
    from boathouse_policies.framework.topology import Where


class Allowed(Filter):
    """What depends on the node and the constraints alone."""

    of_shape = until_freed = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """The kept mask."""
        eligibility = pending.eligibility
        return None if eligibility.everywhere else eligibility.mask[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """The first reason of each node."""
        counts = collections.Counter(
            reason
            for reason, asked in zip(pending.eligibility.refusals, among.tolist(), strict=True)
            if reason and asked
        )
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in counts.items()]


class FreePorts(Filter):
    """No port of the class is taken on the node, by pods of the view or of this cycle."""

    until_freed = True

    def concerns(self, pending: PendingClass) -> bool:
        """Classes with host ports."""
        return bool(pending.task_class.constraints.host_ports)

    def key(self, pending: PendingClass) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the host ports are constraints, which are part of the shape."""
        return None

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Everywhere for a class without host ports; else the nodes that take any port are looked at."""
        if not pending.task_class.constraints.host_ports:
            return None
        return _free(pending, state)[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """One reason."""
        if not pending.task_class.constraints.host_ports:
            return []
        nodes = int((among & ~_free(pending, state)).sum())
        return [model.Refusal(reason=PORTS, nodes=nodes)] if nodes else []


def _free(pending: PendingClass, state: CycleState) -> model.BoolVector:
    wanted = pending.task_class.constraints.host_ports
    mask = np.ones(state.free.shape[1], np.bool_)
    index = state.view.layout.index
    for name, taken in state.view.host_ports.items():
        if name in index and _conflict(wanted, taken):
            mask[index[name]] = False
    for node, taken in state.ports.items():
        if _conflict(wanted, taken):
            mask[node] = False
    return mask


def _conflict(wanted: Iterable[model.HostPort], taken: Sequence[model.HostPort]) -> bool:
    return any(one.conflicts(other) for one in wanted for other in taken)


class Room(Filter):
    """What is free covers the least size. A request of 0 fits also where a resource is over-committed."""

    of_shape = until_freed = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """All rows that are asked for."""
        return state.room(pending)[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """A node counts for each resource that it lacks."""
        lacking = (state.free[:, among][pending.rows] < pending.need).sum(axis=1).tolist()
        return [
            model.Refusal(reason=reason(state.view.axis.names[row]), nodes=nodes)
            for row, nodes in zip(pending.rows.tolist(), lacking, strict=True)
            if nodes
        ]


def reason(resource: str) -> str:
    """kube-scheduler's words for the lack of a resource."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"


PORTS = "node(s) didn't have free ports for the requested pod ports"
PREDICATES = (Allowed(), FreePorts(), Room())
