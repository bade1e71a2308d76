"""Fields of a SparkApp that contradict each other: what the rules of its CRD refuse, and the models do not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import quantity
from boathouse_cli.conversion.draft import ROLES, Draft, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable

_FEWEST: Final = "dynamicAllocation.minExecutors"
_MOST: Final = "dynamicAllocation.maxExecutors"
_FIRST: Final = "dynamicAllocation.initialExecutors"


def check(draft: Draft) -> None:
    """Accept a draft in which no field contradicts another.

    Raises:
        Unconvertible: One does; Spark, or the API server, would refuse the pods.
    """
    for role in ROLES:
        _check_cpu(draft.get, role)
    _check_executors(draft.get)


def _check_cpu(get: Callable[[str], Any], role: str) -> None:
    limit = get(f"{role}.coreLimit")
    request = get(f"{role}.coreRequest") or get(f"{role}.cores") or 1
    if limit is not None and quantity.parse(limit) < quantity.parse(request):
        raise Unconvertible(f"{role}.coreLimit", f"{limit} is less than the request, {request}: raise it")


def _check_executors(get: Callable[[str], Any]) -> None:
    fewest, first, most = get(_FEWEST), get(_FIRST), get(_MOST)
    if fewest is not None and most is not None and fewest > most:
        raise Unconvertible(_FEWEST, f"{fewest} is more than maxExecutors, {most}: lower it")
    if first is not None and (first < (fewest or 0) or (most is not None and first > most)):
        raise Unconvertible(_FIRST, f"{first} is not between minExecutors and maxExecutors: correct it")
