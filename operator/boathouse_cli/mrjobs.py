"""MRJobs as the commands need them. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_cli import decisions, model, options

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND: Final = options.MRJOB


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Task counts of one stage by state."""

    total: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed_attempts: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed attempt, from the job's status."""

    task: str
    step: int | None
    attempt: int
    node: str
    reason: str
    message: str
    user_error: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application of YARN that the current attempt of a job with clusterRef submitted."""

    id: str
    name: str
    state: str
    final: str
    percent: int
    diagnostics: str

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, whatever its result."""
        return self.state in {"FINISHED", "FAILED", "KILLED"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRJob(model.Job):
    """An MRJob.

    Attributes:
        cluster: The MRCluster on which it runs; empty: none.
        applications: Those of the current attempt on that cluster.
    """

    cluster: str
    applications: tuple[Application, ...]
    output: str
    maps: Counts
    reduces: Counts
    failures: tuple[Failure, ...]
    counters: Mapping[str, Mapping[str, int]]


def read(raw: model.Raw) -> MRJob:
    """Read an MRJob."""
    status, output = raw.get("status") or {}, raw.get("spec", {}).get("output", "")
    maps, reduces = _counts(status.get("maps")), _counts(status.get("reduces"))
    shown = {name: counts for name, counts in (("maps", maps), ("reduces", reduces)) if counts.total}
    failures = tuple(map(_failure, status.get("lastFailures") or ()))
    cluster = (raw.get("spec", {}).get("clusterRef") or {}).get("name") or ""
    applications = tuple(map(_application, (status.get("hadoop") or {}).get("applications") or ()))
    running = maps.running + reduces.running
    return MRJob(
        **model.common(raw, KIND),
        progress=status.get("progress") or "",
        activity=f"{running} tasks running",
        is_busy=running > 0,
        outcome=f"the output is in {output}" if output else "",
        stages=tuple(_stage(name, counts) for name, counts in shown.items()),
        details=(
            *((name, _described(counts)) for name, counts in shown.items()),
            *decisions.of_mrjob(raw),
            *([("cluster", f"mrcluster/{cluster}")] if cluster else []),
            *(("application", _described_application(application)) for application in applications),
            *(("failure", _failure_text(failure)) for failure in failures),
        ),
        cluster=cluster,
        applications=applications,
        output=output,
        maps=maps,
        reduces=reduces,
        failures=failures,
        counters=status.get("counters") or {},
    )


def _counts(raw: model.Raw | None) -> Counts:
    raw = raw or {}
    return Counts(
        total=raw.get("total", 0),
        pending=raw.get("pending", 0),
        running=raw.get("running", 0),
        succeeded=raw.get("succeeded", 0),
        failed_attempts=raw.get("failedAttempts", 0),
    )


def _failure(raw: model.Raw) -> Failure:
    return Failure(
        task=raw["task"],
        step=raw.get("step"),
        attempt=raw["attempt"],
        node=raw.get("node") or "",
        reason=raw["reason"],
        message=raw.get("message") or "",
        user_error=raw.get("userError", False),
    )


def _application(raw: model.Raw) -> Application:
    return Application(
        id=raw["id"],
        name=raw.get("name") or "",
        state=raw.get("state") or "",
        final=raw.get("finalStatus") or "",
        percent=raw.get("progressPercent", 0),
        diagnostics=raw.get("diagnostics") or "",
    )


def _described_application(application: Application) -> str:
    name = f" ({application.name})" if application.name else ""
    state = application.final if application.has_ended else f"{application.state}, {application.percent} %"
    diagnostics = f": {application.diagnostics}" if application.diagnostics else ""
    return f"{application.id}{name}: {state}{diagnostics}"


def _stage(name: str, counts: Counts) -> model.Stage:
    counted = f"{counts.succeeded}/{counts.total}, {counts.running} running{_failed(counts)}"
    return model.Stage(name=name, total=counts.total, done=counts.succeeded, text=counted)


def _described(counts: Counts) -> str:
    done = f"{counts.succeeded} of {counts.total} done"
    return f"{done}, {counts.running} running, {counts.pending} waiting or starting{_failed(counts)}"


def _failed(counts: Counts) -> str:
    return f", {counts.failed_attempts} attempts failed" if counts.failed_attempts else ""


def _failure_text(failure: Failure) -> str:
    where = f" on {failure.node}" if failure.node else ""
    cause = "user error" if failure.user_error else "infrastructure error, retried"
    step = "" if failure.step is None else f"step {failure.step}: "
    return f"{step}{failure.task} attempt {failure.attempt}{where}: {failure.reason}: {failure.message} ({cause})"
