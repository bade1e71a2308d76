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
        follow: Whether to go on until the pod ends.
    """

    task: str | None = None
    executor: int | None = None
    attempt: int | None = None
    follow: bool = False

    def check(self, kind: kinds.Kind) -> None:
        """Refuse options of another kind.

        Raises:
            CommandError: With the options of this one.
        """
        if kind is kinds.SPARKAPP:
            if self.task is not None:
                raise CommandError("--task is for MRJobs: pass --executor N, or nothing for the driver", ExitCode.USAGE)
        elif self.executor is not None:
            raise CommandError("--executor is for SparkApps: pass --task, such as --task m-00000", ExitCode.USAGE)
        elif self.follow and self.task is None:
            raise CommandError("--follow requires --task, such as --task m-00000", ExitCode.USAGE)

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
