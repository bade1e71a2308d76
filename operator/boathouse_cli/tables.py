"""Tables of jobs, queues, explanations and timelines. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box, table

from boathouse.resources.names import ConditionType
from boathouse.scheduling.pods import quantities
from boathouse_cli import explain, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_cli import model, picture
    from boathouse_cli.mrclusters import MRCluster
    from boathouse_cli.queues import Queue


def jobs(entries: Iterable[model.Job], *, namespaces: bool, now_s: float) -> table.Table:
    """Return the table of jobs."""
    columns = ("NAMESPACE",) if namespaces else ()
    drawn = _plain(*columns, "NAME", "QUEUE", "PHASE", "PROGRESS", "WHY", "AGE")
    for job in entries:
        progress = job.progress or (job.activity if job.is_busy else "")
        row = (job.title, job.queue, job.phase, progress, why(job), text.ago(now_s - job.created_s))
        drawn.add_row(*((job.namespace, *row) if namespaces else row))
    return drawn


def clusters(entries: Iterable[MRCluster], *, namespaces: bool) -> table.Table:
    """Return the table of Hadoop clusters."""
    columns = ("NAMESPACE",) if namespaces else ()
    drawn = _plain(*columns, "NAME", "PHASE", "CORE", "TRANSIENT", "LOAD", "QUEUE", "POLICY", "USED", "REASON")
    for cluster in entries:
        used = "" if cluster.used_bytes is None else text.size(cluster.used_bytes)
        nodes = (cluster.core.text, cluster.transient.text)
        row = (cluster.name, cluster.phase, *nodes, cluster.load, cluster.queue, cluster.policy, used, why(cluster))
        drawn.add_row(*((cluster.namespace, *row) if namespaces else row))
    return drawn


def why(job: model.Job) -> str:
    """Return the reason that a job is pending or failed, or an empty text."""
    failed = job.condition(ConditionType.FAILED)
    if failed and failed.status == "True":
        return failed.reason
    found = None if job.finished else job.concern or job.denial(ConditionType.ADMITTED) or explain.waiting(job)
    return found.reason if found else ""


def queues(entries: Iterable[Queue]) -> table.Table:
    """Return the table of queues."""
    drawn = _plain("NAME", "WEIGHT", "JOBS", "PODS", "CPU", "MEMORY", "SHARE", "FAIR SHARE", "LIMITS")
    for queue in entries:
        drawn.add_row(
            queue.name,
            "" if queue.weight is None else f"{queue.weight:g}",
            str(queue.jobs),
            str(queue.pods),
            f"{queue.cpu_milli / quantities.milli(quantities.NANO):g}",
            text.size(queue.memory_bytes),
            f"{queue.share:.0%}",
            "" if queue.fair_share is None else f"{queue.fair_share:.0%}",
            ", ".join(f"{resource} {amount}" for resource, amount in queue.limits.items()),
        )
    return drawn


def explanation(entry: explain.Explanation) -> table.Table:
    """Return the table of an explanation's details."""
    drawn = table.Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for what, details in entry.details:
        drawn.add_row(f"  {what}", details)
    return drawn


def seconds(entries: Sequence[picture.Share], title: str = "") -> table.Table:
    """Return the table of seconds by phase; of several jobs, with a title."""
    drawn = _plain(f"PHASE{f' ({title})' if title else ''}", "JOB", "", "ALL TASKS")
    total_s = sum(each.wall_s for each in entries)
    for each in entries:
        share = each.wall_s / total_s if total_s else 0.0
        drawn.add_row(each.activity, f"{each.wall_s:.1f} s", f"{share:.0%}", f"{each.task_s:.1f} s")
    drawn.add_row("total", f"{total_s:.1f} s", "", f"{sum(each.task_s for each in entries):.1f} s")
    for column in drawn.columns[1:]:
        column.justify = "right"
    return drawn


def _plain(*columns: str) -> table.Table:
    drawn = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn
