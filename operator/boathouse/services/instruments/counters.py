"""Compute what nodes use from two samples of their counters, which are read from a kubelet's metrics.

Times are those of the samples, in milliseconds. A kubelet's samples are up to 15 s old and differ between the node and
its pods, so the time of the answer would make a rate wrong. Nothing else of an answer is parsed.
"""

import array
import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

MOST_PODS: Final = 2000
MOST_DISKS: Final = 64
PRESSURES: Final = ("cpu", "io", "memory")
_LARGEST, _LATEST_MS = 1e18, 10**14
_NODE_CPU, _POD_CPU = b"node_cpu_usage_seconds_total ", b"pod_cpu_usage_seconds_total{"
_NUMBERS: Final = re.compile(rb"(\S{1,32}) (\d{1,16})\n")
_POD: Final = re.compile(rb"pod_cpu_usage_seconds_total\{([^}\n]{1,700})\} (\S{1,32}) (\d{1,16})\n")
_VALUE: Final = re.compile(rb"\} (\S{1,32}) (\d{1,16})$")
_ROOT: Final = b'id="/"'
_STACKED_DISK: Final = re.compile(rb'device="/dev/(?:dm-|md|loop|ram|zram)')
"""Devices whose bytes another device counts too, or that are no disks."""
MOST_CORES: Final = 10_000.0


class Counter(NamedTuple):
    """A counter's value, and when it was measured."""

    value: float
    at_ms: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """CPU seconds of a node and its pods, by hashes of names, in arrays: a tenth of a dictionary's memory."""

    cpu: Counter
    pods: "array.array[int]"
    pods_cpu_s: "array.array[float]"
    pods_at_ms: "array.array[int]"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DiskSample:
    """Bytes that the root control group has read and written, and seconds that tasks waited for resources (PSI)."""

    disk_bytes: Counter | None
    waited_s: dict[str, Counter]


def node_usage(body: bytes) -> NodeSample | None:
    """Return the CPU seconds in an answer of `/metrics/resource`, or None if the node's are missing or invalid."""
    start, end = _block(body, _NODE_CPU)
    match = _NUMBERS.match(body, start + len(_NODE_CPU), end)
    cpu = None if match is None else _counter(*match.groups())
    if cpu is None:
        return None
    found = _POD.findall(body, *_block(body, _POD_CPU))[:MOST_PODS]
    pods = [(hash(labels), pod) for labels, *numbers in found if (pod := _counter(*numbers)) is not None]
    return NodeSample(
        cpu=cpu,
        pods=array.array("q", (name for name, _ in pods)),
        pods_cpu_s=array.array("d", (pod.value for _, pod in pods)),
        pods_at_ms=array.array("q", (pod.at_ms for _, pod in pods)),
    )


def cadvisor_usage(body: bytes) -> DiskSample | None:
    """Return the samples of the root control group in an answer of `/metrics/cadvisor`, or None if it has none."""
    disks = [
        sample
        for way in ("reads", "writes")
        for line, sample in _of_root(body, f"container_fs_{way}_bytes_total")
        if not _STACKED_DISK.search(line)
    ]
    waited_s = {
        resource: sample
        for resource in PRESSURES
        for _, sample in _of_root(body, f"container_pressure_{resource}_waiting_seconds_total")
    }
    if not disks and not waited_s:
        return None
    total = sum(sample.value for sample in disks)
    disk_bytes = Counter(total, max(sample.at_ms for sample in disks)) if disks else None
    return DiskSample(disk_bytes=disk_bytes, waited_s=waited_s)


def _of_root(body: bytes, metric: str) -> Iterator[tuple[bytes, Counter]]:
    start, end = _block(body, f"{metric}{{".encode())
    for _ in range(MOST_DISKS):
        at = body.find(_ROOT, start, end)
        line_end = body.find(b"\n", at, end)
        if at < 0 or line_end < 0:
            return
        line = body[body.rfind(b"\n", start - 1, at) + 1 : line_end]
        start = line_end + 1
        match = _VALUE.search(line[-60:])
        sample = None if match is None else _counter(*match.groups())
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


class _Pods(NamedTuple):
    """The last sample of a node, and the CPUs that each pod used then."""

    sample: NodeSample
    cores: "array.array[float]"


class Rates:
    """Computes the usage of nodes; with `cpu_of_pods` their CPU is the sum of pods, for nodes that share a machine."""

    def __init__(self, *, cpu_of_pods: bool) -> None:
        self._cpu_of_pods = cpu_of_pods
        self._nodes: dict[str, _Pods] = {}
        self._disks: dict[str, DiskSample] = {}

    def cpu(self, node: str, sample: NodeSample) -> Mapping[str, float] | None:
        """Return CPUs in use since the last sample; None for the first one, one as old, or an implausible one."""
        last = self._nodes.get(node)
        if last is not None and last.sample.cpu.at_ms == sample.cpu.at_ms:
            return None
        cores = None if last is None else _rate(last.sample.cpu, sample.cpu)
        by_pod = _pod_cores(last if cores is not None else None, sample)
        self._nodes[node] = _Pods(sample, by_pod)
        if cores is None or cores > MOST_CORES:
            return None
        pods = min(sum(by_pod), MOST_CORES)
        if self._cpu_of_pods:
            return {"cpu_cores": pods}
        return {"cpu_cores": cores, "system_cpu_cores": max(0.0, cores - pods)}

    def disks(self, node: str, sample: DiskSample) -> Mapping[str, float]:
        """Return disk bytes a second, and the shares of time in which tasks waited, since the last sample."""
        last = self._disks.get(node)
        self._disks[node] = sample
        if last is None:
            return {}
        before, after = last.disk_bytes, sample.disk_bytes
        rate = None if before is None or after is None else _rate(before, after)
        pressures = {
            f"{resource}_pressure": min(share, 1.0)
            for resource, waited_s in sample.waited_s.items()
            if resource in last.waited_s and (share := _rate(last.waited_s[resource], waited_s)) is not None
        }
        return pressures if rate is None else {"disk_bytes_per_s": rate, **pressures}

    def forget(self, node: str) -> None:
        """Drop the samples of a node."""
        self._nodes.pop(node, None)
        self._disks.pop(node, None)


def _pod_cores(last: _Pods | None, sample: NodeSample) -> "array.array[float]":
    """Return the CPUs that each pod of a sample uses; 0 for all without an earlier sample of the node.

    A pod that is new started since the earlier sample. A pod that was not measured again uses what it used before.
    """
    cores = array.array("d", bytes(8 * len(sample.pods)))
    if last is None:
        return cores
    places = {pod: place for place, pod in enumerate(last.sample.pods)}
    for place, (pod, cpu_s, at_ms) in enumerate(zip(sample.pods, sample.pods_cpu_s, sample.pods_at_ms, strict=True)):
        before = places.get(pod)
        if before is None:
            rate = _rate(Counter(0.0, last.sample.cpu.at_ms), Counter(cpu_s, at_ms))
        elif last.sample.pods_at_ms[before] == at_ms:
            rate = last.cores[before]
        else:
            rate = _rate(Counter(last.sample.pods_cpu_s[before], last.sample.pods_at_ms[before]), Counter(cpu_s, at_ms))
        cores[place] = rate or 0.0
    return cores


def _rate(before: Counter, after: Counter) -> float | None:
    """Return a counter's increase a second, or None if its value or its time fell, or its time is the same."""
    passed_s = (after.at_ms - before.at_ms) / 1000
    return (after.value - before.value) / passed_s if passed_s > 0 and after.value >= before.value else None
