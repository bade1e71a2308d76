"""HDFS and YARN in miniature, for clusters whose pods run nothing: blocks on disks, and containers that sleep.

It behaves as Hadoop 3.4 does, as far as Boathouse depends on it. Blocks are copied in time, and a dead DataNode is
noticed late. A node is drained when its containers have ended and no running application needs their output. Lists of
hosts are compared with registered names. A ResourceManager that starts again knows its applications after a while.
It is pure: times are arguments, and the same calls have the same results.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_task.cluster_contract import ApplicationFigures, DfsState, HdfsFigures, YarnFigures, YarnState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

SLOT_MB: Final = 512
_DISK_BYTES: Final = 1000
_ENDED: Final = frozenset({"FINISHED", "KILLED"})


def stores(host: str) -> bool:
    """Return whether a host has a DataNode."""
    return host.startswith("c")


@dataclasses.dataclass
class Hdfs:
    """Blocks on the disks of core nodes. Disks outlive pods.

    Attributes:
        disks: The blocks on each host's disk.
        excluded: Hosts that are decommissioned.
        copied: How many replicas were made of blocks that lacked them.
    """

    replication: int = 2
    cluster_id: str = ""
    started_s: float = 0.0
    disks: dict[str, set[int]] = dataclasses.field(default_factory=dict)
    excluded: frozenset[str] = frozenset()
    blocks: int = 0
    copied: int = 0

    def serving(self, live: set[str]) -> set[str]:
        """Return the hosts that take blocks."""
        return live - self.excluded

    def replicas(self, block: int, hosts: set[str]) -> set[str]:
        """Return those of the hosts that have a block."""
        return {host for host in hosts if block in self.disks.get(host, ())}

    def write(self, live: set[str]) -> None:
        """Write a block to as many nodes as it should be on."""
        emptiest = sorted(self.serving(live), key=lambda host: (len(self.disks.get(host, ())), host))
        for host in emptiest[: self.replication]:
            self.disks.setdefault(host, set()).add(self.blocks)
        self.blocks += 1

    def lacking(self, live: set[str]) -> list[int]:
        """Return the blocks with fewer replicas on nodes that serve than they should have."""
        serving = self.serving(live)
        return [block for block in range(self.blocks) if len(self.replicas(block, serving)) < self.replication]

    def missing(self, live: set[str]) -> list[int]:
        """Return the blocks that no live node has."""
        return [block for block in range(self.blocks) if not self.replicas(block, live)]

    def copy(self, live: set[str], most: int = 1) -> None:
        """Copy some blocks that lack replicas to nodes that serve."""
        for block in self.lacking(live)[:most]:
            free = sorted(self.serving(live) - self.replicas(block, live))
            if self.replicas(block, live) and free:
                self.disks.setdefault(free[0], set()).add(block)
                self.copied += 1

    def left(self, host: str, live: set[str]) -> int:
        """Return how many blocks of a host lack replicas."""
        return len(set(self.lacking(live)) & self.disks.get(host, set()))

    def state(self, host: str, live: set[str]) -> DfsState:
        """Return the state of a host's DataNode."""
        if host not in live:
            return DfsState.DEAD if host in self.disks else DfsState.NONE
        if host not in self.excluded:
            return DfsState.LIVE
        return DfsState.DECOMMISSIONING if self.left(host, live) else DfsState.DECOMMISSIONED

    def figures(self, live: set[str]) -> HdfsFigures:
        """Return what the NameNode says of all."""
        return HdfsFigures(
            cluster_id=self.cluster_id,
            started_s=int(self.started_s),
            safe_mode=bool(self.missing(live)) and not live,
            free_bytes=_DISK_BYTES * len(live),
            missing=len(self.missing(live)),
            under_replicated=len(self.lacking(live)),
        )


@dataclasses.dataclass(slots=True)
class Application:
    """An application: an ApplicationMaster, and tasks that sleep.

    Attributes:
        waiting: Seconds of the tasks that do not run.
        later: Seconds of those that are requested when all others have ended, as reduces are.
        running: Host, seconds and end of those that do.
        ran_on: Hosts with output of its tasks.
        master: Host of the ApplicationMaster.
        lost: Tasks that were repeated because their container was lost.
    """

    id: str
    tag: str
    started_s: float
    waiting: list[float]
    later: list[float] = dataclasses.field(default_factory=list)
    running: list[tuple[str, float, float]] = dataclasses.field(default_factory=list)
    ran_on: set[str] = dataclasses.field(default_factory=set)
    master: str = ""
    state: str = "ACCEPTED"
    done: int = 0
    lost: int = 0
    finished_s: float = 0.0

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended."""
        return self.state in _ENDED

    def end(self, state: str, now_s: float) -> None:
        """End it."""
        self.state, self.finished_s, self.master = state, now_s, ""
        self.waiting.clear()
        self.later.clear()
        self.running.clear()

    def go_on(self, now_s: float) -> None:
        """Request the later tasks if the others have ended, or end."""
        if self.master and not self.waiting and not self.running:
            self.waiting, self.later = self.later, []
            if not self.waiting:
                self.end("FINISHED", now_s)

    def finish(self, now_s: float, over_s: Mapping[str, float]) -> None:
        """End the tasks that are done: on hosts that have left, those that were done by then."""
        ended = [(host, end_s) for host, _, end_s in self.running if end_s <= over_s.get(host, now_s)]
        self.running = [task for task in self.running if task[2] > over_s.get(task[0], now_s)]
        self.done += len(ended)
        self.ran_on |= {host for host, _ in ended}

    def lose(self, host: str) -> None:
        """Repeat what ran on a host that was lost."""
        gone = [seconds for on, seconds, _ in self.running if on == host]
        self.running = [task for task in self.running if task[0] != host]
        self.waiting = [*gone, *self.waiting]
        self.lost += len(gone)
        self.ran_on.discard(host)
        if self.master == host:
            self.master, self.state = "", "ACCEPTED"

    def figures(self) -> ApplicationFigures:
        """Return what the ResourceManager says of it."""
        total = self.done + len(self.waiting) + len(self.later) + len(self.running)
        return ApplicationFigures(
            id=self.id,
            name=self.tag,
            state=self.state,
            final={"FINISHED": "SUCCEEDED", "KILLED": "KILLED"}.get(self.state, "UNDEFINED"),
            progress=100 * self.done // total if total else 0,
            started_ms=int(self.started_s * 1000),
            finished_ms=int(self.finished_s * 1000),
            maps=(total, self.done),
            counters={"Tasks": {"map": self.done}} if self.has_ended else {},
        )


@dataclasses.dataclass
class Yarn:
    """Containers in the slots of nodes. ApplicationMasters run on core nodes only.

    Attributes:
        slots: Of a node.
        started_s: When the ResourceManager started.
        recovery_s: How long it then does not know its applications.
        excluded: Hosts that leave, and when they leave at the latest.
    """

    slots: int = 4
    started_s: float = 0.0
    recovery_s: float = 3.0
    excluded: dict[str, float | None] = dataclasses.field(default_factory=dict)
    applications: dict[str, Application] = dataclasses.field(default_factory=dict)
    known: set[str] = dataclasses.field(default_factory=set)

    def submit(self, tag: str, seconds: Sequence[float], now_s: float, *, later: Sequence[float] = ()) -> str:
        """Submit an application with tasks of these durations, and later ones; return its ID."""
        application = f"application_{int(self.started_s) or 1}_{len(self.applications) + 1:04d}"
        self.applications[application] = Application(
            id=application, tag=tag.lower(), started_s=now_s, waiting=list(seconds), later=list(later)
        )
        return application

    def kill(self, application_id: str, now_s: float) -> bool:
        """Kill an application; return whether there is one."""
        found = self.applications.get(application_id)
        if found is not None and not found.has_ended:
            found.end("KILLED", now_s)
        return found is not None

    def tagged(self, tag: str, now_s: float) -> Sequence[ApplicationFigures]:
        """Return the applications of a tag, those that run first."""
        if now_s < self.started_s + self.recovery_s:
            return []
        found = [application for application in self.applications.values() if application.tag == tag]
        return [
            application.figures()
            for application in sorted(found, key=lambda application: (application.has_ended, application.id))
        ]

    def crowded_jobs(self) -> set[str]:
        """Return the jobs with several applications at the same time; the tag of attempt N of a job is JOB-N."""
        jobs = [application.tag.rpartition("-")[0] for application in self._active()]
        return {job for job in jobs if jobs.count(job) > 1}

    def exclude(self, timeouts_s: Mapping[str, float], now_s: float) -> None:
        """Let hosts leave, and no others; a negative timeout is none. Those that left already keep their deadline."""
        self.excluded = {
            host: self.excluded.get(host, now_s + timeout_s if timeout_s >= 0 else None)
            for host, timeout_s in timeouts_s.items()
        }

    def step(self, up: set[str], now_s: float, *, manages: bool = True) -> None:
        """Let time pass: tasks end, hosts are lost, and containers start if there is a ResourceManager."""
        lost, self.known = self.known - up, set(up)
        over_s = {host: end_s for host, end_s in self.excluded.items() if end_s is not None and now_s >= end_s}
        for application in self._active():
            for host in lost:
                application.lose(host)
            application.finish(now_s, over_s)
            for host in over_s:
                application.lose(host)
            application.go_on(now_s)
        if manages:
            self._start(up - self.excluded.keys(), now_s)

    def containers(self, host: str) -> int:
        """Return how many containers a host has."""
        return self._counts()[host]

    def state(self, host: str, up: set[str], now_s: float) -> YarnState:
        """Return the state of a host's NodeManager."""
        if host not in self.excluded:
            return YarnState.RUNNING if host in up else YarnState.NONE
        is_needed = self.containers(host) or any(host in application.ran_on for application in self._active())
        if host in up and is_needed and not self._is_over(host, now_s):
            return YarnState.DECOMMISSIONING
        return YarnState.DECOMMISSIONED

    def figures(self, up: set[str], now_s: float) -> YarnFigures:
        """Return what the ResourceManager says of all."""
        active, counts = self._active(), self._counts()
        nodes = sum(self.state(host, up, now_s) is YarnState.RUNNING for host in up)
        return YarnFigures(
            started_s=int(self.started_s),
            up_s=int(now_s - self.started_s),
            running=sum(counts[host] for host in up),
            pending=sum(len(application.waiting) for application in active if application.master),
            apps_running=sum(bool(application.master) for application in active),
            apps_pending=sum(not application.master for application in active),
            memory_mb=nodes * self.slots * SLOT_MB,
        )

    def _active(self) -> list[Application]:
        return [application for application in self.applications.values() if not application.has_ended]

    def _is_over(self, host: str, now_s: float) -> bool:
        deadline_s = self.excluded.get(host)
        return deadline_s is not None and now_s >= deadline_s

    def _counts(self) -> collections.Counter[str]:
        """Return the number of containers of each host."""
        counts = collections.Counter(application.master for application in self._active() if application.master)
        for application in self._active():
            counts.update(host for host, _, _ in application.running)
        return counts

    def _start(self, hosts: Collection[str], now_s: float) -> None:
        counts = self._counts()
        for application in self._active():
            if not application.master:
                application.master = self._take({host for host in hosts if stores(host)}, counts)
                application.state = "RUNNING" if application.master else "ACCEPTED"
            while application.master and application.waiting and (host := self._take(hosts, counts)):
                seconds = application.waiting.pop(0)
                application.running.append((host, seconds, now_s + seconds))

    def _take(self, hosts: Collection[str], counts: collections.Counter[str]) -> str:
        """Count a container on the host with the fewest, and return the host; "" if all are full."""
        count, found = min(((counts[host], host) for host in hosts), default=(self.slots, ""))
        if count >= self.slots:
            return ""
        counts[found] += 1
        return found
