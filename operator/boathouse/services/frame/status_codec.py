"""Read statuses, without the parts that are invalid, write them, and set their conditions. Pure."""

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import pydantic

from boathouse.resources import base, statuses

S = TypeVar("S", bound=statuses.Part)
A = TypeVar("A", bound=statuses.Status)
T = TypeVar("T")
_Place = tuple[int | str, ...]
_ROUNDS: Final = 20
"""Each removes all that one validation found; what it reveals is removed by the next."""
_BY_PART: Final = frozenset({"attempts", "counters"})
"""Fields whose parts are worth keeping where one of them cannot be read."""
MAX_MESSAGE: Final = 4096
MAX_CONDITIONS: Final = 16


class StatusCodec(Generic[S]):
    """Converts a status, a dataclass with a default for each field, from and to JSON."""

    def __init__(self, model: type[S]) -> None:
        self._model, self._adapter = model, pydantic.TypeAdapter(model)

    def read(self, status: Mapping[str, Any] | None) -> S:
        """Return the status without invalid fields and list elements."""
        rest: dict[str, Any] = stripped(status or {})
        for attempt in range(_ROUNDS):
            try:
                return self._adapter.validate_python(rest)
            except pydantic.ValidationError as error:
                rest = rest if attempt else copy.deepcopy(rest)
                places = {_place(rest, detail["loc"]) for detail in error.errors(include_url=False)}
                # list elements from the end, so that removing one does not move the others
                for place in sorted(places, key=lambda place: -place[-1] if isinstance(place[-1], int) else 0):
                    _remove(rest, place)
        return self._model()

    def write(self, status: S) -> dict[str, Any]:
        """Return the status as JSON, with null for absent fields, but not in lists, so that a merge patch clears it."""
        wire: dict[str, Any] = self._adapter.dump_python(status, mode="json", by_alias=True)
        return {name: _without_null_in_lists(value) for name, value in wire.items()}


def value(call: Callable[[], T], otherwise: T) -> T:
    """Return the result of the call, or `otherwise` if its input is malformed."""
    try:
        return call()
    except (ValueError, TypeError, LookupError, OverflowError):
        return otherwise


def fields_of(model: type[Any], source: object) -> dict[str, Any]:
    """Return the values of a dataclass's fields in an object that has them, too, such as one of a subclass."""
    return {field.name: getattr(source, field.name) for field in dataclasses.fields(model)}


def stripped(wire: Any) -> Any:
    """Return a status without null, as the API server keeps it."""
    if not isinstance(wire, Mapping):
        return wire
    parts = {name: stripped(value) for name, value in wire.items() if value is not None}
    return {name: value for name, value in parts.items() if value != {}}


def _without_null_in_lists(wire: Any) -> Any:
    if isinstance(wire, list):
        return [stripped(element) for element in wire]
    if isinstance(wire, dict):
        return {name: _without_null_in_lists(value) for name, value in wire.items()}
    return wire


def _place(data: Mapping[str, Any], loc: _Place) -> _Place:
    field = loc[0]
    if field in _BY_PART:
        return loc
    return loc[:2] if isinstance(data.get(str(field)), list) else loc[:1]


def _remove(data: dict[str, Any], place: _Place) -> None:
    """Remove the value at a path, or at its longest existing prefix."""
    here: Any = data
    for part in place[:-1]:
        below = here.get(part) if isinstance(here, dict) else None
        if not isinstance(below, dict | list):
            here.pop(part, None)
            return
        here = below
    if isinstance(here, dict):
        here.pop(place[-1], None)
    elif isinstance(place[-1], int):
        del here[place[-1]]


class ConditionTable:
    """Conditions by type, those of the kind first and in its `order`; others are from another version."""

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


def with_conditions(
    state: A, now_s: float, order: Iterable[str], changes: Iterable[tuple[str, bool | None, str, str]], **fields: Any
) -> A:
    """Return a status with other fields, then with conditions: type, whether it holds, reason and message of each."""
    state = dataclasses.replace(state, **fields)
    table = ConditionTable(state.conditions, state.observed_generation, now_s, order=order)
    for change in changes:
        table.set(*change)
    return dataclasses.replace(state, conditions=table.conditions)


def printable(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, with control characters replaced by spaces."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in cut)
