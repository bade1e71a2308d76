"""Pods of jobs, applications and clusters as the operator's informers keep them, and states of their containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from boathouse import leader
from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import transforms

if TYPE_CHECKING:
    from boathouse.scheduling.pods import facts

_TRANSFORM = transforms.pods(
    names.SCHEDULER_NAME,
    labels=frozenset().union(*(kind.pod_labels for kind in leader.KINDS)),
    containers=frozenset().union(*(kind.pod_containers for kind in leader.KINDS)),
)


def observed_pod(manifest: dict[str, Any]) -> facts.PodFacts:
    """Return what the operator keeps of a pod."""
    return _TRANSFORM(msgspec.convert(manifest, wire.PodView))


def terminated(exit_code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    """Return the state of a container that ended."""
    ended = {"exitCode": exit_code, "reason": reason, "message": message, "finishedAt": "2026-01-01T00:01:00Z"}
    return {"terminated": ended}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Return the state of a container that does not run yet."""
    return {"waiting": {"reason": reason, "message": message}}
