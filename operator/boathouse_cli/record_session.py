"""Record a cluster into a file, until the time is over, the file is full, or somebody stops it."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rich import console

from boathouse.resources import quantity
from boathouse_cli import kinds, record_keeping, record_lines, text, usage
from boathouse_cli.errors import CommandError, ExitCode, ForbiddenError, UnknownKindError
from boathouse_cli.record_keeping import NODES, PODS
from boathouse_cli.record_watches import BROKEN, Change, Message, Note, Synced, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from boathouse_cli.gateway import Gateway

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

    Args:
        gateway: The cluster.
        path: The file; a recording in it is continued.
        request: What is recorded.
        stop: Ends the recording when it is set.
        now: The clock of the lines, in seconds since the epoch.

    Raises:
        CommandError: The cluster does not answer or refuses what is needed, or the file cannot be used.
    """
    screen = console.Console(stderr=True)
    with record_keeping.appending(path) as file:
        keeper = record_keeping.Keeper(file, request.max_bytes, now)
        for line, length in record_keeping.read_lines(path):
            record_keeping.check_scope(line, _namespace(gateway, request))
            keeper.load(line, length)
        session = _Session(gateway, request, keeper, screen, stop or threading.Event())
        session.begin(now())
        try:
            with _ended_by_sigterm():
                session.run()
        except KeyboardInterrupt:
            screen.print("stopped")
        finally:
            session.end()
        _conclude(path, keeper, screen, max_bytes=request.max_bytes)


def _namespace(gateway: Gateway, request: Request) -> str:
    return "" if request.all_namespaces else gateway.namespace


def _conclude(path: Path, keeper: record_keeping.Keeper, screen: console.Console, *, max_bytes: int) -> None:
    if keeper.is_full:
        size = text.size(max_bytes)
        screen.print(f"{path} has reached {size}: pass a larger --max-mib to go on", highlight=False, soft_wrap=True)
    _say(screen, f"{_told(keeper)}; `boathouse record {path} --write workload.json` makes a workload of it")


def _say(screen: console.Console, line: str) -> None:
    screen.print(line, highlight=False, markup=False, soft_wrap=True)


def _told(keeper: record_keeping.Keeper) -> str:
    aside = sum(keeper.aside.values())
    reasons = ", ".join(f"{count} {why}" for why, count in keeper.aside.most_common(3))
    return (
        f"recorded {keeper.jobs} jobs, {keeper.ended_jobs} of which have ended, {keeper.pods} pods and "
        f"{keeper.nodes} nodes{f'; set aside {reasons}' if aside else ''}"
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
        keeper: record_keeping.Keeper,
        screen: console.Console,
        stop: threading.Event,
    ) -> None:
        self._gateway, self._request, self._keeper, self._screen = gateway, request, keeper, screen
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
        unread = [] if any(one.plural == NODES for one in self._watches) else [NODES]
        profile, configured = self._configuration()
        if not profile:
            unread.append("the operator's configuration")
        self._keeper.begin(
            record_lines.Begin(
                at_s=at_s,
                namespace=_namespace(self._gateway, self._request),
                profile=profile,
                queues=tuple(_queue(name, one) for name, one in configured.items()),
                unread=tuple(unread),
            )
        )
        for one in self._watches:
            one.pass_list_on(self._handle)
        self._keeper.mark()
        _say(self._screen, f"{_told(self._keeper)} so far")

    def _readable(self) -> Iterator[Watch]:
        """Yield a watch for what the user may read, its first page read.

        Raises:
            CommandError: Pods or jobs may not be read, or the cluster does not answer.
        """
        all_namespaces, unknown = self._request.all_namespaces, []
        for plural in (NODES, *(kind.plural for kind in kinds.JOBS), PODS):
            one = Watch(self._gateway, plural, all_namespaces=all_namespaces, messages=self._messages, stop=self._stop)
            try:
                one.open()
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
                yield one

    def _configuration(self) -> tuple[str, dict[str, usage.Configured]]:
        """Return the operator's profile and queues; an empty name if they cannot be read."""
        try:
            config = self._gateway.operator_config(self._request.operator_namespace)
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
        for one in self._watches:
            one.start()
        began_s = told_s = marked_s = time.monotonic()
        with self._screen.status("") as shown:
            while not self._stop.is_set() and not self._keeper.is_full:
                now_s = time.monotonic()
                if now_s - began_s >= self._request.for_s:
                    return
                if now_s - marked_s >= MARK_EVERY_S:
                    self._keeper.mark()
                    marked_s = now_s
                if now_s - told_s >= LINE_EVERY_S and not self._screen.is_terminal:
                    _say(self._screen, _told(self._keeper))
                    told_s = now_s
                shown.update(f"{_told(self._keeper)}; Ctrl-C ends", spinner="dots")
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
            self._keeper.mark()

    def _handle(self, message: Message) -> None:
        match message:
            case Change(plural, raw, is_gone):
                self._keeper.saw(plural, raw, is_gone=is_gone)
            case Synced(plural, present):
                self._keeper.synced(plural, present)
            case Note(plural, told):
                if told and self._broken.get(plural) != told:
                    _say(self._screen, f"{plural}: {told}; trying again")
                if not told and self._broken.get(plural):
                    _say(self._screen, f"{plural}: watched again")
                self._broken[plural] = told


def _queue(name: str, one: usage.Configured) -> record_lines.Queue:
    limits = {}
    for resource, field, read in _LIMITS:
        with contextlib.suppress(ValueError):
            if resource in one.limits:
                limits[field] = read(one.limits[resource])
    return record_lines.Queue(name=name, weight=one.weight, limits=limits)


_LIMITS: Final = (
    ("cpu", "cpu_milli", quantity.milli),
    ("memory", "memory_bytes", quantity.units),
    ("pods", "pods", quantity.units),
)
