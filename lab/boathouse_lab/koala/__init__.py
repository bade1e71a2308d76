"""Dynamic Hadoop clusters, as Koala runs them, as applications of a simulation.

Pods are the nodes of a cluster; jobs run inside (`course`). The cluster's own JobTracker serves jobs first in,
first out, a map on a node with its block where there is one. Input is on the disks of the first core nodes, output goes
to those of all core nodes, with replicas. Transient nodes read from and write to core nodes, over a link that they
share where `Hadoop.link` names one: the paper assumes one bandwidth for all of them (VI.B).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from typing_extensions import override

from boathouse_lab.koala.course import HadoopCourse
from boathouse_lab.koala.jobs import Disks, HadoopJob, HadoopSpec, JobRecord, Program, SizeRecord
from boathouse_sim.live.application import Application

if TYPE_CHECKING:
    from boathouse_sim.live.course import Course, LiveRun
    from boathouse_sim.live.world import LiveWorld

__all__ = ["Disks", "Hadoop", "HadoopJob", "JobRecord", "Program", "SizeRecord"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hadoop(HadoopSpec, Application):
    """A cluster, as an application."""

    @override
    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        """Create its course in a world."""
        return HadoopCourse(self, world, run)
