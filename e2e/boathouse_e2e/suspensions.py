"""Invariants of suspended tasks, over what the API server recorded: see `invariants`.

A task is suspended while its container has the CPU of a suspended one, which it did not have when it was created.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from boathouse.resources import names, quantity
from boathouse.suspension import record as suspension_record
from boathouse_e2e import invariants
from boathouse_e2e.invariants import Violation
from boathouse_task import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Json = dict[str, Any]

LATE_S = 15.0
"""How long after its deadline a task may still be suspended while an operator leads."""
LATE_WITHOUT_OPERATOR_S = 60.0
_SIZE = (contract.SUSPENDED_REQUEST_MILLI, contract.SUSPENDED_LIMIT_MILLI)


def cpu(pod: Json) -> tuple[int, int] | None:
    """Return CPU request and limit of a task's container in thousandths, as a spec or a patch has them."""
    for container in pod.get("spec", {}).get("containers", ()):
        resources = container.get("resources", {})
        if container.get("name") == names.CONTAINER and "cpu" in resources.get("limits", {}):
            request = quantity.milli(resources.get("requests", {}).get("cpu", "0"))
            return request, quantity.milli(resources["limits"]["cpu"])
    return None


def without_record(changes: Iterable[Json]) -> list[Violation]:
    """Return every moment at which a task was suspended and its pod did not say why (I13)."""
    created: dict[str, tuple[int, int] | None] = {}
    found = []
    for change in changes:
        pod = change["object"]
        metadata, size = pod["metadata"], cpu(pod)
        original = created.setdefault(metadata["uid"], size)
        text = metadata.get("annotations", {}).get(names.ANNOTATION_SUSPENSION, "")
        if size == _SIZE != original and not invariants.has_ended(pod) and suspension_record.parse(text) is None:
            found.append(Violation(invariant="I13", what=f"{metadata['name']} is suspended, its record is {text!r}"))
    return found


def too_long(audit: Iterable[Json], now_s: float, late_s: float = LATE_S) -> list[Violation]:
    """Return the tasks that were suspended for longer than `late_s` after the deadline in their record (I13).

    Args:
        audit: The audit log, in order.
        now_s: Its end, in epoch seconds.
        late_s: How late a task may be resumed.
    """
    until_s: dict[str, float] = {}
    suspended: dict[str, float] = {}
    found: list[Violation] = []

    def end(pod: str, at_s: float) -> None:
        over_s = at_s - suspended.pop(pod, at_s)
        if over_s > late_s:
            found.append(Violation(invariant="I13", what=f"{pod} stayed suspended {over_s:.0f} s after its deadline"))

    for event in invariants.done(audit, "pods"):
        reference, body = event["objectRef"], event.get("requestObject") or {}
        pod, part = f"{reference.get('namespace')}/{reference.get('name')}", reference.get("subresource")
        text = ((body.get("metadata") or {}).get("annotations") or {}).get(names.ANNOTATION_SUSPENSION)
        record = suspension_record.parse(text or "")
        size = cpu(body) if part == "resize" else None
        if part == "status" and record is not None:
            until_s[pod] = record.until_s
        if size == _SIZE:
            suspended[pod] = until_s.get(pod, _time_s(event))
        elif size is not None or _ends(event, body):
            end(pod, _time_s(event))
    for pod in list(suspended):
        end(pod, now_s)
    return found


def _ends(event: Json, body: Json) -> bool:
    """Return whether a pod ended or was deleted."""
    part = event["objectRef"].get("subresource")
    return (event["verb"] == "delete" and not part) or (part == "status" and invariants.has_ended(body))


def _time_s(event: Json) -> float:
    return dt.datetime.fromisoformat(event["stageTimestamp"]).timestamp()


def counted_twice(changes: Iterable[Json], nodes: Mapping[str, Json]) -> list[Violation]:
    """Return the placements of tasks on nodes that had no room left, by what their pods still held (I14).

    Other than I1, this holds too where another scheduler takes the room that a suspended task will need again.
    """
    placed: set[str] = set()
    found: list[Violation] = []
    for change, pods in invariants.moments(changes):
        pod = change["object"]
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        is_task = names.LABEL_JOB_UID in metadata.get("labels", {})
        if node in nodes and metadata["uid"] not in placed and change["type"] != "DELETED":
            placed.add(metadata["uid"])
            if is_task:
                found += invariants.over_committed(pods.values(), {node: nodes[node]}, "I14")
    return found
