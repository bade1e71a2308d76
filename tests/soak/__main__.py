"""Soak the operator: a steady load of all kinds, after which it holds no more than after the first third.

    python -m tests.soak [--events 1000000] [--objects 20000] [--seed 1] [--growth 0.03]

Each namespace has MRJobs, SparkApps and MRClusters that run, fail, expire, are suspended, never fit or are invalid, and
pods of its own. They come and are deleted, a fifth of them early, until there were so many pod events and objects of
each kind. Nodes come and go with their pods.

The resident memory is that of the operator's process alone, with the settings of its image. It moves with what is live
at the moment and never quite returns to the system, so the medians of equal parts of the work are compared: the last
one with the last one of the first third. In the first third the bounded tables and the allocator's pools reach their
size. The census counts objects at rest, when all that was created is deleted: after the first third and at the end. It
fails for one object too many, and names what holds it.

Exits with 1 if the memory grew by more than `--growth` or if the census did not return to its base, 2 if the operator
ended or stood still.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import paths
from tests.builders.operators import remains
from tests.soak import process, verdict
from tests.soak.endpoint import EndpointHints
from tests.soak.load import TENANTS, Load
from tests.wire import fake_api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS = ("mrjobs", "sparkapps", "mrclusters")
SAMPLE_S, LINE_S = 0.5, 10.0
REST_S, CENSUSES = 1.0, 8
"""Kopf forgets an object 5 s after its last event."""


class Soak:
    """One soak.

    Args:
        load: The tenants.
        operator: The operator's process.
        events: Pod events to reach.
        objects: Custom resources of each kind to reach.
    """

    def __init__(self, load: Load, operator: process.Operator, events: int, objects: int) -> None:
        self._load, self._operator, self._events, self._objects = load, operator, events, objects
        self._start_s = time.monotonic()
        self.samples: list[verdict.Sample] = []

    @property
    def progress(self) -> float:
        """The part of the work that is done."""
        created = min(self._load.crowd.created[kind] for kind in KINDS)
        return min(1.0, self._load.pod_events / self._events, created / self._objects)

    def sample(self) -> verdict.Sample:
        """Measure the operator."""
        return verdict.Sample(
            progress=self.progress,
            time_s=time.monotonic() - self._start_s,
            pod_events=self._load.pod_events,
            objects=dict(self._load.crowd.created),
            rss_mib=self._operator.rss_mib(),
            cpu_s=self._operator.cpu_s(),
        )

    async def until(self, progress: float) -> None:
        """Run the load until a part of the work is done and all objects are deleted."""
        sampling = asyncio.create_task(self._sample_until(lambda: self.progress >= progress))
        running = asyncio.create_task(self._load.until(lambda: self.progress >= progress))
        done, _ = await asyncio.wait({sampling, running}, return_when=asyncio.FIRST_EXCEPTION)
        for task in (sampling, running):
            if task not in done:
                task.cancel()
        await asyncio.gather(sampling, running)

    async def _sample_until(self, is_done: Callable[[], bool]) -> None:
        """Sample while the load is full, and print a line now and then."""
        printed = self.samples[-1] if self.samples else None
        self.samples.append(self.sample())
        while not is_done():
            await asyncio.sleep(SAMPLE_S)
            self.samples.append(self.sample())
            if self.samples[-1].time_s - (printed.time_s if printed else 0.0) >= LINE_S:
                say(verdict.line(self.samples[-1], printed))
                printed = self.samples[-1]

    async def census(self, before: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the least counts of some censuses at rest; if there is an earlier one, until nothing has grown."""
        least: dict[str, int] = {}
        for number in range(CENSUSES):
            await self._load.crowd.one_pod()  # a cycle, which replaces what the last one used
            await asyncio.sleep(REST_S)  # in which the operator hears that the pod is gone
            found = await self._operator.census()
            least = {name: min(count, least.get(name, 0)) for name, count in found.items()} if number else found
            if before is not None and not remains.leaks(before, least):
                break
        return least


async def run(given: argparse.Namespace) -> int:
    """Run the soak; returns the exit code."""
    async with fake_api.FakeApi() as api, process.running(api.url, given.folder) as operator:
        load = Load(api, EndpointHints(api, operator.port), given.seed, given.tenants)
        async with load.running():
            await load.crowd.one_pod()
            soak = Soak(load, operator, given.events, given.objects)
            say(verdict.HEAD)
            await soak.until(1 / 3)
            base = await soak.census()
            await soak.until(1.0)
            after = await soak.census(base)
        return report(soak.samples, base, after, given.growth)


def report(samples: list[verdict.Sample], base: Mapping[str, int], after: Mapping[str, int], most_growth: float) -> int:
    """Print the table and the verdict; returns the exit code."""
    found = verdict.windows(samples)
    say(f"\nMedian resident memory in {len(found)} equal parts of the work:\n{verdict.HEAD}")
    before = None
    for window in found:
        say(verdict.line(window, before))
        before = window
    say(f"\nCensus: {sum(base.values())} items after the first third, {sum(after.values())} at the end")
    say(f"What is kept within bounds, and grew most:\n{verdict.most_grown(base, after)}")
    grown, leaks = verdict.growth(found), remains.leaks(base, after)
    problems = verdict.problems(grown, leaks, most_growth)
    cpu_s = sum(os.times()[:2])
    say(f"CPU time: operator {samples[-1].cpu_s:.0f} s, tenants and fake API server {cpu_s:.0f} s")
    say(f"Growth after the first third: {grown:.1%} of resident memory, {len(leaks)} containers")
    for problem in problems:
        say(f"FAILED: {problem}")
    return 1 if problems else 0


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="pod events to reach")
    parser.add_argument("--objects", type=int, default=20_000, help="objects of each kind to reach")
    parser.add_argument("--seed", type=int, default=1, help="of the tenants' choices")
    parser.add_argument("--tenants", type=int, default=TENANTS, help="namespaces at a time")
    parser.add_argument("--growth", type=float, default=verdict.MOST_GROWTH, help="of memory that is allowed")
    parser.add_argument("--folder", type=Path, default=paths.REPOSITORY / "build" / "soak", help="for the log")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        return asyncio.run(run(given))
    except (process.Ended, TimeoutError, AssertionError, ExceptionGroup) as error:
        say(f"FAILED: {error!r}; the operator's log is {given.folder / 'operator.log'}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
