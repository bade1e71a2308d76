"""Task profiling (4.1, 4.3, eq. 7): the metrics of Table 2, what a class uses, and its time without neighbours.

Metrics are rows of arrays. CPU metrics of the system are shares of the host's CPUs, I/O metrics shares of what its
disks carry: so one model serves hosts of different sizes. A task's own CPU demand is in CPUs: what matters of it is how
much of its time it computes.

Deviations: there is no Dom0 under Kubernetes; c_0 is what a host's CPUs do beyond the tasks that run there, as far as
instruments show it. io_u is the share of its time that a disk is busy, as iostat's, worked out from the rates.

Demand is what the runtime counted of tasks that ended:

    D(0) = init, D(1) = measured, D(t) = alpha * measured + (1 - alpha) * D(t-1)

Rates are the counters over the run time without neighbours, where it is known: neighbours make a task slower, not its
demand smaller. Deviation: a job whose program was seen before begins with what was measured of it then; the paper's
"high value" would let jobs of one or two tasks, more than half of its own mix, run on empty hosts alone.

The run time without neighbours, T of S = T_real / T, the paper measured offline, on idle hosts. Where nobody states it,
it is what the model makes of the run times seen: their sum over the sum of the slowdowns that were predicted for them.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.programs import Programs, numbers
from boathouse_policies.ila.config import Config

C_U, C_A, C_0, R_U, W_U, R_A, W_A, IO_U, T_C, T_R, T_W = range(11)  # rows: of the system CPU and I/O, then of the task

NAMES = ("c_u", "c_a", "c_0", "r_u", "w_u", "r_a", "w_a", "io_u", "t_c", "t_r", "t_w")
SYSTEM, ALL = T_C, len(NAMES)

CPU_ROWS = (T_C, C_U, C_A, C_0)  # of equation 1

IO_ROWS = (T_R, T_W, R_U, W_U, R_A, W_A, IO_U, C_0)  # of equation 2


class Demand(NamedTuple):
    """What a task uses while it is alone: t_c, t_r and t_w."""

    cpu: float
    read: float  # share of a host's disks
    write: float

    def bounded(self, cpus: float) -> "Demand":
        """Return no more than a host has, with so many CPUs: what a task reports may be more than any can use."""
        return Demand(min(self.cpu, cpus), min(self.read, 1.0), min(self.write, 1.0))


IDLE = Demand(0.0, 0.0, 0.0)


def system(node: model.FloatVector, host: model.FloatVector, beyond: model.FloatVector) -> model.FloatVector:
    """Return the system's metrics, shape [8, N], by CPU, reads and writes as parts of a host, shape [3, N].

    They are those of each virtual machine, and of its host in all. `beyond` is c_0, shape [N].
    """
    rows = np.empty((SYSTEM, node.shape[1]))
    rows[[C_U, R_U, W_U]] = node
    rows[[C_A, R_A, W_A]] = host - node
    rows[C_0] = beyond
    rows[IO_U] = np.minimum(host[1] + host[2], 1.0)
    return rows


STAGES = frozenset({model.Stage.MAP, model.Stage.REDUCE})
"""The stages that ILA places. All others it only knows as neighbours."""


def measured(
    counters: Mapping[str, float], seconds: float, disk_mb_per_s: float, *, without_remote: bool = False
) -> Demand:
    """Return a task's use, from the runtime's counters and its run time without neighbours; what is missing is 0.

    They are `cpu_s`, `read_bytes`, `remote_bytes`, `written_bytes`, `spilled_bytes`. What came from other hosts counts
    as read here, as it would be by a task whose input is at hand, if it is not to be left out.
    """
    seconds = max(seconds, 1e-3)
    whole = seconds * disk_mb_per_s * _MB
    spilled = counters.get("spilled_bytes", 0.0)  # written once and read again
    remote = 0.0 if without_remote else counters.get("remote_bytes", 0.0)
    read = counters.get("read_bytes", 0.0) + remote + spilled
    written = counters.get("written_bytes", 0.0) + spilled
    return Demand(counters.get("cpu_s", 0.0) / seconds, read / whole, written / whole)


@dataclasses.dataclass(slots=True, eq=False)
class ClassProfile:
    """What is known of a class."""

    task_class: model.TaskClass
    demand: Demand  # what a task of it is taken to use
    is_guess: bool  # whether nothing was measured of it, nor of its program
    namespace: model.NamespaceName
    program: str | None = None  # the program whose tasks it has; None for none that is remembered
    remote_demand: Demand | None = None
    """The demand of a task whose input is on another host, as those used that ended; None before."""
    has_ended: bool = False
    ended: int = 0  # how many tasks with local input gave `run_s` and `slowdown`
    run_s: float = 0.0  # the sum of their run times
    slowdown: float = 0.0  # the sum of the slowdowns that were predicted for them
    refused_s: float = math.inf  # since when it has been refused everywhere; infinity if it has not

    @property
    def most_cpus(self) -> float:
        """The most CPUs that a task of it can use."""
        return self.task_class.cpu_limit_milli / 1000 or math.inf

    @property
    def is_map(self) -> bool:
        """Whether its tasks are maps."""
        return self.task_class.stage is model.Stage.MAP

    @property
    def alone_s(self) -> float | None:
        """The run time without neighbours as learnt; None until a few tasks have ended."""
        return self.run_s / self.slowdown if self.ended >= _FEW else None

    def ended_beside(self, run_s: float, slowdown: float) -> None:
        """Record the end of a task with local input for which this slowdown was predicted."""
        self.ended += 1
        self.run_s += run_s
        self.slowdown += slowdown

    def demand_at(self, distance: model.Distance) -> Demand:
        """Return the assumed demand of a task at this distance from its input."""
        if self.is_guess or distance <= model.Distance.SERVER:
            return self.demand
        return self.demand._replace(read=0.0) if self.remote_demand is None else self.remote_demand


class Profiles:
    """The profile of each class of the jobs that are not over, and the demand of the programs seen."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known: dict[model.ClassId, ClassProfile] = {}
        self._programs: Programs[Demand] = Programs(config.programs_kept)

    def get(self, task_class: model.ClassId) -> ClassProfile | None:
        """Return the profile of a class; None if its job was not submitted."""
        return self._known.get(task_class)

    def demand(self, task_class: model.TaskClass) -> Demand:
        """Return the assumed demand of a task of a class."""
        known = self._known.get(task_class.id)
        return self._guess(task_class) if known is None else known.demand

    def _guess(self, task_class: model.TaskClass) -> Demand:
        disk = self._config.first_disk_share if task_class.stage in STAGES else 0.0
        return Demand(task_class.resources.cpu_milli / 1000, disk, disk)

    def submitted(self, job: model.Job, classes: tuple[model.TaskClass, ...]) -> None:
        """Record a new job or a change of its classes: its program may be known."""
        for task_class in classes:
            known = self._known.get(task_class.id)
            if known is None:
                known = ClassProfile(task_class, self._guess(task_class), is_guess=True, namespace=job.namespace)
                self._known[task_class.id] = known
            known.task_class = task_class
            if job.kind and self._config.by_program:
                known.program = f"{job.kind}/{task_class.step}/{task_class.stage}"
            if not known.has_ended:
                program = self._programs.get(known.program or "")
                if program is not None:
                    known.demand, known.is_guess = program.bounded(known.most_cpus), False
                elif known.is_guess:
                    known.demand = self._guess(task_class)

    def ended(self, known: ClassProfile, used: Demand) -> None:
        """Record the end of a task by eq. 7."""
        known.demand = self.smooth(known.demand if known.has_ended else None, used)
        known.has_ended, known.is_guess = True, False
        if known.program is not None:
            self._programs.put(known.program, known.demand)

    def smooth(self, before: Demand | None, now: Demand) -> Demand:
        """Compute eq. 7: what tasks use, the last ones counting more."""
        if before is None:
            return now
        alpha, rest = self._config.ewma, 1 - self._config.ewma
        return Demand(*(alpha * used + rest * smoothed for used, smoothed in zip(now, before, strict=True)))

    def forget(self, job: model.JobId) -> None:
        """Forget a finished job."""
        self._known = {name: known for name, known in self._known.items() if known.task_class.job != job}

    def dump(self) -> Mapping[str, Any]:
        """Return the programs' demands."""
        return {name: [round(use, 4) for use in demand] for name, demand in self._programs.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the programs' demands from `dump`."""
        self._programs.clear()
        for name, dumped in state.items():
            if (uses := numbers(dumped, _USES)) and min(uses) >= 0:
                self._programs.put(str(name), Demand(*uses))


_FEW = 5  # arbitrary: chance evens out
_MB = 1e6
_USES = len(Demand._fields)
