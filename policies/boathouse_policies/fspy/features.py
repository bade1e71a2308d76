"""Job features and the rows of the two linear models (FSPY, III.A; eqs 6, 7 and 8).

Deviations:
* Eq. 7 is lost in the text (a copy of eq. 6). From the parameters that III.A names and the eight betas it counts:
  SE_r = β0 + β1·N_r + β2·SE_m + β3·MO + β4·RFE + β5·RO + β6·RIR + β7·RIR·log RIR.
* log x is log max(x, 1): a job without output has no records to sort.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies import model

MAP_COLUMNS = 7
REDUCE_COLUMNS = 8


class Counter(enum.StrEnum):
    """What a probing job's one task reports, by Hadoop's names where Hadoop has one."""

    SAMPLED_FRACTION = "Sampled fraction"
    """f_p: bytes really read over all bytes of the input."""
    MAP_INPUT_BYTES = "Bytes Read"
    MAP_FUNCTION_S = "Map function seconds"
    MAP_OUTPUT_BYTES = "Map output bytes"
    MAP_OUTPUT_RECORDS = "Map output records"
    REDUCE_FUNCTION_S = "Reduce function seconds"
    REDUCE_OUTPUT_BYTES = "Bytes Written"
    REDUCE_INPUT_RECORDS = "Reduce input records"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the models read of a whole job.

    Attributes:
        maps: N_m.
        reduces: N_r; 0 for a job of maps alone.
        map_input_bytes: MI.
        map_function_s: MFE, summed over the maps, with all input local.
        map_output_bytes: MO.
        map_output_records: MOR.
        reduce_function_s: RFE, summed over the reduces.
        reduce_output_bytes: RO.
        reduce_input_records: RIR.
    """

    maps: int
    reduces: int
    map_input_bytes: float
    map_function_s: float
    map_output_bytes: float
    map_output_records: float
    reduce_function_s: float
    reduce_output_bytes: float
    reduce_input_records: float

    def amounts(self) -> model.FloatVector:
        """What grows with the input, MI first, shape [7]."""
        return np.array([getattr(self, name) for name in COUNTERS])

    def map_row(self) -> model.FloatVector:
        """Eq. 6 without its coefficients, shape [7]."""
        own = [self.maps, self.map_input_bytes, self.map_function_s, self.map_output_bytes]
        return np.array([1.0, *own, *_x_and_x_log_x(self.map_output_records)])

    def reduce_row(self, map_s: float) -> model.FloatVector:
        """Eq. 7 without its coefficients, shape [8]; `map_s` is SE_m."""
        own = [self.reduces, map_s, self.map_output_bytes, self.reduce_function_s, self.reduce_output_bytes]
        return np.array([1.0, *own, *_x_and_x_log_x(self.reduce_input_records)])


COUNTERS = {
    "map_input_bytes": Counter.MAP_INPUT_BYTES,
    "map_function_s": Counter.MAP_FUNCTION_S,
    "map_output_bytes": Counter.MAP_OUTPUT_BYTES,
    "map_output_records": Counter.MAP_OUTPUT_RECORDS,
    "reduce_function_s": Counter.REDUCE_FUNCTION_S,
    "reduce_output_bytes": Counter.REDUCE_OUTPUT_BYTES,
    "reduce_input_records": Counter.REDUCE_INPUT_RECORDS,
}
"""The counter of each amount, MI first."""


def of_amounts(amounts: model.FloatVector, *, maps: int, reduces: int) -> Features:
    """The inverse of `Features.amounts`."""
    return Features(maps=maps, reduces=reduces, **dict(zip(COUNTERS, amounts.tolist(), strict=True)))


def dump(features: Features) -> list[float]:
    """As JSON values."""
    return [features.maps, features.reduces, *features.amounts().tolist()]


def load(values: Sequence[float]) -> Features:
    """The inverse of `dump`."""
    maps, reduces, *amounts = values
    return of_amounts(np.array(amounts), maps=int(maps), reduces=int(reduces))


def scaled(counters: Mapping[str, float], *, maps: int, reduces: int) -> Features | None:
    """Eq. 8: the original job's features from its probing job's counters, each over f_p.

    Returns:
        None where the counters do not say what fraction was read, or that it was none: the probe tells nothing.
    """
    fraction = counters.get(Counter.SAMPLED_FRACTION, 0.0)
    if not 0 < fraction <= 1:
        return None
    amounts = [float(counters.get(counter, 0.0)) / fraction for counter in COUNTERS.values()]
    if not all(0 <= amount < math.inf for amount in amounts):
        return None
    return of_amounts(np.array(amounts), maps=maps, reduces=reduces)


def _x_and_x_log_x(x: float) -> tuple[float, float]:
    return x, x * math.log(max(x, 1.0))
