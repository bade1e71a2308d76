"""Suspend the reduces of a job by hand, as its author may, and read what their pods show."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import time
from typing import TYPE_CHECKING, Any

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import invariants, lab

if TYPE_CHECKING:
    import random

    from tests.faults.conftest import Trial

FOR_S = (1.0, 3.0)
"""How long a random suspension lasts; some are withdrawn before."""
NAP_S = (0.5, 3.0)
SHRUNK = (1, 10)
_PASSING = (errors.ConnectionLost, errors.ServerError, errors.TooManyRequests)


async def suspend(trial: Trial, for_s: float) -> None:
    """Suspend all reduces of the job for so many seconds, and those that start meanwhile."""
    until = dt.datetime.fromtimestamp(time.time() + for_s, dt.UTC)
    await trial.annotate(names.ANNOTATION_SUSPEND_UNTIL, until.isoformat(timespec="milliseconds"))


async def resume(trial: Trial) -> None:
    """Resume all reduces of the job."""
    await trial.annotate(names.ANNOTATION_SUSPEND_UNTIL, None)


async def now_and_then(trial: Trial, rng: random.Random) -> None:
    """Suspend the reduces at random times until the job is gone."""
    with contextlib.suppress(errors.NotFound):
        while True:
            with contextlib.suppress(*_PASSING):
                await (resume(trial) if rng.random() < 0.2 else suspend(trial, rng.uniform(*FOR_S)))
            await asyncio.sleep(rng.uniform(*NAP_S))


async def hold_maps_until_a_pause(trial: Trial, within_s: float) -> None:
    """Let the maps run on until a reduce has paused once: they would end before that."""
    trial.ledger.held = True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await trial.kubelets.paused.begun.wait()
    trial.ledger.held = False


async def reduces(trial: Trial) -> list[dict[str, Any]]:
    """Return the pods of the job's reduces that run."""
    labels = f"{names.LABEL_JOB_UID}={trial.uid},{mrjob_names.LABEL_TASK_TYPE}=reduce"
    pods = (await trial.api.list(catalogue.PODS.untyped(), lab.NAMESPACE, labels=labels)).items
    return [dict(pod) for pod in pods if not invariants.has_ended(dict(pod)) and pod["spec"].get("nodeName")]


async def sizes(trial: Trial) -> list[tuple[int, int] | None]:
    """Return CPU request and limit of each reduce that runs, in thousandths."""
    return [invariants.cpu(pod) for pod in await reduces(trial)]
