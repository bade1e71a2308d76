"""Boathouse's scheduler as a separate process, for the benchmarks: elected, with its watches, events and metrics.

    python -m benchmarks.scheduler_process KUBECONFIG [--tasks N --owner JSON]

It prints `ready` when it leads and has listed everything. On SIGUSR1 it is given a job of N tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import support
from boathouse.cluster import client, config, election, events as event_writer
from boathouse.resources import names
from boathouse.resources.config import LeaseConfig
from boathouse.scheduling import assembly, scheduler
from boathouse.services.mrjob.model import MRJOBS
from boathouse.telemetry import logs, metrics
from boathouse_policies import model, profiles

QUEUE = model.QueueName("default")
SIZE = model.Resources(cpu_milli=100, memory_bytes=64 << 20)
PATIENT = LeaseConfig(duration_seconds=3600, renew_deadline_seconds=3000)  # it is stopped between rounds


class Factory:
    """Makes the pods of the benchmark's job."""

    resource = MRJOBS
    control = None

    def __init__(self, owner: dict[str, Any]) -> None:
        self._owner = owner

    def build(
        self,
        task: model.TaskId,
        resources: model.Resources,
        node: model.NodeName | None,
        expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return a pod."""
        del resources, expected
        manifest = support.pod(task.partition("/")[2], names.SCHEDULER_NAME, owner=self._owner)
        manifest["metadata"]["labels"] |= {names.LABEL_JOB_UID: self._owner["uid"], names.LABEL_QUEUE: "default"}
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest


class Jobs:
    """Submits a new job each time it is asked."""

    def __init__(self, subject: scheduler.Scheduler, tasks: int, owner: dict[str, Any]) -> None:
        self._subject, self._tasks, self._owner, self._round = subject, tasks, owner, 0

    def submit(self) -> None:
        """Submit the next job."""
        self._round += 1
        job = model.Job(
            id=model.JobId(self._owner["uid"]),
            queue=QUEUE,
            submitted_s=time.time(),
            name="bench/job",
            namespace=model.NamespaceName(support.NAMESPACE),
        )
        one = model.TaskClass(id=model.ClassId("bench/map"), job=job.id, resources=SIZE, stage=model.Stage.MAP)
        prefix = f"{support.NAMESPACE}/job-{self._round}"
        tasks = [
            model.Task(id=model.TaskId(f"{prefix}-{i:05}"), task_class=one.id, index=i) for i in range(self._tasks)
        ]
        self._subject.withdraw(job.id)
        self._subject.submit(job, [one], tasks, Factory(self._owner))


async def main(arguments: argparse.Namespace) -> None:
    """Run until SIGTERM."""
    loop, figures = asyncio.get_running_loop(), metrics.Metrics()
    async with client.ApiClient(config.load(arguments.kubeconfig)) as api, asyncio.TaskGroup() as group:
        leader = election.LeaderElection(
            api, namespace="default", identity=f"bench-{os.getpid()}", on_lost=sys.exit, lease=PATIENT
        )
        tasks = [group.create_task(leader.run())]
        await leader.acquired()
        events = event_writer.EventWriter(api, controller="boathouse.dev/scheduler", instance="bench")
        parts = assembly.Scheduling(
            api,
            leader,
            events,
            figures,
            profile=profiles.build("fair"),
            queues=[model.Queue.of(QUEUE)],
            on_fatal=sys.exit,
        )
        tasks += [group.create_task(one) for one in (parts.watch(), events.run())]
        await parts.synced()
        tasks.append(group.create_task(parts.run()))
        jobs = Jobs(parts.scheduler, arguments.tasks, json.loads(arguments.owner))
        loop.add_signal_handler(signal.SIGUSR1, jobs.submit)
        loop.add_signal_handler(signal.SIGTERM, lambda: [task.cancel() for task in tasks])
        print("ready", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--tasks", type=int, default=0)
    parser.add_argument("--owner", default="{}")
    logs.configure(log_format="console", level="WARNING")
    if profile_to := os.environ.get("BOATHOUSE_BENCH_PROFILE"):
        import cProfile

        with cProfile.Profile() as profile:
            asyncio.run(main(parser.parse_args()))
        profile.dump_stats(profile_to)
    else:
        asyncio.run(main(parser.parse_args()))
