"""Read the answers of Spark's REST interface: hostile input until it is checked here. Pure.

A driver may say anything of itself. Whatever it says, the values that this module returns fit into a status.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from boathouse.resources.sparkapp import status as wire

JOBS_PATH: Final = "jobs?status=running"
ENVIRONMENT_PATH: Final = "environment"
STAGES_PATH: Final = "stages?status=complete"
_MAX_COUNT: Final = 2**31 - 1
_MAX_BYTES: Final = 2**60
MASTER: Final = "spark.master"
_REDACTED: Final = "redacted)"
_SIZES: Final = (
    *(f"spark.{role}.{what}" for role in ("driver", "executor") for what in ("cores", "memory", "memoryOverhead")),
    *("spark.executor.instances", "spark.executor.pyspark.memory"),
    *("spark.memory.offHeap.enabled", "spark.memory.offHeap.size"),
    *(f"spark.dynamicAllocation.{what}" for what in ("enabled", "minExecutors", "maxExecutors", "initialExecutors")),
    *("spark.kubernetes.executor.request.cores", "spark.kubernetes.executor.limit.cores"),
)
_CLOSED: Final = (
    *("spark.authenticate", "spark.ui.killEnabled"),
    *("spark.kubernetes.namespace", "spark.kubernetes.driver.pod.name", "spark.kubernetes.executor.podNamePrefix"),
    *("spark.kubernetes.executor.podTemplateFile", "spark.kubernetes.executor.scheduler.name"),
    "spark.kubernetes.authenticate.executor.serviceAccountName",
)
COMPARED: Final = frozenset({MASTER, *_SIZES, *_CLOSED})
"""The properties that a program must not set: what Boathouse relies on, and what room was reserved by."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Stages and tasks of the running jobs of an application."""

    stages: wire.StageCounts
    tasks: wire.TaskCounts

    @property
    def percent(self) -> int | None:
        """Return how many of the tasks are done, in percent; None without tasks."""
        total = self.tasks.total
        return min(100, 100 * self.tasks.completed // total) if total else None


class _Job(msgspec.Struct, rename="camel"):
    num_tasks: int = 0
    num_active_tasks: int = 0
    num_completed_tasks: int = 0
    num_failed_tasks: int = 0
    num_active_stages: int = 0
    num_completed_stages: int = 0
    num_failed_stages: int = 0


class _Stage(msgspec.Struct, rename="camel"):
    disk_bytes_spilled: int = 0


class _Environment(msgspec.Struct, rename="camel"):
    spark_properties: list[tuple[str, str]] = []


_jobs = msgspec.json.Decoder(list[_Job])
_stages = msgspec.json.Decoder(list[_Stage])
_environment = msgspec.json.Decoder(_Environment)


def progress(answer: bytes) -> Progress | None:
    """Return the sums over the running jobs; None if the answer is not understood."""
    try:
        jobs = _jobs.decode(answer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None

    def total(name: str) -> int:
        counts: list[int] = [getattr(job, name) for job in jobs]
        return min(sum(max(0, count) for count in counts), _MAX_COUNT)

    return Progress(
        stages=wire.StageCounts(
            active=total("num_active_stages"),
            completed=total("num_completed_stages"),
            failed=total("num_failed_stages"),
        ),
        tasks=wire.TaskCounts(
            total=total("num_tasks"),
            active=total("num_active_tasks"),
            completed=total("num_completed_tasks"),
            failed=total("num_failed_tasks"),
        ),
    )


def spilled_bytes(answer: bytes) -> int | None:
    """Return what the completed stages wrote to disk for want of memory; None if the answer is not understood."""
    try:
        stages = _stages.decode(answer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return min(sum(max(0, stage.disk_bytes_spilled) for stage in stages), _MAX_BYTES)


def overridden(answer: bytes, expected: Mapping[str, str]) -> Sequence[str] | None:
    """Return the properties that the program changed, sorted; None if the answer is not understood.

    Args:
        answer: That of `ENVIRONMENT_PATH`.
        expected: The properties that the driver was given, of those in `COMPARED`.
    """
    try:
        found = dict(_environment.decode(answer).spark_properties)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return sorted(key for key, value in expected.items() if _differs(key, value, found.get(key)))


def _differs(key: str, expected: str, found: str | None) -> bool:
    if key == MASTER:
        return found is not None and not found.startswith("k8s://")
    return found is None or (found.strip() != expected.strip() and not found.endswith(_REDACTED))
