"""Tables of jobs, queues, explanations and timelines. Pure."""

from collections.abc import Iterable, Sequence

from rich import box, table
from rich.markup import escape

from boathouse.cluster import wire
from boathouse.resources.names import ConditionType
from boathouse.scheduling.pods import requests
from boathouse_cli import explain, model, mrclusters, picture, usage


def jobs(entries: Iterable[model.Job], *, namespaces: bool, now_s: float, is_wide: bool = False) -> table.Table:
    """Return the table of jobs; a wide one has what runs, the time since the start, and the reason's message."""
    columns = ("NAMESPACE",) if namespaces else ()
    more = ("RUNNING", "DURATION", "MESSAGE") if is_wide else ()
    drawn = _plain(*columns, "NAME", "QUEUE", "PHASE", "PROGRESS", "WHY", "AGE", *more)
    for job in entries:
        progress = job.progress or (job.activity if job.is_busy else "")
        row: tuple[str, ...] = (job.title, job.queue, job.phase, progress, why(job), model.ago(now_s - job.created_s))
        if is_wide:
            ran = "" if job.started_s is None else model.duration((job.completed_s or now_s) - job.started_s)
            found = cause(job)
            row = (*row, job.activity, ran, found.message if found else "")
        drawn.add_row(*((job.namespace, *row) if namespaces else row))
    return drawn


def clusters(entries: Iterable[mrclusters.MRCluster], *, namespaces: bool) -> table.Table:
    """Return the table of Hadoop clusters."""
    columns = ("NAMESPACE",) if namespaces else ()
    drawn = _plain(*columns, "NAME", "PHASE", "CORE", "TRANSIENT", "LOAD", "QUEUE", "POLICY", "USED", "REASON")
    for cluster in entries:
        status = cluster.status
        used = model.size(status.hdfs["usedBytes"]) if "usedBytes" in status.hdfs else ""
        sizes = (status.core.text, status.transient.text, status.load)
        row = (cluster.name, cluster.phase, *sizes, cluster.queue, cluster.policy, used, why(cluster))
        drawn.add_row(*((cluster.namespace, *row) if namespaces else row))
    return drawn


def nodes(entries: Iterable[usage.Node]) -> table.Table:
    """Return the table of nodes, with what their pods request of what they offer."""
    drawn = _plain("NODE", "STATE", "PODS", "OF BOATHOUSE", "CPU", "MEMORY")
    for node in entries:
        cpu = f"{node.used_cpu_milli / 1000:g} of {node.cpu_milli / 1000:g}"
        memory = f"{model.size(node.used_memory_bytes)} of {model.size(node.memory_bytes)}"
        drawn.add_row(node.name, node.state, str(node.pods), str(node.own_pods), cpu, memory)
    return drawn


def why(job: model.Job) -> str:
    """Return the reason that a job is pending or failed, or an empty text."""
    return found.reason if (found := cause(job)) else ""


def cause(job: model.Job) -> wire.Condition | None:
    """Return the condition that says why a job is pending or failed."""
    if failed := job.confirmed(ConditionType.FAILED):
        return failed
    return None if job.finished else job.concern or job.denial(ConditionType.ADMITTED) or explain.waiting(job)


def queues(entries: Iterable[usage.Queue]) -> table.Table:
    """Return the table of queues."""
    drawn = _plain("NAME", "WEIGHT", "JOBS", "PODS", "CPU", "MEMORY", "SHARE", "FAIR SHARE", "LIMITS")
    for queue in entries:
        drawn.add_row(
            queue.name,
            "" if queue.weight is None else f"{queue.weight:g}",
            str(queue.jobs),
            str(queue.pods),
            f"{queue.cpu_milli / requests.milli(requests.NANO):g}",
            model.size(queue.memory_bytes),
            f"{queue.share:.0%}",
            "" if queue.fair_share is None else f"{queue.fair_share:.0%}",
            ", ".join(f"{resource} {amount}" for resource, amount in queue.limits.items()),
        )
    return drawn


def shadow(found: model.Raw, now_s: float) -> table.Table:
    """Return the table of a shadow's cycles."""
    drawn = _plain("PROFILE", "SHADOW", "AGREED", "DIFFERED", "DROPPED", "SINCE", "UPDATED")
    counts = (str(found[name]) for name in ("profile", "shadow", "agreed", "differed", "dropped"))
    drawn.add_row(*counts, *(model.ago(now_s - model.epoch_s(found[name])) for name in ("since", "updated")))
    return drawn


def differences(found: model.Raw, now_s: float) -> table.Table:
    """Return the table of a shadow's last differences, the newest first."""
    drawn = _plain("AGE", "TASKS", found["profile"].upper(), f"SHADOW {found['shadow'].upper()}")
    for difference in reversed(found["differences"]):
        age = model.ago(now_s - model.epoch_s(difference["time"]))
        drawn.add_row(
            age, *map(escape, (difference["subject"], _decided(difference["profile"]), _decided(difference["shadow"])))
        )
    return drawn


def _decided(side: model.Raw) -> str:
    places = (
        f"{place['node']} ({place['cpuMilli'] / 1000:g} CPU, {model.size(place['memoryBytes'])})"
        for place in side["places"]
    )
    return ", ".join([*places, *([side["reason"]] if side["reason"] else ())])


def explanation(entry: explain.Explanation) -> table.Table:
    """Return the table of an explanation's details."""
    columns = (table.Column(style="dim", no_wrap=True), table.Column(overflow="fold"))
    drawn = table.Table.grid(*columns, padding=(0, 2))
    for what, details in entry.details:
        drawn.add_row(f"  {what}", details)
    return drawn


def seconds(entries: Sequence[picture.Share], title: str = "") -> table.Table:
    """Return the table of seconds by phase; of several jobs, with a title."""
    drawn = _plain(f"PHASE{f' ({title})' if title else ''}", "JOB", "", "ALL TASKS")
    total_s = sum(entry.wall_s for entry in entries)
    for entry in entries:
        share = entry.wall_s / total_s if total_s else 0.0
        drawn.add_row(entry.activity, f"{entry.wall_s:.1f} s", f"{share:.0%}", f"{entry.task_s:.1f} s")
    drawn.add_row("total", f"{total_s:.1f} s", "", f"{sum(entry.task_s for entry in entries):.1f} s")
    for column in drawn.columns[1:]:
        column.justify = "right"
    return drawn


def _plain(*columns: str) -> table.Table:
    heads = (table.Column(column, overflow="fold") for column in columns)
    return table.Table(*heads, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
