"""Explain the state of a job, a pod or an MRCluster: a headline, then details. Pure."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrcluster.names import ConditionType as ClusterCondition, Reason as ClusterReason
from boathouse.resources.sparkapp.names import ConditionType as SparkCondition, Reason as SparkReason
from boathouse_cli import decisions, model, mrclusters
from boathouse_cli.usage import Queue

UNRECONCILED_AFTER_S: Final = 10.0
"""A job without a status after this time has no operator: a running operator writes one within a second."""

_NAMED_NODES: Final = 5
"""A state of pods on more nodes than these is counted only."""
NO_PROBLEM: Final = frozenset(
    {
        *(
            names.Reason.WAITING_FOR_TASKS,
            names.Reason.JOB_FINISHED,
            names.Reason.TASKS_RUNNING,
            names.Reason.SUSPENDED,
            "",
        ),
        *(SparkReason.DRIVER_STARTING, SparkReason.RESTARTING),
    }
)
"""Reasons for which a job does not run yet, while nothing is wrong with its pods."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A headline, and rows of details."""

    headline: str
    details: tuple[decisions.Row, ...]


def explain_job(job: model.Job, pods: Sequence[model.TaskPod], queue: Queue | None, *, now_s: float) -> Explanation:
    """Return the explanation of a job's state."""
    rows = (
        ("phase", f"{job.phase or 'none yet'}, created {model.ago(now_s - job.created_s)} ago"),
        *job.details,
        *decisions.of_tasks(pods),
        *decisions.of_driver(pods),
        *_pods_and_queue(pods, queue),
    )
    return Explanation(headline=f"{job.title} {_standing(job, now_s)}", details=rows)


def _pods_and_queue(pods: Sequence[model.TaskPod], queue: Queue | None) -> list[decisions.Row]:
    rows = [("pods", describe_pods(pods))] if pods else []
    if queue:
        weight = "" if queue.weight is None else f", weight {queue.weight:g}"
        fair = "" if queue.fair_share is None else f", fair share {queue.fair_share:.0%}"
        usage = f"{queue.name}{weight}: {queue.pods} pods hold {queue.share:.0%} of the cluster{fair}"
        rows.append(("queue", usage))
    return rows


def explain_pod(raw: model.Raw, events: Iterable[model.Raw], *, now_s: float) -> Explanation:
    """Return the explanation of a pod's state."""
    pod = model.task_pod(raw)
    scheduler = raw["spec"].get("schedulerName") or "default-scheduler"
    rows = [
        ("scheduler", scheduler if scheduler == names.SCHEDULER_NAME else f"{scheduler} (not Boathouse)"),
        ("phase", f"{pod.phase}, created {model.ago(now_s - pod.created_s)} ago"),
        *((subject, text) for subject, text in (("node", pod.node), ("queue", pod.queue)) if text),
        *decisions.of_pod(raw, now_s=now_s),
        *(("event", f"{event.get('reason')}: {event.get('message')}") for event in sorted(events, key=_when)[-5:]),
    ]
    return Explanation(headline=f"pod/{pod.name} {_pod_standing(raw, pod, now_s)}", details=tuple(rows))


def _standing(job: model.Job, now_s: float) -> str:
    if failed := job.confirmed(names.ConditionType.FAILED):
        return f"failed: {_because(failed)}"
    if job.holds(names.ConditionType.SUCCEEDED):
        took = model.duration((job.completed_s or now_s) - job.created_s)
        return f"succeeded in {took} ({job.progress}){job.outcome and f'; {job.outcome}'}"
    if not job.conditions:
        return _unreconciled(now_s - job.created_s)
    if refused := job.denial(names.ConditionType.ADMITTED):
        return f"was not admitted: {_because(refused)}"
    if suspended := job.confirmed(names.ConditionType.SUSPENDED):
        return f"is suspended: {suspended.message or suspended.reason}"
    return _under_way(job)


def _under_way(job: model.Job) -> str:
    running = job.denial(names.ConditionType.RUNNING)
    if running and running.reason not in NO_PROBLEM:
        return f"is blocked: {_because(running)}"
    stands = ", ".join(filter(None, (job.progress, job.activity))) or "no tasks yet"
    phase = f"is in phase {job.phase} ({stands})"
    if waits := waiting(job):
        why = f"is pending: {waits.message or waits.reason}"
        return f"{phase} and {why}" if job.is_busy else why
    return phase


def waiting(job: model.Job) -> wire.Condition | None:
    """Return the condition that says why a job lacks something that it needs."""
    executors = job.denial(SparkCondition.EXECUTORS_READY) if job.holds(names.ConditionType.RUNNING) else None
    return job.denial(names.ConditionType.SCHEDULED) or executors


def _unreconciled(age_s: float) -> str:
    if age_s < UNRECONCILED_AFTER_S:
        return "was created just now; the operator has not reconciled it yet"
    return (
        f"was created {model.ago(age_s)} ago and no operator has reconciled it: "
        f"check `kubectl get pods -n {names.OPERATOR_NAMESPACE}`, "
        "and that the chart value `namespaces` includes this namespace"
    )


def _because(condition: wire.Condition) -> str:
    return f"{condition.reason}: {condition.message}" if condition.message else condition.reason


def describe_pods(pods: Iterable[model.TaskPod]) -> str:
    """Return the pods counted by state and node; of many nodes only their number."""
    by_state: dict[str, collections.Counter[str]] = {}
    for pod in pods:
        by_state.setdefault(pod.waiting or pod.phase, collections.Counter())[pod.node or "no node yet"] += 1
    return ", ".join(
        f"{nodes.total()} {state} on {len(nodes)} nodes"
        if len(nodes) > _NAMED_NODES
        else ", ".join(f"{count} {state} on {node}" for node, count in sorted(nodes.items()))
        for state, nodes in sorted(by_state.items())
    )


def _pod_standing(raw: model.Raw, pod: model.TaskPod, now_s: float) -> str:
    match pod.phase:
        case "Succeeded":
            return f"succeeded after {model.duration((pod.finished_s or now_s) - pod.created_s)}"
        case "Failed":
            status, result = raw.get("status") or {}, pod.result
            why = ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "its container was killed"
            return f"failed: {result.reason}: {result.message}" if result and result.reason else f"failed: {why}"
        case "Running":
            return f"has run on {pod.node} for {model.ago(now_s - (pod.started_s or pod.created_s))}"
        case _ if pod.node:
            return f"is starting on {pod.node}{': ' + pod.waiting if pod.waiting else ''}"
        case _:
            pass
    scheduled = msgspec.convert(raw, wire.PodView).condition("PodScheduled")
    if scheduled and scheduled.status == "False":
        return f"is pending: {scheduled.message or scheduled.reason}"
    return "is pending; no scheduler has reported a reason yet"


def _when(event: model.Raw) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or ""


_PROBLEMS: Final = (
    (ClusterCondition.HDFS_AVAILABLE, "False", "hdfs"),
    (ClusterCondition.YARN_AVAILABLE, "False", "yarn"),
    (ClusterCondition.SCHEDULED, "False", "room"),
    (ClusterCondition.RESIZING, "True", "resizing"),
    (ClusterCondition.SETTINGS_OVERRIDDEN, "True", "settings"),
    (ClusterCondition.ROLLED_OUT, "False", "settings"),
    (ClusterCondition.NETWORK_UNVERIFIED, "True", "network"),
)
"""What is explained of a condition in this status."""


def explain_cluster(
    cluster: mrclusters.MRCluster,
    pods: Sequence[model.TaskPod],
    queue: Queue | None,
    others: Iterable[mrclusters.MRCluster],
    *,
    now_s: float,
) -> Explanation:
    """Return the explanation of a cluster's state and size."""
    rows = [
        *_problems(cluster),
        ("phase", f"{cluster.phase or 'none yet'}, created {model.ago(now_s - cluster.created_s)} ago"),
        *_nodes(cluster),
        *_size(cluster, others, now_s),
        *_leaving(cluster, now_s),
        *_figures(cluster, now_s),
        *(("address", address) for address in cluster.status.addresses.values()),
        *_pods_and_queue(pods, queue),
    ]
    return Explanation(headline=f"{cluster.title} {_cluster_standing(cluster, now_s)}", details=tuple(rows))


def _cluster_standing(cluster: mrclusters.MRCluster, now_s: float) -> str:
    if not cluster.conditions:
        return _unreconciled(now_s - cluster.created_s)
    if refused := cluster.denial(ClusterCondition.ADMITTED):
        return f"was not admitted: {_because(refused)}"
    if cluster.finished:
        ended = cluster.condition(ClusterCondition.READY)
        return f"has expired{f': {ended.message}' if ended else ''}"
    stands = f"is {cluster.phase} ({cluster.progress})" if cluster.progress else f"is {cluster.phase}"
    return f"{stands}: {_because(cluster.concern)}" if cluster.concern else stands


def _problems(cluster: mrclusters.MRCluster) -> Iterator[decisions.Row]:
    shown_messages = {cluster.concern.message} if cluster.concern else set()
    for kind, status, subject in _PROBLEMS:
        found = cluster.confirmed(kind, status)
        if found and found.reason != ClusterReason.NO_COMPUTE and found.message not in shown_messages:
            shown_messages.add(found.message)
            yield subject, _because(found)


def _nodes(cluster: mrclusters.MRCluster) -> Iterator[decisions.Row]:
    for role, nodes in (("core", cluster.status.core), ("transient", cluster.status.transient)):
        if nodes != mrclusters.Nodes():
            counts = f"{nodes.ready} ready, {nodes.pending} pending, {nodes.leaving} leaving"
            yield role, f"{nodes.wanted} wanted: {counts}"


def _size(
    cluster: mrclusters.MRCluster, others: Iterable[mrclusters.MRCluster], now_s: float
) -> Iterator[decisions.Row]:
    """Yield why the cluster has its nodes: the last decision, and what its policy may do."""
    if size := cluster.status.size:
        yield "size", f"decided {model.ago(now_s - size.at_s)} ago: {size.reason}"
        if offer := size.offer:
            yield "offer", f"{offer} more nodes" if offer > 0 else f"{-offer} nodes asked back"
    bounds = (
        f"{role} {least if least == most else f'{least} to {most}'}" for role, (least, most) in cluster.bounds.items()
    )
    yield "policy", f"{cluster.policy}: {', '.join(bounds)} nodes"
    if cluster.policy != mrclusters.STATIC:
        rivals = [
            other
            for other in others
            if other.uid != cluster.uid and other.policy != mrclusters.STATIC and not other.finished
        ]
        whole = cluster.weight + sum(rival.weight for rival in rivals)
        yield "weight", f"{cluster.weight} of {whole} among {len(rivals) + 1} clusters that can grow"


def _leaving(cluster: mrclusters.MRCluster, now_s: float) -> Iterator[decisions.Row]:
    for node in cluster.status.leaving:
        since = "" if node.since_s is None else f" for {model.ago(now_s - node.since_s)}"
        until = "no timeout: it leaves when its blocks are copied"
        if node.deadline_s is not None:
            until = f"at most {model.duration(node.deadline_s - now_s)} more"
        yield "leaving", f"{node.host}{since} ({node.reason}), {until}"


def _figures(cluster: mrclusters.MRCluster, now_s: float) -> Iterator[decisions.Row]:
    status = cluster.status
    if containers := status.containers:
        counts = f"{containers.running} containers running and {containers.pending} pending, {status.slots} slots"
        yield "yarn", f"load {status.load or 'unknown'}: {counts}; {status.applications} applications"
    if status.hdfs:
        figures = collections.Counter(status.hdfs)
        used, capacity = model.size(figures["usedBytes"]), model.size(figures["capacityBytes"])
        blocks = f"{figures['missingBlocks']} missing, {figures['underReplicatedBlocks']} under-replicated"
        nodes = f"{figures['files']} files, {figures['liveDataNodes']} DataNodes live"
        yield "hdfs", f"{used} of {capacity} used, {nodes}; blocks: {blocks}"
    if status.ready_s is not None and containers is None and not status.hdfs:
        yield "figures", "none: the agent of the master has not reported for a minute"
    if cluster.ttl_s is not None and status.last_active_s is not None and cluster.holds(ClusterCondition.IDLE):
        yield "idle", f"is deleted in {model.duration(status.last_active_s + cluster.ttl_s - now_s)} unless it is used"
