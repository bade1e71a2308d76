"""The constants of YARN-ME, with the paper's values where it has them."""

import dataclasses

from boathouse_policies.model.values import check_ranges


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How YARN-ME behaves. Sizes' step and floor (100 MB, 10 %) are the estimates': see `penalty.Elastic`."""

    elastic: bool = True  # give tasks less memory than their ideal
    disk_bytes_per_s: float | None = None
    """Rate of a node's disk for spills until one was measured; None for no disk budget until then, as in DSS."""
    disk_share: float = 0.5  # part of it that elastic tasks may take together (the paper names no value; ours)
    refresh_s: float = 10.0
    """How old a timeline may be while nothing but tasks' starts and ends happened. The paper's is renewed at every
    heartbeat, of 1 s: that costs more and changes mean job times by about 1 %."""
    refresh_share: float = 0.01
    """Which part of the jobs must have come or ended for a new one before that: with up to 100 jobs any one of
    them. The cost of a timeline grows with the jobs, so their number must not set its rate as well."""

    def __post_init__(self) -> None:
        if self.disk_bytes_per_s is not None and not self.disk_bytes_per_s > 0:
            raise ValueError(
                f"yarn-me: disk_bytes_per_s must be above 0, or None for no budget, not {self.disk_bytes_per_s}"
            )
        check_ranges("yarn-me", self, shares=("disk_share",), not_negative=("refresh_s", "refresh_share"))
        if not self.refresh_share <= 1:
            raise ValueError(f"yarn-me: refresh_share must be at most 1, not {self.refresh_share}")
