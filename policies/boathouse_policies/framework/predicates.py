"""What a node must satisfy: Kubernetes' predicates as filters, in the order in which kube-scheduler names failures."""

import collections
import itertools
from collections.abc import Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import CycleState, PendingClass
from boathouse_policies.framework.layout import Where
from boathouse_policies.framework.questions import Filter


class Allowed(Filter):
    """What depends on the node and the constraints alone."""

    of_shape = until_freed = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """Return the stored mask."""
        eligibility = pending.eligibility
        return None if eligibility.everywhere else eligibility.mask[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """Return the first reason for each node."""
        counts = collections.Counter(itertools.compress(pending.eligibility.refusals, among.tolist()))
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in counts.items() if reason]


class FreePorts(Filter):
    """No port of the class is taken on the node, by pods of the view or of this cycle."""

    by_shape = until_freed = True  # its constraints are part of the shape

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class has host ports."""
        return bool(pending.task_class.constraints.host_ports)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return all nodes for a class without host ports; else compare the nodes that take any port."""
        return _without(ports, state)[where] if (ports := pending.task_class.constraints.host_ports) else None

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return one reason for sockets, and one each for the other things of which a node has one."""
        kinds: dict[str, list[model.HostPort]] = {}
        for port in pending.task_class.constraints.host_ports:
            words = PORTS if port.port else DISKS if port.protocol.startswith(model.DISK) else APART
            kinds.setdefault(words, []).append(port)
        refusals, left = [], among
        for words in sorted(kinds, key=(PORTS, APART, DISKS).index):
            free = _without(kinds[words], state)
            if nodes := int((left & ~free).sum()):
                refusals.append(model.Refusal(reason=words, nodes=nodes))
            left = left & free
        return refusals


def _without(ports: Sequence[model.HostPort], state: CycleState) -> model.BoolVector:
    """Return the nodes where nobody has any of these ports, shape [N]."""
    index = state.view.layout.index
    in_view = [(index[name], taken) for name, taken in state.view.host_ports.items() if name in index]
    mask = np.ones(len(index), np.bool_)
    for node, taken in (*in_view, *state.ports.items()):
        mask[node] &= not any(port.conflicts(used) for port in ports for used in taken)
    return mask


class DeclaredFeatures(Filter):
    """The node declares what the class needs of its kubelet, if any node does."""

    by_shape = until_freed = True
    reason = "node(s) didn't match Pod's required features"

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class needs a feature."""
        return bool(pending.task_class.constraints.features)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return the nodes that declare all of them."""
        layout = state.view.layout
        if not (needed := layout.features.intersection(pending.task_class.constraints.features)):
            return None
        return np.array([needed <= node.features for node in layout.nodes], np.bool_)[where]


class Room(Filter):
    """What is free covers the least size. A request of 0 fits also where a resource is over-committed."""

    of_shape = until_freed = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return all rows that are requested."""
        return state.room(pending)[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return the refusals; a node counts for each resource that it lacks."""
        lacking = (state.free[:, among][pending.shape.rows] < pending.shape.need).sum(axis=1).tolist()
        return [
            model.Refusal(reason=reason(state.view.axis.names[row]), nodes=nodes)
            for row, nodes in zip(pending.shape.rows.tolist(), lacking, strict=True)
            if nodes
        ]


def reason(resource: str) -> str:
    """Return kube-scheduler's words for the lack of a resource."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"


PORTS = "node(s) didn't have free ports for the requested pod ports"
APART = "node(s) didn't match pod anti-affinity rules"
DISKS = "node(s) had no available disk"


class OtherPods(Filter):
    """Topology spread with DoNotSchedule, then pod affinity and anti-affinity, of the class and of other pods."""

    until_freed = of_pods = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where every part of it holds."""
        return None if (passing := state.beside_pods(pending)) is None else passing[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return the first part that refuses each node."""
        refused: collections.Counter[str] = collections.Counter()
        judge, left = state.judge(pending), among
        for reason, passing in () if judge is None else judge.answers():
            refused[reason] += int((left & ~passing).sum())
            left = left & passing
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in refused.items() if nodes]


PREDICATES = (Allowed(), FreePorts(), DeclaredFeatures(), Room(), OtherPods())
