"""Predicates that depend on the node and the pod's constraints alone, in the words and the order of kube-scheduler."""

from __future__ import annotations

import re

from boathouse_policies import model

WRONG_NAME = "node(s) didn't match the requested node name"
UNSCHEDULABLE = "node(s) were unschedulable"
NOT_READY = "node(s) were not ready"
WRONG_LABELS = "node(s) didn't match Pod's node affinity/selector"

_CORDONED = model.Taint(key=model.UNSCHEDULABLE_TAINT)
_NOT_READY = model.Taint(key=model.NOT_READY_TAINT)


def refusal(constraints: model.Constraints, node: model.Node) -> str | None:
    """Why the node may not be used; None if it may."""
    if constraints.node_name is not None and constraints.node_name != node.name:
        return WRONG_NAME
    if node.unschedulable and not tolerated(_CORDONED, constraints.tolerations):
        return UNSCHEDULABLE
    taint = untolerated(node.taints, constraints.tolerations)
    if taint is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not node.ready and not tolerated(_NOT_READY, constraints.tolerations):
        return NOT_READY
    if not selected(constraints, node):
        return WRONG_LABELS
    return None


def untolerated(taints: tuple[model.Taint, ...], tolerations: tuple[model.Toleration, ...]) -> model.Taint | None:
    """The first taint that keeps the pod away."""
    for taint in taints:
        if taint.effect is not model.TaintEffect.PREFER_NO_SCHEDULE and not tolerated(taint, tolerations):
            return taint
    return None


def tolerated(taint: model.Taint, tolerations: tuple[model.Toleration, ...]) -> bool:
    """Whether some toleration matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: model.Toleration, taint: model.Taint) -> bool:
    if toleration.effect is not None and toleration.effect is not taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case model.TolerationOperator.EXISTS:
            return True
        case model.TolerationOperator.EQUAL:
            # An empty key matches every taint with Exists only.
            return bool(toleration.key) and toleration.value == taint.value
        case model.TolerationOperator.GT:
            return _compare(taint.value, toleration.value) > 0
        case model.TolerationOperator.LT:
            return _compare(taint.value, toleration.value) < 0


def selected(constraints: model.Constraints, node: model.Node) -> bool:
    """Whether the node selector and one term of the required node affinity hold."""
    if any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    terms = constraints.affinity
    return terms is None or any(_term_holds(term, node) for term in terms)


def _term_holds(term: model.AffinityTerm, node: model.Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    labels = all(_holds(e, node.labels.get(e.key)) for e in term.expressions)
    # metadata.name is the only field that the API knows for nodes.
    return labels and all(e.key == "metadata.name" and _holds(e, node.name) for e in term.fields)


def _holds(expression: model.Expression, value: str | None) -> bool:
    match expression.operator:
        case model.Operator.IN:
            return value in expression.values
        case model.Operator.NOT_IN:
            return value not in expression.values
        case model.Operator.EXISTS:
            return value is not None
        case model.Operator.DOES_NOT_EXIST:
            return value is None
        case model.Operator.GT:
            return value is not None and len(expression.values) == 1 and _compare(value, expression.values[0]) > 0
        case model.Operator.LT:
            return value is not None and len(expression.values) == 1 and _compare(value, expression.values[0]) < 0


def _compare(value: str, bound: str) -> int:
    """Sign of value - bound; 0, which satisfies neither Gt nor Lt, where one is not a whole number of 64 bits."""
    if not (_WHOLE.fullmatch(value) and _WHOLE.fullmatch(bound)):
        return 0
    left, right = int(value), int(bound)
    return (left > right) - (left < right) if max(abs(left), abs(right)) < _TOO_LARGE else 0


_WHOLE = re.compile(r"[+-]?[0-9]{1,64}")
_TOO_LARGE = 1 << 63
