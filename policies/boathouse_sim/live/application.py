"""Who knows what becomes of a job that is submitted: an application itself."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from boathouse_sim.jobs import JobSpec
from boathouse_sim.live.phased import Phased

if TYPE_CHECKING:
    from boathouse_sim.live.course import Course, LiveRun
    from boathouse_sim.live.world import LiveWorld


class Application(abc.ABC):
    """An application of a workload (`boathouse_sim.workload.App`) with a course of its own."""

    __slots__ = ()

    @abc.abstractmethod
    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        """Create its course in a world."""


def course_of(world: LiveWorld, run: LiveRun) -> Course:
    """Return the course of a job that was submitted.

    Raises:
        TypeError: It is neither a job of phases nor an application.
    """
    spec = run.spec
    if isinstance(spec, JobSpec):
        return Phased(world, run, spec)
    if isinstance(spec, Application):
        return spec.course(world, run)
    raise TypeError(f"job {spec.id}: a {type(spec).__name__} is not an `Application`: it has no course")
