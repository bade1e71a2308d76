"""Parse and check the results and reports of tasks, which are untrusted, and convert them for policies. Pure.

The termination message comes from the user's container. The values that `read` and `report` return always fit into a
status and a metric: reasons of a closed set, numbers of 64 bits, truncated and printable texts. Policies get counters
by their Hadoop names, beside those that they ask for.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from boathouse.resources.names import Reason
from boathouse.services.frame.status_codec import printable
from boathouse_task import contract

MAX_CHARS: Final = 16 * 1024  # a longer termination message is not the task runtime's, which writes at most 4 KiB
MAX_MESSAGE: Final = 1200
MAX_TAIL: Final = 1500
MAX_NAME: Final = 64  # of counters and their groups
MAX_TIMINGS: Final = 16
_AMOUNTS: Final = (
    *("records_in", "records_out", "bytes_in", "bytes_out", "spilled_bytes", "spilled_records"),
    *("maps_done", "maps_total", "peak_memory_bytes"),
)
"""Fields of a report that are numbers of 64 bits."""
MAX_COUNTERS: Final = 120  # of a job, as mapreduce.job.counters.max
GROUP: Final = "Boathouse"
DROPPED: Final = "Counters dropped"
_WAITING_PHASES: Final = frozenset({"wait"})
"""Phases in which a reduce waits for maps, which are not part of its run time."""
_MAX_EXIT_CODE: Final = 2**31 - 1
_MAX_MS: Final = 2**53
_MAX_S: Final = 1e9  # 30 years
_OUTCOMES: Final = frozenset({contract.SUCCEEDED, contract.FAILED, contract.UNFINISHED})
_REASONS: Final = frozenset({"", *contract.Reason})
_DIGEST: Final = re.compile("[0-9a-f]{64}")
LEAST_SPILLED_BYTES: Final = 16 << 20  # with less spilled data the disk's rate is not measured
_LACKING_PHASES: Final = frozenset({"start", "wait"})
"""Phases of the runtime in which a reduce may lack map output."""
_INPUT_BYTES: Final = ("Bytes Read", "Reduce shuffle bytes")
_WRITTEN_BYTES: Final = ("Map output materialized bytes", "Bytes Written")
_SHUFFLED: Final = "Reduce shuffle bytes"
_decoder = msgspec.json.Decoder(contract.TaskResult)


def read(text: str) -> contract.TaskResult | None:
    """Return the result in a termination message, each field within its bounds; None if the message has none."""
    if not text or len(text) > MAX_CHARS:
        return None
    try:
        result = _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):  # RecursionError: thousands of nested arrays
        return None
    if result.outcome not in _OUTCOMES:
        return None
    return msgspec.structs.replace(
        result,
        reason=result.reason if result.reason in _REASONS else str(Reason.TASK_FAILED),
        message=printable(result.message, MAX_MESSAGE),
        winner_attempt=amount(result.winner_attempt),
        digest=result.digest if _DIGEST.fullmatch(result.digest) else "",
        splits=amount(result.splits),
        bytes_total=amount(result.bytes_total),
        counters=printable_counters(result.counters),
        timings=[_timing(timing) for timing in result.timings[:MAX_TIMINGS]],
        stderr_tail=printable(result.stderr_tail[-MAX_TAIL:], MAX_TAIL),
        exit_code=result.exit_code if abs(result.exit_code or 0) <= _MAX_EXIT_CODE else None,
    )


def report(untrusted: contract.TaskReport) -> contract.TaskReport:
    """Return a running task's report with each number within its bounds."""
    return msgspec.structs.replace(
        untrusted,
        phase=printable(untrusted.phase, MAX_NAME),
        progress=min(1.0, max(0.0, untrusted.progress)),
        counters=printable_counters(untrusted.counters),
        status=printable(untrusted.status, MAX_MESSAGE),
        **{name: amount(getattr(untrusted, name)) for name in _AMOUNTS},
        **{
            name: seconds if 0 <= (seconds := getattr(untrusted, name)) <= _MAX_S else 0.0
            for name in ("cpu_s", "suspended_s", "spill_s")
        },
    )


def amount(number: int) -> int:
    """Return the number if it is a 64-bit number from 0, else 0."""
    return number if 0 <= number <= contract.MAX_AMOUNT else 0


def worked_s(result: contract.TaskResult) -> float:
    """Return the run time of a task, without its waits. A reduce is suspended only while it waits."""
    spans = [timing for timing in result.timings if timing.phase not in _WAITING_PHASES]
    return sum(max(0, span.end_ms - span.start_ms) for span in spans) / 1000


def add_counters(sums: contract.Counters, more: contract.Counters) -> None:
    """Add the counters of one task to `sums`, in place. Counters beyond the bound are counted as dropped."""
    count = sum(map(len, sums.values()))
    for group, values in sorted(more.items()):
        for name, value in sorted(values.items()):
            count += name not in sums.get(group, {})
            if name not in sums.get(group, {}) and count > MAX_COUNTERS:
                contract.accumulate(sums, GROUP, DROPPED, 1)
            else:
                contract.accumulate(sums, group, name, value)


def printable_counters(untrusted: Mapping[str, Mapping[str, int]]) -> contract.Counters:
    """Return the counters whose amounts are 64-bit numbers."""
    return {
        printable(group, MAX_NAME): {
            printable(name, MAX_NAME): value for name, value in values.items() if value == contract.clamp(value)
        }
        for group, values in untrusted.items()
    }


def _timing(untrusted: contract.Timing) -> contract.Timing:
    start_ms, end_ms = (max(0, min(_MAX_MS, moment_ms)) for moment_ms in (untrusted.start_ms, untrusted.end_ms))
    return contract.Timing(printable(untrusted.phase, MAX_NAME), start_ms, end_ms)


class Signal(NamedTuple):
    """A report of a running task, as policies read it."""

    fraction: float
    phase: str
    counters: Mapping[str, float]


def signal(task_type: contract.TaskType, report: contract.TaskReport, *, cpu_milli: int, split_bytes: int) -> Signal:
    """Return the signal of a running task, by the CPU request of its pod and, of a map, the size of its split."""
    counters = _flat(report.counters) | {"cpu_milli": float(cpu_milli), "cpu_s": report.cpu_s}
    counters |= _memory(report.spilled_bytes, report.spill_s, report.peak_memory_bytes)
    if task_type is not contract.TaskType.REDUCE:
        return Signal(report.progress, report.phase, counters | {"input_bytes": float(split_bytes)})
    copied, total = counters.get(_SHUFFLED, float(report.bytes_in)), report.maps_total
    counters["copied_bytes"] = copied
    counters["maps_fraction"] = report.maps_done / total if total else 0.0
    counters["phase_fraction"] = report.progress * 3 % 1
    counters["input_bytes"] = copied * total / max(1, report.maps_done)
    return Signal(report.progress, _phase(report), counters)


def _phase(report: contract.TaskReport) -> str:
    """Return `shuffle` while a reduce lacks map output. The runtime's `shuffle` is that of the last outputs."""
    has_all = 0 < report.maps_total <= report.maps_done
    if report.phase in _LACKING_PHASES and not has_all:
        return "shuffle"
    return "merge" if report.phase in {*_LACKING_PHASES, "shuffle"} else report.phase


def flat_counters(result: contract.TaskResult, *, has_local_input: bool, whole_bytes: int = 0) -> Mapping[str, float]:
    """Return the counters of a finished task, which uses disks of nodes or an object store.

    `whole_bytes` is, of a probe, the whole input of its job.
    """
    counters = _flat(result.counters)
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


def _flat(counters: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    return {name: float(value) for values in counters.values() for name, value in values.items()}


def _memory(spilled_bytes: float, spill_s: float, peak_bytes: float) -> dict[str, float]:
    """Return what a task says of its memory, and the disk's rate if it spilled enough: spills are written and read."""
    signals = {"spilled_bytes": float(spilled_bytes)}
    if peak_bytes > 0:
        signals["peak_memory_bytes"] = float(peak_bytes)
    if spilled_bytes >= LEAST_SPILLED_BYTES and spill_s > 0:
        signals["spill_bytes_per_s"] = 2 * spilled_bytes / spill_s
    return signals
