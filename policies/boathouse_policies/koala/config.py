"""The constants of Koala, each with where it comes from."""

import dataclasses
import enum

from boathouse_policies.model.values import check_ranges

_EXACT = 1 + 1e-9  # thresholds that are equal as percentages are equal


class Policy(enum.StrEnum):
    """How a cluster answers offers and reclaims (IV.C)."""

    STATIC = "static"
    GSP = "gsp"
    GGP = "ggp"
    GGDP = "ggdp"


class Reading(enum.StrEnum):
    """What F is: the paper's words allow neither of its thresholds above 1 (see `load`)."""

    WAITING = "waiting"
    FREE = "free"


class Partition(enum.StrEnum):
    """How idle nodes are split over clusters (IV.C)."""

    ALL = "all"
    PER_SITE = "per-site"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The paper's values (VI.C) where it gives them."""

    policy: Policy = Policy.GSP  # of clusters that name none (`Job.kind`)
    reading: Reading = Reading.WAITING
    grow_above: float = 1.5  # GSP takes offers while F is above it
    shrink_below: float = 0.25  # GSP gives nodes back while F is below it
    grow_by: int = 5  # S+, the most nodes that GSP takes of an offer
    shrink_by: int = 2  # S-, the most nodes that GSP gives back at a time
    gsp_every_s: float = 30.0  # T of GSP: between two offers to a cluster
    offer_nodes: int = 2  # size of an offer to GGP and GGDP
    greedy_every_s: float = 120.0  # T of GGP and GGDP
    partition: Partition = Partition.ALL  # how the provider splits idle nodes
    reclaim_every_s: float = 30.0  # between two reclaims from a cluster (ours: GSP's T)
    report_every_s: float = 5.0
    """How often a cluster's master tells its load (ours); 0 for masters that do so by themselves."""

    def __post_init__(self) -> None:
        """Raise ValueError for what has no meaning, or lets a cluster grow and shrink for ever under an even load."""
        nodes, periods = ("grow_by", "shrink_by", "offer_nodes"), ("gsp_every_s", "greedy_every_s", "reclaim_every_s")
        check_ranges("koala", self, positive=(*nodes, *periods), not_negative=("report_every_s",))
        if not 0 < self.shrink_below < self.grow_above:
            raise ValueError(
                f"koala: 0 < shrink_below < grow_above must hold, not {self.shrink_below} and {self.grow_above}"
            )
        steps = 1 + max(self.grow_by, self.shrink_by)  # a cluster of one core node changes most by a step
        if self.reading is Reading.WAITING and self.shrink_below * steps > self.grow_above * _EXACT:
            raise ValueError(
                f"koala: a cluster of 1 node would grow and shrink in turn: with steps of {steps - 1} nodes grow_above "
                f"must be at least {self.shrink_below * steps:g}, not {self.grow_above:g}"
            )
