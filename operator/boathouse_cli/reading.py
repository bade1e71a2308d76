"""What the commands print that only read the cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich import console

from boathouse.resources import names
from boathouse_cli import explain as explaining
from boathouse_cli import kinds, model, mrclusters, options, picture, queues, tables
from boathouse_cli.errors import CommandError
from boathouse_cli.explain_cluster import explain_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boathouse_cli.gateway import Gateway


def explain(gateway: Gateway, target: str, operator_namespace: str, output: options.Format) -> None:
    """Print why an object or a pod is as it is."""
    kind, name = kinds.target(target)
    if kind is None:
        answer = explaining.explain_pod(
            gateway.pod(name), gateway.events(involvedObject__kind="Pod", involvedObject__name=name), now_s=time.time()
        )
    else:
        job = kinds.job(gateway, kind, name)
        queue, pods = queue_of(gateway, job, operator_namespace), kinds.pods(gateway, kind, job)
        if isinstance(job, mrclusters.MRCluster):
            answer = explain_cluster(job, pods, queue, _all_clusters(gateway), now_s=time.time())
        else:
            answer = explaining.explain_job(job, pods, queue, now_s=time.time())
    if output is not options.Format.TABLE:
        options.print_data(answer, output)
        return
    screen = _screen()
    screen.print(answer.headline, style="bold", highlight=False, markup=False, soft_wrap=True)
    screen.print(tables.explanation(answer), highlight=False, markup=False)


def jobs(gateway: Gateway, output: options.Format, *, all_namespaces: bool) -> None:
    """Print the jobs and Hadoop clusters."""
    found = kinds.raw_jobs(gateway, all_namespaces=all_namespaces)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
        _screen(stderr=True).print(f"No jobs in {where}.")
    else:
        listed = sorted(map(kinds.read, found), key=lambda job: (job.namespace, job.created_s, job.name))
        _screen().print(tables.jobs(listed, namespaces=all_namespaces, now_s=time.time()))


def clusters(gateway: Gateway, output: options.Format, *, all_namespaces: bool) -> None:
    """Print the Hadoop clusters."""
    found = gateway.jobs(kinds.MRCLUSTER.plural, all_namespaces=all_namespaces)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
        _screen(stderr=True).print(f"No clusters in {where}.")
    else:
        clusters = sorted(map(mrclusters.read, found), key=lambda cluster: (cluster.namespace, cluster.name))
        _screen().print(tables.clusters(clusters, namespaces=all_namespaces))


def timeline(gateway: Gateway, targets: Sequence[tuple[kinds.Kind, str]], output: Path | None) -> None:
    """Print how jobs spent their time, and draw it if a file is given."""
    lines = [kinds.timeline_of(gateway, kind, name, now_s=time.time()) for kind, name in targets]
    for line in lines:
        _screen().print(tables.seconds(picture.shares(line), line.job.title if len(lines) > 1 else ""))
    if output is not None:
        output.write_text(picture.to_svg(*lines) if output.suffix == ".svg" else picture.to_html(*lines))
        _screen(stderr=True).print(f"picture: {output.resolve()}", highlight=False, soft_wrap=True)


def list_queues(gateway: Gateway, operator_namespace: str, output: options.Format) -> None:
    """Print the queues."""
    found = queues_of(gateway, operator_namespace)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    else:
        _screen().print(tables.queues(found))


def _screen(*, stderr: bool = False) -> console.Console:
    return console.Console(stderr=stderr)


def queues_of(gateway: Gateway, operator_namespace: str) -> tuple[queues.Queue, ...]:
    """Return the queues with their usage."""
    return queues.usage(
        queues.configured(gateway.operator_config(operator_namespace)),
        [kinds.read(raw) for raw in kinds.raw_jobs(gateway, all_namespaces=True)],
        [
            *gateway.pods(names.LABEL_QUEUE, all_namespaces=True),
            *gateway.pods(f"{model.SPARK_ROLE}={model.EXECUTOR},!{names.LABEL_QUEUE}", all_namespaces=True),
        ],
        gateway.nodes(),
    )


def _all_clusters(gateway: Gateway) -> list[mrclusters.MRCluster]:
    """Return the clusters of all namespaces, or of this one if the user may not read others."""
    try:
        return kinds.clusters(gateway, all_namespaces=True)
    except CommandError:
        return kinds.clusters(gateway, all_namespaces=False)


def queue_of(gateway: Gateway, job: model.Job, operator_namespace: str) -> queues.Queue | None:
    """Return the job's queue, or None if the user may not read other namespaces and nodes."""
    try:
        return next((queue for queue in queues_of(gateway, operator_namespace) if queue.name == job.queue), None)
    except CommandError:
        return None
