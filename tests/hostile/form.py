"""What an attack is: what it applies, and what must hold beside what must hold under every attack."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from boathouse_task import contract
    from tests.hostile.siege import Siege

Json = dict[str, Any]
LONG = [pytest.mark.long, pytest.mark.timeout(900)]
MANY_WRITES = 500


def nothing() -> tuple[Json, ...]:
    """Apply no objects."""
    return ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What the attacker does, and what must hold.

    Attributes:
        name: A sentence's subject.
        objects: What is applied in the attacker's namespace, before the victim's job.
        refused: The text with which the API server refuses each of the objects; then no operator runs and nothing
            else is done. Empty: it accepts them.
        act: What else is done before the victim's job; it waits until the attack has taken place.
        first: The attack is applied while no operator runs, so that the next one finds it in its lists.
        again: What is done over and over while the victim's job runs.
        message: How the attacker's image ends its tasks; None for a task that ends as an honest one.
        holds: What must hold beside the common assertions.
        most_writes: Writes by the operator, Leases and events aside; a victim's job alone costs about 50.
        most_events: Events that it writes.
        most_refused: Creates of pods that the API server may refuse the operator.
        most_reviews: TokenReviews.
        long: Only in the whole campaign.
    """

    name: str
    objects: Callable[[], Iterable[Json]] = nothing
    refused: str = ""
    act: Callable[[Siege], Awaitable[None]] | None = None
    again: Callable[[Siege], Awaitable[None]] | None = None
    first: bool = False
    message: Callable[[contract.TaskSpec], tuple[str, int] | None] | None = None
    holds: Callable[[Siege], Awaitable[None]] | None = None
    most_writes: int = 150
    most_events: int = 150
    most_refused: int = 0
    most_reviews: int = 20
    long: bool = False

    def case(self) -> Any:
        """The attack as a parameter of a test; those that let the operator write most run one after the other."""
        marks = [pytest.mark.xdist_group("writes")] if self.most_writes >= MANY_WRITES else []
        return pytest.param(self, id=self.name.replace(" ", "-"), marks=marks + (LONG if self.long else []))


def named(attacks: Iterable[Attack], name: str) -> Attack:
    """The attack of a name.

    Raises:
        KeyError: There is none.
    """
    return {attack.name: attack for attack in attacks}[name]
