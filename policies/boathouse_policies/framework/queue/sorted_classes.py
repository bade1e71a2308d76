"""The classes that have pending tasks in the order of their turns, for as long as they are the same."""

import bisect
import collections
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework.affinity import Tallies
from boathouse_policies.framework.layout import Layout
from boathouse_policies.framework.queue.queued_class import LeastSizes, QueuedClass
from boathouse_policies.framework.queue.unschedulable import UnschedulableClasses
from boathouse_policies.framework.shapes import Shape, ShapeColumns
from boathouse_policies.framework.view import ClusterView


class LastingOrder(Protocol):
    """An order whose keys depend on the job and what it holds alone."""

    constant: bool

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """Return the key of a job with this usage, by row."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The jobs of one queue, one namespace and one priority: places `start` to `stop`."""

    queue: model.QueueName
    namespace: model.NamespaceName
    priority: int
    start: int
    stop: int


class SortedClasses:
    """All classes that have pending tasks.

    By the names of queue and namespace, the higher priority, submission, order in the job. A class' place is its index
    in every column of this order, as is a job's.
    """

    def __init__(self, classes: Iterable[QueuedClass], queues: Mapping[model.QueueName, model.Queue]) -> None:
        in_order = sorted(classes, key=_place)
        self.queued = [queued for queued in in_order if _has_queue(queued.job, queues)]
        self._orphans = [queued for queued in in_order if not _has_queue(queued.job, queues)]
        self._rows = np.array([queued.row for queued in self.queued], np.intp)
        self.places = {queued.task_class.id: place for place, queued in enumerate(self.queued)}
        self.in_gang = np.array([queued.task_class.gang_min > 0 for queued in self.queued], np.bool_)
        self.gangs: list[int] = self.in_gang.nonzero()[0].tolist()
        # Classes of which gangs that have begun are short.
        self.short = [place for place, queued in enumerate(self.queued) if queued.task_class.is_short]
        self._about_pods = [
            (queued.job.namespace, queued.task_class.constraints)
            for queued in in_order
            if queued.task_class.constraints.concern_pods
        ]
        self.stages = frozenset(queued.task_class.stage for queued in self.queued)
        jobs = {queued.job.id: queued.job for queued in self.queued}
        self.jobs = list(jobs.values())
        self.job_places = {job_id: place for place, job_id in enumerate(jobs)}
        self.job_of = [self.job_places[queued.job.id] for queued in self.queued]
        self._starts = np.searchsorted(self.job_of, np.arange(len(self.jobs)))
        self.first: list[int] = [*self._starts.tolist(), len(self.queued)]  # the first class of each job, and C
        self.single = len(self.jobs) == len(self.queued)  # so that places of jobs are those of their classes
        # Whether each job has one class, and room alone decides which of the nodes that it may use fit.
        self.is_plain = self.single and all(queued.is_plain for queued in self.queued)
        sizes = collections.Counter(map(_band, self.jobs))
        stops = itertools.accumulate(sizes.values())
        self.bands = [Band(*band, stop - sizes[band], stop) for band, stop in zip(sizes, stops, strict=True)]
        self.band_of = [band for band in self.bands for _ in range(band.start, band.stop)]
        shares = {(band.queue, band.namespace) for band in self.bands}
        self.namespaces = collections.Counter(queue for queue, _ in shares)
        self.is_shared = len(shares) > 1  # queues, or namespaces in a queue, have turns by what they hold
        self.has_limits = any(queues[name].limits for name in self.namespaces)
        self._shapes: tuple[LeastSizes, int, tuple[ShapeColumns, npt.NDArray[np.intp], list[Shape]]] | None = None
        self._keys: tuple[LastingOrder, Layout, list[float]] | None = None
        self._heap: list[tuple[float, int]] = []
        self._serial, self._flags = -1, b""
        self._stale: set[model.JobId] | None = None
        self.orphans: list[QueuedClass] = []  # to consider, of jobs whose queue does not exist or does not accept them
        # What the next cycle considers, and what of that fits at most on nodes where room came free, shape [C] each.
        self.open = self.matched = np.zeros(len(self.queued), np.bool_)
        self.only_matched = True  # whether `matched` are all that it considers

    def consider(self, unschedulable: UnschedulableClasses) -> None:
        """Take over which classes the next cycle considers: with a class of a gang all classes of the gang."""
        if (flags := unschedulable.considered()) == self._flags:
            return
        self._flags = flags
        self.only_matched = not self._orphans and flags.find(1, 0, len(flags) // 3 * 2) < 0
        self.open = self.matched = unschedulable.matches_freed[self._rows]
        self.orphans = []
        if self.only_matched:
            return
        active = unschedulable.active | unschedulable.always_active
        self.matched = self.matched & ~active[self._rows]
        self.open = active[self._rows] | self.matched
        considered = active | unschedulable.matches_freed
        self.orphans = [queued for queued in self._orphans if considered[queued.row]]
        if gangs := {self.job_of[place] for place in self.gangs if self.open[place]}:
            self.open[[place for place in self.gangs if self.job_of[place] in gangs]] = True

    def declare(self, tallies: Tallies) -> None:
        """Have the pods counted that the constraints of the classes select."""
        if tallies.declared_by is not self and (self._about_pods or tallies.is_needed):
            tallies.declare(self._about_pods, self)

    def open_jobs(self, open_classes: model.BoolVector) -> model.BoolVector:
        """Return which jobs have an open class, shape [J]."""
        return open_classes if self.single else np.logical_or.reduceat(open_classes, self._starts)

    def note_usage(self, view: ClusterView) -> None:
        """Note which jobs hold something else than in the snapshot before; after a gap, all may."""
        if self._serial != view.serial - 1:
            self._stale = None
        elif self._stale is not None and view.touched:
            self._stale.update(view.touched)
        self._serial = view.serial

    def keys(self, order: LastingOrder, view: ClusterView) -> list[float]:
        """Return the keys of all jobs, length J; recompute only those of jobs whose usage changed."""
        if (known := self._keys) is None or known[0] is not order or known[1] is not view.layout:
            self._keys = known = (order, view.layout, [0.0] * len(self.jobs))
            self._stale, self._heap = None, []
        elif order.constant:
            return known[2]
        keys = known[2]
        for job_id in self.job_places if self._stale is None else self.job_places.keys() & self._stale:
            place = self.job_places[job_id]
            key = order.key(self.jobs[place], view.job_usage(job_id), view.layout)
            if self._heap and key != keys[place]:
                del self._heap[bisect.bisect_left(self._heap, (keys[place], place))]
                bisect.insort(self._heap, (key, place))
            keys[place] = key
        self._stale = set()
        return keys

    def heap(self) -> list[tuple[float, int]]:
        """Return a copy of all jobs by key, as it was last asked for, ascending: kept up, for cycles are many."""
        if not self._heap and self._keys is not None:
            self._heap = sorted(zip(self._keys[2], range(len(self.jobs)), strict=True))
        return self._heap.copy()

    def shapes(self, sizer: LeastSizes, axis: model.Axis) -> tuple[ShapeColumns, npt.NDArray[np.intp], list[Shape]]:
        """Return the shapes of the classes as columns, the column of each class, shape [C], and each class' shape."""
        if (known := self._shapes) is None or known[0] is not sizer or known[1] != axis.width:
            own = [queued.sizing(sizer, axis).shape for queued in self.queued]
            numbers: dict[Shape, int] = {}
            shape_of = np.array([numbers.setdefault(shape, len(numbers)) for shape in own], np.intp)
            known = self._shapes = (sizer, axis.width, (ShapeColumns.of(list(numbers), axis.width), shape_of, own))
        return known[2]


def _has_queue(job: model.Job, queues: Mapping[model.QueueName, model.Queue]) -> bool:
    return (queue := queues.get(job.queue)) is not None and queue.accepts(job.namespace, job.priority_class)


def _band(job: model.Job) -> tuple[model.QueueName, model.NamespaceName, int]:
    return (job.queue, job.namespace, job.priority)


def _place(queued: QueuedClass) -> tuple[model.QueueName, model.NamespaceName, int, float, model.JobId, int]:
    return (queued.job.queue, queued.job.namespace, -queued.job.priority, *queued.rank)


NO_CLASSES = SortedClasses((), {})  # an empty queue's, before the first cycle
