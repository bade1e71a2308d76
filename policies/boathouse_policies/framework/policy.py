"""A profile: the choice for each extension point."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from boathouse_policies.framework import neutral
from boathouse_policies.framework.predicates import PREDICATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies import model
    from boathouse_policies.framework import extension
    from boathouse_policies.framework.plan import Plan
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.view import ClusterView
    from boathouse_policies.framework.waiting import WaitingRoom


class Express(Protocol):
    """A quick way through plain cycles, with the very decisions of the general one."""

    def plan(self, queue: WaitingRoom, profile: Profile, view: ClusterView) -> Plan | None:
        """The cycle's plan; None to go the general way."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Names the choice for each extension point; what is not named is neutral.

    Attributes:
        name: As in the chart's values and on the command line.
        order: Which job is next within a queue.
        filters: In this order; the predicates of Kubernetes come first and should stay.
        score: Ranks nodes for stages without a score of their own.
        scores: By kind of stage.
        patience: Whether to wait for a better node.
        sizer: How much a task gets.
        reserve: Which node is kept for whom.
        gang: What must be placed together.
        controllers: Asked in this order before each cycle.
        observers: What learns, for the shell to feed.
        express: Asked first, before the general way through a cycle.
        node_driven: Whether a cycle need only be offered the nodes where something changed, as long as no class is new:
            what failed on the others fails there still. A shell may offer all nodes all the same.
        sees_hosts: Whether a task goes to virtual machines on the host of its input rather than elsewhere in the rack:
            schedulers that were not made for virtual machines do not know of hosts.
        refills: Whether the usual cycle of a full cluster may go the short way (`refill`): worked out from the others.
    """

    name: str
    order: extension.JobOrder = neutral.SUBMISSION
    filters: tuple[extension.Filter, ...] = PREDICATES
    score: extension.Score = neutral.NO_PREFERENCE
    scores: Mapping[model.Stage, extension.Score] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    patience: extension.Patience = neutral.NO_PATIENCE
    sizer: extension.Sizer = neutral.IDEAL_SIZE
    reserve: extension.Reserve = neutral.NO_RESERVE
    gang: extension.Gang = neutral.MINIMUM_TOGETHER
    controllers: tuple[extension.Controller, ...] = ()
    observers: tuple[extension.Observer, ...] = ()
    express: Express | None = None
    node_driven: bool = False
    sees_hosts: bool = True
    refills: bool = dataclasses.field(init=False, repr=False, compare=False)

    def score_of(self, stage: model.Stage) -> extension.Score:
        """The score for a kind of stage."""
        return self.scores.get(stage, self.score)

    @property
    def is_plain(self) -> bool:
        """Whether a task without a gang gets its ideal size on the best node at once."""
        return (
            self.sizer is neutral.IDEAL_SIZE
            and self.patience is neutral.NO_PATIENCE
            and self.gang is neutral.MINIMUM_TOGETHER
        )

    @property
    def monotone(self) -> bool:
        """Whether a class that fits nowhere implies that larger ones with the same constraints do not either."""
        return self.filters == PREDICATES and self.reserve is neutral.NO_RESERVE

    def __post_init__(self) -> None:
        """Work out once what every cycle asks."""
        refills = (
            self.is_plain
            and self.monotone
            and not self.controllers
            and not self.scores
            and hasattr(self.order, "key")  # Lasting
            and hasattr(self.score, "of_room")  # Local
        )
        object.__setattr__(self, "refills", refills)

    def monotone_in(self, scratch: Scratch) -> bool:
        """The same for one cycle, in which a reserve may be idle: one that has `idle(scratch)` knows."""
        if self.monotone:
            return True
        idle = getattr(self.reserve, "idle", None)
        return idle is not None and self.filters == PREDICATES and bool(idle(scratch))
