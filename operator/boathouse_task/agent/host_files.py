"""Orders and requests of an agent as files, in folders that containers of a user's image can write too.

Such a container can replace a file by anything: a symbolic link to a file of the agent's own container, a pipe without
a writer, or an endless file. Nothing of this blocks the agent, or makes it read or write outside of the folder.

The orders are stored first and the exclude files derived from them, so after a crash between two writes the agent
writes the exclude files again. Each write is atomic and reaches the disk before it counts. A file that the agent cannot
have written, because another container replaced it, counts as absent.

HDFS and YARN read the exclude files again whenever they could have missed a change. Of each daemon the agent keeps what
it has read last: the exclude list, when the daemon started, and the addresses of the listed DataNodes, which the
NameNode resolves when it reads the list. If any of these changes, the agent requests another refresh. A new agent knows
none of it and requests one too.
"""

import errno
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from boathouse_task.cluster_contract import (
    HDFS_EXCLUDE,
    MOST_LEAVING,
    YARN_EXCLUDE,
    AgentSpec,
    Host,
    Leaving,
    Request,
    Version,
)
from boathouse_task.errors import say
from boathouse_task.failpoints import Failpoints
from boathouse_task.rest import clip

AGENT = Failpoints("BOATHOUSE_AGENT_FAILPOINT", ("file", "refresh-request", "report"))
"""`file`: the orders or an exclude file; at its start an agent writes the two exclude files."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_SPECIAL = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""What opening a symbolic link, a socket or a folder fails with."""


class UnusableError(Exception):
    """There is something else than a regular file of at most the expected size."""


def read(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises FileNotFoundError, OSError if it cannot be read, or UnusableError if it is something else or larger.
    """
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise UnusableError(f"{path} is not a regular file")
            content = opened.read(most_bytes + 1)
    except OSError as error:
        if error.errno in _SPECIAL:
            raise UnusableError(f"{path} is not a regular file") from None
        raise
    if len(content) > most_bytes:
        raise UnusableError(f"{path} is larger than {most_bytes} bytes")
    return content


def replace(path: Path, content: bytes) -> None:
    """Write a file so that it has its old or its new content after a crash at any time. Raises OSError."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as opened:  # exclusive, so it follows no link
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


MOST_ORDERS_BYTES = 65_536
_ORDERS = "orders.json"
_MOST_WORDS_BYTES = 64
_MESSAGE_CHARS = 300
_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.-]{1,253}\Z")]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The orders that the agent holds."""

    version: Version = Version()
    leaving: Annotated[list[Leaving], msgspec.Meta(max_length=MOST_LEAVING)] = []
    names: Annotated[dict[Host, _Name], msgspec.Meta(max_length=MOST_LEAVING)] = {}
    """The names that the nodes of `leaving` registered, as far as they are known."""


class Done(msgspec.Struct, frozen=True):
    """The last request that the container `refresh` carried out, with the command's exit status."""

    number: int
    status: int


class HostFiles:
    """Files of an agent."""

    def __init__(self, spec: AgentSpec) -> None:
        self._folder, self._shared, self._domain = Path(spec.files_path), Path(spec.refresh_path), spec.domain
        self._logged: set[str] = set()

    def read(self) -> Stored:
        """Return the stored orders. Raises OSError if the volume cannot be read."""
        content = self._read(self._folder / _ORDERS, MOST_ORDERS_BYTES)
        if content is None:
            return Stored()
        try:
            return msgspec.json.decode(content, type=Stored)
        except (msgspec.DecodeError, RecursionError) as error:  # the operator sends the orders again
            self._log(f"{_ORDERS} is damaged: {error}")
            return Stored()

    def write(self, stored: Stored) -> None:
        """Store orders and derive the exclude files. Raises OSError if the volume cannot be written."""
        self._write(self._folder / _ORDERS, msgspec.json.encode(stored))
        self.derive(stored)

    def derive(self, stored: Stored) -> None:
        """Write the exclude files of stored orders. Raises OSError if the volume cannot be written."""
        self._write(self._folder / HDFS_EXCLUDE, self.hdfs_exclude(stored).encode())
        self._write(self._folder / YARN_EXCLUDE, self.yarn_exclude(stored).encode())

    def names(self, stored: Stored) -> dict[str, str]:
        """Return the names of the nodes that leave, by host: those by which the daemons know them."""
        return {node.host: stored.names.get(node.host, f"{node.host}.{self._domain}") for node in stored.leaving}

    def hdfs_exclude(self, stored: Stored) -> str:
        """Return the list of nodes whose DataNodes are decommissioned."""
        names = self.names(stored)
        return "".join(f"{names[node.host]}\n" for node in stored.leaving if node.stores)

    def yarn_exclude(self, stored: Stored) -> str:
        """Return the list of nodes whose NodeManagers are decommissioned, with timeouts in seconds."""
        names = self.names(stored)
        hosts = "".join(
            f"  <host><name>{names[node.host]}</name><timeout>{node.timeout_s}</timeout></host>\n"
            for node in stored.leaving
        )
        return f'<?xml version="1.0"?>\n<hosts>\n{hosts}</hosts>\n'

    def request(self, kind: Request) -> int:
        """Request a command of the container `refresh`; return the request's number. Raises OSError if that fails."""
        path = self._shared / f"{kind.value}.want"
        number = max([0, *self._numbers(path)[:1], *self._numbers(path.with_suffix(".done"))[:1]]) + 1
        self._write(path, f"{number}\n".encode(), "refresh-request")
        return number

    def done(self, kind: Request) -> Done | None:
        """Return the last request that was carried out, or None. Raises OSError if the folder cannot be read."""
        numbers = self._numbers(self._shared / f"{kind.value}.done")
        return Done(*numbers) if len(numbers) == len(Done.__struct_fields__) else None

    def _write(self, path: Path, content: bytes, failpoint: str = "file") -> None:
        AGENT.hit(f"before-{failpoint}")
        replace(path, content)
        AGENT.hit(f"after-{failpoint}")

    def _numbers(self, path: Path) -> list[int]:
        """Return the decimal numbers in a file, none if there is no such file or it has something else."""
        words = (self._read(path, _MOST_WORDS_BYTES) or b"").decode("ascii", "replace").split()
        return [int(word) for word in words] if all(word.isascii() and word.isdecimal() for word in words) else []

    def _read(self, path: Path, most_bytes: int) -> bytes | None:
        """Return the content of a file, or None if there is none that the agent can have written."""
        try:
            return read(path, most_bytes)
        except FileNotFoundError:
            return None
        except UnusableError as error:
            self._log(str(error))
            return None

    def _log(self, text: str) -> None:
        """Write a message to the agent's log, once: the files are read in every round."""
        message = clip(f"{text}: it counts as absent", _MESSAGE_CHARS)
        if message not in self._logged:
            self._logged.add(message)
            say(message)


DISTANCE_S = 5.0
"""Minimum time between requests of one kind: each starts a JVM."""
RETRY_S = 30.0
"""Time after which a request that failed is sent again."""
PATIENCE_S = 180.0
"""Time after which a request that is not carried out is an error. The commands have a limit of 60 s each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a daemon should have read: since its start, the exclude list with the addresses that it resolves."""

    started_s: int
    hosts: str
    addresses: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Daemon:
    """What a daemon has read, and the last request, by which it reads `sent`."""

    read: Wanted | None = None
    sent: Wanted | None = None
    number: int = 0
    sent_s: float = -math.inf
    error: str = ""


class Refresher:
    """Requests refreshes of the daemons. `clock` returns monotonic seconds."""

    def __init__(self, files: HostFiles, clock: Callable[[], float]) -> None:
        self._files, self._clock = files, clock
        self._daemons = {kind: _Daemon() for kind in Request}

    @property
    def error(self) -> str:
        """What went wrong last, or ""."""
        return "; ".join(daemon.error for daemon in self._daemons.values() if daemon.error)

    def update(self, wanted: Mapping[Request, Wanted]) -> bool:
        """Take results of requests and request what is missing; return whether the daemons have read what they should.

        Raises OSError if the files of the requests cannot be read or written.
        """
        for kind, state in wanted.items():
            daemon, done = self._daemons[kind], self._files.done(kind)
            if daemon.sent != daemon.read:
                self._take_result(kind, daemon, done)
            if daemon.read == state:
                daemon.error = ""
            else:
                in_flight = done is None or done.number < daemon.number
                self._request(kind, daemon, state, in_flight=in_flight)
        return all(self._daemons[kind].read == state for kind, state in wanted.items())

    def _take_result(self, kind: Request, daemon: _Daemon, done: Done | None) -> None:
        if done is None or done.number < daemon.number:
            if self._clock() - daemon.sent_s > PATIENCE_S:
                daemon.error = f"container refresh has not run request {daemon.number} of {kind} yet: see its log"
        elif done == Done(daemon.number, 0):
            daemon.read = daemon.sent
        else:
            daemon.error = f"refresh of {kind} ended with status {done.status}: see the log of container refresh"

    def _request(self, kind: Request, daemon: _Daemon, wanted: Wanted, *, in_flight: bool) -> None:
        """Send a request, unless the same one is in flight or another was sent just now.

        From now on it is unknown what the daemon has read.
        """
        now_s, is_same = self._clock(), daemon.sent == wanted
        if now_s - daemon.sent_s < (RETRY_S if is_same else DISTANCE_S) or (in_flight and is_same):
            return
        daemon.read = None
        daemon.number = self._files.request(kind)
        daemon.sent, daemon.sent_s = wanted, now_s
