"""Which nodes a pod's constraints allow, in the words and the order of kube-scheduler."""

import collections
import re
import weakref
from collections.abc import Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.layout import Layout

WRONG_NAME = "node(s) didn't match the requested node name"
UNSCHEDULABLE = "node(s) were unschedulable"
NOT_READY = "node(s) were not ready"
WRONG_LABELS = "node(s) didn't match Pod's node affinity/selector"

_CORDONED = model.Taint(key=model.UNSCHEDULABLE_TAINT)
_NOT_READY = model.Taint(key=model.NOT_READY_TAINT)


def refusal(constraints: model.Constraints, node: model.Node) -> str | None:
    """Return why the node may not be used; None if it may."""
    if constraints.node_name is not None and constraints.node_name != node.name:
        return WRONG_NAME
    if node.unschedulable and not tolerated(_CORDONED, constraints.tolerations):
        return UNSCHEDULABLE
    if (taint := untolerated(node.taints, constraints.tolerations)) is not None:
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    if not node.ready and not tolerated(_NOT_READY, constraints.tolerations):
        return NOT_READY
    return None if selected(constraints, node) else WRONG_LABELS


def untolerated(taints: tuple[model.Taint, ...], tolerations: tuple[model.Toleration, ...]) -> model.Taint | None:
    """Return the first taint that keeps the pod away."""
    hard = (taint for taint in taints if taint.effect is not model.TaintEffect.PREFER_NO_SCHEDULE)
    return next((taint for taint in hard if not tolerated(taint, tolerations)), None)


def tolerated(taint: model.Taint, tolerations: tuple[model.Toleration, ...]) -> bool:
    """Return whether some toleration matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: model.Toleration, taint: model.Taint) -> bool:
    if toleration.effect not in (None, taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case model.TolerationOperator.EXISTS:
            return True
        case model.TolerationOperator.EQUAL:
            # An empty key matches every taint with Exists only.
            return bool(toleration.key) and toleration.value == taint.value
        case model.TolerationOperator.GT:
            return _compare(taint.value, toleration.value, _DECIMAL) > 0
        case model.TolerationOperator.LT:
            return _compare(taint.value, toleration.value, _DECIMAL) < 0


def selected(constraints: model.Constraints, node: model.Node) -> bool:
    """Return whether the node selector and one term of the required node affinity hold."""
    if any(node.labels.get(key) != value for key, value in constraints.node_selector):
        return False
    terms = constraints.affinity
    return terms is None or any(_term_holds(term, node) for term in terms)


def _term_holds(term: model.AffinityTerm, node: model.Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    labels = all(holds(e, node.labels.get(e.key)) for e in term.expressions)
    # metadata.name is the only field that the API knows for nodes.
    return labels and all(e.key == "metadata.name" and holds(e, node.name) for e in term.fields)


def holds(expression: model.Expression, value: str | None) -> bool:
    """Return whether a label's value meets a requirement; None for an object without the label."""
    match expression.operator:
        case model.Operator.IN:
            return value in expression.values
        case model.Operator.NOT_IN:
            return value not in expression.values
        case model.Operator.EXISTS:
            return value is not None
        case model.Operator.DOES_NOT_EXIST:
            return value is None
        case model.Operator.GT | model.Operator.LT:
            sign, bounds = 1 if expression.operator is model.Operator.GT else -1, expression.values
            return value is not None and len(bounds) == 1 and _compare(value, bounds[0], _WHOLE) == sign


def _compare(value: str, bound: str, spelling: re.Pattern[str]) -> int:
    """Return the sign of value - bound; 0, which satisfies neither Gt nor Lt, unless both are 64-bit whole numbers."""
    left, right = _whole(value, spelling), _whole(bound, spelling)
    return 0 if left is None or right is None else (left > right) - (left < right)


def _whole(text: str, spelling: re.Pattern[str]) -> int | None:
    """Parse a whole number of at most 64 bits in this spelling; return None for anything else."""
    if spelling.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _DIGITS:
        return None
    number = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return number if -_TOO_LARGE <= number < _TOO_LARGE else None


_WHOLE = re.compile(r"[+-]?[0-9]+")  # as Go parses it, for labels of nodes
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
"""As Kubernetes validates the values of tolerations that compare; those of taints it does not validate."""
_DIGITS = 19
_TOO_LARGE = 1 << 63


class Eligibility:
    """Which nodes a set of constraints allows, as a mask, shape [N]. Immutable.

    It holds no more of a layout than the nodes: a class that is unschedulable for long may keep it.
    """

    def __init__(self, nodes: Sequence[model.Node], refusals: Sequence[str | None]) -> None:
        self.nodes = nodes
        reasons: dict[str | None, int] = {}
        self._codes = np.array([reasons.setdefault(reason, len(reasons)) for reason in refusals], np.uint16)
        self._reasons = tuple(reasons)
        self.mask = np.array([reason is None for reason in refusals], np.bool_)
        self.mask.flags.writeable = False
        self.everywhere = bool(self.mask.all())

    @property
    def refusals(self) -> Sequence[str | None]:
        """Why each node is not allowed, length N."""
        return [self._reasons[code] for code in self._codes.tolist()]


class Eligibilities:
    """Static masks by constraints, a memo: computed once, then updated for the nodes that changed.

    Kept for as long as a class that waits has these constraints, and the last ones beyond that: `_NODES_KEPT` nodes of
    all of them together.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[model.Constraints, Eligibility] = weakref.WeakValueDictionary()
        self._last: collections.OrderedDict[model.Constraints, Eligibility] = collections.OrderedDict()
        self._kept = 0
        self._tolerating: dict[tuple[model.Toleration, ...], model.BoolVector] = {}
        self._layout: Layout | None = None

    def of(self, constraints: model.Constraints, layout: Layout) -> Eligibility:
        """Return the mask over the nodes of this layout."""
        constraints = constraints.of_nodes
        if (known := self._known.get(constraints)) is None or known.nodes is not layout.nodes:
            known = self._known[constraints] = Eligibility(layout.nodes, self._refusals(constraints, layout, known))
        former = self._last.pop(constraints, None)
        self._last[constraints] = known
        self._kept += len(known.nodes) - (0 if former is None else len(former.nodes))
        while len(self._last) > _CONSTRAINTS_KEPT or (self._kept > _NODES_KEPT and len(self._last) > 1):
            self._kept -= len(self._last.popitem(last=False)[1].nodes)
        return known

    def tolerating(self, tolerations: tuple[model.Toleration, ...], layout: Layout) -> model.BoolVector:
        """Return the nodes whose taints these tolerate, shape [N], read-only; memoized for the last layout."""
        if self._layout is not layout or len(self._tolerating) >= _CONSTRAINTS_KEPT:
            self._layout, self._tolerating = layout, {}
        if (known := self._tolerating.get(tolerations)) is None:
            found = [untolerated(node.taints, tolerations) is None for node in layout.nodes]
            known = self._tolerating[tolerations] = np.array(found, np.bool_)
            known.flags.writeable = False
        return known

    @staticmethod
    def _refusals(constraints: model.Constraints, layout: Layout, known: Eligibility | None) -> list[str | None]:
        if known is None:
            return [refusal(constraints, node) for node in layout.nodes]
        # Nodes are frozen values: the very same object cannot have become unlike itself.
        before = {id(node): reason for node, reason in zip(known.nodes, known.refusals, strict=True)}
        return [before[id(node)] if id(node) in before else refusal(constraints, node) for node in layout.nodes]


_CONSTRAINTS_KEPT = 1024  # arbitrary: pods of others may each bring their own
_NODES_KEPT = 1 << 18  # in all masks that no class has: 11 bytes each, of 3 in the mask and 8 in a list of nodes
