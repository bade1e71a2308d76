"""Samples of a soak, their windows, and what counts as growth."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WINDOWS = 12
MOST_GROWTH = 0.03


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was measured at one time under load.

    Attributes:
        progress: The part of the soak's work that was done, from 0 to 1.
        time_s: Since the start of the load.
        pod_events: Changes of pods so far.
        objects: Custom resources created so far, by plural.
        rss_mib: Resident memory of the operator.
        cpu_s: CPU time of the operator.
    """

    progress: float
    time_s: float
    pod_events: int
    objects: Mapping[str, int]
    rss_mib: float
    cpu_s: float


def windows(samples: Sequence[Sample], count: int = WINDOWS) -> list[Sample]:
    """Return the last sample of each equal part of the work that has samples, with the median memory of the part."""
    parts: list[list[Sample]] = [[] for _ in range(count)]
    for sample in samples:
        parts[min(count - 1, int(sample.progress * count))].append(sample)
    return [
        dataclasses.replace(part[-1], rss_mib=statistics.median(sample.rss_mib for sample in part))
        for part in parts
        if part
    ]


def growth(found: Sequence[Sample]) -> float:
    """Return by which part the memory of the last window is above that of the last window of the first third.

    Raises:
        ValueError: There are too few windows.
    """
    base = [window for window in found if window.progress <= 1 / 3]
    if not base or found[-1].progress <= 1 / 3:
        raise ValueError(f"the soak was too short: {len(found)} windows with samples")
    return found[-1].rss_mib / base[-1].rss_mib - 1


def problems(grown: float, leaks: Mapping[str, object], most: float = MOST_GROWTH) -> list[str]:
    """Return why the soak has failed; nothing if it has not."""
    found = [f"resident memory grew by {grown:.1%} after the first third; at most {most:.0%}"] if grown > most else []
    return found + [f"kept of objects that are gone: {name}: {counts}" for name, counts in sorted(leaks.items())]


def most_grown(before: Mapping[str, int], after: Mapping[str, int], most: int = 12) -> str:
    """Return a line for each of the counts that grew most."""
    grown = sorted(after.items(), key=lambda item: before.get(item[0], 0) - item[1])[:most]
    return "\n".join(f"{before.get(name, 0):>9} {count:>9}  {name}" for name, count in grown)


def line(sample: Sample, before: Sample | None = None) -> str:
    """Return a line of progress, with the rates since an earlier sample."""
    seconds = sample.time_s - (before.time_s if before else 0.0)
    events = sample.pod_events - (before.pod_events if before else 0)
    cpu_s = sample.cpu_s - (before.cpu_s if before else 0.0)
    objects = " ".join(f"{sample.objects.get(kind, 0):>7}" for kind in ("mrjobs", "sparkapps", "mrclusters"))
    rates = f"{events / max(seconds, 1e-9):>8.0f} {cpu_s / max(seconds, 1e-9):>5.0%}"
    return (
        f"{sample.time_s:>7.0f} {sample.progress:>5.0%} {sample.pod_events:>9} {objects} {sample.rss_mib:>8.1f} {rates}"
    )


_COLUMNS = (("s", 7), ("done", 5), ("pod ev.", 9), ("MRJob", 7), ("Spark", 7), ("MRClus.", 7), ("RSS MiB", 8))
HEAD = " ".join(f"{name:>{width}}" for name, width in (*_COLUMNS, ("events/s", 8), ("CPU", 5)))
