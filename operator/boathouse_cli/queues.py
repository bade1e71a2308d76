"""What each queue uses of the cluster against the share that its weight gives it. Pure.

A queue's use is its dominant share: the larger of its part of the cluster's CPU and of its memory, over the pods that
hold resources (Ghodsi et al., Dominant Resource Fairness, NSDI 2011, section 4). Its fair share is its weight among
the queues that have unfinished jobs.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import quantities, requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_cli import model

RESOURCES: Final = ("cpu", "memory")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue now. `weight` is None for a queue that the operator's configuration does not know, or hides."""

    name: str
    weight: float | None
    jobs: int
    pods: int
    cpu_milli: int
    memory_bytes: int
    share: float
    fair_share: float | None


def usage(
    weights: Mapping[str, float],
    jobs: Sequence[model.Job],
    pods: Iterable[model.Raw],
    nodes: Iterable[model.Raw],
) -> tuple[Queue, ...]:
    """The queues by name.

    Args:
        weights: The configured queues.
        jobs: All jobs that can be seen.
        pods: Pods with the queue's label; those that ended or have no node do not count.
        nodes: The cluster's nodes; those that are cordoned count too.
    """
    capacity = _capacity(nodes)
    used = _used(pods)
    open_jobs = [job for job in jobs if not job.finished]
    active_weight = sum(weights[name] for name in {job.queue for job in open_jobs} if name in weights)
    return tuple(
        _queue(name, weights.get(name), [job for job in open_jobs if job.queue == name], used, capacity, active_weight)
        for name in sorted({*weights, *used, *(job.queue for job in open_jobs if job.queue)})
    )


def weights_of(config: model.Raw) -> dict[str, float]:
    """The weights in the operator's configuration file (`boathouse.resources.config.OperatorConfig`)."""
    return {each["name"]: float(each.get("weight", 1.0)) for each in config.get("queues") or ()}


def _queue(
    name: str,
    weight: float | None,
    jobs: Sequence[model.Job],
    used: Mapping[str, list[requests.Amounts]],
    capacity: requests.Amounts,
    active_weight: float,
) -> Queue:
    held = used.get(name, [])
    total = {resource: sum(each.get(resource, 0) for each in held) for resource in RESOURCES}
    share = max((total[each] / capacity[each] for each in RESOURCES if capacity.get(each)), default=0.0)
    return Queue(
        name=name,
        weight=weight,
        jobs=len(jobs),
        pods=len(held),
        cpu_milli=quantities.milli(total["cpu"]),
        memory_bytes=quantities.ones(total["memory"]),
        share=share,
        fair_share=weight / active_weight if weight is not None and jobs and active_weight else None,
    )


def _used(pods: Iterable[model.Raw]) -> dict[str, list[requests.Amounts]]:
    used: dict[str, list[requests.Amounts]] = {}
    for raw in pods:
        pod = msgspec.convert(raw, wire.PodView)
        if pod.spec.node_name and not pod.is_terminal and (queue := pod.metadata.labels.get(names.LABEL_QUEUE)):
            used.setdefault(queue, []).append(requests.pod_requests(pod))
    return used


def _capacity(nodes: Iterable[model.Raw]) -> requests.Amounts:
    allocatable = [raw.get("status", {}).get("allocatable", {}) for raw in nodes]
    return {each: sum(quantities.nano(node[each]) for node in allocatable if each in node) for each in RESOURCES}
