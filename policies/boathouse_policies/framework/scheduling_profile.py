"""A profile: the choice for each extension point."""

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType

from boathouse_policies import model
from boathouse_policies.framework import questions
from boathouse_policies.framework.cycle_state import PendingClass
from boathouse_policies.framework.gathering import Draining
from boathouse_policies.framework.predicates import PREDICATES, DeclaredFeatures, FreePorts
from boathouse_policies.framework.running import RunningTasks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profile:
    """Names the choice for each extension point; what is not named is neutral."""

    name: str
    order: questions.JobOrder = questions.SUBMISSION
    # In this order; the predicates of Kubernetes come first and should stay.
    filters: tuple[questions.Filter, ...] = PREDICATES
    score: questions.Score = questions.NO_PREFERENCE  # ranks nodes for stages without a score of their own
    scores: Mapping[model.Stage, questions.Score] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    patience: questions.Patience = questions.NO_PATIENCE
    sizer: questions.Sizer = questions.IDEAL_SIZE
    reserve: questions.Reserve = questions.NO_RESERVE
    # Keeps room as it comes free for a gang, unless the reserve reserves nodes for gangs.
    draining: Draining = dataclasses.field(default_factory=Draining)
    controllers: tuple[questions.Controller, ...] = ()  # asked in this order before each cycle
    observers: tuple[questions.Observer, ...] = ()  # what learns, for the shell to feed
    hooks: tuple[questions.Hooks, ...] = ()  # what is told of a cycle as it goes on
    figures: tuple[questions.Figures, ...] = ()  # what explains decisions, for users
    # The running tasks that it keeps, for controllers that are added to it; None if it keeps none.
    running: RunningTasks | None = None
    # Whether a cycle need only be offered the nodes where something changed, as long as no class is new and none starts
    # together with others: what failed on the other nodes fails there still. A shell may offer all nodes all the same.
    node_driven: bool = False
    # Whether a task goes to virtual machines on the host of its input rather than elsewhere in the rack: schedulers
    # that were not made for virtual machines do not know of hosts.
    sees_hosts: bool = True

    @functools.cached_property
    def until_freed(self) -> bool:
        """Whether a class that found no room can go only where room comes free."""
        return all(filter_.until_freed for filter_ in self.filters)

    @functools.cached_property
    def asked(self) -> tuple[questions.Filter | questions.Reserve, ...]:
        """The filters that are asked class by class, and the reserve, if it is not neutral."""
        reserves = () if self.reserve is questions.NO_RESERVE else (self.reserve,)
        filters = (filter_ for filter_ in self.filters if not filter_.of_shape and not filter_.of_pods)
        return (*filters, *reserves)

    @functools.cached_property
    def counts_pods(self) -> bool:
        """Whether a class may only go where the counts of pods allow it."""
        return any(filter_.of_pods for filter_ in self.filters)

    @functools.cached_property
    def shape_score(self) -> questions.ShapeScore:
        """The score, if it depends on the shape and what is free alone; else the neutral one."""
        return self.score if isinstance(self.score, questions.ShapeScore) else questions.NO_PREFERENCE

    @functools.cached_property
    def depends_on_shape_only(self) -> bool:
        """Whether the shape of a class without host ports and the usage of its job decide everything."""
        return (
            self.order.keyed_by_usage
            and isinstance(self.score, questions.ShapeScore)
            and all(isinstance(question, FreePorts | DeclaredFeatures) for question in self.asked)
            and not (self.scores or self.hooks or self.is_patient or self.decides_sizes)
        )

    @functools.cached_property
    def is_patient(self) -> bool:
        """Whether the patience is not neutral."""
        return self.patience is not questions.NO_PATIENCE

    @functools.cached_property
    def decides_sizes(self) -> bool:
        """Whether the sizer is not neutral."""
        return self.sizer is not questions.IDEAL_SIZE

    def score_of(self, stage: model.Stage) -> questions.Score:
        """Return the score for a kind of stage."""
        return self.scores.get(stage, self.score)

    def asked_about(self, pending: PendingClass) -> tuple[questions.Filter | questions.Reserve, ...]:
        """Return those of `asked` that concern a class; members that a begun gang lacks may go to reserved nodes."""
        asked = (question for question in self.asked if question is not self.reserve or not pending.task_class.is_short)
        return tuple([question for question in asked if question.concerns(pending)])
