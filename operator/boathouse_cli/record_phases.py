"""Make phases of the simulator of a job's recorded tasks. Pure.

* A stage of a job is a phase. It waits for the end of the phase before if none of its tasks was placed earlier; else
  its tasks' times count from when all of the phase before was placed, as that is when the simulator submits them.
* A task runs from its placement to its end, so a pod's start is in it; the times of a repeated task's attempts add up.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from boathouse_cli import kinds, record_lines
from boathouse_sim.workload import Penalty, Phase

RESOLUTION_S: Final = 1.0
"""Kubernetes truncates times to whole seconds."""
ORDER: Final = {
    kinds.MRJOB.name: {"setup": 0, "map": 1, "uber": 1, "reduce": 2, "commit": 3},
    kinds.SPARKAPP.name: {"driver": 0, "executor": 1},
}
"""Types of tasks in the order in which a job runs them; others, such as probes and clean-ups, are of no phase."""
MB: Final = 1 << 20


_Tasks: TypeAlias = "Mapping[object, Sequence[record_lines.Pod]]"
"""The attempts of the tasks of a stage, by index of the task."""


def phases(job: record_lines.Job, pods: Sequence[record_lines.Pod]) -> tuple[Phase, ...]:
    """Return the phases of a job whose pods have all ended."""
    order, stages = ORDER[job.kind], dict[tuple[int, int, str], dict[object, list[record_lines.Pod]]]()
    for pod in sorted(pods, key=lambda pod: (pod.placed_s, pod.uid)):
        tasks = stages.setdefault((pod.step, order[pod.type], pod.type), {})
        # Executors are told apart by their pods: a repeated one is another task.
        tasks.setdefault(pod.uid if pod.type == "executor" else pod.index, []).append(pod)
    found: list[Phase] = []
    placed_s = ended_s = -math.inf
    for (_, _, kind), tasks in sorted(stages.items()):
        attempts = [pod for task in tasks.values() for pod in task]
        waits = min(pod.placed_s for pod in attempts) >= ended_s - RESOLUTION_S
        from_s = -math.inf if waits else placed_s
        found.append(_phase(kind, tasks, attempts, is_remote=job.is_remote, from_s=from_s, waits=waits))
        placed_s = max(placed_s, *(task[0].placed_s for task in tasks.values()))
        ended_s = max(ended_s, *(pod.ended_s or pod.placed_s for pod in attempts))
    return tuple(found)


def _phase(
    kind: str, tasks: _Tasks, pods: Sequence[record_lines.Pod], *, is_remote: bool, from_s: float, waits: bool
) -> Phase:
    ideal_bytes = max(max(pod.ideal_bytes, pod.memory_bytes) for pod in pods)
    run_times_s = {index: _busy_s(attempts, from_s) for index, attempts in tasks.items()}
    short = {index for index, attempts in tasks.items() if attempts[-1].memory_bytes < ideal_bytes}
    penalty = _penalty(run_times_s, short)
    times_ms = [
        round(seconds * 1000 / (penalty.factor if index in short else 1.0)) for index, seconds in run_times_s.items()
    ]
    inputs = [pod.input_bytes for pod in pods if pod.input_bytes]
    return Phase(
        kind=kind,
        tasks=len(times_ms),
        duration_ms=round(statistics.fmean(times_ms)),
        durations_ms=tuple(times_ms) if len(set(times_ms)) > 1 else (),
        mem_ideal_mb=max(1, math.ceil(ideal_bytes / MB)),
        cores=max(pod.cpu_milli for pod in pods) / 1000,
        penalty=penalty,
        when_ended=waits and from_s == -math.inf,
        input_bytes=round(statistics.fmean(inputs)) if inputs else None,
        counters=_counters(pods, is_remote=is_remote),
    )


def _busy_s(attempts: Sequence[record_lines.Pod], from_s: float) -> float:
    """Return how long any attempt of a task held room, not counting what was before a time."""
    total_s, until_s = 0.0, from_s
    for pod in attempts:
        ended_s = pod.ended_s or pod.placed_s
        total_s += max(0.0, ended_s - max(until_s, pod.placed_s))
        until_s = max(until_s, ended_s)
    return total_s


def _penalty(run_times_s: Mapping[object, float], short: set[object]) -> Penalty:
    """Return how much longer tasks with less memory ran, where others of the stage had all of theirs."""
    less = [seconds for index, seconds in run_times_s.items() if index in short]
    full = [seconds for index, seconds in run_times_s.items() if index not in short]
    if not less or not full or not statistics.median(full):
        return Penalty()
    return Penalty(factor=min(10.0, max(1.0, statistics.median(less) / statistics.median(full))))


def _counters(pods: Sequence[record_lines.Pod], *, is_remote: bool) -> tuple[tuple[str, float], ...]:
    """Return the mean of what tasks reported; what goes to an object store loads no disk of a node."""
    names = [name for name in record_lines.COUNTERS if not (is_remote and name in {"read_bytes", "written_bytes"})]
    reports = [pod.counters for pod in pods if pod.counters]
    means = [(name, statistics.fmean(report.get(name, 0.0) for report in reports)) for name in names if reports]
    return tuple(sorted((name, mean) for name, mean in means if mean))
