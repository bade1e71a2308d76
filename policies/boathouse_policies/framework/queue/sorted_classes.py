"""Who waits, grouped once and kept until it changes: cycles are many, and most find the same jobs waiting."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from typing import TYPE_CHECKING, Protocol

import numpy as np

from boathouse_policies.framework.shapes import ShapeColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.queue.queued_class import LeastSizes, QueuedClass
    from boathouse_policies.framework.queue.unschedulable import UnschedulableClasses
    from boathouse_policies.framework.shapes import Shape
    from boathouse_policies.framework.view import ClusterView


class LastingOrder(Protocol):
    """An order whose keys depend on the job and what it holds alone."""

    constant: bool

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """The key of a job that holds so much, by row."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The jobs of one queue, one namespace and one priority: places `start` to `stop`."""

    queue: model.QueueName
    namespace: model.NamespaceName
    priority: int
    start: int
    stop: int


class SortedClasses:
    """All classes of which something waits.

    By the names of queue and namespace, the higher priority, submission, order in the job.

    A class' place is its index in every column of this order, as is a job's.

    Attributes:
        queued: The classes, length C.
        jobs: Their jobs, length J.
        first: The place of the first class of each job, and C, length J + 1.
        job_of: The place of each class' job, length C.
        places: The place of each class.
        band_of: The band of each job, length J.
        bands: The jobs by queue, namespace and priority.
        namespaces: How many namespaces share each queue.
        has_limits: Whether any of their queues has limits.
        single: Whether each job has one class: then their places are the same.
        gangs: Places of classes that start together.
        stages: The kinds of stages of the classes.
        in_gang: The same as a column, shape [C].
        open: Whom the next cycle looks at, shape [C].
        matched: Who of them can only go to nodes where room came free, shape [C].
        orphans: Who is looked at, of a job whose queue does not exist or does not accept it.
    """

    def __init__(self, queued: Iterable[QueuedClass], queues: Mapping[model.QueueName, model.Queue]) -> None:
        in_order, accepts = sorted(queued, key=_place), _acceptance(queues)
        self.queued = [one for one in in_order if accepts(one.job)]
        self._orphans = [one for one in in_order if not accepts(one.job)]
        self._rows = np.array([one.row for one in self.queued], np.intp)
        self.places = {one.task_class.id: i for i, one in enumerate(self.queued)}
        self.gangs = [i for i, one in enumerate(self.queued) if one.task_class.gang_min]
        self.stages = frozenset(one.task_class.stage for one in self.queued)
        self.in_gang = np.zeros(len(self.queued), np.bool_)
        self.in_gang[self.gangs] = True
        self.jobs: list[model.Job] = []
        self.first: list[int] = []
        self.job_of: list[int] = []
        for i, one in enumerate(self.queued):
            if not self.jobs or self.jobs[-1].id != one.job.id:
                self.jobs.append(one.job)
                self.first.append(i)
            self.job_of.append(len(self.jobs) - 1)
        self._starts = np.array(self.first, np.intp)
        self.single = len(self.jobs) == len(self.queued)
        self.first.append(len(self.queued))
        self.job_places = {job.id: i for i, job in enumerate(self.jobs)}
        self.bands = self._bands()
        self.band_of = [band for band in self.bands for _ in range(band.start, band.stop)]
        shares = {(band.queue, band.namespace) for band in self.bands}
        self.namespaces = collections.Counter(queue for queue, _ in shares)
        self.has_limits = any(queues[name].limits for name in self.namespaces)
        self._shapes: tuple[LeastSizes, int, tuple[ShapeColumns, npt.NDArray[np.intp], list[Shape]]] | None = None
        self._keys: tuple[LastingOrder, Layout, list[float]] | None = None
        self._serial = self._looked = -1
        self.orphans: list[QueuedClass] = []
        self.open = self.matched = np.zeros(len(self.queued), np.bool_)

    def _bands(self) -> list[Band]:
        bands, start = [], 0
        for (queue, namespace, priority), members in itertools.groupby(self.jobs, _band):
            count = sum(1 for _ in members)
            bands.append(Band(queue, namespace, priority, start, start + count))
            start += count
        return bands

    def look(self, unschedulable: UnschedulableClasses) -> None:
        """Take over who is looked at: with a class of a gang all others of its gang, also those of which none waits."""
        if self._looked == unschedulable.changes:
            return
        self._looked = unschedulable.changes
        if unschedulable.only_stirred() and not self._orphans:
            self.open = self.matched = unschedulable.matches_freed[self._rows]
            self.orphans = []
            return
        looks = unschedulable.active | unschedulable.always_active
        self.matched = (unschedulable.matches_freed & ~looks)[self._rows]
        self.open = looks[self._rows] | self.matched
        self.orphans = [one for one in self._orphans if looks[one.row] or unschedulable.matches_freed[one.row]]
        gangs = {self.job_of[i] for i in self.gangs if self.open[i]}
        if gangs:
            self.open[[i for i in self.gangs if self.job_of[i] in gangs]] = True

    def open_jobs(self, open_classes: model.BoolVector) -> model.BoolVector:
        """Which jobs have an open class, shape [J]."""
        if self.single:
            return open_classes
        some: model.BoolVector = np.logical_or.reduceat(open_classes, self._starts)
        return some

    def keys(self, order: LastingOrder, view: ClusterView) -> list[float]:
        """The keys of all jobs, length J: asked again only for jobs that hold something else than before."""
        known = self._keys
        if known is None or known[0] is not order or known[1] is not view.layout:
            self._keys = known = (order, view.layout, [0.0] * len(self.jobs))
            self._serial = -1
        keys = known[2]
        if self._serial != view.serial:
            for job_id in self._due(order, view):
                job = self.job_places[job_id]
                keys[job] = order.key(self.jobs[job], view.held_by(job_id), view.layout)
            self._serial = view.serial
        return keys

    def _due(self, order: LastingOrder, view: ClusterView) -> Iterable[model.JobId]:
        if self._serial >= 0 and order.constant:
            return ()
        return self.job_places.keys() & view.held.touched if self._serial == view.serial - 1 else self.job_places

    def shapes(self, sizer: LeastSizes, axis: model.Axis) -> tuple[ShapeColumns, npt.NDArray[np.intp], list[Shape]]:
        """The shapes of the classes as columns, the column of each class' shape, shape [C], and each class' shape."""
        known = self._shapes
        if known is None or known[0] is not sizer or known[1] != axis.width:
            own = [one.sizing(sizer, axis).shape for one in self.queued]
            numbers: dict[Shape, int] = {}
            shape_of = np.array([numbers.setdefault(shape, len(numbers)) for shape in own], np.intp)
            known = self._shapes = (sizer, axis.width, (ShapeColumns.of(list(numbers), axis.width), shape_of, own))
        return known[2]


def _acceptance(queues: Mapping[model.QueueName, model.Queue]) -> Callable[[model.Job], bool]:
    """Return what says whether a job's queue exists and accepts it."""
    if not any(queue.namespaces or queue.priority_classes for queue in queues.values()):
        return lambda job: job.queue in queues

    def accepts(job: model.Job) -> bool:
        queue = queues.get(job.queue)
        return queue is not None and queue.accepts(job.namespace, job.priority_class)

    return accepts


def _band(job: model.Job) -> tuple[model.QueueName, model.NamespaceName, int]:
    return (job.queue, job.namespace, job.priority)


def _place(queued: QueuedClass) -> tuple[model.QueueName, model.NamespaceName, int, float, model.JobId, int]:
    return (queued.job.queue, queued.job.namespace, -queued.job.priority, *queued.rank)
