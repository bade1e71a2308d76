"""Writes that an API server answered, and how long they took: from its own metrics."""

from __future__ import annotations

import collections
import dataclasses
import re
from typing import Any

WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE"})
_SERIES = re.compile(r"^(apiserver_request_total|apiserver_request_duration_seconds_sum)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_NOT_OF_WORK = frozenset({"leases", "tokenreviews", "subjectaccessreviews"})


@dataclasses.dataclass(frozen=True, slots=True)
class Requests:
    """Writes up to a moment, or between two of them.

    Attributes:
        counts: Writes by verb and resource.
        seconds: Time of all, in the API server.
    """

    counts: collections.Counter[str]
    seconds: float

    @classmethod
    def of(cls, cluster: Any) -> Requests:
        """Read the metrics of a cluster's API server."""
        counts: collections.Counter[str] = collections.Counter()
        seconds = 0.0
        for series, text, value in _SERIES.findall(cluster.run("get", "--raw", "/metrics")):
            labels = dict(_LABEL.findall(text))
            if labels["verb"] not in WRITES or labels["resource"] in _NOT_OF_WORK:
                continue
            if series == "apiserver_request_duration_seconds_sum":
                seconds += float(value)
            elif series == "apiserver_request_total":
                what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                counts[f"{labels['verb'].lower()} {what}"] += int(float(value))
        return cls(counts, seconds)

    def since(self, earlier: Requests) -> Requests:
        """Return the writes since an earlier moment."""
        return Requests(self.counts - earlier.counts, self.seconds - earlier.seconds)

    def line(self, seconds: float) -> str:
        """Return the writes of so many seconds as text."""
        count = self.counts.total() or 1
        most = ", ".join(f"{what} {number}" for what, number in self.counts.most_common(7))
        return f"API writes: {count}, {count / seconds:.0f} a second, {1e3 * self.seconds / count:.0f} ms each ({most})"
