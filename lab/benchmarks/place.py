"""Tasks of a pending job placed per second, with one write per pod, against a plain Job with kube-scheduler.

    python -m benchmarks.place [--tasks 2000] [--pairs 5] [--nodes 200]

Boathouse is given a job of tasks and creates each pod with its node. The plain Job's pods are created by the Job
controller and bound by kube-scheduler, both with their client limits raised. The time from the submission until the
last pod has its node counts. Rounds alternate; the idle side is stopped. About 3 minutes on two cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import support
from boathouse.cluster import catalogue, errors, wire
from boathouse_e2e.local.provider import LocalProvider

if TYPE_CHECKING:
    import argparse
    import subprocess

JOBS = catalogue.Resource(group="batch", plural="jobs", kind="Job", view=wire.Manifest)
ROUNDS = itertools.count(1)


def plain_job(name: str, tasks: int) -> dict[str, Any]:
    """Return a Job that wants all its pods at once."""
    spec = support.pod_spec("default-scheduler") | {"restartPolicy": "Never"}
    template = {"metadata": {"annotations": {"kwok.boathouse.dev/run-time": "30m"}}, "spec": spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": support.NAMESPACE},
        "spec": {"parallelism": tasks, "completions": tasks, "completionMode": "Indexed", "template": template},
    }


async def by_job(pods: support.Bulk, cluster: str, count: int) -> float:
    """Let the Job controller and kube-scheduler place the tasks; return tasks per second."""
    name = f"plain-{next(ROUNDS)}"
    LocalProvider().signal(cluster, "kube-scheduler", signal.SIGCONT)
    async with pods.stopwatch(count) as watch:
        watch.start()
        await pods.api.create(JOBS, plain_job(name, count), support.NAMESPACE)
    LocalProvider().signal(cluster, "kube-scheduler", signal.SIGSTOP)
    with contextlib.suppress(errors.NotFound):
        await pods.api.delete(JOBS, name, support.NAMESPACE, propagation="Background")
    return watch.rate


async def by_boathouse(pods: support.Bulk, process: subprocess.Popen[str], count: int) -> float:
    """Let Boathouse place the tasks; return tasks per second."""
    process.send_signal(signal.SIGCONT)
    await asyncio.sleep(2)  # its watches catch up with the other's round
    async with pods.stopwatch(count) as watch:
        watch.start()
        process.send_signal(signal.SIGUSR1)
    await asyncio.sleep(2)
    process.send_signal(signal.SIGSTOP)
    return watch.rate


async def main(arguments: argparse.Namespace) -> None:
    """Run all rounds and print the ratio."""
    log = Path(tempfile.gettempdir()) / "boathouse-bench-place.log"
    with support.cluster("place", arguments.nodes) as cluster:
        async with support.bulk(cluster.kubeconfig) as pods:
            owner = await pods.prepare()
            given = ("--tasks", str(arguments.tasks), "--owner", json.dumps(owner))
            with support.boathouse(cluster.kubeconfig, *given, log=log) as process:
                process.send_signal(signal.SIGSTOP)
                LocalProvider().signal(cluster.name, "kube-scheduler", signal.SIGSTOP)
                ours: list[float] = []
                theirs: list[float] = []
                for pair in range(arguments.pairs):
                    support.say(f"==> pair {pair + 1} of {arguments.pairs}")
                    for mine in (True, False) if pair % 2 else (False, True):
                        if mine:
                            ours.append(await by_boathouse(pods, process, arguments.tasks))
                        else:
                            theirs.append(await by_job(pods, cluster.name, arguments.tasks))
                        which, found = ("Boathouse", ours) if mine else ("plain Job", theirs)
                        events = await pods.count_events()
                        support.say(f"    {which:15} {found[-1]:6.0f} tasks/s, {events} Scheduled events")
                        await pods.clear()
    support.report(ours, theirs, "tasks placed per second", "Job controller and kube-scheduler")


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", tasks=2000, pairs=5, nodes=200)))
