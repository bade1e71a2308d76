"""Read untrusted values, or those of another version: invalid parts are left out. Pure."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import pydantic

M = TypeVar("M", bound=pydantic.BaseModel)
T = TypeVar("T")
_Place = tuple[int | str, ...]
_ROUNDS: Final = 20
"""Each removes all that one validation found; what it reveals is removed by the next."""
_BY_PART: Final = frozenset({"attempts", "counters"})
"""Fields whose parts are worth keeping where one of them cannot be read."""


def read(model: type[M], data: Mapping[str, Any] | None) -> M:
    """Return the data as the model, without invalid fields and list elements."""
    rest = dict(data or {})
    for attempt in range(_ROUNDS):
        try:
            return model.model_validate(rest)
        except pydantic.ValidationError as error:
            rest = rest if attempt else copy.deepcopy(rest)
            for place in _last_first({_place(rest, each["loc"]) for each in error.errors(include_url=False)}):
                _remove(rest, place)
    return model()


def value(call: Callable[[], T], otherwise: T) -> T:
    """Return the result of the call, or `otherwise` if its input is malformed."""
    try:
        return call()
    except (ValueError, TypeError, LookupError, OverflowError):
        return otherwise


def _place(data: Mapping[str, Any], loc: _Place) -> _Place:
    field = loc[0]
    if field in _BY_PART:
        return loc
    return loc[:2] if isinstance(data.get(str(field)), list) else loc[:1]


def _last_first(places: set[_Place]) -> list[_Place]:
    """Return the paths with list elements from the end, so that removing one does not move the others."""
    return sorted(places, key=lambda place: -place[-1] if isinstance(place[-1], int) else 0)


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
