"""How many tasks a second ILA schedules at the size of 5.6: 2,400 virtual machines on 400 hosts, 100 jobs.

What is counted is the CPU time of the whole simulation, so the scheduler alone is quicker than this says;
`lab/benchmarks/ila.py` counts it alone.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ila import programs
from boathouse_lab.reproduce.ila.experiment import row
from boathouse_lab.reproduce.ila.programs import MAP_MB, REDUCE_MB
from boathouse_sim import simulation, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import MapReduce
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    from boathouse_lab.reproduce.claim import Claim


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The load.

    Attributes:
        hosts: Of six virtual machines each (the paper: 400).
        jobs: Of 150 maps and 50 reducers of 10 s each, I/O- and CPU-bound in turn (100).
    """

    hosts: int
    jobs: int


def placed_a_second(size: Size) -> float:
    """Return tasks over the CPU seconds of simulating them."""
    io = work.Container(mem_mb=MAP_MB, segments=(work.segment("map", cpu_s=2.0, read_mb=160.0, disk_mb_per_s=20.0),))
    cpu = work.Container(mem_mb=MAP_MB, segments=(work.segment("map", cpu_s=10.0),))
    copy, rest = work.Segment(name="shuffle", copy_ms=1000), work.segment("reduce", cpu_s=9.0)
    reduce = work.Container(mem_mb=REDUCE_MB, cores=0, segments=(copy, rest))
    apps = tuple(
        MapReduce(
            id=f"{i:03}",
            maps=_MAPS,
            map=cpu if i % 2 else io,
            reduces=_REDUCES,
            reduce=reduce,
            replicas=0 if i % 2 else 3,
            submit_ms=round(i * _GAP_MS * 400 / size.hosts),
            program="cpu" if i % 2 else "io",
        )
        for i in range(size.jobs)
    )
    cluster = Cluster.of(*programs.machines(size.hosts))
    conditions = Conditions(reading=work.ILA_READING)
    found = simulation.simulate(Workload(name="ila-large", cluster=cluster, apps=apps, conditions=conditions), "ila")
    return found.tasks / max(found.cpu_s, 1e-9)


def claim(size: Size, rate: float) -> Claim:
    """Return the row."""
    return row(
        "placed-a-second",
        f"Tasks that ILA schedules a second, on {6 * size.hosts} virtual machines of {size.hosts} hosts, {size.jobs} "
        f"jobs, {size.jobs * (_MAPS + _REDUCES)} tasks, with all that simulating them costs [1/s]",
        "Section 5.6",
        Relation.GE,
        720.0,
        interval.Estimate(value=rate, interval=None, count=1),
    )


_MAPS, _REDUCES = 150, 50
_GAP_MS = 250
