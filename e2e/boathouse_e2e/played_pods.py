"""What the models of kubelets and programs have in common: what they write of a pod, and how long they work."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from boathouse.cluster import catalogue, client, errors

PASSING: Final = (errors.ConnectionLost, errors.ServerError, errors.TooManyRequests)
"""What a busy API server answers; the same is asked again."""


def ended(container: str, exit_code: int, message: str) -> dict[str, Any]:
    """Return the status of a pod whose container has ended."""
    terminated = {
        "exitCode": exit_code,
        "message": message,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:10Z",
    }
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "containerStatuses": [{"name": container, "state": {"terminated": terminated, "running": None}}],
    }


async def write(api: client.ApiClient, namespace: str, name: str, uid: str, status: dict[str, Any]) -> bool:
    """Merge a status into a pod's as kubelets do; return False if the pod was deleted meanwhile."""
    with contextlib.suppress(errors.NotFound, errors.Conflict):
        style = client.PatchStyle.STRATEGIC
        await api.patch_status(catalogue.PODS.untyped(), name, status, namespace, style=style, uid=uid)
        return True
    return False


def runs(pod: dict[str, Any]) -> bool:
    """Return whether the containers of a pod run and are to go on."""
    return bool(pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"))


@contextlib.asynccontextmanager
async def working(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let a model work until the block ends; what went wrong with it is raised then."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
