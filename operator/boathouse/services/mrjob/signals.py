"""Convert reports and results of tasks to the names and units in which policies read them. Pure.

Counters keep their Hadoop names, beside those that policies ask for.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from boathouse_task.contract import TaskReport, TaskResult, TaskType

LEAST_SPILLED_BYTES: Final = 16 << 20
"""With less spilled data the disk's rate is not measured."""
_LACKING_PHASES: Final = frozenset({"start", "wait"})
"""Phases of the runtime in which a reduce may lack map output."""
_INPUT_BYTES: Final = ("Bytes Read", "Reduce shuffle bytes")
_WRITTEN_BYTES: Final = ("Map output materialized bytes", "Bytes Written")
_SHUFFLED: Final = "Reduce shuffle bytes"


class Signal(NamedTuple):
    """A report of a running task, as policies read it."""

    fraction: float
    phase: str
    counters: Mapping[str, float]


def of_report(task_type: TaskType, report: TaskReport, *, cpu_milli: int, split_bytes: int) -> Signal:
    """Return the signal of a running task, by the CPU request of its pod and, of a map, the size of its split."""
    counters = flat(report.counters) | {"cpu_milli": float(cpu_milli), "cpu_s": report.cpu_s}
    counters |= _memory(report.spilled_bytes, report.spill_s, report.peak_memory_bytes)
    if task_type is not TaskType.REDUCE:
        return Signal(report.progress, report.phase, counters | {"input_bytes": float(split_bytes)})
    copied, total = counters.get(_SHUFFLED, float(report.bytes_in)), report.maps_total
    counters["copied_bytes"] = copied
    counters["maps_fraction"] = report.maps_done / total if total else 0.0
    counters["phase_fraction"] = report.progress * 3 % 1
    counters["input_bytes"] = copied * total / max(1, report.maps_done)
    return Signal(report.progress, _phase(report), counters)


def _phase(report: TaskReport) -> str:
    """Return `shuffle` while a reduce lacks map output. The runtime's `shuffle` is that of the last outputs."""
    has_all = 0 < report.maps_total <= report.maps_done
    if report.phase in _LACKING_PHASES and not has_all:
        return "shuffle"
    return "merge" if report.phase in {*_LACKING_PHASES, "shuffle"} else report.phase


def of_result(result: TaskResult, *, has_local_input: bool, whole_bytes: int = 0) -> Mapping[str, float]:
    """Return the counters of a finished task.

    With `has_local_input` it reads and writes disks of nodes, and not an object store. `whole_bytes` is, of a probe,
    the whole input of its job.
    """
    counters = flat(result.counters)
    counters["cpu_s"] = counters.get("CPU time spent (ms)", 0.0) / 1000
    if has_local_input:
        counters["read_bytes"] = counters.get("Bytes Read", 0.0)
        counters["written_bytes"] = sum(counters.get(name, 0.0) for name in _WRITTEN_BYTES)
    counters |= _memory(
        counters.get("Spilled bytes", 0.0),
        counters.get("Spill milliseconds", 0.0) / 1000,
        counters.get("Peak memory bytes", 0.0),
    )
    for function in ("Map", "Reduce"):
        if (spent_ms := counters.get(f"{function} function milliseconds")) is not None:
            counters[f"{function} function seconds"] = spent_ms / 1000
    if whole_bytes:
        counters["Sampled fraction"] = counters.get("Sampled bytes", 0.0) / whole_bytes
    return counters


def input_bytes(counters: Mapping[str, float]) -> float:
    """Return what a task read: its split, or the output of maps."""
    return sum(counters.get(name, 0.0) for name in _INPUT_BYTES)


def flat(counters: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return the counters of all groups by name."""
    return {name: float(value) for values in counters.values() for name, value in values.items()}


def _memory(spilled_bytes: float, spill_s: float, peak_bytes: float) -> dict[str, float]:
    """Return what a task says of its memory, and the disk's rate if it spilled enough: spills are written and read."""
    signals = {"spilled_bytes": float(spilled_bytes)}
    if peak_bytes > 0:
        signals["peak_memory_bytes"] = float(peak_bytes)
    if spilled_bytes >= LEAST_SPILLED_BYTES and spill_s > 0:
        signals["spill_bytes_per_s"] = 2 * spilled_bytes / spill_s
    return signals
