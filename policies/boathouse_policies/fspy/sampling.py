"""Semi-random sampling of a probing job's input (FSPY, III.A; Algorithm 1).

Deviations:
* The loops run to `<`, and the swap reads splits[j], as its neighbours do: the text has `<=` and i and j mixed.
* Line 6 draws from all splits at each step, which makes some permutations likelier than others; a generator's own
  permutation does not.
* f_p is the bytes really read over all bytes (readings), as whole bytes are read of splits of unequal length.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a probing job reads.

    Attributes:
        parts: (place of the split, bytes to read of it), in the order in which they are read.
        fraction: f_p.
    """

    parts: tuple[tuple[int, int], ...]
    fraction: float


def sample(split_bytes: Sequence[int], *, reducers: int, most_splits: int, rng: np.random.Generator) -> Sample:
    """Run Algorithm 1.

    Args:
        split_bytes: Length of each of the original job's splits: one for each map task.
        reducers: Its reduce tasks.
        most_splits: sampledSplitsUpperBound.
        rng: Chooses the splits.

    Raises:
        ValueError: There is no split, or none may be read.
    """
    mappers = len(split_bytes)
    if mappers < 1 or most_splits < 1:
        raise ValueError(f"a probe samples at least 1 split, not {most_splits} of {mappers}")
    sample_fraction = 1 / max(mappers, reducers)
    sampled = min(mappers, most_splits)
    frequency = sample_fraction / (sampled / mappers)
    chosen = rng.permutation(mappers)[:sampled].tolist()
    parts = tuple((split, int(split_bytes[split] * frequency)) for split in chosen)
    total = sum(split_bytes)
    return Sample(parts=parts, fraction=sum(count for _, count in parts) / total if total else 0.0)
