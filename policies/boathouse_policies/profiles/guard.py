"""A guard: what a part's decisions were worth in fact, and off with a part that harms.

Each decision that ended says what its alternative would have cost and what it cost itself, in seconds of job time. From
both,

    r = (alternative - own) / (alternative + own),    -1 ≤ r ≤ 1,

below 0 where the part did harm. For each part and program a bet against the part is kept: with stakes λ, the mean of
the products ∏(1 - λ·r). If the part is worth its cost on average, that is a supermartingale, which by Ville's
inequality ever reaches 1/α with a probability of α at most, however often one looks. There the part stops acting for
the program. It tries again after a while, each time for longer and with half of α: all trials together raise a false
alarm with a probability of `FALSE_ALARMS` at most.

A program is of one namespace, so that no tenant switches a part for others; where too many programs are known, that
namespace loses one which has most. For the whole cluster a part stops where it has stopped in most of the namespaces
that it acted in, and at least in `LEAST_NAMESPACES`.
"""

import collections
import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import Figures, Observer, Profile
from boathouse_policies.framework.programs import numbers

FALSE_ALARMS: Final = 0.05  # probability that a part which is worth its cost is ever switched off for a program
RETRY_S: Final = 1800.0
"""After so long a part that was switched off tries again; after the next time it is twice as long."""
MOST_TRIALS: Final = 10
LEAST_NAMESPACES: Final = 3
PROGRAMS_KEPT: Final = 512
"""Programs whose records are kept. Of the namespace with most of them, the one is forgotten that told nothing for
longest."""
_STAKES: Final = np.array([0.1, 0.25, 0.5, 0.75])


class Part(enum.StrEnum):
    """What may be switched off."""

    MEMORY = "memory"
    REFUSAL = "refusal"
    SUSPENSION = "suspension"


Key: TypeAlias = tuple[Part, str, str]  # a part, a namespace, and a program of it
Measure: TypeAlias = Callable[[float], tuple[float, float]]
"""From the run time of a task to what the alternative would have cost, and what the decision did, in seconds."""


class Effect(NamedTuple):
    """What decisions saved of the sum of the jobs' completion times, below 0 what they cost, and were to save."""

    decisions: int = 0
    predicted_s: float = 0.0
    realised_s: float = 0.0

    def plus(self, predicted_s: float, realised_s: float) -> "Effect":
        """Return the effect with a decision more."""
        return Effect(self.decisions + 1, self.predicted_s + predicted_s, self.realised_s + realised_s)


_NO_EFFECT: Final = Effect()
ALL_PROGRAMS: Final = ""  # in place of a program, for what blocks of time say of a whole namespace (`switchback`)


class Off(NamedTuple):
    """A part that does not act for a job until it tries again."""

    part: Part
    until_s: float
    # Of the decisions that switched it off for the program; without any if it is off for the cluster alone.
    effect: Effect
    # Whether it is off for the namespace, by a switchback, and the effect is that of blocks of time.
    in_blocks: bool = False


@dataclasses.dataclass(slots=True)
class Record:
    """The bets against one part for one program."""

    # One for each stake, shape [4].
    bets: model.FloatVector = dataclasses.field(default_factory=lambda: np.ones(len(_STAKES)))
    effect: Effect = _NO_EFFECT  # of the decisions on which they were made
    trials: int = 0  # how often the part was switched off
    off_until_s: float = 0.0  # until when it is off
    harm: Effect = _NO_EFFECT  # the effect of the decisions that switched it off last

    def add(self, worth: float, now_s: float, added: Effect = _NO_EFFECT, *, retry_s: float = RETRY_S) -> bool:
        """Add a decision that ended; return whether the part was switched off by it."""
        if now_s < self.off_until_s:
            return False
        self.bets = self.bets * (1.0 - _STAKES * worth)
        self.effect = self.effect.plus(added.predicted_s, added.realised_s)
        if self.bets.mean() < 2.0 ** (1 + self.trials) / FALSE_ALARMS:
            return False
        self.harm, self.effect, self.bets = self.effect, _NO_EFFECT, np.ones(len(_STAKES))
        self.off_until_s = now_s + retry_s * 2.0**self.trials
        self.trials = min(self.trials + 1, MOST_TRIALS)
        return True


class Guard(Observer, Figures):
    """Keeps account of what the parts' decisions were worth."""

    def __init__(self) -> None:
        self.alarms: collections.Counter[Part] = collections.Counter()  # how often a part was switched off
        self.effects = dict.fromkeys(Part, _NO_EFFECT)  # of all decisions that ended, by part
        self.until_s = 0.0  # until when any part is off, for any program
        # Of blocks of time, by part; nothing without a switchback. A pair of blocks counts as one decision.
        self.in_blocks: dict[Part, Effect] = {}
        self._records: dict[Key, Record] = {}
        self._now_s = 0.0
        self._acted: dict[model.TaskId, _Decision] = {}
        self._off: dict[Part, float] = {}  # until when a part is off in the whole cluster

    def allows(self, part: Part, job: model.Job, now_s: float) -> bool:
        """Return whether a part may act for a job."""
        return now_s >= max(self.record_of(key_of(part, job)).off_until_s, self._off.get(part, 0.0))

    def off(self, job: model.Job, now_s: float) -> Sequence[Off]:
        """Return the parts that do not act for a job, because their decisions did harm."""
        found = []
        for part in Part:
            record = self.record_of(key_of(part, job))
            if now_s < (until_s := max(record.off_until_s, self._off.get(part, 0.0))):
                found.append(Off(part, until_s, record.harm if now_s < record.off_until_s else _NO_EFFECT))
        return found

    def record_of(self, key: Key) -> Record:
        """Return the bets of a program, or of all of a namespace; a new record if there are none."""
        return self._records.get(key, _NOTHING)

    def acted(self, part: Part, task: model.TaskId, job: model.Job, predicted_s: float, measure: Measure) -> None:
        """Record a decision about a task; it is measured once the task has succeeded."""
        self._acted[task] = _Decision(key_of(part, job), job.id, predicted_s, measure)

    def undone(self, task: model.TaskId) -> None:
        """Forget a decision that came to nothing."""
        self._acted.pop(task, None)

    def observe(self, event: model.Event) -> None:
        """Measure the decision about a task that succeeded."""
        if isinstance(event, model.Finished | model.Failed):
            found = self._acted.pop(event.task, None)
            if found is not None and isinstance(event, model.Finished):
                self.ended(found.key, found.predicted_s, *found.measure(event.duration_s), event.now_s)
        elif isinstance(event, model.Ended):
            self._acted = {task: found for task, found in self._acted.items() if found.job != event.job}

    def ended(self, key: Key, predicted_s: float, alternative_s: float, own_s: float, now_s: float) -> None:
        """Add a decision that ended: what it was to save, and what the alternative and itself cost, at least 0."""
        self._now_s, total_s, realised_s = now_s, alternative_s + own_s, alternative_s - own_s
        if not 0 < total_s < math.inf or min(alternative_s, own_s) < 0 or not math.isfinite(predicted_s):
            return
        self.effects[key[0]] = self.effects[key[0]].plus(predicted_s, realised_s)
        self.bet(key, realised_s / total_s, now_s, Effect(1, predicted_s, realised_s))

    def bet(self, key: Key, worth: float, now_s: float, added: Effect, *, retry_s: float = RETRY_S) -> None:
        """Add what a part was worth, from -1 (harm) to 1, to the bet against it, and switch it off if that is won."""
        record = self._records.pop(key, None) or Record()
        self._records[key] = record
        if len(self._records) > PROGRAMS_KEPT:
            counts = collections.Counter(namespace for _, namespace, _ in self._records)
            del self._records[max(self._records, key=lambda key: counts[key[1]])]  # the first of several
        if record.add(worth, now_s, added, retry_s=retry_s):
            self.alarms[key[0]] += 1
            self.until_s = max(self.until_s, record.off_until_s)
            self._switch(key[0], now_s)

    def _switch(self, part: Part, now_s: float) -> None:
        """Switch a part off in the cluster if it is off, for some program, in most namespaces that it acted in."""
        until_s: dict[str, float] = {}  # of each namespace that it acted in
        for (of, namespace, _), record in self._records.items():
            if of is part:
                until_s[namespace] = max(until_s.get(namespace, 0.0), record.off_until_s)
        off = [namespace_until_s for namespace_until_s in until_s.values() if now_s < namespace_until_s]
        if len(off) >= LEAST_NAMESPACES and 2 * len(off) > len(until_s):
            self._off[part] = min(off)

    def programs_off(self, now_s: float) -> collections.Counter[Part]:
        """Return for how many programs each part is off."""
        return collections.Counter(part for (part, *_), record in self._records.items() if now_s < record.off_until_s)

    def of_policy(self) -> Mapping[str, Sequence[float]]:
        """Return for how many programs a part is off, if it is for any."""
        return {f"{part}Off": [float(count)] for part, count in self.programs_off(self._now_s).items()}

    def dump(self) -> Mapping[str, Any]:
        """Return all records, and what is off in the cluster."""
        rows = [
            [*key, record.trials, record.off_until_s, record.bets.tolist(), [*record.effect], [*record.harm]]
            for key, record in self._records.items()
        ]
        return {"programs": rows, "off": [[part, until_s] for part, until_s in self._off.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what is not valid is left out."""
        rows, off = state.get("programs"), state.get("off")
        for row in rows[:PROGRAMS_KEPT] if isinstance(rows, list) else ():
            match row:
                case [str(part), str(namespace), str(program), *values] if part in set(Part):
                    if (record := _record(values)) is not None:
                        self._records[Part(part), namespace, program] = record
                        self.until_s = max(self.until_s, record.off_until_s)
        for row in off[: len(Part)] if isinstance(off, list) else ():
            match row:
                case [str(part), int() | float() as until_s] if part in set(Part) and math.isfinite(until_s):
                    self._off[Part(part)] = float(until_s)
                    self.until_s = max(self.until_s, until_s)


class _Decision(NamedTuple):
    key: Key
    job: model.JobId
    predicted_s: float
    measure: Measure


def _record(values: Sequence[object]) -> Record | None:
    match values:
        case [int(trials), int() | float() as until_s, bets, effect, harm]:
            known, counted, harmed = numbers(bets, len(_STAKES)), numbers(effect, 3), numbers(harm, 3)
            if known and counted and harmed and 0 <= trials <= MOST_TRIALS and math.isfinite(until_s):
                before, last = Effect(int(counted[0]), *counted[1:]), Effect(int(harmed[0]), *harmed[1:])
                return Record(np.array(known), effect=before, trials=trials, off_until_s=float(until_s), harm=last)
        case _:
            pass
    return None


def key_of(part: Part, job: model.Job) -> Key:
    """Return what is kept of a part by: the job's namespace and program."""
    return part, job.namespace, job.kind or job.id


def guard_of(profile: Profile) -> Guard | None:
    """Return the guard of a profile; None if it has none."""
    return next((source for source in profile.figures if isinstance(source, Guard)), None)


_NOTHING: Final = Record()
