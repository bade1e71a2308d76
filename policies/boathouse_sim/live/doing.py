"""How long a segment takes where it runs: what its machine, size, input's distance and luck make of its work. Pure."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.model import Distance
from boathouse_sim.live.rates import AT_HAND, Far
from boathouse_sim.topology import DISK_MB_PER_S

if TYPE_CHECKING:
    from boathouse_sim.live.course import Pod
    from boathouse_sim.live.rates import Four
    from boathouse_sim.work import Reading, Segment


def work_ms(segment: Segment) -> float:
    """Return its work; a millisecond at least, so that shares of it have a meaning."""
    return float(max(1, segment.work_ms))


def stretches(segment: Segment, pod: Pod, distance: Distance | None, reading: Reading, luck: float) -> Four:
    """Return milliseconds that a millisecond of its work takes, by kind."""
    whole, factor, remote = work_ms(segment), 1.0, False
    if distance is not None:
        factor, remote = reading.factor(distance), distance > Distance.SERVER
    read = segment.read_ms * factor
    rest = whole - segment.work_ms  # of what would take no time
    return (
        luck * (segment.cpu_ms + rest) / whole / pod.machine.speed / cpu_share(pod),
        luck * ((0.0 if remote else read) + segment.write_ms) / whole + (pod.penalty - 1.0),
        luck * (segment.copy_ms + (read if remote else 0.0)) / whole,
        luck * segment.pool_ms / whole,
    )


def loads(
    segment: Segment, pod: Pod, distance: Distance | None, stretch: Four, *, spills_load_disks: bool = False
) -> Four:
    """Return the use without contention: cores, and MB/s of disks, network and pool."""
    remote = distance is not None and distance > Distance.SERVER
    seconds = work_ms(segment) * sum(stretch) / 1000
    on_disk = segment.write_mb + (0.0 if remote else segment.read_mb)
    if spills_load_disks and pod.penalty > 1.0:  # what is spilled is written, and read again
        on_disk += 2 * spilled_mb(pod) * work_ms(segment) / max(1, pod.container.work_ms)
    on_network = segment.copy_mb + (segment.read_mb if remote else 0.0)
    cores = segment.cores * cpu_share(pod) * stretch[0] / sum(stretch)
    return cores, on_disk / seconds, on_network / seconds, segment.pool_mb / seconds


def far(segment: Segment, source: str, distance: Distance | None, stretch: Four, reading: Reading, luck: float) -> Far:
    """Return what its reading takes of another host."""
    if not source or distance is None or distance <= Distance.SERVER:
        return AT_HAND
    whole = work_ms(segment)
    seconds = whole * sum(stretch) / 1000
    return Far(source, luck * segment.read_ms * reading.factor(distance) / whole, segment.read_mb / seconds)


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
    buffered = sum(one.write_mb + one.pool_mb for one in pod.container.segments)
    return min(buffered * (pod.penalty - 1.0) / full, spill_ms(pod) / 1000 * DISK_MB_PER_S / 2)


def cpu_share(pod: Pod) -> float:
    """Return the share of its CPU request that it gets, at most 1."""
    asked = pod.container.cores * 1000
    return min(1.0, max(1, pod.asked.cpu_milli) / asked) if asked else 1.0


def luck_of(seed: int, task: str, attempt: int, jitter: float, error: tuple[float, float]) -> float:
    """Return a task's random variation: equal for equal tasks of a seed, whatever policy places them.

    Args:
        seed: Of the simulation.
        task: Its name.
        attempt: From 0.
        jitter: Coefficient of variation, log-normal with mean 1.
        error: Bounds of the relative error of its estimate.
    """
    if not jitter and error == (0.0, 0.0):
        return 1.0
    random = np.random.default_rng([seed, zlib.crc32(task.encode()), attempt])
    low, high = error
    luck = 1.0 + (float(random.uniform(low, high)) if low != high else low)
    if jitter:
        sigma = math.sqrt(math.log1p(jitter**2))
        luck *= float(random.lognormal(-sigma * sigma / 2, sigma))
    return max(0.0, luck)
