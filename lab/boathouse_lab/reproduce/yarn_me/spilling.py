"""A reducer's truth for trying the penalty models: map outputs that arrive one by one, and what is on disk at the end.

It is not the models' formula: outputs differ in size, and whatever has come when the buffer is beyond its threshold (in
Hadoop and Tez 66 % of it) is spilled together. Spark's records are larger in the buffer than on disk.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce.yarn_me.fitted import Run
from boathouse_policies.yarn_me.penalty import BUFFER_SHARE

if TYPE_CHECKING:
    import numpy as np

MERGE_THRESHOLD: Final = 0.66
OUTPUTS: Final = 200
"""Map outputs of each reducer; their sizes are log-normal with σ = 0.5."""
SIGMA: Final = 0.5
EXPANSION: Final = 2.5
"""Deserialised over serialised size of Spark's records."""
LOCAL: Final = 0.02
"""Part of Tez's map outputs that lies on the reducer's own node: one in fifty nodes."""


class Framework(enum.Enum):
    """Whose reducer."""

    HADOOP = "Hadoop"
    TEZ = "Tez"
    SPARK = "Spark"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reducer:
    """One reducer.

    Attributes:
        framework: Whose.
        outputs: Bytes of the map outputs that go through the buffer, in the order of their arrival.
        local_bytes: What does not.
        ideal_s: Run time without spills.
        disk_bytes_per_s: At which spills cost time.
    """

    framework: Framework
    outputs: tuple[float, ...]
    local_bytes: float
    ideal_s: float
    disk_bytes_per_s: float

    @classmethod
    def drawn(cls, framework: Framework, penalty: float, random: np.random.Generator) -> Reducer:
        """Return a reducer of 5 to 18 GB (2.3) with this penalty when all of its input is spilled."""
        input_bytes, ideal_s = float(random.uniform(5e9, 18e9)), float(random.uniform(200, 600))
        parts = random.lognormal(0.0, SIGMA, OUTPUTS)
        local = LOCAL * input_bytes if framework is Framework.TEZ else 0.0
        outputs = parts / parts.sum() * (input_bytes - local)
        return cls(
            framework=framework,
            outputs=tuple(outputs.tolist()),
            local_bytes=local,
            ideal_s=ideal_s,
            disk_bytes_per_s=input_bytes / (ideal_s * (penalty - 1)),
        )

    @property
    def _expansion(self) -> float:
        return EXPANSION if self.framework is Framework.SPARK else 1.0

    @property
    def buffer_share(self) -> float:
        """Part of its memory that is full when it spills: of the runtime's configuration, so that a model knows it."""
        return BUFFER_SHARE * (1.0 if self.framework is Framework.SPARK else MERGE_THRESHOLD)

    @property
    def ideal_bytes(self) -> float:
        """The least memory with which nothing is spilled."""
        return sum(self.outputs) * self._expansion / self.buffer_share

    def run(self, share: float, noise: float, random: np.random.Generator) -> Run:
        """Return a run with this part of the ideal memory, as the runtime would report it."""
        spilled = self._spilled(self.ideal_bytes * share * self.buffer_share) if share < 1 else 0.0
        seconds = (self.ideal_s + spilled / self.disk_bytes_per_s) * (1 + float(random.normal(0, noise)))
        reports = share < 1
        return Run(
            memory_bytes=round(self.ideal_bytes * share),
            duration_s=seconds,
            input_bytes=round(sum(self.outputs) + self.local_bytes),
            spilled_bytes=round(spilled) if reports else None,
            spilled_memory_bytes=round(spilled * self._expansion) if reports else None,
            local_bytes=round(self.local_bytes),
        )

    def _spilled(self, full: float) -> float:
        """Return the serialized bytes on disk: the buffer's content each time that it is full."""
        held = spilled = 0.0
        for output in self.outputs:
            held += output * self._expansion
            if held >= full:
                spilled += held
                held = 0.0
        return spilled / self._expansion
