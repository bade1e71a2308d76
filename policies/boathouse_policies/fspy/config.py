"""The constants of FSPY, each with where it comes from."""

import dataclasses

from boathouse_policies.model.values import check_ranges


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the paper leaves to the cluster, or does not state."""

    probing_share: float = 0.10
    """The probing queue's part of the cluster's memory (III.C: "a specified fraction"; 10 % is ours)."""
    probes: bool = True  # whether jobs of unknown size are probed
    probed_from: float = 0.0
    """Only those whose maps request at least so much of the cluster's memory (the paper: all). The order matters
    little to a smaller one, and its first tasks tell its size as soon as a probe would. With `assumed_task_s` the first
    task of such a job goes before all jobs of known size, whether it is probed or not."""
    ageing_s: float = 600.0  # a job that is overdue and uses nothing goes before all others after so long (ours)
    least_work_share: float = 0.5
    """The least part of a job's virtual resource that works, however small its share beside its master's container
    (ours; 0.5 is the Fair Scheduler's maxAMShare)."""
    assumed_task_s: float | None = None
    """If given (ours), a job of unknown size is ranked among those of known size, as one whose tasks take so long.
    If not, such jobs go first while all together they hold less than their virtual shares (III.C: "if the fair
    queue holds less resources"): then small jobs wait for large ones of unknown size."""
    late_first: bool = True
    """Whether a job that outlived its virtual size goes before those that have not (the paper). If not, it is
    ranked by the work that is left of it, for `ageing_s`: or an underestimated one holds all others up."""
    sampled_splits: int = 10  # Algorithm 1's sampledSplitsUpperBound (unstated; 10 is ours)
    least_jobs: int = 16
    """A model predicts once it has learnt from so many jobs (ours: twice the larger number of coefficients)."""
    best_model: bool = False
    """Whether a program's jobs are predicted by its mean time per byte of input where that has predicted them
    better so far than the linear models (ours)."""
    forgetting: float = 1.0  # how much an observation counts after the next one; 1 forgets nothing, as the paper
    kinds_kept: int = 256  # programs whose features are remembered; the one unused for longest is forgotten
    use_estimates: bool = True
    """Whether run times that somebody states (`TaskClass.estimates`) count as sizes; if not, all are predicted, as
    in the paper."""
    jobs_dumped: int = 500  # jobs whose virtual state a dump holds, so that it stays small

    def __post_init__(self) -> None:
        if self.assumed_task_s is not None and not self.assumed_task_s > 0:
            raise ValueError(f"fspy: assumed_task_s must be above 0, or None for none, not {self.assumed_task_s}")
        check_ranges(
            "fspy",
            self,
            shares=("probing_share", "least_work_share", "forgetting"),
            positive=("ageing_s", "sampled_splits", "least_jobs", "kinds_kept", "jobs_dumped"),
        )
