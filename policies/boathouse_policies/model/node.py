"""Nodes, as far as scheduling reads them, and what a pod demands of a node beside resources."""

import dataclasses
import enum
from collections.abc import Collection, Mapping
from typing import Self, TypeAlias

from boathouse_policies.model.values import NodeName, Resources

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
    """A node."""

    name: NodeName
    allocatable: Resources  # status.allocatable without `pods`
    max_pods: int = 110  # status.allocatable.pods
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False  # spec.unschedulable (cordoned)
    ready: bool = True  # whether the condition Ready is True
    features: frozenset[str] = frozenset()  # status.declaredFeatures
    server: str | None = None  # the physical host of a virtual node, from a label; None where it is not known
    rack: str | None = None  # the rack, from a label; None where it is not known


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


LabelMention: TypeAlias = tuple[str, str | None]  # a label, or with a value that label


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A requirement on a label, or on the field `metadata.name`."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @property
    def mentions(self) -> tuple[LabelMention, ...]:
        """What it depends on: the label, and each value of it that it names."""
        return (self.key, None), *[(self.key, value) for value in self.values]


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
    is_shared: bool = False

    def conflicts(self, other: Self) -> bool:
        """Return whether two pods with these ports cannot share a node."""
        if (self.port, self.protocol) != (other.port, other.protocol) or (self.is_shared and other.is_shared):
            return False
        return self.host_ip == other.host_ip or not {self.host_ip, other.host_ip}.isdisjoint(_ANY_ADDRESS)


DISK = "disk/"  # how the protocol of a port 0 that stands for a disk begins
_ANY_ADDRESS = {"", "0.0.0.0"}  # noqa: S104


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A label selector: all requirements must hold; without any it matches everything."""

    expressions: tuple[Expression, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods by their labels and their namespace."""

    selector: Selector | None  # over the pods' labels; None matches no pod
    namespaces: tuple[str, ...] = ()
    # Further namespaces, by their labels; None matches no namespace, an empty one all.
    namespace_selector: Selector | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodTerm:
    """A required term of pod (anti-)affinity: these pods in the node's domain, by its `topology_key`."""

    topology_key: str
    pods: PodSet


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A topology spread constraint with `DoNotSchedule`, over pods of the own namespace."""

    topology_key: str  # nodes with equal values of this label are one domain
    max_skew: int  # how many pods a domain may have more than the domain with the fewest
    selector: Selector | None  # the pods to count; None counts none
    min_domains: int = 1  # with fewer domains than this, the fewest counts as 0
    honors_affinity: bool = True  # whether only nodes count that the pod's node selector and node affinity match
    honors_taints: bool = False  # whether only nodes count whose taints the pod tolerates


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Hard constraints, hashable: classes with equal constraints share one computed mask over nodes."""

    node_name: NodeName | None = None  # spec.nodeName asked for by the pod itself
    node_selector: tuple[tuple[str, str], ...] = ()  # (label, value), sorted
    # ORed terms of requiredDuringSchedulingIgnoredDuringExecution; None where the pod has none.
    affinity: tuple[AffinityTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()  # ports of the node that the pod's containers take, sorted
    # Storage claims that the pod mounts, as namespace/name, and disks that count against limits, as driver/volume;
    # sorted. Opaque here: a shell's filter knows which nodes reach them.
    claims: tuple[str, ...] = ()
    features: tuple[str, ...] = ()  # features that a node must declare, of those that any node declares, sorted
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()

    @property
    def concern_pods(self) -> bool:
        """Whether they depend on where other pods are."""
        return bool(self.pod_affinity or self.pod_anti_affinity or self.spread)

    @property
    def mentions(self) -> frozenset[LabelMention]:
        """What they depend on of the labels of pods."""
        terms = (*self.pod_affinity, *self.pod_anti_affinity)
        selectors = (*[term.pods.selector for term in terms], *[spread.selector for spread in self.spread])
        expressions = [
            expression for selector in selectors if selector is not None for expression in selector.expressions
        ]
        return frozenset().union(*[expression.mentions for expression in expressions])

    @property
    def of_nodes(self) -> Self:
        """These constraints without what depends on other pods."""
        if not self.concern_pods:
            return self
        return dataclasses.replace(self, pod_affinity=(), pod_anti_affinity=(), spread=())

    def avoiding(self, nodes: Collection[NodeName]) -> Self:
        """Return these constraints without some of the nodes that they allow."""
        elsewhere = Expression(key="metadata.name", operator=Operator.NOT_IN, values=tuple(sorted(nodes)))
        if self.affinity is None:
            return dataclasses.replace(self, affinity=(AffinityTerm(fields=(elsewhere,)),))
        used = [term for term in self.affinity if term.expressions or term.fields]  # the others match no node
        terms = tuple([dataclasses.replace(term, fields=(*term.fields, elsewhere)) for term in used])
        return dataclasses.replace(self, affinity=terms)


UNCONSTRAINED = Constraints()
