"""Who is in line, grouped once and kept until it changes: cycles are many, and most find the same jobs waiting."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.extension import Sizer
    from boathouse_policies.framework.waiting import Waiting


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Jobs of one queue and one priority, in order of submission, and the classes of each."""

    queue: model.QueueName
    priority: int
    jobs: Sequence[model.Job]
    classes: Sequence[Sequence[Waiting]]


class Lineup:
    """The classes that a cycle looks at. Immutable but for a memo.

    Attributes:
        waiting: All of them, in order of submission.
        bands: By queue's name, then the higher priority.
        orphans: Classes of jobs whose queue does not exist.
        gangs: Those that start together.
        places: For each job the number of its band, and its place there.
        jobs: The job of each class.
    """

    def __init__(self, waiting: Sequence[Waiting], queues: Mapping[model.QueueName, model.Queue]) -> None:
        self.waiting = [one for one in waiting if one.job.queue in queues]
        self.orphans = [one for one in waiting if one.job.queue not in queues]
        self.gangs = [one for one in self.waiting if one.task_class.gang_min]
        self.jobs = {one.task_class.id: one.job.id for one in self.waiting}
        by_job: dict[model.JobId, list[Waiting]] = {}
        for one in self.waiting:
            by_job.setdefault(one.job.id, []).append(one)
        groups: dict[tuple[model.QueueName, int], list[list[Waiting]]] = {}
        for classes in by_job.values():
            job = classes[0].job
            groups.setdefault((job.queue, -job.priority), []).append(classes)
        self.bands = [
            Band(queue, -rank, [classes[0].job for classes in groups[queue, rank]], groups[queue, rank])
            for queue, rank in sorted(groups)
        ]
        self.places = {job.id: (i, n) for i, band in enumerate(self.bands) for n, job in enumerate(band.jobs)}
        self._sizes: tuple[Sizer, int, model.IntMatrix] | None = None

    def sizes(self, sizer: Sizer, axis: model.Axis) -> model.IntMatrix:
        """The least size of each class of `waiting`, shape [R, classes]."""
        known = self._sizes
        if known is None or known[0] is not sizer or known[1] != len(axis):
            rows = [one.sizing(sizer, axis).least for one in self.waiting]
            matrix = np.array(rows, np.int64).reshape(len(rows), len(axis)).T
            known = self._sizes = (sizer, len(axis), matrix)
        return known[2]
