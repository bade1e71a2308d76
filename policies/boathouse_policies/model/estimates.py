"""What is predicted of a class of tasks. Policies that predict fill it; the simulator keeps its truth to itself."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse_policies.model.resources import Resources


class Estimates(Protocol):
    """Predictions for the tasks of one class; None where nothing is known."""

    def duration_s(self, resources: Resources) -> float | None:
        """Run time of one task with these resources."""
        ...

    def input_bytes(self) -> int | None:
        """Bytes that one task reads."""
        ...

    def spilled_bytes(self, resources: Resources) -> int | None:
        """Bytes that one task writes to disk and reads again for want of memory."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Estimates that do not depend on what a task is given.

    Attributes:
        seconds: Run time of one task; None for not known.
        read_bytes: What one task reads; None for not known.
    """

    seconds: float | None = None
    read_bytes: int | None = None

    def duration_s(self, resources: Resources) -> float | None:  # noqa: ARG002  the protocol's argument
        """Run time of one task."""
        return self.seconds

    def input_bytes(self) -> int | None:
        """Bytes that one task reads."""
        return self.read_bytes

    def spilled_bytes(self, resources: Resources) -> int | None:  # noqa: ARG002  the protocol's argument
        """Not known."""
        return None


UNKNOWN = Fixed()
"""Nothing is known: the neutral estimates."""
