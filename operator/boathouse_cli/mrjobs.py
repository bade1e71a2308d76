"""MRJobs as the commands need them. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from boathouse.cluster import wire
from boathouse_cli import decisions, model, options


class Counts(wire.View, frozen=True, kw_only=True):
    """Task counts of one stage by state."""

    total: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed_attempts: int = 0


class _Failure(wire.View, frozen=True, kw_only=True):
    task: str
    attempt: int
    reason: str
    step: int | None = None
    node: str = ""
    message: str = ""
    user_error: bool = False


class Application(wire.View, frozen=True, kw_only=True):
    """An application of YARN that the current attempt of a job with clusterRef submitted."""

    id: str
    name: str = ""
    state: str = ""
    final: str = msgspec.field(default="", name="finalStatus")
    percent: int = msgspec.field(default=0, name="progressPercent")
    diagnostics: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, whatever its result."""
        return self.state in {"FINISHED", "FAILED", "KILLED"}


class _Hadoop(wire.View, frozen=True, kw_only=True):
    applications: tuple[Application, ...] = ()


class _Status(model.Status, frozen=True, kw_only=True):
    progress: str = ""
    maps: Counts = Counts()
    reduces: Counts = Counts()
    failures: tuple[_Failure, ...] = msgspec.field(default=(), name="lastFailures")
    hadoop: _Hadoop = _Hadoop()
    counters: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    prediction: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRJob(model.Job):
    """An MRJob, and the applications of its current attempt if it runs on an MRCluster."""

    cluster: str
    applications: tuple[Application, ...]
    maps: Counts
    reduces: Counts
    failures: tuple[_Failure, ...]
    counters: Mapping[str, Mapping[str, int]]


def read(raw: model.Raw) -> MRJob:
    """Read an MRJob."""
    spec, status = raw.get("spec", {}), model.decoded(raw.get("status") or {}, _Status)
    output, cluster = spec.get("output", ""), (spec.get("clusterRef") or {}).get("name") or ""
    stages, details = list[model.Stage](), list[tuple[str, str]]()
    for name, counts in (("maps", status.maps), ("reduces", status.reduces)):
        if counts.total:
            running = f"{counts.running} running"
            failed = f", {counts.failed_attempts} attempts failed" if counts.failed_attempts else ""
            text = f"{counts.succeeded}/{counts.total}, {running}{failed}"
            stages.append(model.Stage(name=name, total=counts.total, done=counts.succeeded, text=text))
            done = f"{counts.succeeded} of {counts.total} done"
            details.append((name, f"{done}, {running}, {counts.pending} waiting or starting{failed}"))
    tasks_running = status.maps.running + status.reduces.running
    common = model.common(raw, options.MRJOB, status)
    return MRJob(
        **common,
        progress=status.progress,
        activity=f"{tasks_running} tasks running",
        is_busy=tasks_running > 0,
        outcome=f"the output is in {output}" if output else "",
        stages=tuple(stages),
        details=(
            *details,
            *decisions.of_mrjob(status.prediction, common["conditions"]),
            *([("cluster", f"mrcluster/{cluster}")] if cluster else []),
            *(("application", _described_application(application)) for application in status.hadoop.applications),
            *(("failure", _failure_text(failure)) for failure in status.failures),
        ),
        cluster=cluster,
        applications=status.hadoop.applications,
        maps=status.maps,
        reduces=status.reduces,
        failures=status.failures,
        counters=status.counters,
    )


def _described_application(application: Application) -> str:
    name = f" ({application.name})" if application.name else ""
    state = application.final if application.has_ended else f"{application.state}, {application.percent} %"
    diagnostics = f": {application.diagnostics}" if application.diagnostics else ""
    return f"{application.id}{name}: {state}{diagnostics}"


def _failure_text(failure: _Failure) -> str:
    where = f" on {failure.node}" if failure.node else ""
    cause = "user error" if failure.user_error else "infrastructure error, retried"
    step = "" if failure.step is None else f"step {failure.step}: "
    return f"{step}{failure.task} attempt {failure.attempt}{where}: {failure.reason}: {failure.message} ({cause})"
