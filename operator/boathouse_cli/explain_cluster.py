"""Explain an MRCluster: first what is wrong with it, then why it has the size that it has. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse.resources.mrcluster.names import ConditionType, Reason
from boathouse_cli import explain, mrclusters, text
from boathouse_cli.mrclusters import STATIC, MRCluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boathouse_cli import model
    from boathouse_cli.usage import Queue

Row = tuple[str, str]
_PROBLEMS: Final = (
    (ConditionType.HDFS_AVAILABLE, "False", "hdfs"),
    (ConditionType.YARN_AVAILABLE, "False", "yarn"),
    (ConditionType.SCHEDULED, "False", "room"),
    (ConditionType.RESIZING, "True", "resizing"),
    (ConditionType.SETTINGS_OVERRIDDEN, "True", "settings"),
    (ConditionType.ROLLED_OUT, "False", "settings"),
    (ConditionType.NETWORK_UNVERIFIED, "True", "network"),
)
"""What is explained of a condition in this status."""


def explain_cluster(
    cluster: MRCluster,
    pods: Sequence[model.TaskPod],
    queue: Queue | None,
    others: Iterable[MRCluster],
    *,
    now_s: float,
) -> explain.Explanation:
    """Return the explanation of a cluster's state and size.

    Args:
        cluster: The cluster.
        pods: Its pods.
        queue: Usage of its queue, if the user may read it.
        others: All clusters that the user may read.
        now_s: Current time, for ages.
    """
    rows = [
        *_problems(cluster),
        ("phase", f"{cluster.phase or 'none yet'}, created {text.ago(now_s - cluster.created_s)} ago"),
        *_nodes(cluster),
        *_size(cluster, others, now_s),
        *_leaving(cluster, now_s),
        *_figures(cluster),
        *_idle(cluster, now_s),
        *(("address", address) for address in cluster.addresses.values()),
        *([("pods", explain.describe_pods(pods))] if pods else []),
        *([("queue", explain.describe_queue(queue))] if queue else []),
    ]
    return explain.Explanation(headline=f"{cluster.title} {_standing(cluster, now_s)}", details=tuple(rows))


def _standing(cluster: MRCluster, now_s: float) -> str:
    if not cluster.conditions:
        return explain.unreconciled(now_s - cluster.created_s)
    if refused := cluster.denial(ConditionType.ADMITTED):
        return f"was not admitted: {explain.because(refused)}"
    if cluster.finished:
        ended = cluster.condition(ConditionType.READY)
        return f"has expired{f': {ended.message}' if ended else ''}"
    stands = f"is {cluster.phase} ({cluster.progress})" if cluster.progress else f"is {cluster.phase}"
    return f"{stands}: {explain.because(cluster.concern)}" if cluster.concern else stands


def _problems(cluster: MRCluster) -> Iterator[Row]:
    told = {cluster.concern.message} if cluster.concern else set()
    for kind, status, subject in _PROBLEMS:
        found = cluster.condition(kind)
        if found is None or found.status != status or found.reason == Reason.NO_COMPUTE or found.message in told:
            continue
        told.add(found.message)
        yield subject, explain.because(found)


def _nodes(cluster: MRCluster) -> Iterator[Row]:
    for role, nodes in (("core", cluster.core), ("transient", cluster.transient)):
        if nodes != mrclusters.Nodes():
            counts = f"{nodes.ready} ready, {nodes.pending} pending, {nodes.leaving} leaving"
            yield role, f"{nodes.wanted} wanted: {counts}"


def _size(cluster: MRCluster, others: Iterable[MRCluster], now_s: float) -> Iterator[Row]:
    """Yield why the cluster has its nodes: the last decision, and what its policy may do."""
    if cluster.size is not None:
        at_s, reason, offer = cluster.size
        yield "size", f"decided {text.ago(now_s - at_s)} ago: {reason}"
        if offer:
            yield "offer", f"{offer} more nodes" if offer > 0 else f"{-offer} nodes asked back"
    bounds = ", ".join(f"{role} {_range(*bound)}" for role, bound in cluster.bounds.items())
    yield "policy", f"{cluster.policy}: {bounds} nodes"
    if cluster.policy == STATIC:
        return
    rivals = [each for each in others if each.uid != cluster.uid and each.policy != STATIC and not each.finished]
    whole = cluster.weight + sum(each.weight for each in rivals)
    yield "weight", f"{cluster.weight} of {whole} among {len(rivals) + 1} clusters that can grow"


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _leaving(cluster: MRCluster, now_s: float) -> Iterator[Row]:
    for node in cluster.leaving:
        since = "" if node.since_s is None else f" for {text.ago(now_s - node.since_s)}"
        if node.deadline_s is None:
            until = "no timeout: it leaves when its blocks are copied"
        else:
            until = f"at most {text.duration(node.deadline_s - now_s)} more"
        yield "leaving", f"{node.host}{since} ({node.reason}), {until}"


def _figures(cluster: MRCluster) -> Iterator[Row]:
    if cluster.tasks is not None:
        yield "yarn", _yarn(cluster, *cluster.tasks)
    if cluster.hdfs:
        yield "hdfs", _hdfs(cluster.hdfs)
    if cluster.ready_s is not None and cluster.tasks is None and not cluster.hdfs:
        yield "figures", "none: the agent of the master has not reported for a minute"


def _yarn(cluster: MRCluster, running: int, pending: int) -> str:
    containers = f"{running} containers running and {pending} pending, {cluster.slots or 0} slots"
    return f"load {cluster.load or 'unknown'}: {containers}; {cluster.applications or 0} applications"


def _hdfs(figures: Mapping[str, int]) -> str:
    used, capacity = (text.size(figures.get(key, 0)) for key in ("usedBytes", "capacityBytes"))
    blocks = f"{figures.get('missingBlocks', 0)} missing, {figures.get('underReplicatedBlocks', 0)} under-replicated"
    return (
        f"{used} of {capacity} used, {figures.get('files', 0)} files, {figures.get('liveDataNodes', 0)} DataNodes "
        f"live; blocks: {blocks}"
    )


def _idle(cluster: MRCluster, now_s: float) -> Iterator[Row]:
    if cluster.ttl_s is not None and cluster.last_active_s is not None and cluster.holds(ConditionType.IDLE):
        left_s = cluster.last_active_s + cluster.ttl_s - now_s
        yield "idle", f"is deleted in {text.duration(left_s)} unless it is used"
