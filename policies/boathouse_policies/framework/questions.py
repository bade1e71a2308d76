"""The extension points: what a policy may decide, each in one to three methods; the base classes are neutral.

Vectors are over the nodes of the cycle state. `where` selects some of them: everything (`slice(None)`), one node (a
slice of one), or an array of places. Questions (`Filter`, `Score`, `Sizer`, `Patience`, `Reserve.mask`) are pure
functions of their arguments and of what was learnt by `Observer.observe`. What a policy keeps up within a cycle changes
in hooks alone (`Hooks`).
"""

import abc
import dataclasses
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.layout import Layout, Where
from boathouse_policies.framework.queue import SchedulingQueue
from boathouse_policies.framework.shapes import Sized
from boathouse_policies.framework.view import ClusterView

Figure: TypeAlias = tuple[str, float]


class Figures:
    """Explains placements, and why classes stay pending. Figures are finite; what says nothing is left out."""

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return figures of a task that was placed, after all hooks were told of it; asked for each placement."""
        return ()

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return figures of a class that stays pending, from the cycle's last state; asked for diagnoses alone."""
        return ()

    def of_policy(self) -> Mapping[str, Sequence[float]]:
        """Return figures of the policy itself, some for each node, as of its last cycle; asked for metrics alone."""
        return {}


class JobOrder:
    """Order the jobs of one namespace, queue and priority.

    Queues, namespaces and priorities are ordered before it (see `TurnOrder`). The neutral order is that of submission.
    Override `key` and set `keyed_by_usage` if the key depends only on the job and its usage (set `constant` too if only
    on the job). Otherwise override `keys`. With `keyed_by_usage`, `keys` is never called. A key is a float.
    """

    # Whether a key depends only on the job and its usage, so it is valid until the usage changes.
    keyed_by_usage = False
    constant = False  # whether a key depends only on the job

    def __init_subclass__(cls) -> None:
        """Raise a TypeError for a class that sets `keyed_by_usage` without a `key`: all of its keys would be equal."""
        super().__init_subclass__()
        if cls.keyed_by_usage and cls.key is JobOrder.key:
            raise TypeError(
                f"{cls.__qualname__} sets keyed_by_usage but does not override key: override key, or unset it"
            )

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Return the key of a job with this usage, by row; called only where `keyed_by_usage` is set."""
        return 0.0

    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return one key for each job, the least goes first; ties by submission, then id.

        Called for all jobs when a cycle begins, and for one job after each placement of it; not with `keyed_by_usage`.
        """
        return [self.key(job, state.job_usage(job.id), state.view.layout) for job in jobs]

    def generation(self, state: CycleState) -> int:  # noqa: ARG002 - the protocol's
        """Return a new number once keys of jobs other than the one last requested have changed."""
        return 0


class Question:
    """What filters, scores, sizers and reserves share: what of a class answers depend on, perhaps its shape alone."""

    by_shape = False

    def concerns(self, pending: PendingClass) -> bool:  # noqa: ARG002 - the protocol's
        """Return whether it has a say on a class in this cycle."""
        return True

    def key(self, pending: PendingClass) -> Hashable:
        """Return what answers depend on besides the class' shape: classes with equal keys share them in a cycle."""
        return None if self.by_shape else pending.task_class.id


class NodeQuestion(Question):
    """Which nodes pass. `by_node` says that to ask for a few nodes one by one costs less than to ask for a mask."""

    by_node = False

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """Return the nodes where the class may go, shape [N]; None for all nodes."""
        return None

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether the class may go to one node."""
        return (passing := self.mask(pending, state, slice(node, node + 1))) is None or bool(passing[0])


class Filter(NodeQuestion):
    """Which nodes may be used."""

    of_shape = False  # whether the cycle's own comparison of shapes and nodes (`Candidates`) answers it
    until_freed = False  # whether a node that it refuses stays refused until room comes free there
    # Whether the cycle's own counts of pods (`CycleCounts`) answer it, anew at each turn of a class: a placement may
    # change its answers for other nodes.
    of_pods = False
    reason = ""  # why it refuses a node; "" where the diagnosis does not name it, or it differs from node to node

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return why it may not go to nodes among these, with their number."""
        passed = self.mask(pending, state, slice(None)) if self.reason else None
        count = 0 if passed is None else int((among & ~passed).sum())
        return [model.Refusal(reason=self.reason, nodes=count)] if count else []


class Score(Question):
    """Which node is better."""

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:  # noqa: ARG002 - the protocol's
        """Return the scores of nodes that pass all filters. The highest wins; ties by node name."""
        return np.zeros(state.free.shape[1])[where]

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node."""
        return float(self.score(pending, state, slice(node, node + 1))[0])


class ShapeScore(Score, abc.ABC):
    """A score that depends on a class' least size and on what is free on the node alone."""

    by_shape = True

    @abc.abstractmethod
    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:
        """Return the score for a size: by row, or arrays to broadcast; `inverse` is 1 / allocatable, 0 for none."""

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return the scores for one class."""
        inverse = state.view.layout.inverse_allocatable[:, where]
        scores: model.FloatVector = self.of_shapes(pending.least, state.free[:, where], inverse)
        return scores

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node for one class."""
        score: float = self.of_shapes(pending.shape.sizes, state.free_on(node), state.view.layout.inverse_by_node[node])
        return score


class Sizer(Question):
    """How much a task gets."""

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the smallest size that may be decided: what filters compare with what is free."""
        return task_class.resources

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized | model.Verdict:  # noqa: ARG002 - the protocol's
        """Return the size on this node, which has room for the least, or the reason why none will do."""
        return pending.ideal

    def size_together(self, pending: PendingClass, state: CycleState) -> Sized | None:  # noqa: ARG002 - the protocol's
        """Return the size of all of a gang's tasks on any node where the gang does not fit otherwise; None for none."""
        return None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReservedNode:
    """A node that is reserved until its owner has room there."""

    node: model.NodeName
    task_class: model.ClassId
    since_s: float  # since when nodes have been reserved for the owner's job
    wait_s: float  # how long the owner would wait there, as predicted when the node was chosen last


class Reserve(NodeQuestion):
    """Which node is reserved for which class, and who may pass: `mask` is true where no reservation stops a class."""

    reserves_for_gangs = False  # whether it is also asked to reserve nodes for what must start together
    idle_once_all_reserved = False  # whether `reserve` does nothing while every node on offer is reserved
    # Whether `passing` is asked again after each reservation, not only the first time in a cycle.
    passing_changes = False

    def concerns(self, pending: PendingClass) -> bool:
        """Return True unless it is idle: a node that is reserved later in the cycle closes to classes ranked before."""
        return not self.is_idle(pending.state)

    def is_idle(self, state: CycleState) -> bool:  # noqa: ARG002 - the protocol's
        """Return whether it does nothing in this cycle for a class that no node on offer has room for."""
        return False

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:  # noqa: ARG002 - the protocol's
        """Return the nodes to reserve for a class that found no node, or what the class waits for, if anything.

        The queue holds reservations over cycles until a task of the class is placed there or none is pending.
        Where nobody else may pass, `CycleState.withdraw` says so for the rest of the cycle.
        """
        return ()

    def passing(self, state: CycleState) -> Collection[model.ClassId] | None:  # noqa: ARG002 - the protocol's
        """Return the only classes that can still be placed now that every node is reserved; None for any."""
        return None

    def refused(
        self,
        pending_classes: Iterable[PendingClass],  # noqa: ARG002 - the protocol's
        state: CycleState,  # noqa: ARG002 - the protocol's
    ) -> Iterable[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Handle a class refused everywhere: return which others will be, why, and how long they wait at most."""
        return ()

    def reservations(self) -> Sequence[ReservedNode]:
        """Return the nodes reserved when the last cycle began, of those whose age it keeps: for users to read."""
        return ()


class Patience:
    """Whether to wait for a better node than the best there is. The neutral one takes the best."""

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:  # noqa: ARG002 - the protocol's
        """Return until when the class waits rather than take this node; None takes it."""
        return None


class Hooks:
    """What a policy is told of a cycle as it goes on: here it changes what it keeps of the cycle, and nowhere else."""

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Begin a cycle; the controllers have advised."""

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Record that a task was placed on the cycle state."""

    def undone(self, assignment: Assignment, state: CycleState) -> None:
        """Record that the placement of a gang's task was taken back."""

    def waits(self, wait: model.Wait, state: CycleState) -> None:
        """Record that a class waits for a better node, as the plan says."""


class Controller:
    """Looks at the whole before a cycle and advises: suspensions, growth."""

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:  # noqa: ARG002 - the protocol's
        """Return decisions other than placements."""
        return ()

    def is_idle(self) -> bool:
        """Return whether time alone changes nothing that it advises: a shell may then wait for an event."""
        return True


class Observer:
    """Learns, or keeps state, from what happens."""

    report_every_s: float = 0.0  # between two reports (`Progress`) of a running task; 0 for none
    measure_every_s: float = 0.0  # between two measurements (`Measured`) of a node; 0 for none

    def observe(self, event: model.Event) -> None:
        """Observe an event."""

    def dump(self) -> Mapping[str, Any]:
        """Return its state as JSON values, small: the shell keeps it in a bounded ConfigMap."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump of this or an earlier version; what it does not know it ignores."""


class _NoPreference(ShapeScore):
    """All nodes are equal, so the first by name wins."""

    def of_shapes(self, sizes: Any, free: Any, inverse: Any) -> Any:  # noqa: ARG002 - the protocol's
        """Return zeros."""
        return 0.0 * (free[0] - sizes[0])


class _IdealSize(Sizer):
    """Each task gets what its class asks for, one at a time."""

    by_shape = True


class _NoReserve(Reserve):
    """No node is reserved: work-conserving backfill."""

    def is_idle(self, state: CycleState) -> bool:  # noqa: ARG002 - the protocol's
        """Return True."""
        return True


SUBMISSION = JobOrder()
NO_PREFERENCE = _NoPreference()
NO_PATIENCE = Patience()
IDEAL_SIZE = _IdealSize()
NO_RESERVE = _NoReserve()
