"""`boathouse logs`: what the pods of a job wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from boathouse_cli import hadoop_logs, kinds, mrclusters, mrjobs, sparkapps
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_cli import model
    from boathouse_cli.gateway import Gateway
    from boathouse_cli.selecting import Selection


def show(gateway: Gateway, kind: kinds.Kind, name: str, selection: Selection, *, tail: int | None) -> None:
    """Print the logs of the pods that are meant.

    Raises:
        CommandError: There are none.
    """
    job = kinds.job(gateway, kind, name)
    if (lines := _of_hadoop(gateway, job, selection, tail)) is not None:
        for line in lines:
            print(line)
        return
    if selection.container is not None:
        raise CommandError(f"{job.title} does not run on an MRCluster: leave --container out", ExitCode.USAGE)
    chosen = selection.of(kind, kinds.pods(gateway, kind, job))
    wanted = selection.wanted(kind)
    if not chosen and _last_lines(job, selection):
        return
    if not chosen:
        attempt = "" if selection.attempt is None else f", attempt {selection.attempt}"
        raise CommandError(
            f"{job.title} has no pod of {wanted or 'any task'}{attempt}: see `boathouse explain {job.title}`",
            ExitCode.NOT_FOUND,
        )
    for pod in chosen:
        prefix = "" if wanted else f"{pod.task}-a{pod.attempt}: "
        for line in gateway.log(pod.name, pod.container, tail=tail, follow=selection.follow):
            print(f"{prefix}{line}")


def _of_hadoop(gateway: Gateway, job: model.Job, selection: Selection, tail: int | None) -> Iterator[str] | None:
    """Return the logs of a Hadoop cluster, or of a job on one; None for anything else."""
    if isinstance(job, mrclusters.MRCluster):
        return hadoop_logs.of_cluster(
            gateway, job, selection.host, selection.container, tail=tail, follow=selection.follow
        )
    if not isinstance(job, mrjobs.MRJob) or not job.cluster:
        return None
    selection.check_on_cluster()
    return hadoop_logs.of_job(gateway, job, selection.container, tail=tail)


def _last_lines(job: model.Job, selection: Selection) -> bool:
    """Print what the status keeps of a driver whose pod is gone; return whether there is anything."""
    if not isinstance(job, sparkapps.SparkApp) or not job.last_log or selection.executor is not None:
        return False
    if selection.attempt not in {None, *(each.number for each in job.attempts[-1:])}:
        return False
    print(f"the driver's pod is gone; the last lines of the last driver that failed ({job.title}):", file=sys.stderr)
    print(job.last_log.rstrip("\n"))
    return True
