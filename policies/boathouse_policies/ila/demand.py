"""Task profiling (4.3, eq. 7): what the tasks of a class use, from what the runtime counted of those that ended.

    D(0) = init, D(1) = measured, D(t) = alpha * measured + (1 - alpha) * D(t-1)

Rates are the counters over the run time without neighbours, where it is known: neighbours make a task slower, not its
demand smaller. Deviation: a job whose program was seen before begins with what was measured of it then; the paper's
"high value" would let jobs of one or two tasks, more than half of its own mix, run on empty hosts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.ila import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.ila.config import Config

STAGES = frozenset({model.Stage.MAP, model.Stage.REDUCE})
"""The stages that ILA places. All others it only knows as neighbours."""

_MB = 1e6


def measured(
    counters: Mapping[str, float], seconds: float, disk_mb_per_s: float, *, far: bool = False
) -> metrics.Demand:
    """What a task used, from the runtime's CPU and file system counters.

    Args:
        counters: `cpu_s`, and `read_bytes`, `remote_bytes`, `written_bytes`, `spilled_bytes`; what is missing is 0.
        seconds: Its run time without neighbours.
        disk_mb_per_s: What a host's disks carry.
        far: Whether to leave out what came from other hosts; else it counts as read here, as it would be by a task
            whose input is at hand.
    """
    whole = max(seconds, 1e-3) * disk_mb_per_s * _MB
    spilled = counters.get("spilled_bytes", 0.0)  # written once and read again
    read = counters.get("read_bytes", 0.0) + (0.0 if far else counters.get("remote_bytes", 0.0)) + spilled
    written = counters.get("written_bytes", 0.0) + spilled
    return metrics.Demand(counters.get("cpu_s", 0.0) / max(seconds, 1e-3), read / whole, written / whole)


class Demands:
    """The demand of each class that is known.

    Args:
        config: The constants.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known: dict[model.ClassId, metrics.Demand] = {}
        self._guesses: dict[model.ClassId, tuple[model.TaskClass, metrics.Demand]] = {}
        self._first: dict[model.ClassId, metrics.Demand] = {}
        self._far: dict[model.ClassId, metrics.Demand] = {}
        self._program: dict[model.ClassId, str] = {}
        self._programs: dict[str, metrics.Demand] = {}

    def of(self, task_class: model.TaskClass) -> metrics.Demand:
        """What a task of the class is taken to use."""
        known = self._known.get(task_class.id)
        return known if known is not None else self._initial(task_class)

    def far(self, task_class: model.TaskClass) -> metrics.Demand:
        """The same of one whose input is on another host: as those ran, or without the reads until one has."""
        known = self._far.get(task_class.id)
        return known if known is not None else self.of(task_class)._replace(read=0.0)

    def ended_far(self, task_class: model.ClassId, now: metrics.Demand) -> None:
        """A task ended whose input was on another host: eq. 7."""
        self._far[task_class] = self._smooth(self._far.get(task_class), now)

    def _smooth(self, before: metrics.Demand | None, now: metrics.Demand) -> metrics.Demand:
        """Eq. 7."""
        if before is None:
            return now
        alpha, rest = self._config.ewma, 1 - self._config.ewma
        cpu, read, write = now
        return metrics.Demand(
            alpha * cpu + rest * before.cpu, alpha * read + rest * before.read, alpha * write + rest * before.write
        )

    def _initial(self, task_class: model.TaskClass) -> metrics.Demand:
        first = self._first.get(task_class.id)
        if first is not None:
            return first
        guess = self._guesses.get(task_class.id)
        if guess is None or guess[0] is not task_class:
            disk = self._config.first_disk_share if task_class.stage in STAGES else 0.0
            guess = task_class, metrics.Demand(task_class.resources.cpu_milli / 1000, disk, disk)
            self._guesses[task_class.id] = guess
        return guess[1]

    def knows(self, one: model.ClassId) -> bool:
        """Whether something was measured of it, or of its program."""
        return one in self._known or one in self._first

    def submitted(self, job: model.Job, classes: tuple[model.TaskClass, ...]) -> None:
        """A job came: its program may be known."""
        if not job.kind or not self._config.by_program:
            return
        for one in classes:
            program = self._program[one.id] = f"{job.kind}/{one.step}/{one.stage}"
            if program in self._programs:
                self._first[one.id] = self._programs[program]

    def ended(self, task_class: model.ClassId, now: metrics.Demand) -> metrics.Demand:
        """A task ended: eq. 7."""
        now = self._known[task_class] = self._smooth(self._known.get(task_class), now)
        program = self._program.get(task_class)
        if program is not None:
            self._programs.pop(program, None)
            self._programs[program] = now  # the newest last
            if len(self._programs) > self._config.programs_kept:
                del self._programs[next(iter(self._programs))]
        return now

    def forget(self, task_class: model.ClassId) -> None:
        """The class is over."""
        for known in (self._known, self._far, self._first, self._guesses, self._program):
            known.pop(task_class, None)

    def dump(self) -> Mapping[str, Any]:
        """The programs' demands."""
        return {name: [round(one, 4) for one in demand] for name, demand in self._programs.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """The inverse of `dump`."""
        known = {str(name): one for name, one in state.items() if len(one) == len(metrics.IDLE)}
        self._programs = {name: metrics.Demand(*map(float, one)) for name, one in known.items()}
