"""SparkApps as the commands need them, and executors whose pods are gone. Pure.

Spark deletes executors when a driver ends, and their pods are the only objects that have their times. These are rebuilt
from the events about them, which the cluster keeps for an hour.
"""

import collections
import dataclasses
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.sparkapp.names import ConditionType
from boathouse_cli import model, options

_MAX_LABEL: Final = 63
_BLAME: Final = {
    "Application": "the application's fault",
    "Infrastructure": "the infrastructure's fault",
    "Suspended": "suspended",
}


class Attempt(wire.View, frozen=True, kw_only=True):
    """An attempt that ended."""

    number: int
    node: str = ""
    started_s: model.Time | None = msgspec.field(default=None, name="startTime")
    ended_s: model.Time | None = msgspec.field(default=None, name="endTime")
    cause: str = ""
    reason: str = ""
    message: str = ""

    @property
    def text(self) -> str:
        """How it ended, and whose fault it was."""
        if not self.cause:
            return f"{self.number}: succeeded"
        where = f" on {self.node}" if self.node else ""
        message = f": {self.message}" if self.message else ""
        return f"{self.number}{where}: {self.reason or self.cause}{message} ({_BLAME.get(self.cause, self.cause)})"


class _Driver(wire.View, frozen=True, kw_only=True):
    pod_name: str = ""
    node: str = ""
    ui_address: str = ""


class _Status(model.Status, frozen=True, kw_only=True):
    attempt: int = 0
    driver: _Driver | None = None
    executors: dict[str, Any] = msgspec.field(default_factory=dict)
    tasks: dict[str, Any] = msgspec.field(default_factory=dict)
    stages: dict[str, Any] = msgspec.field(default_factory=dict)
    requests: dict[str, Any] = msgspec.field(default_factory=dict)
    progress_percent: int | None = None
    past_attempts: tuple[Attempt, ...] = ()
    last_log: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SparkApp(model.Job):
    """A SparkApp."""

    attempt: int  # 0 without one
    driver: _Driver  # of the current attempt; what is unknown is empty
    attempts: tuple[Attempt, ...]
    last_log: str  # of the last driver that failed


def read(raw: model.Raw) -> SparkApp:
    """Read a SparkApp."""
    status = model.decoded(raw.get("status") or {}, _Status)
    percent, driver, stages = status.progress_percent, status.driver or _Driver(), tuple(_stages(status))
    is_finished = status.phase in model.FINISHED_PHASES
    progress = "" if percent is None else f"{percent} % of the active stages"
    return SparkApp(
        **model.common(raw, options.SPARKAPP, status),
        progress=f"attempt {status.attempt}" if is_finished and status.attempt else progress,
        activity="" if is_finished else f"{status.executors.get('running', 0)} executors running",
        is_busy=status.phase == "Running",
        stages=stages,
        details=tuple(_details(status, stages)),
        attempt=status.attempt,
        driver=driver,
        attempts=status.past_attempts,
        last_log=status.last_log,
    )


def selector(app: model.Job) -> str:
    """Return the label selector of an application's pods; pods of a former namesake match as well."""
    return f"{names.APP_NAME}=spark,{names.APP_INSTANCE}={app.name if len(app.name) <= _MAX_LABEL else app.uid}"


def own_pods(app: model.Job, pods: Iterable[model.Raw]) -> list[model.Raw]:
    """Return an application's pods by their owners: the application owns drivers, and drivers own executors.

    Placeholders are not among them: they have no log and no attempt, and end without having run.
    """
    placeholder = (names.LABEL_TASK_TYPE, names.TASK_TYPE_PLACEHOLDER)
    found = [pod for pod in pods if placeholder not in (pod["metadata"].get("labels") or {}).items()]
    drivers = [pod for pod in found if app.uid in _owners(pod)]
    uids = {pod["metadata"]["uid"] for pod in drivers}
    return drivers + [pod for pod in found if uids & _owners(pod)]


def _owners(pod: model.Raw) -> set[str]:
    return {owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()}


def _stages(status: _Status) -> Iterator[model.Stage]:
    if executors := collections.Counter(status.executors):
        text = (
            f"{executors['running']} running, {executors['pending']} pending, {executors['failed']} failed; "
            f"the driver starts with room for {executors['minimum']}"
        )
        yield model.Stage(name="executors", total=0, done=0, text=text)
    tasks = collections.Counter(status.tasks)
    if total := tasks["total"]:
        text = f"{tasks['completed']}/{total}, {tasks['active']} running"
        yield model.Stage(name="tasks", total=total, done=tasks["completed"], text=text)
    if stages := status.stages:
        counts = ", ".join(f"{count} {state}" for state, count in stages.items() if count and state != "total")
        yield model.Stage(name="stages", total=0, done=0, text=counts or "none")


def _details(status: _Status, stages: Iterable[model.Stage]) -> Iterator[tuple[str, str]]:
    if driver := status.driver:
        node = f" on {driver.node}" if driver.node else ""
        address = f", UI at {driver.ui_address} in the cluster" if driver.ui_address else ""
        yield "driver", f"attempt {status.attempt or 1}, pod {driver.pod_name}{node}{address}"
    for stage in stages:
        yield stage.name, stage.text
    for role, amounts in status.requests.items():
        yield "requests", f"{role}: {amounts['cpu']} cpu, {amounts['memory']} memory"
    for condition in status.conditions:
        if (condition.type, condition.status) == (ConditionType.CONFIG_OVERRIDDEN, "True"):
            yield "overridden", condition.message
    for attempt in status.past_attempts:
        yield "attempt", attempt.text
    if log := status.last_log.strip():
        yield "last log", log


def gone_executors(app: model.Job, events: Iterable[model.Raw], existing: Container[str]) -> list[model.TaskPod]:
    """Return the executors of an application that were placed and have no pod any more."""
    if not isinstance(app, SparkApp):
        return []
    name_of = re.compile(
        rf"[a-z0-9-]+-{re.escape(app.uid[:8])}-a(?P<attempt>[0-9]{{1,9}})-exec-(?P<number>[0-9]{{1,10}})"
    )
    by_pod: dict[str, tuple[re.Match[str], dict[str, model.Raw]]] = {}
    for event in events:
        name = (event.get("involvedObject") or {}).get("name") or ""
        if name not in existing and (match := name_of.fullmatch(name)):
            by_pod.setdefault(name, (match, {}))[1][event.get("reason", "")] = event
    executors = (_executor(app, match, seen) for match, seen in by_pod.values())
    return [executor for executor in executors if executor is not None]


def _executor(app: SparkApp, match: re.Match[str], seen: Mapping[str, model.Raw]) -> model.TaskPod | None:
    attempt = int(match["attempt"])
    placed_s, started_s, killed_s = (_time_s(seen.get(reason, {})) for reason in ("Scheduled", "Started", "Killing"))
    message = seen.get("Scheduled", {}).get("message") or ""
    node = re.match(r"^Successfully assigned \S+ to (?P<node>[a-z0-9.-]+)$", message)
    if placed_s is None or node is None:
        return None
    driver_ended_s = next((past.ended_s for past in app.attempts if past.number == attempt), app.completed_s)
    return model.TaskPod(
        name=match[0],
        task=f"{model.EXECUTOR}-{match['number']}",
        task_type=model.EXECUTOR,
        attempt=attempt,
        queue=app.queue,
        node=node["node"],
        phase="Succeeded",
        created_s=placed_s,
        placed_s=placed_s,
        started_s=started_s,
        finished_s=killed_s or driver_ended_s,
    )


def _time_s(event: model.Raw) -> float | None:
    text = event.get("eventTime") or event.get("firstTimestamp") or event.get("lastTimestamp")
    return model.epoch_s(text) if text else None
