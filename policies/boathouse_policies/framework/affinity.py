"""Constraints on where other pods are, as counts of pods: pod affinity and anti-affinity, and topology spread.

Pods are counted by node, for each selector that something asks about: the ledger's part.

Two kinds of tallies. One counts the pods that a pending class' terms select. The other counts the pods that forbid
others next to them, by their term of required anti-affinity. A pod changes the tallies that its labels match, which an
index by namespace and label finds, so selectors of other namespaces cost it nothing. Without any tally a pod costs one
entry in a dictionary.
"""

import collections
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import eligibility
from boathouse_policies.framework.layout import Layout
from boathouse_policies.model.values import value

Labels: TypeAlias = Mapping[str, str]
Mention: TypeAlias = tuple[str | None, model.LabelMention]
"""What a selector depends on of pods' labels, after the namespace of the pods; None for those of any namespace."""

K = TypeVar("K", bound="Selection | model.PodTerm")

OTHER_VALUE = "*"
"""Stands for the values of a label that no selector names, which selectors do not tell apart. No label has it."""


@value(frozen=True, slots=True, kw_only=True)
class Resident:
    """What affinity sees of a pod; topology spread does not count one that is being deleted."""

    namespace: str
    labels: Mapping[str, str]
    anti_affinity: tuple[model.PodTerm, ...] = ()
    is_ending: bool = False


@value(frozen=True, slots=True, kw_only=True)
class Selection:
    """Pods that belong to each of some sets: that of a term of anti-affinity or spread, or all terms' of affinity."""

    sets: tuple[model.PodSet, ...]
    skips_ending: bool = False


class Tally:
    """A count of pods by node."""

    def __init__(self, sets: tuple[model.PodSet, ...], *, skips_ending: bool = False, topology_key: str = "") -> None:
        # A pod counts, or is concerned, that belongs to each set; the key is that of a term, empty for a selection.
        self.sets, self.skips_ending, self.topology_key = sets, skips_ending, topology_key
        self.by_node: collections.Counter[model.NodeName] = collections.Counter()
        self.waiting: dict[model.ClassId, None] = {}  # classes that another count may help
        self.totals: weakref.WeakSet[Tally] | None = None
        self._layout: Layout | None = None
        self._column: model.IntVector = np.zeros(0, np.int64)

    def add(self, node: model.NodeName, count: int) -> None:
        """Count pods on a node; fewer if it is negative."""
        self.by_node[node] += count
        if not self.by_node[node]:
            del self.by_node[node]
        if self._layout is not None and (place := self._layout.index.get(node)) is not None:
            self._column[place] += count
        for total in self.totals or ():
            total.add(node, count)

    def column(self, layout: Layout) -> model.IntVector:
        """Return the count of each node, shape [N]: read-only, and kept up."""
        if self._layout is not layout:
            self._layout, self._column = layout, np.zeros(len(layout), np.int64)
            for node, count in self.by_node.items():
                if (place := layout.index.get(node)) is not None:
                    self._column[place] = count
        return self._column


class Tallies:
    """All pods by namespace, and the tallies that they change. Writers: the ledger, and the shell for namespaces."""

    def __init__(self) -> None:
        self._namespace_of: dict[model.TaskId, str] = {}
        self._pods: dict[str, dict[model.TaskId, tuple[model.NodeName, Resident]]] = {}
        self._namespaces: dict[str, Labels] = {}
        self._selecting, self._forbidding = _Index[Selection](), _Index[model.PodTerm]()
        self._about: Sequence[tuple[str, model.Constraints]] = ()
        self._declared: Collection[model.PodTerm] = ()
        self._totals: weakref.WeakValueDictionary[frozenset[Tally], Tally] = weakref.WeakValueDictionary()
        self._woken: set[model.ClassId] = set()
        self.declared_by: object = None

    @property
    def is_needed(self) -> bool:
        """Whether any pod, or any pending class, has a constraint on other pods."""
        return bool(self._selecting or self._forbidding)

    # Pods

    def enter(self, task: model.TaskId, node: model.NodeName, pod: Resident) -> None:
        """Count a pod on a node."""
        self._namespace_of[task] = pod.namespace
        self._pods.setdefault(pod.namespace, {})[task] = node, pod
        self._count(node, pod, +1)

    def leave(self, task: model.TaskId) -> None:
        """Count a pod no more."""
        namespace = self._namespace_of.pop(task)
        node, pod = self._pods[namespace].pop(task)
        if not self._pods[namespace]:
            del self._pods[namespace]
        self._count(node, pod, -1)

    def _count(self, node: model.NodeName, pod: Resident, step: int) -> None:
        for term in pod.anti_affinity:
            self._change(self.of_term(term), node, step)
            self._drop(term)
        if self._selecting:
            for tally in self.selecting(pod):
                self._change(tally, node, step)

    def _change(self, tally: Tally, node: model.NodeName, step: int) -> None:
        tally.add(node, step)
        self._wake(tally)

    def _wake(self, tally: Tally) -> None:
        for affected_tally in (tally, *(tally.totals or ())):
            if affected_tally.waiting:
                self._woken.update(affected_tally.waiting)
                affected_tally.waiting.clear()

    def wait(self, tally: Tally, task_class: model.ClassId) -> None:
        """Wake a class once the count changes. Classes that are gone stay noted, so too many are woken at once."""
        if len(tally.waiting) >= _MOST_WAITING:
            self._wake(tally)
        tally.waiting[task_class] = None

    @property
    def has_woken(self) -> bool:
        """Whether `take_woken` returns any class."""
        return bool(self._woken)

    def take_woken(self) -> Collection[model.ClassId]:
        """Return the classes that waited for another count of some tally, which has changed since the last call."""
        woken, self._woken = self._woken, set()
        return woken

    def set_namespace(self, name: str, labels: Labels | None) -> None:
        """Note the labels of a namespace; None for one that does not exist."""
        if self._namespaces.get(name) == labels:
            return
        tallies = self._selecting.values()
        by_labels = any(pod_set.namespace_selector is not None for tally in tallies for pod_set in tally.sets)
        pods = self._pods.get(name, {}) if by_labels else {}
        for node, pod in pods.values():
            for tally in self.selecting(pod):
                self._change(tally, node, -1)
        if labels is None:
            del self._namespaces[name]
        else:
            self._namespaces[name] = labels
        self._selecting.touch(name)
        self._forbidding.touch(name)
        for node, pod in pods.values():
            for tally in self.selecting(pod):
                self._change(tally, node, +1)
        for tally in [*self._forbidding.values(), *self._selecting.values()]:
            self._wake(tally)

    # Tallies

    def declare(self, constraints: Sequence[tuple[str, model.Constraints]], by: object) -> None:
        """Count for the constraints of pending classes, with their namespaces, and for no others."""
        self.declared_by = by
        if constraints == self._about:
            return
        self._about = constraints
        selections = dict.fromkeys(
            found for namespace, of_class in constraints for found in selections_of(namespace, of_class)
        )
        for selection in self._selecting.keys() - selections.keys():
            self._wake(self._selecting[selection])  # a class that waits may be left out of one cycle only
            self._selecting.drop(selection)
        for selection in selections:
            self.of(selection)
        former = self._declared
        self._declared = dict.fromkeys(term for _, of_class in constraints for term in of_class.pod_anti_affinity)
        for term in self._declared:
            self.of_term(term)
        for term in former:
            self._drop(term)

    def of(self, selection: Selection) -> Tally:
        """Return the count of a selection."""
        if (tally := self._selecting.get(selection)) is not None:
            return tally
        tally = self._selecting.put(selection, Tally(selection.sets, skips_ending=selection.skips_ending))
        known: dict[tuple[str, bool, int], bool] = {}  # pods of one owner share the value of their labels
        for namespace in _namespaces(tally) or self._pods:
            for node, pod in self._pods.get(namespace, {}).values():
                key = (namespace, pod.is_ending, id(pod.labels))
                if key not in known:
                    known[key] = self._selects(tally, pod)
                if known[key]:
                    tally.add(node, +1)
        return tally

    def of_term(self, term: model.PodTerm) -> Tally:
        """Return the count of pods with a term of anti-affinity."""
        tally = self._forbidding.get(term)
        return tally or self._forbidding.put(term, Tally((term.pods,), topology_key=term.topology_key))

    def _drop(self, term: model.PodTerm) -> None:
        tally = self._forbidding.get(term)
        if tally is not None and not tally.by_node and term not in self._declared:
            self._forbidding.drop(term)
            self._wake(tally)

    def total(self, of: frozenset[Tally]) -> Tally:
        """Return the sum of some tallies, kept up for as long as it is used: it costs as much as one of them."""
        if len(of) == 1:
            return next(iter(of))
        if (found := self._totals.get(of)) is None:
            found = self._totals[of] = Tally(())
            for tally in of:
                found.by_node.update(tally.by_node)
                if tally.totals is None:
                    tally.totals = weakref.WeakSet()
                tally.totals.add(found)
        return found

    def selecting(self, pod: Resident) -> Sequence[Tally]:
        """Return the tallies of selections that a pod belongs to."""
        return self._of(self._selecting, pod)

    def forbidding(self, pod: Resident) -> Sequence[Tally]:
        """Return the tallies of anti-affinity that select a pod."""
        return self._of(self._forbidding, pod)

    def _of(self, index: "_Index[Any]", pod: Resident) -> Sequence[Tally]:
        """Return the tallies of an index that select a pod: a memo, for most pods have the labels of others."""
        key = (pod.namespace, pod.is_ending, *pod.labels.items())
        if (found := index.known.get(key)) is None:
            found = [tally for tally in index.candidates(pod.namespace, pod.labels) if self._selects(tally, pod)]
            if len(index.known) >= _KEPT:
                index.known.clear()
            index.known[key] = found
        return found

    def _selects(self, tally: Tally, pod: Resident) -> bool:
        return not (tally.skips_ending and pod.is_ending) and all(self.belongs(pod, pods) for pods in tally.sets)

    def belongs(self, pod: Resident, pods: model.PodSet) -> bool:
        """Return whether a pod belongs to a set of pods."""
        if pods.selector is None or not matches(pods.selector, pod.labels):
            return False
        selector, labels = pods.namespace_selector, self._namespaces.get(pod.namespace, {})
        return pod.namespace in pods.namespaces or (selector is not None and matches(selector, labels))

    # What tallies depend on

    def version(self, namespace: str) -> tuple[int, ...]:
        """Return what is another value once other tallies concern the pods of a namespace."""
        return (*self._selecting.version(namespace), *self._forbidding.version(namespace))

    def shown(self, namespace: str, key: str, value: str) -> str | None:
        """Return what selectors tell apart of a label of a namespace's pods: its value, `OTHER_VALUE`, or None."""
        indexes = self._selecting, self._forbidding
        if any(index.mentions(namespace, (key, value)) for index in indexes):
            return value
        return OTHER_VALUE if any(index.mentions(namespace, (key, None)) for index in indexes) else None

    def take_mentioned(self) -> Collection[Mention]:
        """Return what of pods' labels a selector depends on and none did at the last call."""
        found = self._selecting.mentioned | self._forbidding.mentioned
        self._selecting.mentioned, self._forbidding.mentioned = set(), set()
        return found


def matches(selector: model.Selector, labels: Labels) -> bool:
    """Return whether labels match a selector."""
    return all(eligibility.holds(expression, labels.get(expression.key)) for expression in selector.expressions)


def selections_of(namespace: str, constraints: model.Constraints) -> Sequence[Selection]:
    """Return the selections of pods that constraints of a pod in a namespace count."""
    of_affinity = [selection_of_affinity(constraints)] if constraints.pod_affinity else []
    of_terms = [Selection(sets=(term.pods,)) for term in constraints.pod_anti_affinity]
    return [*of_affinity, *of_terms, *[selection_of_spread(namespace, spread) for spread in constraints.spread]]


def selection_of_affinity(constraints: model.Constraints) -> Selection:
    """Return the pods that all terms of a pod's affinity select: others do not count for any of them."""
    return Selection(sets=tuple([term.pods for term in constraints.pod_affinity]))


def selection_of_spread(namespace: str, spread: model.Spread) -> Selection:
    """Return the pods that a spread constraint counts; an empty selector counts none, as in kube-scheduler."""
    selector = spread.selector if spread.selector is not None and spread.selector.expressions else None
    return Selection(sets=(model.PodSet(selector=selector, namespaces=(namespace,)),), skips_ending=True)


class _Index(dict[K, Tally]):
    """Tallies by what they count, and by the namespace and a label of the pods that they may select."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[tuple[str, ...], dict[Tally, None]] = {}
        self._mentioned: dict[str, collections.Counter[model.LabelMention]] = {}
        self._versions: dict[str, int] = {}  # of places with tallies
        self._changes = self._other_version = 0
        # What of labels a tally depends on and none did before, since somebody cleared it.
        self.mentioned: set[Mention] = set()
        # The tallies that select pods, by what they see of the pods.
        self.known: dict[tuple[object, ...], Sequence[Tally]] = {}

    def put(self, key: K, tally: Tally) -> Tally:
        self[key] = tally
        self.known.clear()
        for place in _namespaces(tally) or (_WIDE,):
            known, mentioned = self._mentioned.setdefault(place, collections.Counter()), _mentioned_by(tally)
            self._changed(place)
            namespace = None if place == _WIDE else place
            self.mentioned.update([(namespace, mention) for mention in mentioned if mention not in known])
            known.update(mentioned)
            for bucket in _buckets(place, tally):
                self._buckets.setdefault(bucket, {})[tally] = None
        return tally

    def drop(self, key: K) -> None:
        tally = self.pop(key)
        self.known.clear()
        for place in _namespaces(tally) or (_WIDE,):
            mentioned = self._mentioned[place]
            for mention in _mentioned_by(tally):
                mentioned[mention] -= 1
                if not mentioned[mention]:
                    del mentioned[mention]
            if not mentioned:
                del self._mentioned[place]
            self._changed(place)
            for bucket in _buckets(place, tally):
                del self._buckets[bucket][tally]
                if not self._buckets[bucket]:
                    del self._buckets[bucket]

    def touch(self, namespace: str) -> None:
        """Say that other tallies may select the pods of a namespace."""
        self.known.clear()
        self._changed(namespace)

    def _changed(self, place: str) -> None:
        """Give a place another version; places without tallies share one, so that nothing is kept of those."""
        self._changes += 1
        if place in self._mentioned:
            self._versions[place] = self._changes
        else:
            self._versions.pop(place, None)
            self._other_version = self._changes

    def candidates(self, namespace: str, labels: Labels) -> list[Tally]:
        found: list[Tally] = []
        for place in (namespace, _WIDE):
            if place in self._mentioned:
                found += self._buckets.get((place,), ())
                for label in labels.items():
                    found += self._buckets.get((place, *label), ())
                    found += self._buckets.get((place, label[0]), ())
        return found

    def version(self, namespace: str) -> tuple[int, int]:
        """Return what is another value once other tallies may select pods of a namespace."""
        other = self._other_version
        return self._versions.get(namespace, other), self._versions.get(_WIDE, other)

    def mentions(self, namespace: str, mention: model.LabelMention) -> bool:
        """Return whether a tally that may select pods of a namespace depends on this of their labels."""
        return any(mention in self._mentioned.get(place, ()) for place in (namespace, _WIDE))


def _mentioned_by(tally: Tally) -> set[model.LabelMention]:
    return {_ANY}.union(*[expression.mentions for expression in _expressions(tally)])


def _buckets(place: str, tally: Tally) -> list[tuple[str, ...]]:
    """Return where a tally is listed: by a label that a pod must have, with one of some values if it names any."""
    expressions = _expressions(tally)
    if named := [expression for expression in expressions if expression.operator is model.Operator.IN]:
        label = min(named, key=lambda expression: len(expression.values))
        return [(place, label.key, label_value) for label_value in dict.fromkeys(label.values)]
    existing = [expression.key for expression in expressions if expression.operator is model.Operator.EXISTS]
    return [(place, *existing[:1])]


def _expressions(tally: Tally) -> list[model.Expression]:
    return [expression for pods in tally.sets if pods.selector is not None for expression in pods.selector.expressions]


def _namespaces(tally: Tally) -> tuple[str, ...]:
    """Return the only namespaces that a tally may select; none where that depends on their labels."""
    return min([pods.namespaces for pods in tally.sets if pods.namespace_selector is None], key=len, default=())


class Sum(NamedTuple):
    """Several tallies, and their total."""

    tallies: frozenset[Tally]
    total: Tally


class Spread(NamedTuple):
    """A spread constraint, with what it counts, and how many of that a pod of the class is: 1 or 0."""

    constraint: model.Spread
    sum: Sum
    own: int


@value(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides where a class may go beside other pods: a memo, as long as the version is equal."""

    version: tuple[int, ...]
    changes: frozenset[Tally]
    affinity: Sum | None  # what the terms of affinity count; None without such terms
    is_first: bool  # whether its own pods satisfy them, so that the first pod may start anywhere
    anti_affinity: dict[str, Sum]  # what each term of anti-affinity counts, by topology key
    forbidding: dict[str, Sum]  # the pods that forbid pods of the class next to them, by topology key
    spread: Sequence[Spread]

    @property
    def decide(self) -> bool:
        """Whether the class depends on other pods."""
        return bool(self.forbidding or self.has_own)

    @property
    def has_own(self) -> bool:
        """Whether the class has constraints on other pods itself."""
        return bool(self.affinity or self.anti_affinity or self.spread)

    def watched(self) -> Iterable[Tally]:
        """Return the totals that decide about the class."""
        sums = [*self.anti_affinity.values(), *self.forbidding.values(), *[spread.sum for spread in self.spread]]
        return [part.total for part in (sums if self.affinity is None else [self.affinity, *sums])]


def rules_of(pod: Resident, constraints: model.Constraints, all_: Tallies) -> Rules:
    """Return the rules of a class whose constraints are declared."""

    def sum_of(members: Collection[Tally]) -> Sum:
        return Sum(found := frozenset(members), all_.total(found))

    to_all = selection_of_affinity(constraints) if constraints.pod_affinity else None
    anti_affinity: dict[str, list[Tally]] = collections.defaultdict(list)
    forbidding: dict[str, list[Tally]] = collections.defaultdict(list)
    for term in constraints.pod_anti_affinity:
        anti_affinity[term.topology_key].append(all_.of(Selection(sets=(term.pods,))))
    for tally in all_.forbidding(pod):
        forbidding[tally.topology_key].append(tally)
    return Rules(
        version=all_.version(pod.namespace),
        changes=frozenset([*all_.selecting(pod), *map(all_.of_term, constraints.pod_anti_affinity)]),
        affinity=None if to_all is None else sum_of([all_.of(to_all)]),
        is_first=to_all is not None and all(all_.belongs(pod, pods) for pods in to_all.sets),
        anti_affinity={key: sum_of(members) for key, members in anti_affinity.items()},
        forbidding={key: sum_of(members) for key, members in forbidding.items()},
        spread=[
            Spread(
                spread,
                sum_of([all_.of(selection_of_spread(pod.namespace, spread))]),
                int(spread.selector is not None and matches(spread.selector, pod.labels)),
            )
            for spread in constraints.spread
        ],
    )


_WIDE = "*"  # no name of a namespace
_ANY: model.LabelMention = ("", None)  # no key of a label
_KEPT = 4096
_MOST_WAITING = 10_000
