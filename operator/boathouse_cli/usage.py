"""Usage of the cluster by node, and by queue beside its fair share. Pure.

A queue's usage is its dominant share: the larger of its part of the cluster's CPU and of its memory, over the pods that
hold resources (Ghodsi et al., Dominant Resource Fairness, NSDI 2011, section 4). Its fair share is its weight among
the queues that have unfinished jobs.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import requests
from boathouse_cli import model

RESOURCES: Final = ("cpu", "memory")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node: what it offers, what its pods that have not ended request, and how many of these Boathouse schedules."""

    name: str
    state: str
    pods: int
    own_pods: int
    used_cpu_milli: int
    cpu_milli: int
    used_memory_bytes: int
    memory_bytes: int


def of_nodes(nodes: Iterable[model.Raw], pods: Iterable[model.Raw]) -> tuple[Node, ...]:
    """Return the usage of each node, sorted by name."""
    pods_on: collections.defaultdict[str, list[wire.PodView]] = collections.defaultdict(list)
    for pod in (msgspec.convert(raw, wire.PodView) for raw in pods):
        if not pod.is_terminal:
            pods_on[pod.spec.node_name].append(pod)
    found = []
    for view in (msgspec.convert(raw, wire.NodeView) for raw in nodes):
        held = pods_on[view.metadata.name]
        used, offered = _total(map(requests.pod_requests, held)), view.status.allocatable
        node = Node(
            name=view.metadata.name,
            state=f"{'Ready' if view.is_ready else 'NotReady'}{', cordoned' if view.spec.unschedulable else ''}",
            pods=len(held),
            own_pods=sum(pod.spec.scheduler_name == names.SCHEDULER_NAME for pod in held),
            used_cpu_milli=requests.milli(used["cpu"]),
            cpu_milli=requests.cpu_milli(offered.get("cpu", "0")),
            used_memory_bytes=requests.ones(used["memory"]),
            memory_bytes=requests.size_bytes(offered.get("memory", "0")),
        )
        found.append(node)
    return tuple(sorted(found, key=lambda node: node.name))


def _total(amounts: Iterable[requests.Amounts]) -> requests.Amounts:
    found = list(amounts)
    return {resource: sum(of.get(resource, 0) for of in found) for resource in RESOURCES}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A queue's entry in the operator's configuration."""

    weight: float = 1.0
    limits: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue's current usage, and its configured limits."""

    name: str
    weight: float | None  # None if the operator's configuration lacks the queue or is unreadable
    limits: Mapping[str, str]
    jobs: int
    pods: int
    cpu_milli: int
    memory_bytes: int
    share: float
    fair_share: float | None


def of_queues(
    configured: Mapping[str, Configured],
    jobs: Iterable[model.Job],
    pods: Iterable[model.Raw],
    nodes: Iterable[model.Raw],
) -> tuple[Queue, ...]:
    """Return the usage of all queues, sorted by name.

    Pods have the queue's label, or are executors, which are in the queue of their driver. Those that ended or have no
    node do not count, but cordoned nodes do.
    """
    allocatable = [raw.get("status", {}).get("allocatable", {}) for raw in nodes]
    capacity = _total(
        {resource: requests.nano(node[resource]) for resource in RESOURCES if resource in node} for node in allocatable
    )
    used, open_jobs = _used(pods), collections.Counter(job.queue for job in jobs if not job.finished)
    active_weight = sum(settings.weight for name, settings in configured.items() if open_jobs[name])
    found = []
    for name in sorted({*configured, *used, *filter(None, open_jobs)}):
        settings, held = configured.get(name), used.get(name, [])
        total = _total(held)
        shares = (total[resource] / capacity[resource] for resource in RESOURCES if capacity[resource])
        found.append(
            Queue(
                name=name,
                weight=settings.weight if settings else None,
                limits=settings.limits if settings else {},
                jobs=open_jobs[name],
                pods=len(held),
                cpu_milli=requests.milli(total["cpu"]),
                memory_bytes=requests.ones(total["memory"]),
                share=max(shares, default=0.0),
                fair_share=settings.weight / active_weight if settings and open_jobs[name] and active_weight else None,
            )
        )
    return tuple(found)


def configured(config: model.Raw) -> dict[str, Configured]:
    """Return the queues in the operator's configuration file (`boathouse.resources.config.OperatorConfig`)."""
    return {
        queue["name"]: Configured(weight=float(queue.get("weight", 1.0)), limits=queue.get("limits") or {})
        for queue in config.get("queues") or ()
    }


def _used(pods: Iterable[model.Raw]) -> dict[str, list[requests.Amounts]]:
    found = [msgspec.convert(raw, wire.PodView) for raw in pods]
    queues = {pod.metadata.uid: queue for pod in found if (queue := pod.metadata.labels.get(names.LABEL_QUEUE))}
    used: dict[str, list[requests.Amounts]] = {}
    for pod in found:
        owner = pod.metadata.controller
        queue = queues.get(pod.metadata.uid) or (queues.get(owner.uid) if owner else None)
        if pod.spec.node_name and not pod.is_terminal and queue:
            used.setdefault(queue, []).append(requests.pod_requests(pod))
    return used
