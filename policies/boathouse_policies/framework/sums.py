"""Amounts added up by key as pods come and go, and how they stood at one moment: what a snapshot is made of."""

from __future__ import annotations

import copy
import itertools
import operator
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from boathouse_policies.framework.accounts import Share
    from boathouse_policies.framework.layout import Layout

K = TypeVar("K")
A = TypeVar("A")

Step: TypeAlias = "Callable[[int, int], int]"
"""`operator.add` or `operator.sub`."""


class Form(Protocol[K, A]):
    """The arrays that sums are asked for."""

    def begun(self) -> A:
        """Those of no sums."""
        ...

    def mended(self, arrays: A, plain: Mapping[K, model.Amounts], stale: Iterable[K]) -> A:
        """New ones, from those in which some keys are not right any more."""
        ...


class Sums(Generic[K, A]):
    """Amounts added up by key: plain numbers, for they change one at a time; and as arrays for whoever asks.

    Args:
        form: Of the arrays.
        plain: The sums with which to begin.

    Attributes:
        plain: The sum of each key by row, a tuple that is replaced when it changes; those of zero are left out.
    """

    def __init__(self, form: Form[K, A], plain: dict[K, model.Amounts]) -> None:
        self.plain = plain
        self._form = form
        self._arrays: A | None = None
        self._stale: set[K] = set()  # whose sum is another than in the arrays

    def add(self, key: K, amounts: model.Amounts, step: Step) -> None:
        """Add amounts, or take them away."""
        if self._arrays is not None:
            self._stale.add(key)
        plain = self.plain
        known = plain.get(key, ())
        total = tuple(map(step, known, amounts)) if len(known) == len(amounts) else combined(step, known, amounts)
        if total[_PODS] or any(total):  # the first is the cheaper, and nearly always settles it
            plain[key] = total
            return
        self.plain.pop(key, None)
        if len(self._stale) > len(self.plain):
            self._arrays = None  # to mend so many is as dear as to begin anew
            self._stale.clear()

    def copy(self) -> Self:
        """The same sums, which do not change when these do."""
        twin = copy.copy(self)  # which goes on with the dictionary and the set
        self.plain, self._stale = self.plain.copy(), self._stale.copy()
        return twin

    def arrays(self) -> A:
        """The same as arrays, which do not move: what changed is in new ones."""
        if self._arrays is None:
            self._arrays = self._form.mended(self._form.begun(), self.plain, self.plain)
        elif self._stale:
            self._arrays = self._form.mended(self._arrays, self.plain, self._stale)
            self._stale.clear()
        return self._arrays


class Vectors(Generic[K]):
    """Each sum is a vector, as long as the axis was when it began or last grew."""

    def begun(self) -> Mapping[K, model.IntVector]:
        """None."""
        return {}

    def mended(
        self, arrays: Mapping[K, model.IntVector], plain: Mapping[K, model.Amounts], stale: Iterable[K]
    ) -> Mapping[K, model.IntVector]:
        """A new dictionary, with new vectors where they are others."""
        vectors = dict(arrays)
        for key in stale:
            total = plain.get(key)
            if total is None:
                vectors.pop(key, None)
            else:
                vectors[key] = _vector(total)
        return vectors


class Columns:
    """Each sum is the column of a node.

    Args:
        layout: The nodes.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def begun(self) -> model.IntMatrix:
        """Zeros, shape [R, N]."""
        return np.zeros(self._layout.allocatable.shape, np.int64)

    def mended(
        self,
        arrays: model.IntMatrix,
        plain: Mapping[model.NodeName, model.Amounts],
        stale: Iterable[model.NodeName],
    ) -> model.IntMatrix:
        """A new matrix, read-only."""
        columns, index = arrays.copy(), self._layout.index
        names = [name for name in stale if name in index]
        if names:
            width = len(columns)
            totals = [_wide(_saturated(plain.get(name, ()), 2 * model.LARGEST), width) for name in names]
            columns[:, [index[name] for name in names]] = np.array(totals, np.int64).T
        columns.setflags(write=False)
        return columns


OfNodes: TypeAlias = Sums[model.NodeName, model.IntMatrix]
OfJobs: TypeAlias = "Sums[model.JobId, Mapping[model.JobId, model.IntVector]]"
OfShares: TypeAlias = "Sums[Share, Mapping[Share, model.IntVector]]"


class Held:
    """What nodes, jobs, queues and the namespaces in them hold at one moment.

    Attributes:
        jobs: What each job holds.
        shares: What each namespace's jobs hold of a queue.
        touched: Jobs that hold something else than at the moment before.
    """

    __slots__ = ("__weakref__", "_columns", "_nodes", "_queues", "jobs", "shares", "touched")

    def __init__(
        self,
        nodes: OfNodes,
        jobs: OfJobs,
        shares: OfShares,
        touched: Collection[model.JobId],
    ) -> None:
        self._nodes = nodes
        self._columns: model.IntMatrix | None = None
        self.jobs = jobs
        self.shares = shares
        self.touched = touched
        self._queues: Mapping[model.QueueName, model.IntVector] | None = None

    def requested(self) -> model.IntMatrix:
        """What all pods of all schedulers take, assumed ones too, shape [R, N], read-only."""
        return self._nodes.arrays() if self._columns is None else self._columns

    def on_node(self, name: model.NodeName, place: int) -> Sequence[int]:
        """The same of one node, as far as there is something."""
        return self._nodes.plain.get(name, ()) if self._columns is None else self._columns[:, place].tolist()

    def queues(self) -> Mapping[model.QueueName, model.IntVector]:
        """What each queue's jobs hold. Added up when first asked for: most cycles have one queue without limits."""
        if self._queues is None:
            plain: dict[model.QueueName, model.Amounts] = {}
            for (queue, _), amounts in self.shares.plain.items():
                plain[queue] = combined(operator.add, plain.get(queue, ()), amounts)
            self._queues = {queue: _vector(total) for queue, total in plain.items()}
        return self._queues

    def reserve(self) -> None:
        """The sums are about to change: go on with copies. Nodes are many: of them, an array is the cheaper one."""
        self._columns = self.requested()
        self.jobs, self.shares = self.jobs.copy(), self.shares.copy()


def combined(step: Step, a: Sequence[int], b: Sequence[int]) -> model.Amounts:
    """Amounts row by row; the shorter ones have nothing of what they do not name."""
    if len(a) == len(b):
        return tuple(map(step, a, b))
    return tuple(itertools.starmap(step, itertools.zip_longest(a, b, fillvalue=0)))


def _vector(total: model.Amounts) -> model.IntVector:
    return np.array(_saturated(total, model.LARGEST_SUM), np.int64)


def _wide(total: model.Amounts, width: int) -> model.Amounts:
    return total if len(total) == width else (*total, *(0,) * (width - len(total)))


def _saturated(total: model.Amounts, most: int) -> model.Amounts:
    return total if not total or max(total) <= most else tuple(min(amount, most) for amount in total)


_PODS = model.PODS
