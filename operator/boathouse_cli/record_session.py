"""Record a cluster into a file, until the time is over, the file is full, or somebody stops it.

Each kind has a list and a watch, which go on after all that breaks a watch: expiry, a lost connection, errors.
"""

import contextlib
import dataclasses
import functools
import itertools
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from rich import console

from boathouse.resources import quantity
from boathouse_cli import kinds, model, record_keeping, record_lines, usage
from boathouse_cli.errors import CommandError, ExitCode, ExpiredError, ForbiddenError, UnknownKindError, UsageError
from boathouse_cli.gateway import CONFIG, Gateway

BROKEN = (ValueError, KeyError, TypeError, AttributeError)
"""What the client raises for an answer that is none of an API server."""
BACKOFF_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits after failures that follow one another."""
_SHORT_S: Final = 1.0
"""A watch that ends sooner counts as a failure."""
_DELETED: Final = "DELETED"
MARK_EVERY_S: Final = 60.0
LINE_EVERY_S: Final = 600.0
"""Interval of lines of progress where stderr is not a terminal."""
_PATIENCE: Final = 2000
"""Changes that wait to be written; then watches wait."""
_LIMITS: Final = (
    ("cpu", "cpu_milli", quantity.milli),
    ("memory", "memory_bytes", quantity.units),
    ("pods", "pods", quantity.units),
)
Step: TypeAlias = Callable[[], object]
"""What the thread that writes does with what a watch has seen."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is recorded, for how long (0 s: what is there now), and the size of the file at which it ends."""

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
    """Record until the time is over, the file is full, or somebody stops it."""
    with record_keeping.appending(path) as file:
        recorder = record_keeping.Recorder(file, request.max_bytes, now)
        session = _Session(gateway, request, recorder, stop or threading.Event())
        for line, length in record_keeping.read_lines(path):
            if isinstance(line, record_lines.Begin) and line.namespace != session.namespace:
                only = f"namespace {line.namespace}: pass -n {line.namespace}"
                has = only if line.namespace else "all namespaces: omit -n"
                raise UsageError(f"the file records {has}, or choose another file")
            recorder.load(line, length)
        session.begin(now())
        try:
            with _ended_by_sigterm():
                session.run()
        except KeyboardInterrupt:
            session.say("stopped")
        finally:
            session.end()
        if recorder.is_full:
            session.say(f"{path} has reached {model.size(request.max_bytes)}: pass a larger --max-mib to go on")
        session.say(f"{recorder.summary}; `boathouse record {path} --write workload.json` makes a workload of it")


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
    def __init__(
        self, gateway: Gateway, request: Request, recorder: record_keeping.Recorder, stop: threading.Event
    ) -> None:
        self.gateway, self.request, self.recorder, self.stop = gateway, request, recorder, stop
        self.namespace = "" if request.all_namespaces else gateway.namespace
        self._screen = console.Console(stderr=True)
        self._steps: queue.Queue[Step] = queue.Queue(_PATIENCE)
        self._watches: list[_Watch] = []

    def say(self, line: str) -> None:
        self._screen.print(line, highlight=False, markup=False, soft_wrap=True)

    def begin(self, at_s: float) -> None:
        """List all, and write what is there."""
        self._watches = list(self._readable())
        unread = [] if any(watch.plural == record_keeping.NODES for watch in self._watches) else [record_keeping.NODES]
        profile, configured = self._configuration()
        if not profile:
            unread.append("the operator's configuration")
        queues = tuple(_queue(name, settings) for name, settings in configured.items())
        self.recorder.begin(
            record_lines.Begin(
                at_s=at_s, namespace=self.namespace, profile=profile, queues=queues, unread=tuple(unread)
            )
        )
        for watch in self._watches:
            watch.forward_list(lambda step: step())
        self.recorder.mark()
        self.say(f"{self.recorder.summary} so far")

    def _readable(self) -> "Iterator[_Watch]":
        """Yield a watch for what the user may read, its first page read."""
        unknown = 0
        for plural in (record_keeping.NODES, *(kind.plural for kind in kinds.JOBS), record_keeping.PODS):
            watch = _Watch(self, plural)
            try:
                watch.open()
            except UnknownKindError:
                unknown += 1
                if unknown == len(kinds.JOBS):
                    raise
            except ForbiddenError as error:
                if plural != record_keeping.NODES:
                    more = ", or pass -n NAMESPACE to record one namespace" if self.request.all_namespaces else ""
                    raise CommandError(f"{error}{more}") from error
                self.say(f"the sizes of nodes are not recorded: {error}")
            else:
                yield watch

    def _configuration(self) -> tuple[str, dict[str, usage.Configured]]:
        """Return the operator's profile and queues; an empty name if they cannot be read."""
        namespace = self.request.operator_namespace
        try:
            config = self.gateway.data(namespace, *CONFIG)
            return str(config.get("profile") or "boathouse"), usage.configured(config)
        except (CommandError, *BROKEN) as error:
            is_missing = isinstance(error, CommandError) and error.code is ExitCode.NOT_FOUND
            where = f"namespace {namespace} has no Boathouse: pass --operator-namespace"
            self.say(f"queues and profile are not recorded: {where if is_missing else error}")
            return "", {}

    def run(self) -> None:
        if not self.request.for_s:
            return
        for watch in self._watches:
            threading.Thread(target=watch.follow, name=f"watch-{watch.plural}", daemon=True).start()
        began_s = reported_s = marked_s = time.monotonic()
        with self._screen.status("") as shown:
            while not self.stop.is_set() and not self.recorder.is_full:
                now_s = time.monotonic()
                left_s = self.request.for_s - (now_s - began_s)
                if left_s <= 0:
                    return
                if now_s - marked_s >= MARK_EVERY_S:
                    self.recorder.mark()
                    marked_s = now_s
                if now_s - reported_s >= LINE_EVERY_S and not self._screen.is_terminal:
                    self.say(self.recorder.summary)
                    reported_s = now_s
                shown.update(f"{self.recorder.summary}; Ctrl-C ends", spinner="dots")
                with contextlib.suppress(queue.Empty):
                    self._steps.get(timeout=min(1.0, left_s))()
                    for _ in range(_PATIENCE):
                        self._steps.get_nowait()()

    def put(self, step: Step) -> None:
        """Let the main thread do a step, unless the recording has ended."""
        while not self.stop.is_set():
            with contextlib.suppress(queue.Full):
                self._steps.put(step, timeout=1.0)
                return

    def end(self) -> None:
        """Write what has been seen."""
        self.stop.set()
        with contextlib.suppress(queue.Empty):
            while True:
                self._steps.get_nowait()()
        if self._watches:
            self.recorder.mark()


class _Watch:
    """Lists and watches objects of a kind; what it sees is written by the session's thread."""

    def __init__(self, session: _Session, plural: str) -> None:
        self.plural, self._session, self._all_namespaces = plural, session, session.request.all_namespaces
        self._opened: Iterator[tuple[list[model.Raw], str]] = iter(())
        self._revision = self._problem = ""

    def open(self) -> None:
        pages = self._session.gateway.pages(self.plural, all_namespaces=self._all_namespaces)
        self._opened = itertools.chain([next(pages)], pages)

    def forward_list(self, put: Callable[[Step], object]) -> None:
        """Pass on all objects, from the page that was opened on. A list that expires on the way is begun anew later."""
        present: set[str] = set()
        pages, self._opened = self._opened, iter(())
        try:
            for items, self._revision in pages:
                for raw in items:
                    present.add(record_keeping.identity(self.plural, raw))
                    put(functools.partial(self._session.recorder.observe, self.plural, raw))
        except ExpiredError:
            self._revision = ""
        else:
            put(functools.partial(self._session.recorder.synced, self.plural, present))

    def follow(self) -> None:
        """Follow the objects until the recording stops."""
        failures = 0
        while not self._session.stop.is_set():
            began_s = time.monotonic()
            problem = self._watch_once()
            if problem and problem != self._problem:
                self._say(f"{problem}; trying again")
            self._problem = problem or self._problem
            # A server that ends each watch at once is no reason for a busy loop either.
            failures = 0 if not problem and time.monotonic() - began_s > _SHORT_S else failures + 1
            if failures:
                self._session.stop.wait(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1])

    def _watch_once(self) -> str:
        """Watch until the server ends it; return what went wrong, empty for nothing."""
        session = self._session
        try:
            if not self._revision:
                self.open()
                self.forward_list(session.put)
            for kind, raw in session.gateway.changes(self.plural, self._revision, all_namespaces=self._all_namespaces):
                if kind in {"ADDED", "MODIFIED", _DELETED}:
                    session.put(functools.partial(session.recorder.observe, self.plural, raw, is_gone=kind == _DELETED))
                self._revision = raw["metadata"]["resourceVersion"]
                if session.stop.is_set():
                    break
                if self._problem:
                    self._say("watched again")
                    self._problem = ""
        except ExpiredError:
            self._revision = ""
        except CommandError as error:
            return str(error)
        except BROKEN as error:
            self._revision = ""
            return f"an answer is not understood: {error!r:.100}"
        return ""

    def _say(self, what: str) -> None:
        self._session.put(functools.partial(self._session.say, f"{self.plural}: {what}"))


def _queue(name: str, configured: usage.Configured) -> record_lines.Queue:
    limits = {}
    for resource, field, read in _LIMITS:
        with contextlib.suppress(ValueError):
            if resource in configured.limits:
                limits[field] = read(configured.limits[resource])
    return record_lines.Queue(name=name, weight=configured.weight, limits=limits)
