"""Serves watches, and breaks them on order."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from aiohttp import web

from tests.wire.fake_api import world

if TYPE_CHECKING:
    from tests.wire.fake_api.world import Watcher, World


@dataclasses.dataclass(eq=False, slots=True, kw_only=True)
class _Open:
    """A watch under way: lines to send; None in the queue ends it."""

    watcher: Watcher
    bookmarks: bool
    queue: asyncio.Queue[bytes | None] = dataclasses.field(default_factory=asyncio.Queue)
    aborts: bool = False
    silent: bool = False


class Watches:
    """The open watches of one world."""

    def __init__(self, objects: World) -> None:
        self._world = objects
        self._open: list[_Open] = []

    def count(self, plural: str) -> int:
        """How many watches of a kind are open."""
        return len(self._of(plural))

    # Orders

    def bookmark(self, plural: str) -> None:
        """Send a bookmark, hollow as the real one's: null where a pod has its containers."""
        hollow = {"kind": "Pod", "metadata": {"resourceVersion": str(self._world.revision), "creationTimestamp": None}}
        line = world.event_line("BOOKMARK", {**hollow, "spec": {"containers": None}, "status": {}})
        self._send(plural, line, only_bookmarked=True)

    def end(self, plural: str | None = None) -> None:
        """End watches in good order, as after their timeoutSeconds."""
        for one in self._of(plural):
            one.queue.put_nowait(None)

    def cut(self, plural: str, *, mid_line: bool = True, abort: bool = True) -> None:
        """Break watches off, in the middle of a line or between two; without `abort` with a tidy end of the body."""
        for one in self._of(plural):
            if mid_line:
                one.queue.put_nowait(b'{"type":"MODIFIED","object":{"metadata":{"na')
            one.aborts = abort
            one.queue.put_nowait(None)

    def expire(self, plural: str) -> None:
        """Send an ERROR 410 and end, as etcd's compaction does; older revisions are gone for new watches too."""
        self._world.compacted = self._world.revision
        status = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}
        self._send(plural, world.event_line("ERROR", status))
        self.end(plural)

    def silence(self, plural: str) -> None:
        """Keep watches open, but tell nothing more on them; new watches are well. They can still be ended or cut."""
        for one in self._of(plural):
            one.silent = True
            one.watcher.send = lambda _: None

    def speak(self, plural: str) -> None:
        """Let silenced watches tell again; what they missed stays missed."""
        for one in self._of(plural):
            one.silent = False
            one.watcher.send = one.queue.put_nowait

    def replay(self, plural: str, *, last: int = 5) -> None:
        """Send the last events once more, oldest first."""
        for one in self._of(plural):
            for step in self._world.histories[plural][-last:]:
                if not one.silent and (line := one.watcher.line(step)):
                    one.queue.put_nowait(line)

    def send_line(self, plural: str, line: bytes) -> None:
        """Send any line, as it stands."""
        self._send(plural, line)

    # Serving

    async def serve(self, request: web.Request, watcher: Watcher, query: dict[str, str]) -> web.StreamResponse:
        """Answer a WATCH: what happened since its resourceVersion, then what happens."""
        since = int(query.get("resourceVersion") or 0)
        if since < self._world.compacted:
            raise world.Refused(410, "Expired", f"too old resource version: {since} ({self._world.compacted})")
        if since > self._world.revision:
            raise world.Refused(504, "Timeout", f"Too large resource version: {since} ({self._world.revision})")
        one = _Open(watcher=watcher, bookmarks=query.get("allowWatchBookmarks") == "true")
        for step in self._world.histories[watcher.plural]:
            if step.revision > since and (line := watcher.line(step)):
                one.queue.put_nowait(line)
        watcher.send = one.queue.put_nowait
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._world.watchers.append(watcher)
        self._open.append(one)
        try:
            await response.prepare(request)
            await asyncio.wait_for(self._pump(one, response), timeout=float(query.get("timeoutSeconds", "300")))
        except (TimeoutError, ConnectionError):
            pass  # the watch's time is up, or its client is gone
        finally:
            self._world.watchers.remove(watcher)
            self._open = [other for other in self._open if other is not one]
        if one.aborts and request.transport is not None:
            request.transport.abort()
        return response

    async def _pump(self, one: _Open, response: web.StreamResponse) -> None:
        while (line := await one.queue.get()) is not None:
            batch = [line]
            while not one.queue.empty() and one.queue._queue[0] is not None:  # type: ignore[attr-defined] # a peek
                batch.append(one.queue.get_nowait() or b"")
            await response.write(b"".join(batch))

    def _of(self, plural: str | None) -> list[_Open]:
        return [one for one in self._open if plural in {None, one.watcher.plural}]

    def _send(self, plural: str, line: bytes, *, only_bookmarked: bool = False) -> None:
        for one in self._of(plural):
            if not one.silent and (one.bookmarks or not only_bookmarked):
                one.queue.put_nowait(line)
