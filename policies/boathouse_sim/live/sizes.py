"""What pods take of their nodes, and how long their work takes there.

A segment takes what its machine, size, the distance of its input and luck make of it. Sizes change by suspension,
resizes, and growth that has to wait for room.

A shrunk pod's CPU is free once the node shows it (`suspend_ms`). A pod that grows is counted with its larger size at
once, as a resize that Kubernetes defers. So no new pod comes to a node with such a resize, and the pod has its size
when there is room, before all others.
"""

import dataclasses
import math
import operator
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from boathouse_policies import framework, model
from boathouse_sim.base_world import AnyWorld
from boathouse_sim.conditions import Conditions
from boathouse_sim.live.course import Pod
from boathouse_sim.live.rates import LOCAL_READ, Four, Rates, RemoteRead
from boathouse_sim.topology import DISK_MB_PER_S
from boathouse_sim.work import Reading, Segment


def demands(
    segment: Segment, pod: Pod, distance: model.Distance | None, source: str, luck: float, conditions: Conditions
) -> tuple[Four, Four, RemoteRead]:
    """Return the stretch of a segment, its load, and what it reads from another host, as of `Activity`."""
    stretch = stretches(segment, pod, distance, conditions.reading, luck)
    load = loads(segment, pod, distance, stretch, spills_load_disks=conditions.spills_load_disks)
    return stretch, load, _far(segment, source, distance, stretch, conditions.reading, luck)


def work_ms(segment: Segment) -> float:
    """Return its work; a millisecond at least, so that shares of it have a meaning."""
    return float(max(1, segment.work_ms))


def stretches(segment: Segment, pod: Pod, distance: model.Distance | None, reading: Reading, luck: float) -> Four:
    """Return milliseconds that a millisecond of its work takes, by kind."""
    whole, factor, remote = work_ms(segment), 1.0, False
    if distance is not None:
        factor, remote = reading.factor(distance), distance > model.Distance.SERVER
    read = segment.read_ms * factor
    rest = whole - segment.work_ms  # of what would take no time
    return (
        luck * (segment.cpu_ms + rest) / whole / pod.machine.speed / cpu_share(pod),
        luck * ((0.0 if remote else read) + segment.write_ms) / whole + (pod.penalty - 1.0),
        luck * (segment.copy_ms + (read if remote else 0.0)) / whole,
        luck * segment.pool_ms / whole,
    )


def loads(
    segment: Segment, pod: Pod, distance: model.Distance | None, stretch: Four, *, spills_load_disks: bool = False
) -> Four:
    """Return the use without contention: cores, and MB/s of disks, network and pool."""
    remote = distance is not None and distance > model.Distance.SERVER
    seconds = work_ms(segment) * sum(stretch) / 1000
    on_disk = segment.write_mb + (0.0 if remote else segment.read_mb)
    if spills_load_disks and pod.penalty > 1.0:  # what is spilled is written, and read again
        on_disk += 2 * spilled_mb(pod) * work_ms(segment) / max(1, pod.container.work_ms)
    on_network = segment.copy_mb + (segment.read_mb if remote else 0.0)
    cores = segment.cores * cpu_share(pod) * stretch[0] / sum(stretch)
    return cores, on_disk / seconds, on_network / seconds, segment.pool_mb / seconds


def _far(
    segment: Segment, source: str, distance: model.Distance | None, stretch: Four, reading: Reading, luck: float
) -> RemoteRead:
    """Return what its reading takes of another host."""
    if not source or distance is None or distance <= model.Distance.SERVER:
        return LOCAL_READ
    whole = work_ms(segment)
    seconds = whole * sum(stretch) / 1000
    return RemoteRead(source, luck * segment.read_ms * reading.factor(distance) / whole, segment.read_mb / seconds)


def spill_ms(pod: Pod) -> float:
    """Return how much longer a task takes for want of memory, without contention."""
    return (pod.penalty - 1.0) * pod.container.work_ms


def spilled_mb(pod: Pod) -> float:
    """Return what a task spills for want of memory.

    A map spills its output and a reducer what it has copied, which its segments write, too: all of it where the penalty
    is the whole of its factor. It takes no longer to write and to read again than the penalty is.
    """
    full = pod.container.penalty.factor - 1.0
    if full <= 0 or pod.penalty <= 1.0:
        return 0.0
    buffered = sum(segment.write_mb + segment.pool_mb for segment in pod.container.segments)
    return min(buffered * (pod.penalty - 1.0) / full, spill_ms(pod) / 1000 * DISK_MB_PER_S / 2)


def cpu_share(pod: Pod) -> float:
    """Return the share of its CPU request that it gets, at most 1."""
    asked = pod.container.cores * 1000
    return min(1.0, max(1, pod.asked.cpu_milli) / asked) if asked else 1.0


def variation(seed: int, task: str, attempt: int, jitter: float, error: tuple[float, float]) -> float:
    """Return a task's random variation, of a mean of 1 and this jitter, equal for equal tasks of a seed."""
    if not jitter and error == (0.0, 0.0):
        return 1.0
    random = np.random.default_rng([seed, zlib.crc32(task.encode()), attempt])
    low, high = error
    luck = 1.0 + (float(random.uniform(low, high)) if low != high else low)
    if jitter:
        sigma = math.sqrt(math.log1p(jitter**2))
        luck *= float(random.lognormal(-sigma * sigma / 2, sigma))
    return max(0.0, luck)


@dataclasses.dataclass(slots=True)
class Room:
    """What is really taken on a node."""

    cpu_milli: int = 0
    memory_bytes: int = 0


class Sizes:
    """See the module's docstring."""

    def __init__(self, world: AnyWorld, pods: Mapping[model.TaskId, Pod], rates: Rates, conditions: Conditions) -> None:
        self._world, self._pods, self._rates, self._conditions = world, pods, rates, conditions
        self.taken = {node.name: Room() for node in world.nodes}  # what its pods really have, waiting growth left out
        self._whole = {node.name: node.allocatable for node in world.nodes}
        self._growing: dict[model.NodeName, list[Pod]] = {}
        self.release: Callable[[Pod], None] = self.free  # called with a pod that has ended: now or later

    def leave(self, pod: Pod, *, lost: bool) -> None:
        """Remove a pod, and free its room: at once if it was lost, for it may be placed again under the same name."""
        if pod.growing is not None:
            self._growing[pod.node].remove(pod)
            pod.growing = None
        (self.free if lost else self.release)(pod)

    def free(self, pod: Pod) -> None:
        """Free the room of a removed pod: reconsider the tasks that it helps, then grow pods that wait on its node."""
        self.take(pod, -1)
        self._world.note_freed(self._world.ledger.gone(pod.id))
        self._grow_pending(pod.node)

    def take(self, pod: Pod, sign: int = 1) -> None:
        """Count what a pod has, or no more."""
        room = self.taken[pod.node]
        room.cpu_milli += sign * pod.resources.cpu_milli
        room.memory_bytes += sign * pod.resources.memory_bytes

    def suspend(self, decision: model.Suspend) -> None:
        """Stop a task; its CPU is free a little later. What is suspended, about to grow or gone is left alone."""
        world = self._world
        pod = self._pods.get(decision.task.id)
        if pod is None or pod.suspended or pod.started_ms < 0 or pod.growing is not None:
            world.notify_refused(decision, _reason(pod))
            return
        since_ms, until_s = world.clock.now_ms, decision.until_s
        pod.suspended, pod.suspended_at_ms = True, since_ms
        world.tally.suspensions += 1
        self._pause(pod, paused=True)
        world.notify(model.Suspended(**world.about(pod), resources=decision.resources, until_s=until_s))
        world.clock.after(self._conditions.suspend_ms, self._shrunk, pod, decision.resources, since_ms)
        if until_s is not None:
            world.clock.after(max(round(until_s * 1000) - since_ms, 0), self._time_is_up, pod, since_ms)

    def _shrunk(self, pod: Pod, size: model.Resources, since_ms: int) -> None:
        if pod.growing is None and self._is_suspended(pod, since_ms):
            cpu_milli = min(pod.resources.cpu_milli, size.cpu_milli)
            memory_bytes = min(pod.resources.memory_bytes, size.memory_bytes)
            self._have(pod, model.Resources(cpu_milli=cpu_milli, memory_bytes=memory_bytes))

    def _is_suspended(self, pod: Pod, since_ms: int) -> bool:
        return pod.suspended and pod.suspended_at_ms == since_ms and self._pods.get(pod.id) is pod

    def _time_is_up(self, pod: Pod, since_ms: int) -> None:
        if self._is_suspended(pod, since_ms):
            self._resume(pod)

    def resume(self, decision: model.Resume) -> None:
        """Give a suspended task its resources back, as soon as there is room, and continue it."""
        pod = self._pods.get(decision.task.id)
        if pod is not None and pod.suspended and not pod.resuming:
            self._resume(pod)
        else:
            self._world.notify_refused(decision, _reason(pod))

    def _resume(self, pod: Pod) -> None:
        if pod.growing is None and not pod.resuming:
            self._world.notify(model.Resumed(**self._world.about(pod), resources=pod.asked))
            self._grow(pod, pod.asked)

    def resize(self, decision: model.Resize) -> None:
        """Change what a running task has: less at once, more as soon as there is room that is not kept for a gang."""
        pod = self._pods.get(decision.task.id)
        if pod is None or pod.suspended or pod.growing is not None:
            self._world.notify_refused(decision, _reason(pod))
            return
        amounts = self._world.axis.amounts
        more = tuple(map(operator.sub, amounts(decision.resources), amounts(pod.resources)))
        if refusal := self._world.kept_refusal(pod.node, more):
            self._world.notify_refused(decision, refusal)
            return
        if pod.resources.covers(decision.resources):
            self._have(pod, decision.resources)
            self._resized(pod, decision.resources)
        else:
            self._grow(pod, decision.resources)

    def _grow(self, pod: Pod, size: model.Resources) -> None:
        pod.growing = size
        self._world.ledger.assume_resize(pod.id, size)
        self._growing.setdefault(pod.node, []).append(pod)
        self._grow_pending(pod.node)

    def _grow_pending(self, node: model.NodeName) -> None:
        waiting = self._growing.get(node)
        while waiting and self._fits(waiting[0]):
            pod = waiting.pop(0)
            size, pod.growing = pod.growing, None
            assert size is not None
            self._have(pod, size)
            if not pod.suspended:
                self._resized(pod, size)
            elif self._conditions.resume_ms:
                pod.resuming = True
                self._world.clock.after(self._conditions.resume_ms, self._go_on, pod, pod.suspended_at_ms)
            else:
                self._go_on(pod, pod.suspended_at_ms)

    def _go_on(self, pod: Pod, since_ms: int) -> None:
        """Continue the work of a pod that has its CPU again."""
        if self._is_suspended(pod, since_ms):
            pod.stop_counting_suspension(self._world.clock.now_ms)
            pod.suspended = pod.resuming = False
            self._pause(pod, paused=False)

    def _fits(self, pod: Pod) -> bool:
        size, room, whole = pod.growing, self.taken[pod.node], self._whole[pod.node]
        assert size is not None
        cpu = room.cpu_milli - pod.resources.cpu_milli + size.cpu_milli
        memory = room.memory_bytes - pod.resources.memory_bytes + size.memory_bytes
        return cpu <= whole.cpu_milli and memory <= whole.memory_bytes

    def _have(self, pod: Pod, size: model.Resources) -> None:
        self.take(pod, -1)
        pod.resources, job = size, pod.run.job
        self.take(pod)
        account = framework.Account(
            id=pod.id,
            node=pod.node,
            resources=size,
            job=job.id,
            queue=job.queue,
            namespace=job.namespace,
            task_class=pod.task_class.id,
        )
        self._world.note_freed(self._world.ledger.observe(account))
        self._grow_pending(pod.node)

    def _resized(self, pod: Pod, size: model.Resources) -> None:
        pod.asked, conditions = size, self._conditions
        self._world.notify(model.Resized(**self._world.about(pod), resources=size))
        for activity in pod.activities:
            if activity.segment is not None:
                self._rates.update(activity)  # what was done so far, at the old rate
                activity.stretch, activity.load, activity.far = demands(
                    activity.segment, pod, activity.distance, activity.far.host, activity.luck, conditions
                )
                self._rates.update(activity)

    def _pause(self, pod: Pod, *, paused: bool) -> None:
        for activity in pod.activities:
            self._rates.update(activity)
            activity.paused = paused
            self._rates.update(activity)


def _reason(pod: Pod | None) -> str:
    if pod is None:
        return "TaskEnded"
    return "Resizing" if pod.growing is not None else "Suspended" if pod.suspended else "NotRunning"
