"""Kubernetes' rules of pod affinity, anti-affinity and topology spread, as plainly as can be."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies import model


@dataclasses.dataclass(frozen=True)
class Pod:
    """A pod: on a node, or the one to place."""

    namespace: str
    labels: Mapping[str, str]
    constraints: model.Constraints
    node: str = ""
    is_ending: bool = False


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Nodes, pods and the labels of namespaces."""

    nodes: Sequence[model.Node]
    pods: Sequence[Pod]
    namespaces: Mapping[str, Mapping[str, str]]

    def node(self, name: str) -> model.Node | None:
        return next((node for node in self.nodes if node.name == name), None)

    def refusal(self, pod: Pod, node: model.Node) -> str:
        """Why a pod may not go to a node; empty if it may."""
        if reason := self._uneven(pod, node):
            return reason
        if not self._near(pod, node):
            return "node(s) didn't match pod affinity rules"
        if any(self._neighbours(term, node) for term in pod.constraints.pod_anti_affinity):
            return "node(s) didn't match pod anti-affinity rules"
        if any(self._forbids(other, pod, node) for other in self.pods):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""

    def _belongs(self, pod: Pod, pods: model.PodSet) -> bool:
        labels = self.namespaces.get(pod.namespace, {})
        named = pod.namespace in pods.namespaces
        return (named or selects(pods.namespace_selector, labels)) and selects(pods.selector, pod.labels)

    def _together(self, key: str, other: Pod, node: model.Node) -> bool:
        where = self.node(other.node)
        return where is not None and key in node.labels and where.labels.get(key) == node.labels[key]

    def _neighbours(self, term: model.PodTerm, node: model.Node) -> list[Pod]:
        found = (other for other in self.pods if self._belongs(other, term.pods))
        return [other for other in found if self._together(term.topology_key, other, node)]

    def _forbids(self, other: Pod, pod: Pod, node: model.Node) -> bool:
        terms = (term for term in other.constraints.pod_anti_affinity if self._belongs(pod, term.pods))
        return any(self._together(term.topology_key, other, node) for term in terms)

    def _near(self, pod: Pod, node: model.Node) -> bool:
        terms = pod.constraints.pod_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        wanted = [other for other in self.pods if all(self._belongs(other, term.pods) for term in terms)]
        if all(any(self._together(term.topology_key, other, node) for other in wanted) for term in terms):
            return True
        placed = (self.node(other.node) for other in wanted)
        counted = [where for where in placed if where and any(term.topology_key in where.labels for term in terms)]
        return not counted and all(self._belongs(pod, term.pods) for term in terms)

    def _uneven(self, pod: Pod, node: model.Node) -> str:
        spreads = pod.constraints.spread
        for spread in spreads:
            if spread.topology_key not in node.labels:
                return "node(s) didn't match pod topology spread constraints (missing required label)"
            counts: dict[str, int] = {}
            for counted in self.nodes:
                if all(constraint.topology_key in counted.labels for constraint in spreads) and _counts(
                    pod, spread, counted
                ):
                    value = counted.labels[spread.topology_key]
                    counts[value] = counts.get(value, 0) + self._matching(pod, spread, counted)
            fewest = min(counts.values()) if counts and len(counts) >= spread.min_domains else 0
            own = selects(spread.selector, pod.labels)
            if counts.get(node.labels[spread.topology_key], 0) + own - fewest > spread.max_skew:
                return "node(s) didn't match pod topology spread constraints"
        return ""

    def _matching(self, pod: Pod, spread: model.Spread, node: model.Node) -> int:
        if spread.selector is None or not spread.selector.expressions:
            return 0
        pods = [other for other in self.pods if (other.node, other.namespace) == (node.name, pod.namespace)]
        return sum(1 for other in pods if not other.is_ending and selects(spread.selector, other.labels))


def _counts(pod: Pod, spread: model.Spread, node: model.Node) -> bool:
    constraints = pod.constraints
    if spread.honors_affinity and any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    tolerated = {toleration.key for toleration in constraints.tolerations}
    return not spread.honors_taints or all(taint.key in tolerated for taint in node.taints)


def selects(selector: model.Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches labels; none matches nothing."""
    return selector is not None and all(_holds(expression, labels) for expression in selector.expressions)


def _holds(expression: model.Expression, labels: Mapping[str, str]) -> bool:
    match expression.operator.value:
        case "In":
            return expression.key in labels and labels[expression.key] in expression.values
        case "NotIn":
            return expression.key not in labels or labels[expression.key] not in expression.values
        case "Exists":
            return expression.key in labels
        case _:
            return expression.key not in labels


def feasible(cluster: Cluster, pod: Pod) -> Iterable[str]:
    """The nodes that the rules allow."""
    return [node.name for node in cluster.nodes if not cluster.refusal(pod, node)]
