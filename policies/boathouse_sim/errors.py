"""Mis-estimation: the truth strays from what policies are told (the paper's 6.2, "Sensitivity to mis-estimations")."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

from boathouse_sim.jobs import Penalty

if TYPE_CHECKING:
    import numpy as np

    from boathouse_sim.jobs import Phase

Span: TypeAlias = tuple[float, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors, drawn uniformly: the truth is the estimate times 1 + error.

    Attributes:
        duration: For each task anew: it ran so much longer or shorter than was estimated.
        memory: For each job: its true ideal memory; a regular task may then spill too.
        penalty: For each job: its true penalty factor, at least 1.
    """

    duration: Span = (0.0, 0.0)
    memory: Span = (0.0, 0.0)
    penalty: Span = (0.0, 0.0)


class Truth:
    """How long tasks really run.

    Args:
        errors: The errors.
        random: Draws them.
    """

    def __init__(self, errors: Errors, random: np.random.Generator) -> None:
        self._errors = errors
        self._random = random
        self._is_exact = not any(errors.duration)

    def of_job(self, phases: tuple[Phase, ...], node_mem_mb: int) -> tuple[Phase, ...]:
        """Return the real phases: one draw for memory and one for the penalty."""
        memory, penalty = self._draw(self._errors.memory), self._draw(self._errors.penalty)
        if not memory and not penalty:
            return phases
        return tuple(
            dataclasses.replace(
                phase,
                mem_ideal_mb=min(node_mem_mb, max(1, round(phase.mem_ideal_mb * (1 + memory)))),
                penalty=Penalty(model=phase.penalty.model, factor=max(1.0, phase.penalty.factor * (1 + penalty))),
            )
            for phase in phases
        )

    def run_time_ms(self, phase: Phase, given_mb: int, index: int = 0) -> int:
        """Run time of one task of a phase, by its index: one draw for its duration."""
        run_ms = phase.task_ms(index)
        if given_mb < phase.mem_ideal_mb:
            run_ms = phase.penalty.run_time_ms(run_ms, given_mb, phase.mem_ideal_mb)
        if self._is_exact:
            return run_ms
        return max(0, round(run_ms * (1 + self._draw(self._errors.duration))))

    def _draw(self, span: Span) -> float:
        low, high = span
        return float(self._random.uniform(low, high)) if low != high else low
