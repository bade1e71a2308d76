"""What a shell lets policies do to running tasks beside placing them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Switches:
    """Which decisions a profile may take. A policy whose switch is off does not decide at all.

    Attributes:
        suspend: Suspend reducers that lack map output (iKayak).
        resize: Give tasks less CPU or memory than requested (iKayak, YARN-ME).
        speculate: Start second attempts of slow tasks (LATE).
        scale: Grow and shrink clusters, with any profile (Koala). Without it, only profile `koala` does.
        per_site: Divide the idle nodes of each zone over clusters on its own (Koala).
        probe: Run a job on a sample of its input to predict its size (FSPY).
    """

    suspend: bool = True
    resize: bool = True
    speculate: bool = False
    scale: bool = False
    per_site: bool = False
    probe: bool = True
