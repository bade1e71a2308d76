"""Rebuild executors whose pods are gone from the events about them, which the cluster keeps for an hour. Pure.

Spark deletes executors when a driver ends, and their pods are the only objects that have their times.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from boathouse_cli import model, sparkapps

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

_SCHEDULED: Final = "Scheduled"
_STARTED: Final = "Started"
_KILLING: Final = "Killing"
_NODE: Final = re.compile(r"^Successfully assigned \S+ to (?P<node>[a-z0-9.-]+)$")


def of(app: model.Job, events: Iterable[model.Raw], existing: Container[str]) -> list[model.TaskPod]:
    """Return the executors of an application that were placed and have no pod any more.

    Args:
        app: The application.
        events: Events about pods of its namespace.
        existing: Names of the pods that exist.
    """
    if not isinstance(app, sparkapps.SparkApp):
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
    return [each for each in executors if each is not None]


def _executor(
    app: sparkapps.SparkApp, name: str, match: re.Match[str], seen: Mapping[str, model.Raw]
) -> model.TaskPod | None:
    attempt = int(match["attempt"])
    placed_s, started_s, killed_s = (_time_s(seen.get(reason)) for reason in (_SCHEDULED, _STARTED, _KILLING))
    node = _NODE.match((seen.get(_SCHEDULED) or {}).get("message") or "")
    driver_ended_s = next((each.ended_s for each in app.attempts if each.number == attempt), app.completed_s)
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
