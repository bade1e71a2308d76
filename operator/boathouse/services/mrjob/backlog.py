"""Which unfinished jobs of a namespace are admitted: the first ones by creation, up to a limit.

A suspended job has no pods and does not count: queueing systems create many, and resume them in an order of their own.
Each change costs a binary search in the namespace's list, however many jobs wait.
"""

import bisect
from collections.abc import Mapping
from typing import Any

from boathouse.services.mrjob.record import TERMINAL

Body = Mapping[str, Any]
_Place = tuple[str, str]
"""Creation time (RFC 3339, so that texts order as times do) and UID."""


class Backlog:
    """The unfinished jobs of each namespace, in the order of their creation.

    Args:
        limit: How many of a namespace are admitted.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._places: dict[str, list[_Place]] = {}
        self._keys: dict[_Place, str] = {}

    def put(self, key: str, body: Body) -> str | None:
        """Take in a job as it is now; returns the key of a job that is admitted because this one counts no more."""
        if not _counts(body):
            return self.remove(key, body)
        place, places = _place(body), self._places.setdefault(_namespace(key), [])
        if place not in self._keys:
            bisect.insort(places, place)
            self._keys[place] = key
        return None

    def remove(self, key: str, body: Body) -> str | None:
        """Drop a job that counts no more or is gone; returns the key of the job admitted in its place, if any."""
        place = _place(body)
        if self._keys.pop(place, None) is None:
            return None
        places = self._places[_namespace(key)]
        index = bisect.bisect_left(places, place)
        del places[index]
        if not places:
            del self._places[_namespace(key)]
        admits_another = index < self.limit <= len(places)
        return self._keys[places[self.limit - 1]] if admits_another else None

    def admits(self, key: str, body: Body) -> bool:
        """Whether a job may run: it does already, or is among the first of its namespace."""
        if not _counts(body) or (body.get("status") or {}).get("startTime"):
            return True
        return bisect.bisect_left(self._places.get(_namespace(key), ()), _place(body)) < self.limit


def _counts(body: Body) -> bool:
    """Whether a job is unfinished and may have pods."""
    ended = (body.get("status") or {}).get("phase") in TERMINAL or body["metadata"].get("deletionTimestamp")
    return not ended and (body.get("spec") or {}).get("suspend") is not True


def _place(body: Body) -> _Place:
    metadata = body["metadata"]
    return str(metadata.get("creationTimestamp") or ""), metadata["uid"]


def _namespace(key: str) -> str:
    return key.partition("/")[0]
