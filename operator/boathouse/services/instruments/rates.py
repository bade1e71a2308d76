"""Compute what nodes use from two samples of their counters.

Times are those of the samples. A kubelet's samples are up to 15 s old and differ between the node and its pods, so the
time of the answer would make a rate wrong.
"""

import array
from collections.abc import Mapping
from typing import Final, NamedTuple

from boathouse.services.instruments.exposition import Counter, DiskSample, NodeSample

MOST_CORES: Final = 10_000.0
"""A node that reports a higher usage is not believed."""


class _Pods(NamedTuple):
    """The last sample of a node, and the CPUs that each pod used then."""

    sample: NodeSample
    cores: "array.array[float]"


class Rates:
    """Computes the usage of nodes from their samples.

    Args:
        cpu_of_pods: Whether the CPU usage of a node is the sum of its pods', for nodes that share a machine.
    """

    def __init__(self, *, cpu_of_pods: bool) -> None:
        self._cpu_of_pods = cpu_of_pods
        self._nodes: dict[str, _Pods] = {}
        self._disks: dict[str, DiskSample] = {}

    def cpu(self, node: str, sample: NodeSample) -> Mapping[str, float] | None:
        """Return CPUs in use since the last sample; None for the first sample, one as old as it, or an implausible one.

        A counter that fell begins anew: the node has restarted.
        """
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
        last, usage = self._disks.get(node), {}
        self._disks[node] = sample
        if last is None:
            return {}
        if last.disk_bytes is not None and sample.disk_bytes is not None:
            usage["disk_bytes_per_s"] = _rate(last.disk_bytes, sample.disk_bytes)
        for resource, waited_s in sample.waited_s.items():
            if (before := last.waited_s.get(resource)) is not None and (share := _rate(before, waited_s)) is not None:
                usage[f"{resource}_pressure"] = min(share, 1.0)
        return {name: value for name, value in usage.items() if value is not None}

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
