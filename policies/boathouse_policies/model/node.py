"""Nodes, as far as scheduling reads them, and what a pod demands of a node beside resources."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from boathouse_policies.model.ids import NodeName
    from boathouse_policies.model.resources import Resources

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class TaintEffect(enum.StrEnum):
    """Kubernetes' effects. Only the first two keep a pod from a node."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node.

    Attributes:
        name: metadata.name.
        allocatable: status.allocatable without `pods`.
        max_pods: status.allocatable.pods.
        labels: metadata.labels.
        taints: spec.taints.
        unschedulable: spec.unschedulable (cordoned).
        ready: whether the condition Ready is True.
        server: The physical host of a virtual node, from a label; None where it is not known.
        rack: The rack, from a label; None where it is not known.
    """

    name: NodeName
    allocatable: Resources
    max_pods: int = 110
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    server: str | None = None
    rack: str | None = None


class TolerationOperator(enum.StrEnum):
    """Lt and Gt compare whole numbers: the taint's value is less, greater than the toleration's."""

    EQUAL = "Equal"
    EXISTS = "Exists"
    LT = "Lt"
    GT = "Gt"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A toleration. An empty key with Exists matches every taint, no effect matches every effect."""

    key: str = ""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: TaintEffect | None = None


class Operator(enum.StrEnum):
    """Operators of node selector terms."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A requirement on a label, or on the field `metadata.name`."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AffinityTerm:
    """A node selector term: all of its expressions and fields must hold; an empty term matches no node."""

    expressions: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HostPort:
    """A port of the node. The IP addresses "" and "0.0.0.0" mean all addresses and conflict with every other.

    Port 0 with a protocol of the shell's is no socket: pods that have it are kept apart.
    """

    port: int
    protocol: str = "TCP"
    host_ip: str = "0.0.0.0"  # noqa: S104  Kubernetes' own default, compared and never bound

    def conflicts(self, other: HostPort) -> bool:
        """Whether two pods with these ports cannot share a node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.host_ip == other.host_ip or not {self.host_ip, other.host_ip}.isdisjoint(_ANY_ADDRESS)


_ANY_ADDRESS = {"", "0.0.0.0"}  # noqa: S104


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Hard constraints, hashable: classes with equal constraints share one computed mask over nodes.

    Attributes:
        node_name: spec.nodeName asked for by the pod itself.
        node_selector: (label, value), sorted.
        affinity: ORed terms of requiredDuringSchedulingIgnoredDuringExecution; None where the pod has none.
        tolerations: spec.tolerations.
        host_ports: Ports of the node that the pod's containers take, sorted.
        claims: Storage claims that the pod mounts, as namespace/name, sorted. Opaque here: a shell's filter knows which
            nodes reach them.
    """

    node_name: NodeName | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[AffinityTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()

    def avoiding(self, nodes: Collection[NodeName]) -> Constraints:
        """Return these constraints without some of the nodes that they allow."""
        elsewhere = Expression(key="metadata.name", operator=Operator.NOT_IN, values=tuple(sorted(nodes)))
        if self.affinity is None:
            return dataclasses.replace(self, affinity=(AffinityTerm(fields=(elsewhere,)),))
        used = [term for term in self.affinity if term.expressions or term.fields]  # the others match no node
        terms = tuple([dataclasses.replace(term, fields=(*term.fields, elsewhere)) for term in used])
        return dataclasses.replace(self, affinity=terms)


UNCONSTRAINED = Constraints()
