"""Timeline of an MRCluster: its nodes as bars, and how many there were. Pure.

Nodes whose pods are gone have no bar; the status keeps the last changes of the size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_cli import mrclusters
from boathouse_cli.timeline import Activity, Level, Segment, Timeline, plain_bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boathouse_cli import model

LIFE = "cluster"


def build(cluster: model.Job, pods: Iterable[model.TaskPod], *, now_s: float) -> Timeline:
    """Return the timeline of a cluster until now, or until it expired.

    Args:
        cluster: The cluster.
        pods: Its pods, in any order.
        now_s: End of the segments of nodes that run.
    """
    end_s = cluster.completed_s or now_s
    bars = [plain_bar(pod, Activity.RUNNING, now_s=end_s) for pod in pods]
    bars.sort(key=lambda bar: (bar.start_s, bar.pod.name))
    path = tuple(segment for segment in _life(cluster, end_s) if segment.duration_s > 0)
    levels = tuple(_levels(cluster, end_s))
    return Timeline(
        job=cluster,
        start_s=cluster.created_s,
        end_s=end_s,
        bars=tuple(bars),
        critical_path=path,
        path_name=LIFE,
        levels=levels,
    )


def _life(cluster: model.Job, end_s: float) -> Iterator[Segment]:
    """Yield what the cluster did: it is pending until its first pod, starts until it is ready, and runs."""
    ready_s = cluster.ready_s if isinstance(cluster, mrclusters.MRCluster) else None
    at_s = cluster.created_s
    for activity, until_s in (
        (Activity.WAITING, cluster.started_s),
        (Activity.STARTING, ready_s),
        (Activity.RUNNING, end_s),
    ):
        next_s = min(end_s, max(at_s, end_s if until_s is None else until_s))
        yield Segment(activity=activity, start_s=at_s, end_s=next_s)
        at_s = next_s


def _levels(cluster: model.Job, end_s: float) -> Iterator[Level]:
    changes = cluster.levels if isinstance(cluster, mrclusters.MRCluster) else ()
    for change, later in zip(changes, (*changes[1:], None), strict=False):
        yield Level(
            start_s=max(change.at_s, cluster.created_s),
            end_s=max(change.at_s, later.at_s if later else end_s),
            core=change.core,
            transient=change.transient,
        )
