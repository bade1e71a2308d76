"""The file of a recording, and what is kept of what is seen of a cluster.

Lines of JSON are only ever appended, so that a stop loses the last one at most. In memory is only what must be known of
objects that are there.
"""

import collections
import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import msgspec

from boathouse_cli import kinds, model, record_lines
from boathouse_cli.errors import UsageError

_DECODER: Final[msgspec.json.Decoder[record_lines.Line]] = msgspec.json.Decoder(record_lines.Line)
_LONGEST_LINE: Final = 1 << 20
NODES: Final = "nodes"
PODS: Final = "pods"
_LONGEST_UID: Final = 253
_KINDS: Final = {kind.plural: kind for kind in kinds.JOBS}
_PLURALS: Final = {kind.name: kind.plural for kind in kinds.JOBS}
_Owned: TypeAlias = record_lines.Job | record_lines.Pod


def read_lines(path: Path) -> Iterator[tuple[record_lines.Line, int]]:
    """Yield the lines of a recording with their lengths in bytes. Half a line, which a kill leaves, is skipped."""
    try:
        with path.open("rb") as opened:
            is_recording, is_text = False, False
            while written := opened.readline(_LONGEST_LINE):
                is_text = is_text or written.endswith(b"\n")
                try:
                    line = _DECODER.decode(written)
                except msgspec.DecodeError:
                    continue
                is_recording |= isinstance(line, record_lines.Begin) and line.format == record_lines.FORMAT
                if not is_recording:
                    break
                yield line, len(written)
            if is_text and not is_recording:
                raise UsageError(f"{path} is no recording of `boathouse record`: choose another file")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


class Appender:
    """Appends lines; `size_bytes` is that of the file."""

    def __init__(self, opened: BinaryIO, path: Path) -> None:
        self._opened, self._path = opened, path
        self.size_bytes = opened.seek(0, os.SEEK_END)

    def write(self, line: record_lines.Line) -> int:
        """Append a line; return its length in bytes."""
        return self._append(msgspec.json.encode(line) + b"\n")

    def end_half_line(self) -> None:
        """End a line of which a kill left the first half."""
        if self.size_bytes:
            self._opened.seek(-1, os.SEEK_END)
            if self._opened.read(1) != b"\n":
                self._append(b"\n")

    def sync(self) -> None:
        """Let what was appended survive a crash of the machine."""
        os.fsync(self._opened.fileno())

    def _append(self, written: bytes) -> int:
        left = memoryview(written)
        try:
            while left:
                left = left[self._opened.write(left) :]
        except OSError as error:
            raise UsageError(
                f"{self._path} cannot be written: {error.strerror}: make room, and run the same command again"
            ) from error
        self.size_bytes += len(written)
        return len(written)


@contextlib.contextmanager
def appending(path: Path) -> Iterator[Appender]:
    """Open a recording to append, and keep others from doing the same. Only its owner may read a new file."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}: choose another file") from error
    with os.fdopen(number, "r+b", buffering=0) as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process records into {path}: end it, or choose another file") from error
        yield Appender(opened, path)


class Recorder:
    """Writes a line for each object when it comes, and when it has ended, until the file has its size.

    A namespace may use as much of the file as it leaves free, so none can fill it alone. What is set aside is counted
    by reason.
    """

    def __init__(self, file: Appender, max_bytes: int, now: Callable[[], float]) -> None:
        self._file, self._max_bytes, self._now = file, max_bytes, now
        self._pods: dict[str, record_lines.Pod] = {}  # that run
        self._jobs: dict[str, record_lines.Job] = {}
        self._nodes: dict[str, record_lines.Node] = {}
        # By plural: what is there and needs no further line: pods that ended, and what was set aside.
        self._done: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
        self._bytes: collections.Counter[str] = collections.Counter()
        self.aside: collections.Counter[str] = collections.Counter()
        self._marked: collections.Counter[str] = collections.Counter()
        self.jobs = self.ended_jobs = self.pods = 0

    @property
    def summary(self) -> str:
        """What is in the file, of nodes those that are usable, and what was set aside."""
        reasons = ", ".join(f"{count} {why}" for why, count in self.aside.most_common(3))
        return (
            f"recorded {self.jobs} jobs, {self.ended_jobs} of which have ended, {self.pods} pods and "
            f"{sum(node.usable for node in self._nodes.values())} nodes{reasons and f'; set aside {reasons}'}"
        )

    @property
    def is_full(self) -> bool:
        """Whether the file has its size."""
        return self._file.size_bytes >= self._max_bytes

    def load(self, line: record_lines.Line, length: int) -> None:
        """Know a line that is in the file."""
        if isinstance(line, record_lines.Node):
            self._nodes[line.name] = line
        elif isinstance(line, _Owned):
            self._know(line, length)

    def _know(self, line: _Owned, length: int) -> None:
        self._bytes[line.namespace] += length
        if isinstance(line, record_lines.Job):
            self.jobs += line.uid not in self._jobs
            self.ended_jobs += line.ended_s is not None
            self._jobs[line.uid] = line
            return
        self.pods += line.uid not in self._pods and line.uid not in self._done[PODS]
        if line.ended_s is None:
            self._pods[line.uid] = line
        else:
            self._pods.pop(line.uid, None)
            self._done[PODS].add(line.uid)

    def _write(self, line: _Owned) -> None:
        self._know(line, self._file.write(line))

    def begin(self, line: record_lines.Begin) -> None:
        """Begin, or go on."""
        self._file.end_half_line()
        self._file.write(line)

    def mark(self) -> None:
        """Say that all was seen until now."""
        self._file.write(record_lines.Mark(at_s=self._now(), aside=dict(self.aside - self._marked)))
        self._marked = self.aside.copy()
        self._file.sync()

    def observe(self, plural: str, raw: model.Raw, *, is_gone: bool = False) -> None:
        """See an object, or the last of one that is gone. One that cannot be read is set aside."""
        uid = identity(plural, raw)
        try:
            if plural == NODES:
                self._record_node(record_lines.node(raw, now_s=self._now(), is_gone=is_gone))
            elif plural == PODS:
                if pod := record_lines.pod(raw, now_s=self._now(), is_gone=is_gone):
                    self._record_pod(pod)
            else:
                self._record_job(record_lines.job(_KINDS[plural], raw, now_s=self._now(), is_gone=is_gone))
                if is_gone:
                    self._jobs.pop(uid, None)
        except record_lines.UNREADABLE:
            if plural == PODS and uid in self._pods:
                self._record_lost_pod(uid)
            if not is_gone or uid not in self._done[plural]:
                self._set_aside(plural, uid, f"{plural} that cannot be read")
        if is_gone:
            self._done[plural].discard(uid)

    def synced(self, plural: str, present: set[str]) -> None:
        """Know that a whole list was seen, of UIDs, or names of nodes: what is not in it went while nobody looked."""
        now_s = self._now()
        self._done[plural] &= present
        if plural == NODES:
            for name in self._nodes.keys() - present:
                self._record_node(record_lines.Node(at_s=now_s, name=name))
                del self._nodes[name]
        elif plural == PODS:
            for uid in self._pods.keys() - present:
                self._record_lost_pod(uid)
        else:
            name = _KINDS[plural].name
            for job in [job for job in self._jobs.values() if job.kind == name and job.uid not in present]:
                if job.ended_s is None:
                    ended_s = max(now_s, job.created_s)
                    self._write(msgspec.structs.replace(job, phase=record_lines.DELETED, ended_s=ended_s))
                del self._jobs[job.uid]

    def _record_node(self, line: record_lines.Node) -> None:
        known = self._nodes.get(line.name)
        if known is None or msgspec.structs.replace(known, at_s=line.at_s) != line:
            self._nodes[line.name] = line
            self._file.write(line)

    def _record_job(self, line: record_lines.Job) -> None:
        known = self._jobs.get(line.uid)
        has_ended = known is not None and known.ended_s is None and line.ended_s is not None
        if has_ended or (known is None and self._has_room(_PLURALS[line.kind], line)):
            self._write(line)

    def _record_pod(self, line: record_lines.Pod) -> None:
        known = self._pods.get(line.uid)
        if line.uid in self._done[PODS] or (known is None and not self._has_room(PODS, line)):
            return
        if known is not None:  # a suspended task has less CPU for a while: it was given what it had before
            line = msgspec.structs.replace(line, cpu_milli=max(known.cpu_milli, line.cpu_milli))
        if known is None or line.ended_s is not None:
            self._write(line)
        else:
            self._pods[line.uid] = line

    def _record_lost_pod(self, uid: str) -> None:
        pod = self._pods[uid]
        self._write(msgspec.structs.replace(pod, ended_s=max(self._now(), pod.placed_s), end_is_known=False))
        self._done[PODS].discard(uid)

    def _has_room(self, plural: str, line: _Owned) -> bool:
        """Return whether a new object may have a line; set it aside if not."""
        if self._bytes[line.namespace] <= self._max_bytes - self._file.size_bytes:
            return True
        self._set_aside(plural, line.uid, f"{plural} beyond its namespace's part of the file")
        return False

    def _set_aside(self, plural: str, uid: str, why: str) -> None:
        if uid not in self._done[plural]:
            self.aside[why] += 1
        if uid:
            self._done[plural].add(uid)


def identity(plural: str, raw: model.Raw) -> str:
    """Return the UID of an object, of a node its name; empty if it has none."""
    metadata = raw.get("metadata")
    found = metadata.get("name" if plural == NODES else "uid") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) and len(found) <= _LONGEST_UID else ""
