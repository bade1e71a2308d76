"""What is predicted of a class of tasks. Policies that predict fill it; the simulator keeps its truth to itself."""

from __future__ import annotations

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


class Unknown:
    """Nothing is known: the neutral estimates."""

    __slots__ = ()

    def duration_s(self, resources: Resources) -> float | None:  # noqa: ARG002
        """Not known."""
        return None

    def input_bytes(self) -> int | None:
        """Not known."""
        return None

    def spilled_bytes(self, resources: Resources) -> int | None:  # noqa: ARG002
        """Not known."""
        return None


UNKNOWN = Unknown()
