"""Write the cycles of simulations to a journal."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import zlib
from typing import TYPE_CHECKING

from . import adapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies import framework
    from boathouse_sim.results import Outcome

    from .journal import Journal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What is asked of cycles beside their decisions. Which cycles are asked follows from their time alone.

    Attributes:
        pending_each: What is left pending is asked at one of so many times; 0 for never.
        explained_each: The same of diagnoses.
    """

    pending_each: int = 1
    explained_each: int = 0


class Recorder:
    """Writes every cycle of every simulation while it is in use.

    Args:
        journal: Where to.
        questions: What to ask.
    """

    def __init__(self, journal: Journal, questions: Questions) -> None:
        self._journal, self._questions = journal, questions
        self._prefix: str | None = None
        self._simulations: collections.Counter[str] = collections.Counter()
        self._current: object = None

    @contextlib.contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Record what happens until the block ends as one run."""
        self._journal.begin(name)
        with adapter.watched(self._cycle), adapter.outcomes(self._outcome):
            yield

    @contextlib.contextmanager
    def runs(self, name: str) -> Iterator[None]:
        """Record what happens until the block ends, each simulation as a run of its own, numbered by the name."""
        self._prefix = name
        with adapter.watched(self._cycle), adapter.outcomes(self._outcome):
            yield
        self._prefix = self._current = None

    def _cycle(self, simulation: object, now_s: float, plan: framework.Plan) -> None:
        if self._prefix is not None and simulation is not self._current:
            self._current = simulation
            self._simulations[self._prefix] += 1
            self._journal.begin(f"{self._prefix}-{self._simulations[self._prefix]}")
        asked = _is_asked(now_s, self._questions.pending_each)
        self._journal.cycle(now_s, plan.decisions, adapter.pending(plan) if asked else None)
        if _is_asked(now_s, self._questions.explained_each):
            self._journal.explain(now_s, adapter.diagnoses(plan))

    def _outcome(self, _simulation: object, outcome: Outcome) -> None:
        self._journal.measure("mean_job_time_s", outcome.mean_job_time_s)
        self._journal.measure("makespan_s", outcome.makespan_s)
        self._journal.measure("tasks", outcome.tasks)


def _is_asked(now_s: float, interval: int) -> bool:
    return interval > 0 and zlib.crc32(f"{now_s:.6f}".encode()) % interval == 0
