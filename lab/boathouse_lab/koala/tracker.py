"""A JobTracker's book: which tasks of a Hadoop cluster's jobs wait, first in, first out. It knows no time of its own.

Hadoop's JobQueueTaskScheduler: a free map slot takes a map of the first job that has one waiting, one with its block on
the node if there is one; a free reduce slot takes a reducer of the first job whose slow start is over.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from boathouse_sim.live.rates import Gate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_lab.koala.jobs import HadoopJob
    from boathouse_policies import model


class JobBook:
    """A job's tasks.

    Args:
        spec: The job.
        blocks: Workers with each block, as they were when it came.
        slow_start: Share of its maps after whose end reducers may start.
        now_ms: When it came.

    Attributes:
        gate: What map output exists.
        outputs: Where the output of each map that ended is.
        past_copy: Reducers that have copied all.
        local_maps: Maps that ran where their block is.
    """

    def __init__(
        self, spec: HadoopJob, blocks: Sequence[tuple[model.TaskId, ...]], slow_start: float, now_ms: int
    ) -> None:
        self.spec = spec
        self.blocks = blocks
        self.submitted_ms = now_ms
        self.mapped_ms = -1
        self.gate = Gate(spec.maps)
        self.outputs: dict[int, model.TaskId] = {}
        self.past_copy: set[int] = set()
        self.reduced: set[int] = set()
        self.local_maps = 0
        self._maps = dict.fromkeys(range(spec.maps))
        self._reduces = dict.fromkeys(range(spec.reduces))
        self._first = math.ceil(slow_start * spec.maps)
        self._at: dict[model.TaskId, deque[int]] = {}
        for index, workers in enumerate(blocks):
            for worker in workers:
                self._at.setdefault(worker, deque()).append(index)

    @property
    def waiting_maps(self) -> int:
        """Maps that wait."""
        return len(self._maps)

    @property
    def waiting_reduces(self) -> int:
        """Reducers that wait and may start."""
        return len(self._reduces) if len(self.outputs) >= self._first else 0

    @property
    def over(self) -> bool:
        """Whether all of it has ended."""
        return len(self.reduced) == self.spec.reduces

    def take_map(self, worker: model.TaskId) -> int | None:
        """Take a pending map for a worker, a local one first; None if there is none."""
        local = self._at.get(worker)
        while local:
            index = local.popleft()
            if index in self._maps:
                del self._maps[index]
                self.local_maps += 1
                return index
        if not self._maps:
            return None
        first: int = next(iter(self._maps))
        del self._maps[first]
        return first

    def take_reduce(self) -> int | None:
        """Take a pending reducer if it may start."""
        if not self.waiting_reduces:
            return None
        index: int = next(iter(self._reduces))
        del self._reduces[index]
        return index

    def mapped(self, index: int, worker: model.TaskId, now_ms: int) -> bool:
        """Record the end of a map; return whether it was the last."""
        self.outputs[index] = worker
        opened = self.gate.more(now_ms)
        if opened:
            self.mapped_ms = now_ms
        return opened

    def again(self, *, maps: Iterable[int] = (), reduces: Iterable[int] = ()) -> None:
        """Requeue these tasks before the others."""
        self._maps = dict.fromkeys([*sorted(maps), *self._maps])
        self._reduces = dict.fromkeys([*sorted(reduces), *self._reduces])

    def lost_outputs(self, worker: model.TaskId) -> list[int]:
        """Return the maps whose output was on a worker and is still needed."""
        if len(self.past_copy | self.reduced) == self.spec.reduces:
            return []
        return [index for index, where in self.outputs.items() if where == worker]

    def forget(self, index: int, now_ms: int) -> None:
        """Requeue a map whose output is lost."""
        del self.outputs[index]
        self.gate.more(now_ms, -1)
        self.again(maps=[index])

    def needs(self, worker: model.TaskId) -> bool:
        """Return whether map output on a worker may still be read."""
        return bool(self.lost_outputs(worker))


class Tracker:
    """The jobs of a cluster that are under way, in the order in which they came."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobBook] = {}

    @property
    def waiting(self) -> int:
        """Tasks that could run at once if there were a slot."""
        return sum(job.waiting_maps + job.waiting_reduces for job in self.jobs.values())

    def next_map(self, worker: model.TaskId) -> tuple[JobBook, int] | None:
        """Return the next map for a worker."""
        for job in self.jobs.values():
            index = job.take_map(worker)
            if index is not None:
                return job, index
        return None

    def next_reduce(self) -> tuple[JobBook, int] | None:
        """Return the next reducer."""
        for job in self.jobs.values():
            index = job.take_reduce()
            if index is not None:
                return job, index
        return None
