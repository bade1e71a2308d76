"""Which pods of a job `logs` prints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_cli import kinds, model
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence


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
