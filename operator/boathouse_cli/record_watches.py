"""Lists and watches of one kind each, which go on after all that breaks a watch: expiry, a lost connection, errors."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import queue
import threading
import time
from typing import TYPE_CHECKING, Final

from boathouse_cli import record_keeping
from boathouse_cli.errors import CommandError, ExpiredError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boathouse_cli import model
    from boathouse_cli.gateway import Gateway

BROKEN = (ValueError, KeyError, TypeError, AttributeError)
"""What the client raises for an answer that is none of an API server."""
BACKOFF_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits after failures that follow one another."""
_SHORT_S: Final = 1.0
"""A watch that ends sooner counts as a failure."""
_DELETED: Final = "DELETED"
_SEEN: Final = frozenset({"ADDED", "MODIFIED", _DELETED})


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """An object that was seen."""

    plural: str
    raw: model.Raw
    is_gone: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Synced:
    """A whole list was seen."""

    plural: str
    present: set[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """What went wrong with a watch; empty: it goes well again."""

    plural: str
    text: str


Message = Change | Synced | Note


class Watch:
    """Lists and watches objects of a kind, and passes on what it sees.

    Args:
        gateway: The cluster.
        plural: The kind.
        all_namespaces: Whether the objects of all namespaces, or of the gateway's.
        messages: Where a thread passes it on.
        stop: Ends the thread.
    """

    def __init__(
        self,
        gateway: Gateway,
        plural: str,
        *,
        all_namespaces: bool,
        messages: queue.Queue[Message],
        stop: threading.Event,
    ) -> None:
        self.plural = plural
        self._gateway, self._all_namespaces = gateway, all_namespaces
        self._messages, self._stop = messages, stop
        self._opened: Iterator[tuple[list[model.Raw], str]] = iter(())
        self._revision = ""
        self._is_broken = False

    def open(self) -> None:
        """Read the first page.

        Raises:
            CommandError: It cannot be read.
        """
        pages = self._gateway.pages(self.plural, all_namespaces=self._all_namespaces)
        self._opened = itertools.chain([next(pages)], pages)

    def pass_list_on(self, take: Callable[[Message], object]) -> None:
        """Pass on all objects, from the page that was opened on. A list that expires on the way is begun anew later.

        Raises:
            CommandError: They cannot be read.
        """
        present: set[str] = set()
        pages, self._opened = self._opened, iter(())
        try:
            for items, self._revision in pages:
                for raw in items:
                    present.add(record_keeping.identity(self.plural, raw))
                    take(Change(self.plural, raw))
        except ExpiredError:
            self._revision = ""
        else:
            take(Synced(self.plural, present))

    def start(self) -> None:
        """Follow the objects in a thread, until the recording stops."""
        threading.Thread(target=self._follow, name=f"watch-{self.plural}", daemon=True).start()

    def _follow(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began_s = time.monotonic()
            problem = self._watch_once()
            if problem:
                self._put(Note(self.plural, problem))
                self._is_broken = True
            # A server that ends each watch at once is no reason for a busy loop either.
            is_well = not problem and time.monotonic() - began_s > _SHORT_S
            failures = 0 if is_well else failures + 1
            if failures:
                self._stop.wait(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    def _watch_once(self) -> str:
        """Watch until the server ends it; return what went wrong, empty for nothing."""
        try:
            if not self._revision:
                self.open()
                self.pass_list_on(self._put)
            self._watch()
        except ExpiredError:
            self._revision = ""
        except CommandError as error:
            return str(error)
        except BROKEN as error:
            self._revision = ""
            return f"an answer is not understood: {error!r:.100}"
        return ""

    def _watch(self) -> None:
        changes = self._gateway.changes(self.plural, self._revision, all_namespaces=self._all_namespaces)
        for kind, raw in changes:
            if kind in _SEEN:
                self._put(Change(self.plural, raw, kind == _DELETED))
            self._revision = raw["metadata"]["resourceVersion"]
            if self._stop.is_set():
                return
            if self._is_broken:
                self._put(Note(self.plural, ""))
                self._is_broken = False

    def _put(self, message: Message) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(queue.Full):
                self._messages.put(message, timeout=1.0)
                return
