"""How a study runs: its scale, the processes that its simulations are spread over, and what it finds."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import enum
import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.figures import Figure

Case = TypeVar("Case")
Result = TypeVar("Result")
Choice = TypeVar("Choice")

QUICK_SEEDS = 3
FULL_SEEDS = 10


class Form(enum.StrEnum):
    """Whether to look at all of it, or to finish within minutes."""

    QUICK = "quick"
    FULL = "full"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is simulated.

    Attributes:
        form: Sizes: each study has its own for both.
        seeds: Independent runs of what is drawn, at least 1; seeds are 0 ... seeds - 1.
    """

    form: Form
    seeds: int

    def __post_init__(self) -> None:
        """Refuse no seeds.

        Raises:
            ValueError: There is none.
        """
        if self.seeds < 1:
            raise ValueError(f"there must be at least 1 seed, not {self.seeds}")

    @classmethod
    def of(cls, form: Form, seeds: int | None = None) -> Scale:
        """Return the scale of a form, with its usual number of seeds unless one is given."""
        usual = QUICK_SEEDS if form is Form.QUICK else FULL_SEEDS
        return cls(form=form, seeds=usual if seeds is None else seeds)

    def pick(self, *, quick: Choice, full: Choice) -> Choice:
        """Return the choice of the form."""
        return quick if self.form is Form.QUICK else full


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a study found."""

    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]

    @classmethod
    def joined(cls, parts: Iterable[Findings]) -> Findings:
        """Join the findings of all parts, in order."""
        found = tuple(parts)
        return cls(
            claims=tuple(claim for one in found for claim in one.claims),
            figures=tuple(figure for one in found for figure in one.figures),
        )


class Progress(Protocol):
    """Is told how far a study is."""

    def begin(self, what: str, total: int) -> None:
        """Note how many simulations begin."""
        ...

    def advance(self) -> None:
        """Note the end of a simulation."""
        ...


class Silent:
    """Tells nobody."""

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self) -> None:
        """Do nothing."""


Simulation = TypeVar("Simulation")
Seen_contra = TypeVar("Seen_contra", contravariant=True)


class Experiment(Protocol[Simulation, Seen_contra]):
    """A part of a study."""

    def cases(self) -> Iterable[Simulation]:
        """Return its simulations; those that experiments share are run once."""
        ...

    def findings(self, seen: Mapping[Simulation, Seen_contra]) -> Findings:
        """Return its rows and pictures, from all simulations."""
        ...


class Study(Protocol):
    """One paper."""

    @property
    def paper(self) -> str:
        """Its name on the command line."""
        ...

    @property
    def title(self) -> str:
        """Its citation, in a line."""
        ...

    def run(self, scale: Scale, runner: Runner) -> Findings:
        """Simulate, and judge each of the paper's claims."""
        ...


class Runner:
    """Spreads independent simulations over processes; use it as a context.

    Results do not depend on the number of workers: each case is simulated by itself and results keep the cases' order.

    Args:
        workers: Processes; 1 simulates in this one; None takes one for each core.
        progress: Is told of each that ended.
    """

    def __init__(self, *, workers: int | None = None, progress: Progress | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._progress = progress or Silent()
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Enter; processes are started when they are needed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes; after an error, what was not begun is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=error is not None)
            self._pool = None

    def map(
        self,
        what: str,
        simulate: Callable[[Case], Result],
        cases: Sequence[Case],
        *,
        cost: Callable[[Case], float] | None = None,
        ended: Callable[[Case, Result], None] = lambda _case, _result: None,
    ) -> list[Result]:
        """Simulate each case.

        Args:
            what: For the progress.
            simulate: A function of a module (processes look it up by name), of one case and nothing else: no globals
                that change, randomness only from a seed in the case.
            cases: Values that can be pickled.
            cost: The dearest are begun first, so that none is left alone at the end; in the cases' order without it.
            ended: Is told of each result in this process, as soon as it is there.

        Returns:
            In the order of the cases.
        """
        self._progress.begin(what, len(cases))
        order = sorted(range(len(cases)), key=lambda i: (-cost(cases[i]) if cost else 0.0, i))
        if self.workers == 1:
            return self._here(simulate, cases, order, ended)
        if self._pool is None:
            # A fresh process for each worker: nothing that this one has drawn or cached can change a result.
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=_die_quietly
            )
        futures = {self._pool.submit(simulate, cases[i]): i for i in order}
        results: dict[int, Result] = {}
        for done in concurrent.futures.as_completed(futures):
            place = futures[done]
            results[place] = done.result()
            ended(cases[place], results[place])
            self._progress.advance()
        return [results[i] for i in range(len(cases))]

    def carry_out(
        self,
        what: str,
        experiments: Sequence[Experiment[Case, Result]],
        simulate: Callable[[Case], Result],
        *,
        cost: Callable[[Case], float] | None = None,
    ) -> Findings:
        """Simulate what experiments need, each case once and all at once, and join what they find; as `map`."""
        cases = list(dict.fromkeys(case for one in experiments for case in one.cases()))
        seen = dict(zip(cases, self.map(what, simulate, cases, cost=cost), strict=True))
        return Findings.joined(one.findings(seen) for one in experiments)

    def _here(
        self,
        simulate: Callable[[Case], Result],
        cases: Sequence[Case],
        order: Sequence[int],
        ended: Callable[[Case, Result], None],
    ) -> list[Result]:
        results: dict[int, Result] = {}
        for i in order:
            results[i] = simulate(cases[i])
            ended(cases[i], results[i])
            self._progress.advance()
        return [results[i] for i in range(len(cases))]


def _die_quietly() -> None:
    """End a worker that is interrupted from the keyboard without a traceback of its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
