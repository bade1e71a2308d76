"""`boathouse logs`: what the pods of a job wrote."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

from boathouse_cli import hadoop_logs, kinds, model, mrclusters, mrjobs, sparkapps
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boathouse_cli.gateway import Gateway


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Options of `logs`; None is an option that the user left out.

    Attributes:
        task: A task of an MRJob, such as `m-00042`.
        executor: The number of an executor of a SparkApp; without it, its driver is meant.
        attempt: One attempt; else the last.
        host: The node of an MRCluster; else its master.
        container: A container of that node, or of YARN for an MRJob that runs on an MRCluster.
        follow: Whether to go on until the pod ends.
    """

    task: str | None = None
    executor: int | None = None
    attempt: int | None = None
    host: str | None = None
    container: str | None = None
    follow: bool = False

    def check(self, kind: kinds.Kind) -> None:
        """Refuse options of another kind.

        Raises:
            CommandError: With the options of this one.
        """
        if kind is kinds.MRCLUSTER:
            self._check_cluster()
        elif self.host is not None:
            raise CommandError("HOST is for MRClusters: leave it out", ExitCode.USAGE)
        elif kind is kinds.SPARKAPP:
            if self.task is not None:
                raise CommandError("--task is for MRJobs: pass --executor N, or nothing for the driver", ExitCode.USAGE)
            if self.container is not None:
                raise CommandError("--container is for MRClusters and jobs on them: leave it out", ExitCode.USAGE)
        elif self.executor is not None:
            raise CommandError("--executor is for SparkApps: pass --task, such as --task m-00000", ExitCode.USAGE)
        elif self.follow and self.task is None:
            raise CommandError("--follow requires --task, such as --task m-00000", ExitCode.USAGE)

    def _check_cluster(self) -> None:
        if (self.task, self.executor, self.attempt) != (None, None, None):
            raise CommandError(
                "--task, --executor and --attempt are for jobs: pass HOST and --container", ExitCode.USAGE
            )
        if self.follow and self.container is None:
            raise CommandError("--follow requires --container, such as -c namenode", ExitCode.USAGE)

    def check_on_cluster(self) -> None:
        """Refuse options of jobs whose tasks have pods, for one that runs on an MRCluster.

        Raises:
            CommandError: With the options of this one.
        """
        if self.task is not None or self.attempt is not None or self.follow:
            raise CommandError(
                "--task, --attempt and --follow are for jobs whose tasks have pods: pass --container ID, or nothing "
                "for all containers of the job",
                ExitCode.USAGE,
            )

    def wanted(self, kind: kinds.Kind) -> str | None:
        """The task whose pods are meant; None for all."""
        if kind is kinds.SPARKAPP:
            return model.DRIVER if self.executor is None else f"{model.EXECUTOR}-{self.executor}"
        return self.task

    def of(self, kind: kinds.Kind, pods: Sequence[model.TaskPod]) -> list[model.TaskPod]:
        """The pods that are meant; of one task without an attempt, its last."""
        task = self.wanted(kind)
        order = sorted(pods, key=lambda pod: (pod.created_s, pod.attempt, pod.task))
        found = [pod for pod in order if task in (None, pod.task) and self.attempt in (None, pod.attempt)]
        return found if task is None else found[-1:]


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
