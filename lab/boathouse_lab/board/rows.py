"""The workloads of the board."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, Protocol

from boathouse_lab.board.draws import Hour, Mixed, Style, Table2Drawn
from boathouse_lab.board.mix import Shape
from boathouse_lab.table2 import Law
from boathouse_sim.conditions import RunTimes

if TYPE_CHECKING:
    from boathouse_sim.workload import Workload


class Draw(Protocol):
    """Draws workloads."""

    def workload(self, seed: int, style: Style) -> Workload:
        """Return the workload of a seed."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A workload of the board.

    Attributes:
        name: On the command line and in pictures.
        title: What it is.
        draw: Draws it.
        quick: Whether it is in the quick form.
    """

    name: str
    title: str
    draw: Draw
    quick: bool = False


_MIX: Final = Shape(
    nodes=20, sizes=((2, 10), (11, 75), (76, 200)), executors=(4, 12), most_reduces=150, load=0.9, submit_s=180.0
)
"""The live mix (`benchmarks/live_mix.py`) on half of its nodes, with jobs of half the size."""
_R = dataclasses.replace


def _mixed(name: str, title: str, *, quick: bool = False, shape: Shape = _MIX, **how: float | RunTimes) -> Row:
    return Row(name=name, title=title, quick=quick, draw=Mixed(shape=shape, **how))  # type: ignore[arg-type]


ROWS: Final = (
    _mixed("mix-0.5", "the live mix, memory load 0.5", shape=_R(_MIX, load=0.5)),
    _mixed("mix-0.9", "the live mix, memory load 0.9", quick=True),
    _mixed("mix-1.2", "the live mix, memory load 1.2", shape=_R(_MIX, load=1.2)),
    _mixed(
        "memory-x2",
        "twice the memory for each task",
        quick=True,
        shape=_R(_MIX, map_mb=4400, reduce_mb=5200, heap_mib=6144),
    ),
    _mixed("memory-half", "half the memory for each task", shape=_R(_MIX, map_mb=1100, reduce_mb=1300, heap_mib=1536)),
    _mixed("cpu", "CPU-bound", quick=True, shape=_R(_MIX, map_mb=1000, reduce_mb=1200, heap_mib=1400, load=0.58)),
    _mixed(
        "fb2009-sizes",
        "sizes as FB-2009 has them: 90 jobs of 1 to 3,000 maps",
        quick=True,
        shape=_R(_MIX, sizes=((1, 3000),), most_reduces=1000, longest_reduce=10.0, jobs=90),
    ),
    Row(name="fb2009-hour", title="all jobs of an hour of FB-2009, at their own times", draw=Hour(shape=_MIX)),
    _mixed("local-disks", "input on local disks, 3 replicas", quick=True, on_disks=True),
    _mixed(
        "long-reduces",
        "long reduces, slow start 5 %",
        shape=_R(_MIX, reduce_input_mb=1000, longest_reduce=15.0, submit_s=900.0),
        slow_start=0.05,
    ),
    _mixed("mapreduce", "MapReduce only", shape=_R(_MIX, applications=0)),
    _mixed("spark", "Spark only", shape=_R(_MIX, jobs=0, applications=30)),
    _mixed("spark-70", "Spark is 70 % of the load", quick=True, shape=_R(_MIX, spark_share=0.7, applications=20)),
    _mixed("tenants", "eight tenants", tenants=8),
    _mixed("misjudged", "run times of each program wrong by 0.1 to 10", misjudged=10.0),
    _mixed("unknown", "run times that stay unknown", run_times=RunTimes.NOTHING),
    _mixed("disks", "contended disks: local input, 40 MB/s", on_disks=True, disk_mb_per_s=40.0),
    _mixed("cpus", "contended CPUs: two nodes share the cores of one", host_cores=8.0),
    Row(
        name="table2-uniform",
        title="Table 2 of YARN-ME, uniform",
        draw=Table2Drawn(law=Law.UNIFORM, jobs=24, nodes=24),
    ),
    Row(
        name="table2-exponential",
        title="Table 2 of YARN-ME, exponential",
        draw=Table2Drawn(law=Law.EXPONENTIAL, jobs=60, nodes=30),
    ),
)

BY_NAME: Final = {row.name: row for row in ROWS}
