"""The extension points: what a policy may decide, each in one to three methods.

Vectors are over the nodes of the scratch copy. `where` selects some of them: everything is computed once for a class
(`slice(None)`) and mended for the nodes that changed since (a slice of one, or an array of places). Implementations are
pure functions of their arguments and of what they learnt by `Observer.observe`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.line import Line
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.view import ClusterView
    from boathouse_policies.framework.waiting import WaitingRoom
    from boathouse_policies.framework.want import Want

Where: TypeAlias = slice | npt.NDArray[np.intp]
ALL = slice(None)


class JobOrder(Protocol):
    """Which job's task is next, within a queue."""

    def keys(self, jobs: Sequence[model.Job], scratch: Scratch) -> Sequence[float] | model.FloatVector:
        """One key for each job, the least goes first; ties by submission, then id.

        Asked for all jobs when a cycle begins, and for one job after each of its placements.
        """
        ...


@runtime_checkable
class Regrouping(JobOrder, Protocol):
    """An order in which a job's placement may change the keys of others: shares of groups of jobs."""

    def generation(self, scratch: Scratch) -> int:
        """Another number than before once keys of jobs other than the one last asked for have changed."""
        ...


@runtime_checkable
class Lasting(JobOrder, Protocol):
    """An order whose keys depend on the job and what it holds alone: a key lasts until that changes.

    Where `constant` is true, it depends on the job alone, and lasts for ever; an order may leave that out.
    """

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:
        """The same key as `keys` gives, from what the job holds, by row."""
        ...


class Filter(Protocol):
    """Which nodes may be used."""

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the class may go; None for everywhere."""
        ...

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Why it may not go to nodes among these, with their number."""
        ...


class Score(Protocol):
    """Which node is better."""

    def score(self, want: Want, scratch: Scratch, where: Where) -> model.FloatVector:
        """The highest wins; ties by node name. Only asked to rank nodes that pass all filters."""
        ...


@runtime_checkable
class Local(Score, Protocol):
    """A score that depends on the task's size and the node's own room alone."""

    def of_room(self, need: Sequence[int], room: Sequence[int], inverse: Sequence[float]) -> float:
        """The same as `score` gives for one node.

        Args:
            need: What the task asks for, by row.
            room: What is free on the node.
            inverse: 1 / allocatable of the node.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Sized:
    """How large a task may be on a node, and how many of it are placed there together."""

    resources: model.Resources
    count: int = 1


class Sizer(Protocol):
    """How much a task gets."""

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """The smallest size that may be decided: what filters compare with what is free."""
        ...

    def size(self, want: Want, node: int, scratch: Scratch) -> Sized | model.Verdict:
        """The size on this node, which has room for the least; or why none will do (the next best node is tried)."""
        ...


class Reserve(Protocol):
    """Which node is kept for which class, and who may pass."""

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where no reservation of another class is in the way; None for everywhere."""
        ...

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """A class found no node: the nodes (`Hold.node`) to keep for it from now on, if any.

        The waiting room remembers them over cycles until a task of the class is placed there or none waits any more.
        Where nobody else may pass, `Scratch.withdraw` says so for the rest of the cycle.
        """
        ...


@runtime_checkable
class GangReserve(Reserve, Protocol):
    """A reserve that is also asked to keep nodes for what must start together.

    Attributes:
        keeps_for_gangs: True.
    """

    keeps_for_gangs: bool


@runtime_checkable
class Refusing(Reserve, Protocol):
    """A reserve that sees at once which classes no node takes, where a profile's filters are costly."""

    def refused(
        self, wants: Sequence[Want], scratch: Scratch
    ) -> Iterable[tuple[Want, model.Verdict, model.Hold | None]]:
        """One class was refused everywhere: which of the others will be, why, and until when they wait at most."""
        ...


class Patience(Protocol):
    """Whether to wait for a better node than the best there is. Asked once for each task, with the last word."""

    def wait(self, want: Want, node: int, scratch: Scratch) -> model.Hold | None:
        """Until when the class waits rather than take this node; None takes it."""
        ...


class Gang(Protocol):
    """What must be placed together."""

    def together(self, want: Want, line: Line, scratch: Scratch) -> Sequence[tuple[Want, int]]:
        """Classes and how many tasks of each must be placed now, all or nothing; () for one task alone.

        Args:
            want: The class whose turn it is.
            line: Knows the other open classes of its job (`classes_of`).
            scratch: The state of the cycle.
        """
        ...


class Controller(Protocol):
    """Looks at the whole before a cycle and advises: suspensions, growth."""

    def advise(self, queue: WaitingRoom, view: ClusterView) -> Sequence[model.Decision]:
        """Decisions other than placements."""
        ...


class Observer(Protocol):
    """Learns, or keeps state, from what happens."""

    def observe(self, event: model.Event) -> None:
        """Something happened."""
        ...

    def dump(self) -> Mapping[str, Any]:
        """Its state as JSON values, small: the shell keeps it in a bounded ConfigMap."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump of this or an earlier version; what it does not know it ignores."""
        ...


@runtime_checkable
class Curious(Observer, Protocol):
    """An observer that wants `Progress` of running tasks and `Measured` of nodes, where a shell can choose how often.

    Attributes:
        report_every_s: Between two reports of a task; 0 for none.
        measure_every_s: Between two measurements of a node; 0 for none.
    """

    report_every_s: float
    measure_every_s: float
