"""The workloads of the evaluation: 72 virtual machines on 12 hosts, and what is submitted to them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce.ila import programs
from boathouse_policies import model
from boathouse_sim import conditions, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.reproduce.ila.programs import Assumed, Program
    from boathouse_sim.live import MapReduce

TABLE_4: tuple[tuple[int, Program, int], ...] = (
    (6, programs.TERASORT, 2),
    (8, programs.KMEAN, 1),
    (2, programs.TERASORT, 10),
    (2, programs.BAYES, 20),
    (1, programs.RWRITE, 40),
    (2, programs.GREP, 120),
    (1, programs.WCOUNT, 250),
    (1, programs.PIEST, 480),
    (1, programs.TERAGEN, 600),
    (1, programs.PIEST, 1000),
)
"""(jobs, program, maps of each): 25 jobs, 2,690 maps; the text's 2,440 leave out WCount(250)."""

SCHEDULE_S = 253.0
"""5.2: how long 25 exponential gaps with a mean of "roughly" 14 s took."""

KINDS = tuple(f"{program.name}({size})" for _, program, size in TABLE_4)
"""The types of jobs of Figure 5."""

IO_KINDS = tuple(f"{program.name}({size})" for _, program, size in TABLE_4 if program.io_bound)
LOCATED_IO = tuple(kind for kind in IO_KINDS if not kind.startswith(("TeraGen", "RWrite")))
"""Figure 7: I/O-bound jobs with input."""

CPU_KINDS = tuple(kind for kind in KINDS if kind not in IO_KINDS)

IO_QUEUE, CPU_QUEUE = "io", "cpu"


class Load(enum.StrEnum):
    """What is run."""

    STREAM = "stream"
    ISOLATED = "figure-9"
    CALM = "figure-10"
    MIX = "mix"
    CPU = "cpu"
    IO = "io"


def workload(load: Load, seed: int, *, assumed: Assumed, part: float = 1.0, queues: bool = False) -> Workload:
    """Return a workload of the evaluation.

    Args:
        load: Which.
        seed: Of arrivals and of their order.
        assumed: What the paper does not state.
        part: Of the maps of jobs of more than 20, and of the gaps but in the stream, for a quick look.
        queues: Whether I/O- and CPU-bound jobs have a queue each, as for the capacity scheduler, rather than share one.
    """
    cluster = Cluster.of(*programs.machines())
    apps = tuple(_apps(load, seed, assumed, part, queues=queues))
    halves = [model.Queue.of(model.QueueName(name), weight=0.5) for name in (CPU_QUEUE, IO_QUEUE)]
    return Workload(
        name=f"ila-{load}",
        cluster=cluster,
        apps=apps,
        queues=tuple(halves) if queues else (),
        conditions=Conditions(
            contention=conditions.Saturation(seek=assumed.seek, cpu_power=assumed.cpu_power, ceiling=assumed.ceiling),
            reading=work.ILA_READING,
            jitter=assumed.jitter,
            records=True,
        ),
    )


def _apps(load: Load, seed: int, assumed: Assumed, part: float, *, queues: bool) -> Sequence[MapReduce]:
    gap_ms = _GAP_MS * part  # so that a part of the jobs is as dense
    jobs = _stream(seed) if load is Load.STREAM else [(round(gap_ms * i), *o) for i, o in enumerate(_alternating(load))]
    make = programs.modified if load is Load.CALM else programs.Program.job
    return [
        make(
            program,
            _scaled(size, part),
            at_ms=at_ms,
            name=f"{i:02}",
            assumed=assumed,
            queue=(IO_QUEUE if program.io_bound else CPU_QUEUE) if queues else "default",
        )
        for i, (at_ms, program, size) in enumerate(jobs)
    ]


def _stream(seed: int) -> Sequence[tuple[int, Program, int]]:
    """Return Table 4's jobs in a random order, their exponential gaps scaled to the length of the paper's schedule."""
    random = np.random.default_rng([seed, 0x11A])
    jobs = [(program, size) for count, program, size in TABLE_4 for _ in range(count)]
    order = random.permutation(len(jobs))
    gaps = random.exponential(1.0, len(jobs) - 1)
    at_ms = np.concatenate([[0.0], gaps.cumsum() / gaps.sum()]) * SCHEDULE_S * 1000
    return [(round(at), *jobs[i]) for at, i in zip(at_ms.tolist(), order.tolist(), strict=True)]


def _alternating(load: Load) -> Sequence[tuple[Program, int]]:
    """Return jobs that come 15 s apart; those of Figures 9 and 10, and pure ones of about as much work."""
    if load is Load.CALM:
        return [(programs.GREP, 350), (programs.PIEST, 100)] * 3
    if load is Load.CPU:
        return [(programs.MATRIX, 150)] * 6
    if load is Load.IO:
        return [(programs.TERAGEN, 400)] * 6
    return [(programs.MATRIX, 150), (programs.TERAGEN, 400)] * 3


def _scaled(size: int, part: float) -> int:
    return size if size <= _SMALL else max(_SMALL, round(size * part))


_SMALL = 20
_GAP_MS = 15_000
