"""Record a cluster into a file, until the time is over, the file is full, or somebody stops it.

Each kind has a list and a watch, which go on after all that breaks a watch: expiry, a lost connection, errors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rich import console

from boathouse.resources import quantity
from boathouse_cli import gateway as gateways
from boathouse_cli import kinds, model, record_keeping, record_lines, usage
from boathouse_cli.errors import CommandError, ExitCode, ExpiredError, ForbiddenError, UnknownKindError
from boathouse_cli.record_keeping import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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

    def forward_list(self, take: Callable[[Message], object]) -> None:
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
                self.forward_list(self._put)
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


MARK_EVERY_S: Final = 60.0
LINE_EVERY_S: Final = 600.0
"""Interval of lines of progress where stderr is not a terminal."""
_PATIENCE: Final = 2000
"""Changes that wait to be written; then watches wait."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is recorded.

    Attributes:
        all_namespaces: Whether those of all namespaces, or of the gateway's.
        operator_namespace: Where the operator's configuration is.
        for_s: How long; 0 for a look at what is there.
        max_bytes: Size of the file at which the recording ends.
    """

    all_namespaces: bool
    operator_namespace: str
    for_s: float
    max_bytes: int


def record(
    gateway: Gateway,
    path: Path,
    request: Request,
    *,
    stop: threading.Event | None = None,
    now: Callable[[], float] = time.time,
) -> None:
    """Record until the time is over, the file is full, or somebody stops it.

    Raises:
        CommandError: The cluster does not answer or refuses what is needed, or the file cannot be used.
    """
    screen = console.Console(stderr=True)
    with record_keeping.appending(path) as file:
        recorder = record_keeping.Recorder(file, request.max_bytes, now)
        for line, length in record_keeping.read_lines(path):
            record_keeping.check_scope(line, _namespace(gateway, request))
            recorder.load(line, length)
        session = _Session(gateway, request, recorder, screen, stop or threading.Event())
        session.begin(now())
        try:
            with _ended_by_sigterm():
                session.run()
        except KeyboardInterrupt:
            screen.print("stopped")
        finally:
            session.end()
        _conclude(path, recorder, screen, max_bytes=request.max_bytes)


def _namespace(gateway: Gateway, request: Request) -> str:
    return "" if request.all_namespaces else gateway.namespace


def _conclude(path: Path, recorder: record_keeping.Recorder, screen: console.Console, *, max_bytes: int) -> None:
    if recorder.is_full:
        size = model.size(max_bytes)
        screen.print(f"{path} has reached {size}: pass a larger --max-mib to go on", highlight=False, soft_wrap=True)
    _say(screen, f"{_summary(recorder)}; `boathouse record {path} --write workload.json` makes a workload of it")


def _say(screen: console.Console, line: str) -> None:
    screen.print(line, highlight=False, markup=False, soft_wrap=True)


def _summary(recorder: record_keeping.Recorder) -> str:
    aside = sum(recorder.aside.values())
    reasons = ", ".join(f"{count} {why}" for why, count in recorder.aside.most_common(3))
    return (
        f"recorded {recorder.jobs} jobs, {recorder.ended_jobs} of which have ended, {recorder.pods} pods and "
        f"{recorder.nodes} nodes{f'; set aside {reasons}' if aside else ''}"
    )


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the recording as Ctrl-C does, in the main thread; it is the default elsewhere."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Session:
    """One run of the command."""

    def __init__(
        self,
        gateway: Gateway,
        request: Request,
        recorder: record_keeping.Recorder,
        screen: console.Console,
        stop: threading.Event,
    ) -> None:
        self._gateway, self._request, self._recorder, self._screen = gateway, request, recorder, screen
        self._stop = stop
        self._messages: queue.Queue[Message] = queue.Queue(_PATIENCE)
        self._watches: list[Watch] = []
        self._broken: dict[str, str] = {}

    def begin(self, at_s: float) -> None:
        """List all, and write what is there.

        Raises:
            CommandError: Pods or jobs may not be read, or the cluster does not answer.
        """
        self._watches = list(self._readable())
        unread = [] if any(watch.plural == NODES for watch in self._watches) else [NODES]
        profile, configured = self._configuration()
        if not profile:
            unread.append("the operator's configuration")
        self._recorder.begin(
            record_lines.Begin(
                at_s=at_s,
                namespace=_namespace(self._gateway, self._request),
                profile=profile,
                queues=tuple(_queue(name, settings) for name, settings in configured.items()),
                unread=tuple(unread),
            )
        )
        for watch in self._watches:
            watch.forward_list(self._handle)
        self._recorder.mark()
        _say(self._screen, f"{_summary(self._recorder)} so far")

    def _readable(self) -> Iterator[Watch]:
        """Yield a watch for what the user may read, its first page read.

        Raises:
            CommandError: Pods or jobs may not be read, or the cluster does not answer.
        """
        all_namespaces, unknown = self._request.all_namespaces, []
        for plural in (NODES, *(kind.plural for kind in kinds.JOBS), PODS):
            watch = Watch(
                self._gateway, plural, all_namespaces=all_namespaces, messages=self._messages, stop=self._stop
            )
            try:
                watch.open()
            except UnknownKindError as error:
                unknown.append(error)
                if len(unknown) == len(kinds.JOBS):
                    raise
            except ForbiddenError as error:
                if plural != NODES:
                    more = ", or pass -n NAMESPACE to record one namespace" if all_namespaces else ""
                    raise CommandError(f"{error}{more}") from error
                _say(self._screen, f"the sizes of nodes are not recorded: {error}")
            else:
                yield watch

    def _configuration(self) -> tuple[str, dict[str, usage.Configured]]:
        """Return the operator's profile and queues; an empty name if they cannot be read."""
        try:
            config = self._gateway.data(self._request.operator_namespace, *gateways.CONFIG)
            return str(config.get("profile") or "boathouse"), usage.configured(config)
        except (CommandError, *BROKEN) as error:
            is_missing = isinstance(error, CommandError) and error.code is ExitCode.NOT_FOUND
            where = f"namespace {self._request.operator_namespace} has no Boathouse: pass --operator-namespace"
            _say(self._screen, f"queues and profile are not recorded: {where if is_missing else error}")
            return "", {}

    def run(self) -> None:
        """Follow the cluster until the recording ends."""
        if not self._request.for_s:
            return
        for watch in self._watches:
            watch.start()
        began_s = reported_s = marked_s = time.monotonic()
        with self._screen.status("") as shown:
            while not self._stop.is_set() and not self._recorder.is_full:
                now_s = time.monotonic()
                if now_s - began_s >= self._request.for_s:
                    return
                if now_s - marked_s >= MARK_EVERY_S:
                    self._recorder.mark()
                    marked_s = now_s
                if now_s - reported_s >= LINE_EVERY_S and not self._screen.is_terminal:
                    _say(self._screen, _summary(self._recorder))
                    reported_s = now_s
                shown.update(f"{_summary(self._recorder)}; Ctrl-C ends", spinner="dots")
                self._take(min(1.0, self._request.for_s - (now_s - began_s)))

    def _take(self, timeout_s: float) -> None:
        """Handle what waits; wait for the first of it."""
        with contextlib.suppress(queue.Empty):
            self._handle(self._messages.get(timeout=timeout_s))
            for _ in range(_PATIENCE):
                self._handle(self._messages.get_nowait())

    def end(self) -> None:
        """Write what has been seen."""
        self._stop.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(self._messages.get_nowait())
        if self._watches:
            self._recorder.mark()

    def _handle(self, message: Message) -> None:
        match message:
            case Change(plural, raw, is_gone):
                self._recorder.observe(plural, raw, is_gone=is_gone)
            case Synced(plural, present):
                self._recorder.synced(plural, present)
            case Note(plural, problem):
                if problem and self._broken.get(plural) != problem:
                    _say(self._screen, f"{plural}: {problem}; trying again")
                if not problem and self._broken.get(plural):
                    _say(self._screen, f"{plural}: watched again")
                self._broken[plural] = problem


def _queue(name: str, configured: usage.Configured) -> record_lines.Queue:
    limits = {}
    for resource, field, read in _LIMITS:
        with contextlib.suppress(ValueError):
            if resource in configured.limits:
                limits[field] = read(configured.limits[resource])
    return record_lines.Queue(name=name, weight=configured.weight, limits=limits)


_LIMITS: Final = (
    ("cpu", "cpu_milli", quantity.milli),
    ("memory", "memory_bytes", quantity.units),
    ("pods", "pods", quantity.units),
)
