"""Turn what is seen of a cluster into lines of a recording. Keeps only what it must know of objects that are there."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from boathouse_cli import kinds, record_lines
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_cli import model
    from boathouse_cli.record_file import Appender

NODES: Final = "nodes"
PODS: Final = "pods"
OVER_BUDGET: Final = "beyond its namespace's part of the file"
_LONGEST_UID: Final = 253
_KINDS: Final = {kind.plural: kind for kind in kinds.JOBS}
_PLURALS: Final = {kind.name: kind.plural for kind in kinds.JOBS}
_Owned: TypeAlias = record_lines.Job | record_lines.Pod


class Keeper:
    """Writes a line for each object when it comes, and when it has ended.

    A namespace may use as much of the file as it leaves free, so none can fill it alone.

    Args:
        file: Where lines go.
        max_bytes: Size that the file may reach.
        now: The time, in seconds since the epoch.

    Attributes:
        aside: Objects set aside, by reason.
        jobs: Jobs that are in the file.
        ended_jobs: Those of them that have ended.
        pods: Pods that are in the file.
    """

    def __init__(self, file: Appender, max_bytes: int, now: Callable[[], float]) -> None:
        self._file, self._max_bytes, self._now = file, max_bytes, now
        self._pods: dict[str, record_lines.Pod] = {}  # that run
        self._jobs: dict[str, record_lines.Job] = {}
        self._nodes: dict[str, record_lines.Node] = {}
        # By plural: what is there and needs no further line: pods that ended, and what was set aside.
        self._done: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
        self._bytes: collections.Counter[str] = collections.Counter()
        self._marked: collections.Counter[str] = collections.Counter()
        self.aside: collections.Counter[str] = collections.Counter()
        self.jobs = self.ended_jobs = self.pods = 0

    @property
    def nodes(self) -> int:
        """Usable nodes."""
        return sum(node.usable for node in self._nodes.values())

    @property
    def is_full(self) -> bool:
        """Whether the file has its size."""
        return self._file.size_bytes >= self._max_bytes

    # What was recorded before

    def load(self, line: record_lines.Line, length: int) -> None:
        """Know a line that is in the file."""
        match line:
            case record_lines.Begin() | record_lines.Mark():
                pass
            case record_lines.Node():
                self._nodes[line.name] = line
            case record_lines.Job():
                self._count(line, length)
                self._know_job(line)
            case record_lines.Pod():
                self._count(line, length)
                self._know_pod(line)

    def _count(self, line: _Owned, length: int) -> None:
        self._bytes[line.namespace] += length

    def _know_job(self, line: record_lines.Job) -> None:
        self.jobs += line.uid not in self._jobs
        self.ended_jobs += line.ended_s is not None
        self._jobs[line.uid] = line

    def _know_pod(self, line: record_lines.Pod) -> None:
        self.pods += line.uid not in self._pods and line.uid not in self._done[PODS]
        if line.ended_s is None:
            self._pods[line.uid] = line
        else:
            self._pods.pop(line.uid, None)
            self._done[PODS].add(line.uid)

    # What is seen

    def begin(self, line: record_lines.Begin) -> None:
        """Begin, or go on."""
        self._file.end_half_line()
        self._file.write(line)

    def mark(self) -> None:
        """Say that all was seen until now."""
        self._file.write(record_lines.Mark(at_s=self._now(), aside=dict(self.aside - self._marked)))
        self._marked = self.aside.copy()
        self._file.sync()

    def saw(self, plural: str, raw: model.Raw, *, is_gone: bool = False) -> None:
        """See an object, or the last of one that is gone. One that cannot be read is set aside."""
        try:
            if plural == NODES:
                self._saw_node(record_lines.node(raw, now_s=self._now(), is_gone=is_gone))
            elif plural == PODS:
                pod = record_lines.pod(raw, now_s=self._now(), is_gone=is_gone)
                if pod is not None:
                    self._saw_pod(pod)
            else:
                self._saw_job(record_lines.job(_KINDS[plural], raw, now_s=self._now(), is_gone=is_gone))
                if is_gone:
                    self._jobs.pop(identity(plural, raw), None)
        except record_lines.UNREADABLE:
            self._unreadable(plural, identity(plural, raw), is_gone=is_gone)
        if is_gone:
            self._done[plural].discard(identity(plural, raw))

    def synced(self, plural: str, present: set[str]) -> None:
        """Know that a whole list was seen: what is not in it went while nobody looked.

        Args:
            plural: Of what.
            present: UIDs of the objects; names of nodes.
        """
        now_s = self._now()
        self._done[plural] &= present
        if plural == NODES:
            for name in self._nodes.keys() - present:
                self._saw_node(record_lines.Node(at_s=now_s, name=name))
                del self._nodes[name]
        elif plural == PODS:
            for uid in self._pods.keys() - present:
                self._lost_sight(self._pods.pop(uid))
        else:
            kind = _KINDS[plural]
            for uid in [uid for uid, job in self._jobs.items() if job.kind == kind.name and uid not in present]:
                self._job_gone(self._jobs.pop(uid), now_s)

    def _saw_node(self, line: record_lines.Node) -> None:
        known = self._nodes.get(line.name)
        if known is None or msgspec.structs.replace(known, at_s=line.at_s) != line:
            self._nodes[line.name] = line
            self._file.write(line)

    def _saw_job(self, line: record_lines.Job) -> None:
        known = self._jobs.get(line.uid)
        if known is None and not self._has_room(_PLURALS[line.kind], line):
            return
        if known is None or (known.ended_s is None and line.ended_s is not None):
            self._write(line)
            self._know_job(line)

    def _job_gone(self, job: record_lines.Job, now_s: float) -> None:
        if job.ended_s is None:
            ended_s = max(now_s, job.created_s)
            self._write(msgspec.structs.replace(job, phase=record_lines.DELETED, ended_s=ended_s))
            self.ended_jobs += 1

    def _saw_pod(self, line: record_lines.Pod) -> None:
        known = self._pods.get(line.uid)
        if line.uid in self._done[PODS] or (known is None and not self._has_room(PODS, line)):
            return
        if known is not None:  # a suspended task has less CPU for a while: it was given what it had before
            line = msgspec.structs.replace(line, cpu_milli=max(known.cpu_milli, line.cpu_milli))
        if known is None or line.ended_s is not None:
            self._write(line)
            self._know_pod(line)
        else:
            self._pods[line.uid] = line

    def _lost_sight(self, pod: record_lines.Pod) -> None:
        self._write(msgspec.structs.replace(pod, ended_s=max(self._now(), pod.placed_s), end_is_known=False))

    # Bounds

    def _write(self, line: _Owned) -> None:
        self._count(line, self._file.write(line))

    def _has_room(self, plural: str, line: _Owned) -> bool:
        """Return whether a new object may have a line; set it aside if not."""
        if self._bytes[line.namespace] <= self._max_bytes - self._file.size_bytes:
            return True
        self._set_aside(plural, line.uid, f"{plural} {OVER_BUDGET}")
        return False

    def _unreadable(self, plural: str, uid: str, *, is_gone: bool) -> None:
        if plural == PODS and uid in self._pods:
            self._lost_sight(self._pods.pop(uid))
        if not is_gone or uid not in self._done[plural]:
            self._set_aside(plural, uid, f"{plural} that cannot be read")

    def _set_aside(self, plural: str, uid: str, why: str) -> None:
        if uid not in self._done[plural]:
            self.aside[why] += 1
        if uid:
            self._done[plural].add(uid)


def check_scope(line: record_lines.Line, namespace: str) -> None:
    """Refuse to go on with another choice of namespaces.

    Raises:
        CommandError: The file has another.
    """
    if isinstance(line, record_lines.Begin) and line.namespace != namespace:
        has = f"namespace {line.namespace}: pass -n {line.namespace}" if line.namespace else "all namespaces: omit -n"
        raise CommandError(f"the file records {has}, or choose another file", ExitCode.USAGE)


def identity(plural: str, raw: model.Raw) -> str:
    """Return the UID of an object, of a node its name; empty if it has none."""
    metadata = raw.get("metadata")
    found = metadata.get("name" if plural == NODES else "uid") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) and len(found) <= _LONGEST_UID else ""
