"""Run one case of `compare_checkouts.py` in this process.

    python -m benchmarks.checkout_cases CASE

The packages are those of the Python that runs this file. Prints a JSON object: CPU seconds and peak memory by figure,
a digest of the decisions, and where the packages are.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import boathouse_policies
from benchmarks import cycle, ila
from boathouse_lab import table2
from boathouse_policies import profiles
from boathouse_sim import simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boathouse_policies import model

ROUNDS, STEP_S = 200, 0.25  # 50 s in all: a pending class is looked at anew after 60 s, which is no short cycle
FULL = cycle.Case(nodes=3000, jobs=100, tasks=cycle.LARGE_TASKS, node=cycle.SMALL)
SHARED = dataclasses.replace(FULL, namespaces=50)
MANY = dataclasses.replace(FULL, jobs=1000, tasks=20, shapes=8)
ILA = ila.Load(hosts=400, jobs=100, maps=15_000, reduces=5000, every_s=0.25)
INFORMATION = "information: "


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What a case found.

    Attributes:
        figures: CPU seconds, and peak resident memory where the name ends so.
        digest: Of the decisions.
    """

    figures: Mapping[str, float]
    digest: str


def cycles(case: cycle.Case, name: str, rounds: int = ROUNDS) -> Found:
    """Return the cycle that fills an empty cluster, and the short cycles, each after 30 tasks ended."""
    turning, digest = cycle.Turning(case, name), hashlib.sha256()
    _, fill_s = turning.cycle()
    peak_mib = peak_rss_mib()
    _add(digest, turning.running)
    ends_s = freed_s = 0.0
    for _ in range(rounds):
        looks, seconds = turning.end(case.nodes // 100, STEP_S)
        freed_s += seconds
        if looks:
            placed, seconds = turning.cycle()
            ends_s += seconds
            _add(digest, turning.running[len(turning.running) - placed :])
    figures = {"fill": fill_s, "short cycles": ends_s, "short cycles and ends": ends_s + freed_s, "peak MiB": peak_mib}
    return Found(figures, digest.hexdigest())


def _add(digest: hashlib._Hash, placements: list[model.Placement]) -> None:
    for one in placements:
        digest.update(f"{one.task.id} {one.node} {one.resources.memory_bytes}\n".encode())


def simulated(name: str, size: int, heartbeat_s: float | None) -> Found:
    """Return a simulation of as many jobs as nodes."""
    workload = table2.Table2().draw(size, size, np.random.default_rng(7))
    found = simulation.simulate(workload, name, heartbeat_s=heartbeat_s)
    digest = hashlib.sha256(repr((found.job_times_s, found.elastic_tasks)).encode())
    return Found({"simulation": found.cpu_s}, digest.hexdigest())


def paper_scale(name: str) -> Found:
    """ILA at the scale of its paper."""
    world = ila.World(ILA, profiles.build(name))
    world.run(step_s=0.25, every_s=ILA.every_s)
    digest = hashlib.sha256(repr((world.placements, world.cycles, world.now_s)).encode())
    return Found({"scheduling": world.cpu_s}, digest.hexdigest())


def peak_rss_mib() -> float:
    """Return the most memory that this process has held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(one.split()[1]) / 1024 for one in lines if one.startswith("VmHWM"))


def _cases() -> dict[str, Callable[[], Found]]:
    cases: dict[str, Callable[[], Found]] = {}
    for name in ("fair", "yarn-me", "ila", "ikayak", "boathouse"):
        cases[f"cycle {name}"] = functools.partial(cycles, FULL, name)
    for name in ("fair", "boathouse"):
        cases[f"cycle, 1,000 classes of 8 sizes, {name}"] = functools.partial(cycles, MANY, name)
    for name in ("fifo", "fair", "yarn-me"):
        for size in (100, 300):
            cases[f"simulate {name} {size}x{size}"] = functools.partial(simulated, name, size, None)
    for name, size in (("fifo", 50), ("fair", 50), ("yarn-no-reservations", 50), ("yarn", 100), ("yarn-me", 100)):
        cases[f"heartbeats {name} {size}x{size}"] = functools.partial(simulated, name, size, 1.0)
    cases["ila"] = functools.partial(paper_scale, "ila")
    for name in ("fair", "yarn-me", "boathouse"):
        cases[f"{INFORMATION}cycle, 50 namespaces, {name}"] = functools.partial(cycles, SHARED, name, ROUNDS // 2)
    return cases


CASES = _cases()
"""By name. Those of `INFORMATION` do not count in the verdict."""


if __name__ == "__main__":
    print(json.dumps({**dataclasses.asdict(CASES[sys.argv[1]]()), "packages": str(boathouse_policies.__file__)}))
