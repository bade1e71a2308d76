"""Give the executors of an attempt the memory that the scheduler chose when the driver started. Pure."""

from __future__ import annotations

import bisect
import dataclasses
from typing import TYPE_CHECKING

from boathouse.services.sparkapp.submission import sizing

if TYPE_CHECKING:
    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.planning.observation import DriverPod


def resized(app: App, memory_bytes: int) -> App:
    """Return the application with the largest heap with which an executor's pod requests at most so much.

    The application is returned unchanged if that is the heap of its spec.

    Raises:
        ValueError: An executor with the least heap requests more.
    """
    if memory_bytes >= app.executor.memory_bytes:
        return app
    if app.elastic is None or memory_bytes < app.elastic.least.memory_bytes:
        raise ValueError(f"executors cannot have {memory_bytes} bytes of memory: they need more")
    heaps = range(1, sizing.mebibytes(app.conf.get(sizing.HEAP, sizing.DEFAULT_MEMORY)) + 1)
    heap = bisect.bisect_right(heaps, memory_bytes, key=lambda heap: _requests(app, heap).memory_bytes)
    return dataclasses.replace(
        app,
        conf={**app.conf, sizing.HEAP: f"{heap}m"},
        executor=_requests(app, heap),
        ideal_executor=app.executor,
    )


def of_attempt(app: App, driver: DriverPod | None) -> App:
    """Return the application with the size of executors that was chosen for a driver, if it has a valid one."""
    chosen, elastic = driver.executor_bytes if driver else 0, app.elastic
    return resized(app, chosen) if elastic is not None and chosen >= elastic.least.memory_bytes else app


def _requests(app: App, heap: int) -> sizing.Requests:
    return sizing.executor({**app.conf, sizing.HEAP: f"{heap}m"}, is_python=app.is_python)
