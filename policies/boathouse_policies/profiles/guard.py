"""A guard: what a part's decisions were worth in fact, and off with a part that harms.

Each decision that ended says what its alternative would have cost and what it cost itself, in the same unit. From both,

    r = (alternative - own) / (alternative + own),    -1 ≤ r ≤ 1,

below 0 where the part did harm. For each part and program a bet against the part is kept: with stakes λ, the mean of
the products ∏(1 - λ·r). If the part is worth its cost on average, that is a supermartingale, which by Ville's
inequality ever reaches 1/α with a probability of α at most, however often one looks. There the part stops acting for
the program. It tries again after a while, each time for longer and with half of α: all trials together raise a false
alarm with a probability of `FALSE_ALARMS` at most.

A program is of one namespace, so that no tenant switches a part for others. For the whole cluster it stops where it has
stopped in most of the namespaces that it acted in, and at least in `LEAST_NAMESPACES`.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Figures, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FALSE_ALARMS: Final = 0.05
"""Probability that a part which is worth its cost is ever switched off for a program."""
RETRY_S: Final = 1800.0
"""After so long a part that was switched off tries again; after the next time it is twice as long."""
MOST_TRIALS: Final = 10
LEAST_NAMESPACES: Final = 3
PROGRAMS_KEPT: Final = 512
"""Programs whose records are kept; the one that told nothing for longest is forgotten."""
_STAKES: Final = np.array([0.1, 0.25, 0.5, 0.75])

Key: TypeAlias = "tuple[Part, str, str]"
"""A part, a namespace, and a program of it."""
Measure: TypeAlias = "Callable[[float], tuple[float, float]]"
"""From the run time of a task to what the alternative would have cost, and what the decision did."""


class Part(enum.StrEnum):
    """What may be switched off."""

    MEMORY = "memory"
    REFUSAL = "refusal"
    SUSPENSION = "suspension"


@dataclasses.dataclass(slots=True)
class Record:
    """The bets against one part for one program.

    Attributes:
        bets: One for each stake, shape [4].
        trials: How often the part was switched off.
        off_until_s: Until when it is off.
    """

    bets: model.FloatVector = dataclasses.field(default_factory=lambda: np.ones(len(_STAKES)))
    trials: int = 0
    off_until_s: float = -math.inf

    def add(self, worth: float, now_s: float) -> bool:
        """Add a decision that ended; return whether the part was switched off by it."""
        if now_s < self.off_until_s:
            return False
        self.bets = self.bets * (1.0 - _STAKES * worth)
        if self.bets.mean() < 2.0 ** (1 + self.trials) / FALSE_ALARMS:
            return False
        self.bets = np.ones(len(_STAKES))
        self.off_until_s = now_s + RETRY_S * 2.0**self.trials
        self.trials = min(self.trials + 1, MOST_TRIALS)
        return True


class Guard(Observer, Figures):
    """Keeps account of what the parts' decisions were worth.

    Attributes:
        alarms: How often a part was switched off.
    """

    def __init__(self) -> None:
        self.alarms: collections.Counter[Part] = collections.Counter()
        self._records: dict[Key, Record] = {}
        self._now_s = -math.inf
        self._acted: dict[model.TaskId, tuple[Key, model.JobId, Measure]] = {}
        self._off: dict[Part, float] = {}  # until when a part is off in the whole cluster

    def allows(self, part: Part, job: model.Job, now_s: float) -> bool:
        """Return whether a part may act for a job."""
        record = self._records.get(key_of(part, job))
        is_off = record is not None and now_s < record.off_until_s
        return not is_off and now_s >= self._off.get(part, -math.inf)

    def acted(self, part: Part, task: model.TaskId, job: model.Job, measure: Measure) -> None:
        """Record a decision about a task; it is measured once the task has succeeded."""
        self._acted[task] = key_of(part, job), job.id, measure

    def undone(self, task: model.TaskId) -> None:
        """Forget a decision that came to nothing."""
        self._acted.pop(task, None)

    def observe(self, event: model.Event) -> None:
        """Measure the decision about a task that succeeded."""
        if isinstance(event, model.Finished):
            found = self._acted.pop(event.task, None)
            if found is not None:
                key, _, measure = found
                self.ended(key, *measure(event.duration_s), event.now_s)
        elif isinstance(event, model.Failed):
            self._acted.pop(event.task, None)
        elif isinstance(event, model.Ended):
            self._acted = {task: found for task, found in self._acted.items() if found[1] != event.job}

    def ended(self, key: Key, alternative: float, own: float, now_s: float) -> None:
        """Add a decision that ended.

        Args:
            key: Which part, and the program.
            alternative: What the alternative would have cost, at least 0.
            own: What the decision cost, in the same unit.
            now_s: When.
        """
        self._now_s, total = now_s, alternative + own
        if not 0 < total < math.inf or min(alternative, own) < 0:
            return
        record = self._records.pop(key, None) or Record()
        self._records[key] = record
        if len(self._records) > PROGRAMS_KEPT:
            del self._records[next(iter(self._records))]
        if record.add((alternative - own) / total, now_s):
            self.alarms[key[0]] += 1
            self._switch(key[0], now_s)

    def _switch(self, part: Part, now_s: float) -> None:
        """Switch a part off in the cluster if it is off, for some program, in most namespaces that it acted in."""
        acted: set[str] = set()
        off: dict[str, float] = {}
        for (of, namespace, _), record in self._records.items():
            if of is part:
                acted.add(namespace)
                if now_s < record.off_until_s:
                    off[namespace] = max(off.get(namespace, 0.0), record.off_until_s)
        if len(off) >= LEAST_NAMESPACES and 2 * len(off) > len(acted):
            self._off[part] = min(off.values())

    def of_policy(self) -> Mapping[str, Sequence[float]]:
        """Return for how many programs a part is off, if it is for any."""
        off = collections.Counter(key[0] for key, record in self._records.items() if self._now_s < record.off_until_s)
        return {f"{part}Off": [float(count)] for part, count in off.items()}

    def dump(self) -> Mapping[str, Any]:
        """Return what is switched off: the bets begin anew."""
        return {
            "off": [[*key, record.trials, record.off_until_s] for key, record in self._records.items() if record.trials]
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what is not valid is left out."""
        rows = state.get("off")
        for row in rows[:PROGRAMS_KEPT] if isinstance(rows, list) else ():
            if _is_row(row):
                part, namespace, program, trials, until_s = row
                record = Record(trials=trials, off_until_s=float(until_s))
                self._records[Part(part), namespace, program] = record


def _is_row(row: object) -> bool:
    match row:
        case [str(part), str(), str(), int(trials), int() | float() as until_s]:
            return part in set(Part) and 0 < trials <= MOST_TRIALS and math.isfinite(until_s)
        case _:
            return False


def key_of(part: Part, job: model.Job) -> Key:
    """Return what is kept of a part by: the job's namespace and program."""
    return part, job.namespace, job.kind or job.id
