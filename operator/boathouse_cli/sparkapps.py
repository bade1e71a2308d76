"""SparkApps as the commands need them, and executors whose pods are gone. Pure.

Spark deletes executors when a driver ends, and their pods are the only objects that have their times. These are rebuilt
from the events about them, which the cluster keeps for an hour.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ConditionType
from boathouse_cli import model, options

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping


_SCHEDULED: Final = "Scheduled"
_STARTED: Final = "Started"
_KILLING: Final = "Killing"
_NODE: Final = re.compile(r"^Successfully assigned \S+ to (?P<node>[a-z0-9.-]+)$")


def gone_executors(app: model.Job, events: Iterable[model.Raw], existing: Container[str]) -> list[model.TaskPod]:
    """Return the executors of an application that were placed and have no pod any more."""
    if not isinstance(app, SparkApp):
        return []
    name_of = re.compile(
        rf"[a-z0-9-]+-{re.escape(app.uid[:8])}-a(?P<attempt>[0-9]{{1,9}})-exec-(?P<number>[0-9]{{1,10}})"
    )
    by_pod: dict[str, dict[str, model.Raw]] = {}
    for event in events:
        name = (event.get("involvedObject") or {}).get("name") or ""
        if name not in existing and name_of.fullmatch(name) and event.get("reason") in {_SCHEDULED, _STARTED, _KILLING}:
            by_pod.setdefault(name, {})[event["reason"]] = event
    found = ((name, name_of.fullmatch(name), seen) for name, seen in by_pod.items())
    executors = (_executor(app, name, match, seen) for name, match, seen in found if match is not None)
    return [executor for executor in executors if executor is not None]


def _executor(app: SparkApp, name: str, match: re.Match[str], seen: Mapping[str, model.Raw]) -> model.TaskPod | None:
    attempt = int(match["attempt"])
    placed_s, started_s, killed_s = (_time_s(seen.get(reason)) for reason in (_SCHEDULED, _STARTED, _KILLING))
    node = _NODE.match((seen.get(_SCHEDULED) or {}).get("message") or "")
    driver_ended_s = next(
        (app_attempt.ended_s for app_attempt in app.attempts if app_attempt.number == attempt), app.completed_s
    )
    if placed_s is None or node is None:
        return None
    return model.TaskPod(
        name=name,
        task=f"{model.EXECUTOR}-{match['number']}",
        task_type=model.EXECUTOR,
        container="",
        attempt=attempt,
        queue=app.queue,
        node=node["node"],
        phase="Succeeded",
        created_s=placed_s,
        placed_s=placed_s,
        started_s=started_s,
        finished_s=killed_s or driver_ended_s,
        waiting="",
        result=None,
    )


def _time_s(event: model.Raw | None) -> float | None:
    """Return when an event occurred first."""
    if event is None:
        return None
    return model.epoch_or_none(event.get("eventTime") or event.get("firstTimestamp") or event.get("lastTimestamp"))


KIND: Final = options.SPARKAPP
_MAX_LABEL: Final = 63
_BLAME: Final = {
    "Application": "the application's fault",
    "Infrastructure": "the infrastructure's fault",
    "Suspended": "suspended",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that ended."""

    number: int
    node: str
    started_s: float | None
    ended_s: float | None
    cause: str
    reason: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SparkApp(model.Job):
    """A SparkApp.

    Attributes:
        attempt: The number of the current attempt; 0: none.
        driver_pod: Its name; empty: none.
        ui_address: In the cluster; empty: unknown.
        attempts: Those that ended, the latest last.
        last_log: The last lines of the last driver that failed.
    """

    attempt: int
    driver_pod: str
    driver_node: str
    ui_address: str
    attempts: tuple[Attempt, ...]
    last_log: str


def read(raw: model.Raw) -> SparkApp:
    """Read a SparkApp."""
    status = raw.get("status") or {}
    driver, executors = status.get("driver") or {}, status.get("executors") or {}
    running, number = executors.get("running", 0), status.get("attempt") or 0
    attempts = tuple(map(_attempt, status.get("pastAttempts") or ()))
    common = model.common(raw, KIND)
    is_finished = common["phase"] in model.FINISHED_PHASES
    return SparkApp(
        **common,
        progress=f"attempt {number}" if is_finished and number else _percent(status),
        activity="" if is_finished else f"{running} executors running",
        is_busy=common["phase"] == "Running",
        stages=_stages(status),
        details=tuple(_details(raw, attempts)),
        attempt=number,
        driver_pod=driver.get("podName") or "",
        driver_node=driver.get("node") or "",
        ui_address=driver.get("uiAddress") or "",
        attempts=attempts,
        last_log=status.get("lastLog") or "",
    )


def selector(app: model.Job) -> str:
    """Return the label selector of an application's pods; pods of a former namesake match as well."""
    instance = app.name if len(app.name) <= _MAX_LABEL else app.uid
    return f"{names.APP_NAME}=spark,{names.APP_INSTANCE}={instance}"


def own_pods(app: model.Job, pods: Iterable[model.Raw]) -> list[model.Raw]:
    """Return an application's pods by their owners: the application owns drivers, and drivers own executors.

    Placeholders are not among them: they have no log and no attempt, and end without having run.
    """
    found = [pod for pod in pods if _labels(pod).get(names.LABEL_TASK_TYPE) != names.TASK_TYPE_PLACEHOLDER]
    drivers = [pod for pod in found if app.uid in _owners(pod)]
    uids = {pod["metadata"]["uid"] for pod in drivers}
    return drivers + [pod for pod in found if uids & _owners(pod)]


def _labels(pod: model.Raw) -> model.Raw:
    return pod["metadata"].get("labels") or {}


def _owners(pod: model.Raw) -> set[str]:
    return {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}


def _percent(status: model.Raw) -> str:
    percent = status.get("progressPercent")
    return "" if percent is None else f"{percent} % of the active stages"


def _stages(status: model.Raw) -> tuple[model.Stage, ...]:
    executors, tasks, stages = (status.get(part) or {} for part in ("executors", "tasks", "stages"))
    found = []
    if executors:
        found.append(model.Stage(name="executors", total=0, done=0, text=_executors(executors)))
    if tasks.get("total"):
        found.append(
            model.Stage(
                name="tasks",
                total=tasks["total"],
                done=tasks.get("completed", 0),
                text=f"{tasks.get('completed', 0)}/{tasks['total']}, {tasks.get('active', 0)} running",
            )
        )
    if stages:
        found.append(model.Stage(name="stages", total=0, done=0, text=_counted(stages)))
    return tuple(found)


def _executors(counts: model.Raw) -> str:
    return (
        f"{counts.get('running', 0)} running, {counts.get('pending', 0)} pending, {counts.get('failed', 0)} failed; "
        f"the driver starts with room for {counts.get('minimum', 0)}"
    )


def _counted(counts: model.Raw) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count and state != "total") or "none"


def _details(raw: model.Raw, attempts: Iterable[Attempt]) -> Iterable[tuple[str, str]]:
    status = raw.get("status") or {}
    driver = status.get("driver") or {}
    if driver:
        node = f" on {driver['node']}" if driver.get("node") else ""
        address = f", UI at {driver['uiAddress']} in the cluster" if driver.get("uiAddress") else ""
        yield "driver", f"attempt {status.get('attempt', 1)}, pod {driver['podName']}{node}{address}"
    for stage in _stages(status):
        yield stage.name, stage.text
    for role, amounts in (status.get("requests") or {}).items():
        yield "requests", f"{role}: {amounts['cpu']} cpu, {amounts['memory']} memory"
    overridden = model.conditions(raw).get(ConditionType.CONFIG_OVERRIDDEN)
    if overridden and overridden.status == "True":
        yield "overridden", overridden.message
    for attempt in attempts:
        yield "attempt", _attempt_text(attempt)
    if log := (status.get("lastLog") or "").strip():
        yield "last log", log


def _attempt_text(attempt: Attempt) -> str:
    if not attempt.cause:
        return f"{attempt.number}: succeeded"
    where = f" on {attempt.node}" if attempt.node else ""
    message = f": {attempt.message}" if attempt.message else ""
    blame = _BLAME.get(attempt.cause, attempt.cause)
    return f"{attempt.number}{where}: {attempt.reason or attempt.cause}{message} ({blame})"


def _attempt(raw: model.Raw) -> Attempt:
    return Attempt(
        number=raw["number"],
        node=raw.get("node") or "",
        started_s=model.epoch_or_none(raw.get("startTime")),
        ended_s=model.epoch_or_none(raw.get("endTime")),
        cause=raw.get("cause") or "",
        reason=raw.get("reason") or "",
        message=raw.get("message") or "",
    )
