"""Write `events.k8s.io/v1` events in the background, with limits for each object and namespace.

The same note about an object with the same reason is written at most once a minute. The next write after that has the
number of repetitions as the event's series. A new event is dropped if the queue is full or its namespace exceeds its
rate, so that one namespace cannot block the events of others.
"""

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from boathouse import fair
from boathouse.cluster import catalogue, errors, retries, wire, written
from boathouse.cluster.client import ApiClient

log = logging.getLogger(__name__)
NOTE_BYTES = 1024
_REMEMBERED = 8192
WINDOW_S = 60.0
"""Time in which a repeated note is only counted."""
WRITERS = 2
_BACKOFF = retries.Backoff(base_s=0.5, cap_s=5.0, attempts=4)


@dataclasses.dataclass(slots=True, kw_only=True)
class _LastEvent:
    name: str
    note: str
    at_s: float
    count: int = 1


def reference(resource: catalogue.Resource[Any], namespace: str, name: str, uid: str) -> written.ObjectReference:
    """Return the reference to an object."""
    return written.ObjectReference(
        api_version=resource.api_version, kind=resource.kind, namespace=namespace, name=name, uid=uid
    )


class EventWriter:
    """Writes events in the background; start `run` in a task. Counts those that a namespace's rate `limited`."""

    def __init__(
        self,
        client: ApiClient,
        *,
        controller: str,
        instance: str,
        queue_size: int = 5000,
        rate_per_s: float = 20.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limited, self._client, self._controller, self._instance = 0, client, controller, instance
        self._shares = fair.Buckets(rate_per_s=rate_per_s, burst=rate_per_s * fair.BURST_S, clock=monotonic)
        self._monotonic = monotonic
        self._queue: asyncio.Queue[Callable[[], Awaitable[object]]] = asyncio.Queue(queue_size)
        self._last_events: collections.OrderedDict[tuple[str, str], _LastEvent] = collections.OrderedDict()
        self._numbers = itertools.count(time.time_ns())

    def publish(self, about: written.ObjectReference, *, type_: str, reason: str, action: str, note: str) -> None:
        """Queue an event, in its object's namespace (`default` for cluster-scoped objects); returns at once."""
        note = _cut(note)
        key, moment_s = (about.uid or f"{about.kind}/{about.namespace}/{about.name}", reason), self._monotonic()
        last = self._last_events.get(key)
        if last and last.note == note:
            last.count += 1
            if moment_s - last.at_s < WINDOW_S:
                return
        if not self._shares.take(about.namespace):
            self.limited += 1
            return
        event = self._event(about, type_, reason, action, note)
        if last and last.note == note:
            again = dataclasses.replace(last, at_s=moment_s)
            self._enqueue(key, again, lambda: self._write_series(again, event))
        else:
            first = _LastEvent(name=event["metadata"]["name"], note=note, at_s=moment_s)
            self._enqueue(key, first, lambda: self._create(event))

    async def run(self) -> None:
        """Write queued events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(retries.Loop("events", self._write_next).run())

    async def drain(self, timeout_s: float) -> None:
        """Wait until all queued events are written, at most `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._queue.join()
        except TimeoutError:
            log.warning("%d events were not written within %s s", self._queue.qsize(), timeout_s)

    def _enqueue(self, key: tuple[str, str], last: _LastEvent, write: Callable[[], Awaitable[object]]) -> None:
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            return
        self._last_events[key] = last
        self._last_events.move_to_end(key)
        if len(self._last_events) > _REMEMBERED:
            self._last_events.popitem(last=False)

    async def _write_next(self) -> None:
        write = await self._queue.get()
        try:
            with contextlib.suppress(errors.AlreadyExists):  # an earlier attempt had succeeded; names are unique
                await retries.retrying(write, idempotent=True, backoff=_BACKOFF)
        except Exception as error:
            log.warning("an event was not written: %s", error, exc_info=not isinstance(error, errors.ClusterError))
        finally:
            self._queue.task_done()

    async def _create(self, event: wire.Manifest) -> None:
        await self._client.create(catalogue.EVENTS, event, event["metadata"]["namespace"])

    async def _write_series(self, last: _LastEvent, event: wire.Manifest) -> None:
        patch = {"series": {"count": last.count, "lastObservedTime": event["eventTime"]}}
        try:
            await self._client.patch(catalogue.EVENTS, last.name, patch, event["metadata"]["namespace"])
        except errors.NotFound:  # events expire after an hour
            last.name, last.count = event["metadata"]["name"], 1
            await self._create(event)

    def _event(self, about: written.ObjectReference, type_: str, reason: str, action: str, note: str) -> wire.Manifest:
        name = f"{about.name[:236]}.{next(self._numbers):x}"  # named as in client-go; also unique after a restart
        return {
            "apiVersion": catalogue.EVENTS.api_version,
            "kind": catalogue.EVENTS.kind,
            "metadata": {"name": name, "namespace": about.namespace or "default"},
            "eventTime": written.micro_time(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": about,
            "note": note,
            "type": type_,
        }


def _cut(note: str) -> str:
    encoded = note.encode()
    return note if len(encoded) <= NOTE_BYTES else encoded[: NOTE_BYTES - 3].decode(errors="ignore") + "..."
