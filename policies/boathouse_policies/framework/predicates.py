"""What a node must satisfy: Kubernetes' predicates as filters, in the order in which kube-scheduler names failures."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import Filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from boathouse_policies.framework.cycle_state import Scratch, Want
    from boathouse_policies.framework.topology import Where


class Allowed(Filter):
    """What depends on the node and the constraints alone."""

    of_shape = until_freed = True

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """The kept mask."""
        eligibility = want.eligibility
        return None if eligibility.everywhere else eligibility.mask[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """The first reason of each node."""
        counts = collections.Counter(
            reason for reason, asked in zip(want.eligibility.refusals, among.tolist(), strict=True) if reason and asked
        )
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in counts.items()]


class FreePorts(Filter):
    """No port of the class is taken on the node, by pods of the view or of this cycle."""

    until_freed = True

    def concerns(self, want: Want) -> bool:
        """Classes with host ports."""
        return bool(want.task_class.constraints.host_ports)

    def key(self, want: Want) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the host ports are constraints, which are part of the shape."""
        return None

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """Everywhere for a class without host ports; else the nodes that take any port are looked at."""
        if not want.task_class.constraints.host_ports:
            return None
        return _free(want, scratch)[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """One reason."""
        if not want.task_class.constraints.host_ports:
            return []
        nodes = int((among & ~_free(want, scratch)).sum())
        return [model.Refusal(reason=PORTS, nodes=nodes)] if nodes else []


def _free(want: Want, scratch: Scratch) -> model.BoolVector:
    wanted = want.task_class.constraints.host_ports
    mask = np.ones(scratch.free.shape[1], np.bool_)
    index = scratch.view.layout.index
    for name, taken in scratch.view.host_ports.items():
        if name in index and _conflict(wanted, taken):
            mask[index[name]] = False
    for node, taken in scratch.ports.items():
        if _conflict(wanted, taken):
            mask[node] = False
    return mask


def _conflict(wanted: Iterable[model.HostPort], taken: Sequence[model.HostPort]) -> bool:
    return any(one.conflicts(other) for one in wanted for other in taken)


class Room(Filter):
    """What is free covers the least size. A request of 0 fits also where a resource is over-committed."""

    of_shape = until_freed = True

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """All rows that are asked for."""
        return scratch.room(want)[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """A node counts for each resource that it lacks."""
        lacking = (scratch.free[:, among][want.rows] < want.need).sum(axis=1).tolist()
        return [
            model.Refusal(reason=reason(scratch.view.axis.names[row]), nodes=nodes)
            for row, nodes in zip(want.rows.tolist(), lacking, strict=True)
            if nodes
        ]


def reason(resource: str) -> str:
    """kube-scheduler's words for the lack of a resource."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"


PORTS = "node(s) didn't have free ports for the requested pod ports"
PREDICATES = (Allowed(), FreePorts(), Room())
