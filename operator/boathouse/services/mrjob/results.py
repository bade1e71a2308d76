"""Parse and check the results of tasks, which are untrusted input, and sum up their counters. Pure.

The termination message comes from the user's container. The values that this module returns always fit into a status
and a metric: reasons of a closed set, numbers of 64 bits, truncated and printable texts.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from boathouse.resources.names import Reason
from boathouse.services.frame.status_codec import printable
from boathouse_task import contract

MAX_CHARS: Final = 16 * 1024
"""A longer termination message is not the task runtime's, which writes at most 4 KiB."""
MAX_MESSAGE: Final = 1200
MAX_TAIL: Final = 1500
MAX_NAME: Final = 64
"""Of counters and their groups."""
MAX_TIMINGS: Final = 16
MAX_COUNTERS: Final = 120
"""Of a job, as mapreduce.job.counters.max."""
GROUP: Final = "Boathouse"
DROPPED: Final = "Counters dropped"
_WAITING_PHASES: Final = frozenset({"wait"})
"""Phases in which a reduce waits for maps, which are not part of its run time."""
_MAX_EXIT_CODE: Final = 2**31 - 1
_MAX_MS: Final = 2**53
_MAX_S: Final = 1e9
_OUTCOMES: Final = frozenset({contract.SUCCEEDED, contract.FAILED, contract.UNFINISHED})
_REASONS: Final = frozenset(contract.Reason)
_DIGEST: Final = re.compile("[0-9a-f]{64}")
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
        reason=result.reason if not result.reason or result.reason in _REASONS else str(Reason.TASK_FAILED),
        message=printable(result.message, MAX_MESSAGE),
        winner_attempt=amount(result.winner_attempt),
        digest=result.digest if _DIGEST.fullmatch(result.digest) else "",
        splits=amount(result.splits),
        bytes_total=amount(result.bytes_total),
        counters=printable_counters(result.counters),
        timings=[_timing(timing) for timing in result.timings[:MAX_TIMINGS]],
        stderr_tail=printable(result.stderr_tail[-MAX_TAIL:], MAX_TAIL),
        exit_code=result.exit_code
        if result.exit_code is not None and abs(result.exit_code) <= _MAX_EXIT_CODE
        else None,
    )


def report(untrusted: contract.TaskReport) -> contract.TaskReport:
    """Return a running task's report with each number within its bounds."""
    return msgspec.structs.replace(
        untrusted,
        phase=printable(untrusted.phase, MAX_NAME),
        progress=min(1.0, max(0.0, untrusted.progress)),
        records_in=amount(untrusted.records_in),
        records_out=amount(untrusted.records_out),
        bytes_in=amount(untrusted.bytes_in),
        bytes_out=amount(untrusted.bytes_out),
        spilled_bytes=amount(untrusted.spilled_bytes),
        spilled_records=amount(untrusted.spilled_records),
        cpu_s=_seconds(untrusted.cpu_s),
        maps_done=amount(untrusted.maps_done),
        maps_total=amount(untrusted.maps_total),
        suspended_s=_seconds(untrusted.suspended_s),
        peak_memory_bytes=amount(untrusted.peak_memory_bytes),
        spill_s=_seconds(untrusted.spill_s),
        counters=printable_counters(untrusted.counters),
        status=printable(untrusted.status, MAX_MESSAGE),
    )


def amount(number: int) -> int:
    """Return the number if it is a 64-bit number from 0, else 0."""
    return number if 0 <= number <= contract.MAX_AMOUNT else 0


def _seconds(duration_s: float) -> float:
    """Return the duration if it is between 0 and 30 years, else 0."""
    return duration_s if 0 <= duration_s <= _MAX_S else 0.0


def worked_s(result: contract.TaskResult) -> float:
    """Return the run time of a task, without its waits. A reduce is suspended only while it waits."""
    spans = [timing for timing in result.timings if timing.phase not in _WAITING_PHASES]
    return sum(max(0, span.end_ms - span.start_ms) for span in spans) / 1000


def add_counters(sums: contract.Counters, more: contract.Counters) -> None:
    """Add the counters of one task to `sums`, in place. Counters beyond the bound are counted as dropped."""
    count = sum(map(len, sums.values()))
    for group, values in sorted(more.items()):
        for name, value in sorted(values.items()):
            place, amount_ = (group, name), value
            if name not in sums.get(group, {}):
                count += 1
                if count > MAX_COUNTERS:
                    place, amount_ = (GROUP, DROPPED), 1
            contract.accumulate(sums, *place, amount_)


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
