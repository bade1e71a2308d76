"""What becomes of a job: each kind of application has its own course."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from boathouse_sim import ground

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_sim.live.pod import LiveRun, Pod
    from boathouse_sim.live.world import LiveWorld
    from boathouse_sim.work import Container


class App(ground.Spec, Protocol):
    """An application of a workload: what `boathouse_sim.live` knows by its course."""

    @property
    def tasks(self) -> int:
        """Containers that it needs at least."""
        ...

    def containers(self) -> Iterable[tuple[str, Container]]:
        """Each kind of container that it asks for, by name."""
        ...

    def course(self, world: LiveWorld, run: LiveRun) -> Course:
        """Its course in a world."""
        ...


class Report(NamedTuple):
    """What a running task's runtime says of its progress."""

    fraction: float
    phase: str
    counters: Mapping[str, float]


class Course:
    """What becomes of a job's tasks. The world calls these; what a kind of job does not need is left as it is here.

    Attributes:
        speculative: Whether a task may have a second attempt: it is told of both, and of the end of one.
    """

    speculative = False

    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        """All its classes, in order, with their numbers of tasks."""
        return ()

    def container(self, task_class: model.TaskClass) -> Container:
        """What a task of a class asks for and does."""
        raise KeyError(task_class.id)

    def begin(self) -> None:
        """The job came: say what waits (`LiveWorld.wait`)."""

    def placed(self, pod: Pod) -> None:
        """A task of it was given a node."""

    def started(self, pod: Pod) -> None:
        """A task of it runs from now on."""

    def lost(self, pod: Pod) -> None:
        """A task of it was lost: it must wait again."""

    def superseded(self, pod: Pod) -> None:
        """An attempt was ended because the other attempt of its task has ended."""

    def node_lost(self, node: model.NodeName) -> None:
        """A node is away, with what it kept for the job; its tasks there were said to be lost before."""

    def scale(self, decision: model.Scale) -> None:
        """A policy wants another number of workers.

        Raises:
            ValueError: It has no workers to change the number of.
        """
        raise ValueError(f"{type(self).__name__} has a fixed number of tasks; {decision.workers} workers cannot be had")

    def report(self, pod: Pod) -> Report | None:
        """What the runtime of a running task says; None for those that say nothing."""
