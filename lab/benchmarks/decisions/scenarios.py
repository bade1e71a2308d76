"""Scenarios by name, each of which is recorded to one file."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from boathouse_lab.reproduce import studies, study
from boathouse_policies import profiles
from boathouse_sim import neutral, simulation, swim
from boathouse_sim.base_world import StuckError

from . import adapter, course, journal, workloads, worlds
from .recorder import Questions, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_sim.workload import Errors, Workload

    from .journal import Journal

Case = TypeVar("Case")
Result = TypeVar("Result")
DATA = Path(__file__).resolve().parents[3] / "data"
TRACE = DATA / "traces" / "FB-2009_samples_24_times_1hr_0.tsv"
TABLES = ("table2-uniform-24", "table2-exponential-60x30")
LAST_S = 1500.0
"""Of a random simulation: a few policies wait for ever where a limit keeps them from what they wait for."""
WORLDS, PHASED, LIVE = 200, 40, 60
_ALIKE = 5
"""Profiles that differ in one constant play every fifth world."""
_SLOW_HEARTBEATS = ("capacity", "fair", "yarn", "yarn-me", simulation.MEGANODE)
_WHOLE_DAY = ("boathouse", "capacity", "delay", "fair", "fspy", "ikayak", "ila", "yarn", "yarn-me")


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """One file of a recording.

    Attributes:
        name: Of the file, without its suffix.
        record: Writes it.
        cost: CPU seconds, roughly: the dearest are begun first.
    """

    name: str
    record: Callable[[Journal], None]
    cost: float = 1.0


def catalogue(*, quick: bool) -> dict[str, Scenario]:
    """Return all scenarios by name; with `quick` a few of each kind, for every profile."""
    found = [*_of_worlds(quick=quick), *_of_workloads(quick=quick), *_of_files(quick=quick), *_of_studies(quick=quick)]
    return {one.name: one for one in found}


def record(folder: Path, name: str, *, quick: bool) -> tuple[str, float, int]:
    """Record a scenario; return its name, its CPU time and the number of its records."""
    began_s = time.process_time()
    with journal.writing(folder / f"{name}{journal.SUFFIX}") as written:
        catalogue(quick=quick)[name].record(written)
    return name, time.process_time() - began_s, written.lines


def _some(count: int, name: str, *, quick: bool) -> range:
    """Return the indices of random worlds that a profile plays."""
    if quick:
        return range(0, count, count // 8)
    return range(0, count, _ALIKE) if name.startswith("ila-static") else range(count)


# Random worlds


def _of_worlds(*, quick: bool) -> Iterator[Scenario]:
    for name in profiles.names():
        indices = _some(WORLDS, name, quick=quick)
        yield Scenario(f"core/{name}", functools.partial(worlds_of, name, indices), cost=len(indices) / 15)


def worlds_of(profile: str, indices: range, journal: Journal) -> None:
    """Record random worlds."""
    recorder = Recorder(journal, Questions(pending_each=1, explained_each=20))
    for index in indices:
        world = worlds.draw(index)
        with recorder.run(world.name):
            played = course.Course(world, profile)
            played.run()
        for name, value in played.measures.items():
            journal.measure(name, value)
        journal.state(adapter.learnt(played.core.profile))


def _of_workloads(*, quick: bool) -> Iterator[Scenario]:
    for name in simulation.names():
        phased, live = _some(PHASED, name, quick=quick), _some(LIVE, name, quick=quick)
        for shell, heartbeat_s in (("instant", None), ("heartbeats", 1.0)):
            runs = functools.partial(_phased, name, phased, heartbeat_s)
            yield Scenario(f"{shell}/{name}", runs, cost=len(phased) / 10)
        if name != simulation.MEGANODE:  # one node has no neighbours, nor an outage that it survives
            yield Scenario(f"live/{name}", functools.partial(_live, name, live), cost=len(live) / 10)


def _phased(profile: str, indices: range, heartbeat_s: float | None, journal: Journal) -> None:
    recorder = Recorder(journal, Questions(pending_each=1 if heartbeat_s is None else 5))
    for index in indices:
        workload, errors = workloads.phased(index)
        _simulate(
            recorder, journal, workload, profile, heartbeat_s=heartbeat_s, errors=errors, seed=index, last_s=LAST_S
        )


def _live(profile: str, indices: range, journal: Journal) -> None:
    recorder = Recorder(journal, Questions())
    for index in indices:
        _simulate(recorder, journal, workloads.live(index), profile, seed=index, last_s=LAST_S)


def _simulate(
    recorder: Recorder,
    journal: Journal,
    workload: Workload,
    profile: str,
    *,
    heartbeat_s: float | None = None,
    errors: Errors | None = None,
    seed: int = 0,
    last_s: float = math.inf,
) -> None:
    with recorder.run(workload.name):
        driver = simulation.shell(workload, profile, heartbeat_s=heartbeat_s, errors=errors, seed=seed)
        with contextlib.suppress(StuckError):
            while driver.world.clock.now_s < last_s and driver.advance():
                pass
        if driver.world.over:
            driver.world.finished()
        else:
            journal.measure("stuck", 1.0)
    journal.state(adapter.learnt(driver.world.profile))


# Workloads of the repository


def _of_files(*, quick: bool) -> Iterator[Scenario]:
    for name in simulation.names():
        alike = name.startswith("ila-static")
        yield _of_table(TABLES[0], name, None)
        if quick:
            continue
        yield Scenario(f"swim-part/{name}", functools.partial(_swim, name, 600, 10, None), cost=5)
        if alike:
            continue
        yield _of_table(TABLES[1], name, None)
        yield _of_table(TABLES[0], name, 1.0)
        yield Scenario(f"swim-heartbeats/{name}", functools.partial(_swim, name, 200, 6, 1.0), cost=3)
        if name in _SLOW_HEARTBEATS:
            yield _of_table(TABLES[1], name, 1.0)
        if name in _WHOLE_DAY:
            yield Scenario(f"swim/{name}", functools.partial(_swim, name, None, None, None), cost=20)


def _of_table(file: str, profile: str, heartbeat_s: float | None) -> Scenario:
    name = f"{file}{'-heartbeats' if heartbeat_s else ''}/{profile}"
    return Scenario(name, functools.partial(_table, file, profile, heartbeat_s), cost=5 if heartbeat_s else 1)


def _table(file: str, profile: str, heartbeat_s: float | None, journal: Journal) -> None:
    workload = neutral.read_neutral(DATA / "workloads" / f"{file}.json")
    recorder = Recorder(journal, Questions(pending_each=5 if heartbeat_s is None else 50))
    _simulate(recorder, journal, workload, profile, heartbeat_s=heartbeat_s)


def _swim(profile: str, jobs: int | None, nodes: int | None, heartbeat_s: float | None, journal: Journal) -> None:
    whole = swim.workload("swim", swim.read_swim(TRACE), swim.SwimModel.load())
    workload = dataclasses.replace(whole, jobs=whole.jobs[:jobs])
    recorder = Recorder(journal, Questions(pending_each=20))
    _simulate(recorder, journal, workload if nodes is None else workload.on(nodes), profile, heartbeat_s=heartbeat_s)


# The papers' studies


def _of_studies(*, quick: bool) -> Iterator[Scenario]:
    for name in ("boathouse",) if quick else studies.names():
        yield Scenario(f"study/{name}", functools.partial(_study, name), cost=60)


def _study(paper: str, journal: Journal) -> None:
    """Run the quick form of a study; the values of its claims are measures."""
    (one,) = studies.chosen(paper)
    with RecordingRunner(Recorder(journal, Questions(pending_each=20))) as runner:
        findings = one.run(study.Scale.of(study.Form.QUICK), runner)
    journal.begin("claims")
    for claim in findings.claims:
        if claim.value is not None and not _is_timed(claim):
            journal.measure(f"{claim.figure}:_{claim.claim}"[:120], claim.value)


def _is_timed(claim: Claim) -> bool:
    """Return whether a claim's value is CPU time of the machine that it is simulated on."""
    return "CPU" in claim.claim and "second" in claim.claim


class RecordingRunner(study.Runner):
    """Records each simulation of a study under a name that follows from its case.

    Args:
        recorder: Where to.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(workers=1)
        self._recorder = recorder

    @override
    def map(
        self,
        what: str,
        simulate: Callable[[Case], Result],
        cases: Sequence[Case],
        *,
        cost: Callable[[Case], float] | None = None,
        ended: Callable[[Case, Result], None] = lambda _case, _result: None,
    ) -> list[Result]:
        """Simulate each case in this process."""

        def recorded(case: Case) -> Result:
            digest = hashlib.blake2b(_ADDRESS.sub("", repr(case)).encode(), digest_size=4).hexdigest()
            with self._recorder.runs(f"{what}-{type(case).__name__}-{digest}"):
                return simulate(case)

        return super().map(what, recorded, cases, cost=cost, ended=ended)


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
