"""Read the few samples that the policies use from a kubelet's metrics in the Prometheus text format.

A kubelet gives each sample the time at which it measured it, in milliseconds. Nothing else of an answer is parsed.
"""

import array
import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

MOST_PODS: Final = 2000
"""Maximum pods of a node whose samples are read."""
MOST_DISKS: Final = 64
"""Maximum samples of a metric of the root control group, one for each disk."""
PRESSURES: Final = ("cpu", "io", "memory")
_LARGEST: Final = 1e18
_LATEST_MS: Final = 10**14
_NODE_CPU: Final = b"node_cpu_usage_seconds_total "
_POD_CPU: Final = b"pod_cpu_usage_seconds_total{"
_NUMBERS: Final = re.compile(rb"(\S{1,32}) (\d{1,16})\n")
_POD: Final = re.compile(rb"pod_cpu_usage_seconds_total\{([^}\n]{1,700})\} (\S{1,32}) (\d{1,16})\n")
_VALUE: Final = re.compile(rb"\} (\S{1,32}) (\d{1,16})$")
_ROOT: Final = b'id="/"'
_STACKED_DISK: Final = re.compile(rb'device="/dev/(?:dm-|md|loop|ram|zram)')
"""Devices whose bytes another device counts too, or that are no disks."""


class Counter(NamedTuple):
    """A counter's value, and when it was measured."""

    value: float
    at_ms: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """CPU seconds that a node and its pods have used. Pods are in arrays, which take a tenth of a dictionary's memory.

    Attributes:
        cpu: The node's.
        pods: A hash of each pod's name.
        pods_cpu_s: The pods' CPU seconds, in the order of `pods`.
        pods_at_ms: When the pods were measured.
    """

    cpu: Counter
    pods: "array.array[int]"
    pods_cpu_s: "array.array[float]"
    pods_at_ms: "array.array[int]"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DiskSample:
    """What the root control group of a node has read and written, and how long its tasks waited.

    Attributes:
        disk_bytes: Bytes read and written on all disks; None if cAdvisor does not know them.
        waited_s: Seconds in which a task waited for a resource (PSI), by the resource; without unknown ones.
    """

    disk_bytes: Counter | None
    waited_s: dict[str, Counter]


def node_usage(body: bytes) -> NodeSample | None:
    """Return the CPU seconds in an answer of `/metrics/resource`, or None if the node's are missing or invalid."""
    start, end = _block(body, _NODE_CPU)
    found = _NUMBERS.match(body, start + len(_NODE_CPU), end)
    cpu = None if found is None else _counter(*found.groups())
    if cpu is None:
        return None
    pods, seconds, times = array.array("q"), array.array("d"), array.array("q")
    for labels, value, at_ms in _POD.findall(body, *_block(body, _POD_CPU))[:MOST_PODS]:
        sample = _counter(value, at_ms)
        if sample is not None:
            pods.append(hash(labels))
            seconds.append(sample.value)
            times.append(sample.at_ms)
    return NodeSample(cpu=cpu, pods=pods, pods_cpu_s=seconds, pods_at_ms=times)


def cadvisor_usage(body: bytes) -> DiskSample | None:
    """Return the samples of the root control group in an answer of `/metrics/cadvisor`, or None if it has none."""
    disks = [
        sample
        for way in ("reads", "writes")
        for line, sample in _of_root(body, f"container_fs_{way}_bytes_total")
        if not _STACKED_DISK.search(line)
    ]
    waited_s = {}
    for resource in PRESSURES:
        for _, sample in _of_root(body, f"container_pressure_{resource}_waiting_seconds_total"):
            waited_s[resource] = sample
    if not disks and not waited_s:
        return None
    total = sum(sample.value for sample in disks)
    disk_bytes = Counter(total, max(sample.at_ms for sample in disks)) if disks else None
    return DiskSample(disk_bytes=disk_bytes, waited_s=waited_s)


def _of_root(body: bytes, metric: str) -> Iterator[tuple[bytes, Counter]]:
    """Yield the lines of a metric that are about the root control group, and their samples."""
    start, end = _block(body, f"{metric}{{".encode())
    for _ in range(MOST_DISKS):
        at = body.find(_ROOT, start, end)
        line_end = body.find(b"\n", at, end)
        if at < 0 or line_end < 0:
            return
        line = body[body.rfind(b"\n", start - 1, at) + 1 : line_end]
        start = line_end + 1
        found = _VALUE.search(line[-60:])
        sample = None if found is None else _counter(*found.groups())
        if sample is not None:
            yield line, sample


def _block(body: bytes, prefix: bytes) -> tuple[int, int]:
    """Return where the samples of a metric begin and end: they are consecutive, up to the next comment."""
    at = body.find(b"\n" + prefix)
    if at < 0:
        return len(body), len(body)
    end = body.find(b"\n#", at)
    return at + 1, end + 1 if end >= 0 else len(body)


def _counter(value: bytes, at_ms: bytes) -> Counter | None:
    """Return a sample, or None if its value is no finite number from 0 on, or its time is not plausible."""
    try:
        number, time_ms = float(value), int(at_ms)
    except ValueError:
        return None
    if not math.isfinite(number) or not 0 <= number <= _LARGEST or not 0 < time_ms <= _LATEST_MS:
        return None
    return Counter(number, time_ms)
