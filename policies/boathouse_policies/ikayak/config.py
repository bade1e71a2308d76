"""The constants of iKayak, each with where it comes from, and a switch for each mechanism."""

import dataclasses
import enum

from boathouse_policies.model.values import check_ranges


class Shrink(enum.StrEnum):
    """What Algorithm 3 takes from maps."""

    OFF = "off"
    CPU = "cpu"
    BOTH = "both"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How iKayak behaves. "Ours": the paper does not say."""

    placement: bool = True
    """Executors by Algorithms 1 and 2 (3.1); off: by the same rank as other tasks, without reservations."""
    suspension: bool = True  # reducers that lack map output are suspended (3.2)
    shrink: Shrink = Shrink.BOTH  # what is taken from maps to run them where their input is (3.3)
    local_first: bool = True  # maps go to nodes with their input first (3.3); off: by the rank of other tasks
    weight: float = 1.0  # v of T_suspend = (λ^v - θ)·T (5.6)
    overhead: float = 0.15  # θ (5.6)
    interval_s: float = 300.0  # T (4.2)
    shrunk_milli: int = 1  # CPU that a suspended reducer keeps: Kubernetes knows no 0 (ours)
    crumbs: float = 0.02
    """Part of its CPU that a map may do without, so that it fits where a reducer keeps `shrunk_milli` (ours)."""
    least_share: float = 0.5  # floor of μ (ours)
    kept_share: float = 0.5  # most nodes that may be kept for executors at once, as a share of all (ours)
    review_s: float = 10.0  # how often a reservation is compared with other nodes (ours)
    better: float = 0.8
    """A node that is kept is given up for one with a predicted wait of at most this share of its own (ours)."""
    sample_s: float = 5.0  # between two reports of a reducer (readings: 5 s)
    map_s: float = 30.0  # a map's length as long as none has ended (ours)
    reduce_s: float = 300.0  # a reducer's length as long as none of its class has ended and it made no report (ours)
    forgetting: float = 0.98  # λ_f of the least squares, for each reducer that ended (ours; see `remaining`)
    discount: float = 0.5  # τ of eq. 6 (ours)
    trust: float = 1.0  # how far one sample moves the prior rules: the variance of their parameters (ours)
    best_predictor: bool = False
    """Reducers are predicted by whichever of three has predicted those of their program best so far; off: by the
    fuzzy model (ours; see `remaining`)."""
    models_kept: int = 32
    """Models of job classes that are remembered; the one unused for longest of the namespace with the most is
    forgotten (ours)."""
    programs_kept: int = 256  # job classes whose mean run times are remembered; forgotten likewise (ours)

    def __post_init__(self) -> None:
        times_s = ("interval_s", "review_s", "sample_s", "map_s", "reduce_s")
        check_ranges(
            "ikayak",
            self,
            shares=("least_share", "kept_share", "forgetting", "better"),
            positive=(*times_s, "shrunk_milli", "trust", "models_kept", "programs_kept"),
            not_negative=("overhead", "discount", "weight"),
        )
        if not 0 <= self.crumbs < 1:
            raise ValueError(f"ikayak: crumbs must be at least 0 and below 1, not {self.crumbs}")
