"""Set the conditions of an object (metav1.Condition). Pure."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

from boathouse.resources import base, statuses

MAX_MESSAGE: Final = 4096
"""The longest message, in characters; the CRD allows eight times as many."""
MAX_CONDITIONS: Final = 16


class ConditionTable:
    """Conditions by type; `lastTransitionTime` changes only with the status.

    Args:
        conditions: The conditions so far.
        generation: The `observedGeneration` of the conditions that are set.
        order: The types of the kind, in the order of the status. Conditions of other types, which another version
            wrote, are kept behind them.
    """

    def __init__(
        self, conditions: Iterable[base.Condition], generation: int, now_s: float, *, order: Iterable[str]
    ) -> None:
        self._by_type = {condition.type: condition for condition in conditions}
        self._generation = generation
        self._now = statuses.rfc3339(now_s) or ""
        self._order: Collection[str] = tuple(map(str, order))

    def set(self, condition_type: str, holds: bool | None, reason: str, message: str) -> None:
        """Set a condition; None: it is unknown whether it holds."""
        status: Literal["True", "False", "Unknown"] = "Unknown" if holds is None else "True" if holds else "False"
        old = self._by_type.get(condition_type)
        self._by_type[str(condition_type)] = base.Condition(
            type=str(condition_type),
            status=status,
            reason=str(reason),
            message=printable(message, MAX_MESSAGE),
            last_transition_time=old.last_transition_time if old and old.status == status else self._now,
            observed_generation=self._generation,
        )

    @property
    def conditions(self) -> tuple[base.Condition, ...]:
        """Return the conditions, those of the kind first."""
        own = [self._by_type[name] for name in self._order if name in self._by_type]
        others = [condition for name, condition in self._by_type.items() if name not in self._order]
        return (*own, *others[: MAX_CONDITIONS - len(own)])


def printable(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, with control characters replaced by spaces."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in cut)
