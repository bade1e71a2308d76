"""Probing jobs as simulated jobs: what a job is like on a sample of its input (FSPY, III.A; Algorithm 1).

A policy that predicts sizes says of each job that comes whether it wants a probe (`needs_probe`). Where the workload
can answer it (`JobSpec.probe`), the job's arrival submits its probing job: one task, an uber task, that waits in line,
takes its time and room, and reports counters at its end. The job itself does not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from boathouse_sim.workload import JobSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_policies import framework, model


def asked_by(profile: framework.Profile) -> Callable[[model.JobId], bool] | None:
    """How the profile says that a job needs a probe; None for a profile that predicts nothing."""
    return cast("Callable[[model.JobId], bool] | None", getattr(profile.order, "needs_probe", None))


def job(spec: JobSpec) -> JobSpec:
    """The probing job of a job that has a probe."""
    assert spec.probe is not None
    return JobSpec(id=f"{spec.id}-probe", phases=(spec.probe,), program=spec.program, stated=False)


class InputOnly:
    """Estimates of which only the input's length is known, as for a job whose size is to be predicted."""

    __slots__ = ("_input_bytes",)

    def __init__(self, input_bytes: int | None) -> None:
        self._input_bytes = input_bytes

    def duration_s(self, resources: model.Resources) -> float | None:  # noqa: ARG002
        """Not known."""
        return None

    def input_bytes(self) -> int | None:
        """Bytes that one task reads."""
        return self._input_bytes

    def spilled_bytes(self, resources: model.Resources) -> int | None:  # noqa: ARG002
        """Not known."""
        return None
