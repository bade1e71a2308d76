"""The constants of ILA, each with where it comes from."""

import dataclasses
import math

from boathouse_policies.model.values import check_ranges


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the paper fixes, what it leaves to the cluster, and what it does not state."""

    threshold: float | None = 1.0
    """H, the largest slowdown that is accepted (4.4: 1). None accepts all: no threshold (5.5)."""
    dynamic: bool = True  # whether H_d takes H's place on hosts with idle slots; if not, H is static (5.5)
    idle_s: float = 20.0  # for so long more than one slot of a host has been idle before H_d is used (4.4: 20 s)
    refit_every: int = 100  # k, new observations between two fits (4.1: 100)
    window: int = 300  # observations of each kind, I/O- and CPU-bound, that a fit uses, the newest (ours)
    acceptable_error: float = 0.15  # above it the variables are selected anew (4.1: "not acceptable"; 0.15 is ours)
    first_error: float = 0.12  # what the error is taken to be until one is known (5.4: 12 %)
    worst_error: float = 1.0
    """A model with a larger one is dropped, also when it is loaded; to predict that nobody is slowed down makes a
    smaller one (ours)."""
    largest_slowdown: float = 20.0
    """The most, and one over it the least, by which a run time differs from that without neighbours; what exceeds
    it is an error of the latter (ours; Figures 1 and 2: at most 7)."""
    best_model: bool = False
    """Whether a program's tasks are judged by whichever of three models has predicted theirs best so far; if not,
    by the exponential one (ours; `learning`)."""
    uncertain: float = 0.5
    """Estimates whose deviation is a larger part of the run time are not taken for the latter (ours)."""
    largest_error: float = 0.3  # the most by which the model's own error widens the threshold (ours)
    ewma: float = 0.8  # alpha of eq. 7 (4.3: 0.8)
    first_disk_share: float = 0.25
    """Until a task of a class has ended, its reads and its writes are each taken to use so much of a host's disks,
    and its CPU all that it asks for (4.3: "a high value"; a quarter each is ours)."""
    by_program: bool = True  # whether a job begins with what was measured of the last job of its program instead (ours)
    disk_mb_per_s: float = 100.0  # what the disks of a host carry: the unit of the I/O metrics (ours)
    slot_cpu_milli: int = 1000  # a slot's CPU: slots are counted by it, as Kubernetes has none (ours)
    slot_memory_bytes: int = 512 << 20  # a slot's memory (ours)
    locality: bool = True  # whether Algorithm 2 decides on locality; if not, whichever node gets its closest task (5.1)
    node_delay_s: float = 0.5  # T_0, the wait before a server-local task will do (4.2: 0.5 s)
    delay_s: float = 5.0  # T_1 and T_2, before a rack-local and an off-rack one will do (4.4: 5 s)
    block_bytes: int = 128 << 20  # F_b, the HDFS block size (5.1: 128 MB)
    least_input_share: float = 0.01  # of a block; tasks with less never wait (eq. 4: 1 %)
    measure_every_s: float = 5.0  # how often the shell should tell what nodes use (ours)
    recheck_s: float = 5.0
    """A class that interference keeps out everywhere is retried after so long, events aside (ours)."""
    longest_wait_s: float = 300.0
    """After so long its tasks go where they are slowed down least, until a host accepts one again, so that nothing
    starves beside what never ends or leaves no slot idle (ours)."""
    programs_kept: int = 256
    """Programs whose demand is remembered; the one unused for longest of the namespace with the most is forgotten
    (ours)."""
    learners_kept: int = 64
    """Namespaces whose model is kept; the one that learnt nothing for longest begins anew (ours)."""

    def __post_init__(self) -> None:
        if self.threshold is not None and not 1 <= self.threshold < math.inf:
            raise ValueError(f"ila: threshold is a slowdown, 1 or more, or None for no threshold, not {self.threshold}")
        if not self.largest_slowdown >= 1:
            raise ValueError(f"ila: largest_slowdown must be 1 or more, not {self.largest_slowdown}")
        amounts = ("disk_mb_per_s", "slot_cpu_milli", "slot_memory_bytes", "block_bytes", "window", "refit_every")
        errors = ("acceptable_error", "worst_error", "uncertain", "largest_error")
        kept, times_s = ("programs_kept", "learners_kept"), ("idle_s", "node_delay_s", "delay_s", "measure_every_s")
        check_ranges(
            "ila",
            self,
            shares=("ewma", "first_disk_share"),
            positive=(*amounts, *errors, *kept, "recheck_s", "longest_wait_s"),
            not_negative=(*times_s, "least_input_share", "first_error"),
        )


def static(threshold: float | None) -> Config:
    """Return the config with a static threshold (5.5); None for none, which is interference-oblivious."""
    return Config(threshold=threshold, dynamic=False)
