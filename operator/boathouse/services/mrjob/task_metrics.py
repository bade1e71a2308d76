"""Metrics of MRJobs' tasks. No label contains a job's name."""

import functools
from collections.abc import Iterable

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse.resources import names
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.services.mrjob.settle import Settlement
from boathouse_task import contract

_PHASE_S = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)
_ERRORS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10)
_PROBE_RESULTS = ("Succeeded", "Failed", "Withdrawn")
_SPILLED = ("Map-Reduce Framework", "Spilled Records")
_LETTERS = {"m": contract.TaskType.MAP, "r": contract.TaskType.REDUCE}


class TaskMetrics:
    """Counters and histograms of tasks."""

    def __init__(self, target: registry.CollectorRegistry) -> None:
        counter = functools.partial(prometheus.Counter, registry=target)
        histogram = functools.partial(prometheus.Histogram, registry=target)
        self._tasks = counter("boathouse_mrjob_tasks", "Task attempts that ended", ["type", "result", "reason"])
        self._phase_s = histogram(
            "boathouse_mrjob_task_phase_duration_seconds",
            "Duration of the phases of successful tasks, measured by the task",
            ["type", "phase"],
            buckets=_PHASE_S,
        )
        self._spilled = counter("boathouse_mrjob_spilled_records", "Records spilled to disk")
        self._bytes = counter("boathouse_mrjob_task_output_bytes", "Bytes that tasks wrote to storage", ["type"])
        started = "Task attempts that were started with less memory than they requested"
        self._elastic = counter("boathouse_mrjob_elastic_tasks", started, ["type"])
        self._probes = counter("boathouse_probes", "Probes of jobs that ended", ["result"])
        self._size_error = histogram(
            "boathouse_size_prediction_error_ratio",
            "Difference of the predicted and the used size of successful jobs, over the used size",
            ["source"],
            buckets=_ERRORS,
        )
        for result in _PROBE_RESULTS:
            self._probes.labels(result)
        for task_type in contract.TaskType:
            self._elastic.labels(task_type)
            self._tasks.labels(task_type, "succeeded", "")
            self._bytes.labels(task_type)

    def attempts(self, settlement: Settlement) -> None:
        """Count newly settled attempts."""
        for task_type, result in settlement.results:
            self._tasks.labels(task_type, "succeeded", "").inc()
            self._bytes.labels(task_type).inc(result.bytes_total if task_type in _WRITERS else 0)
            self._spilled.inc(max(0, result.counters.get(_SPILLED[0], {}).get(_SPILLED[1], 0)))
            for timing in result.timings:
                phase = timing.phase if timing.phase in _TASK_PHASES else _OTHER
                self._phase_s.labels(task_type, phase).observe(max(0, timing.end_ms - timing.start_ms) / 1000)
        for failure in settlement.failures:
            letter, reason = failure.task.partition("-")[0], failure.reason if failure.reason in _REASONS else _OTHER
            self._tasks.labels(_LETTERS.get(letter) or contract.TaskType(letter), "failed", reason).inc()

    def prediction(self, before: mrjob_status.Prediction | None, now: mrjob_status.Prediction | None) -> None:
        """Count a probe that has just ended, and the error of a prediction that has just become known."""
        if now is None:
            return
        last = before or mrjob_status.Prediction()
        if now.probe in _PROBE_RESULTS and last.probe != now.probe:
            self._probes.labels(now.probe).inc()
        if now.error is not None and last.error is None:
            self._size_error.labels(now.source or _OTHER).observe(abs(now.error))

    def elastic(self, started: Iterable[contract.TaskType]) -> None:
        """Count attempts that were started with less memory."""
        for task_type in started:
            self._elastic.labels(task_type).inc()


_WRITERS = frozenset({contract.TaskType.MAP, contract.TaskType.REDUCE})
_TASK_PHASES = frozenset(
    {
        *("list", "race", "post", "read", "sort", "upload", "commit"),
        *("wait", "shuffle", "reduce", "verify", "promote", "clean"),
    }
)
_OTHER = "other"  # label of unknown phases and reasons, which users' images may send
_REASONS = frozenset({*map(str, contract.Reason), *map(str, names.Reason), *names.POD_REASONS})
