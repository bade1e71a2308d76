"""`boathouse logs`: what the pods of a job wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from boathouse_cli import kinds, sparkapps
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from boathouse_cli import model
    from boathouse_cli.gateway import Gateway
    from boathouse_cli.selecting import Selection


def show(gateway: Gateway, kind: kinds.Kind, name: str, selection: Selection, *, tail: int | None) -> None:
    """Print the logs of the pods that are meant.

    Raises:
        CommandError: There are none.
    """
    job = kinds.job(gateway, kind, name)
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


def _last_lines(job: model.Job, selection: Selection) -> bool:
    """Print what the status keeps of a driver whose pod is gone; return whether there is anything."""
    if not isinstance(job, sparkapps.SparkApp) or not job.last_log or selection.executor is not None:
        return False
    if selection.attempt not in {None, *(each.number for each in job.attempts[-1:])}:
        return False
    print(f"the driver's pod is gone; the last lines of the last driver that failed ({job.title}):", file=sys.stderr)
    print(job.last_log.rstrip("\n"))
    return True
