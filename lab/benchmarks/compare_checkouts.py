"""CPU time and memory of this checkout's scheduling core against another checkout's, in alternating pairs.

    python -m benchmarks.compare_checkouts BASE_DIRECTORY [--pairs 7] [--only PATTERN ...]

BASE_DIRECTORY is another checkout of this repository, with its own `.venv`, as `git worktree add` and `make setup` give
it. Each case runs in a process of its own, with the Python and the packages of one checkout, first of the base, then of
this one, in the next pair the other way round. The cases are this checkout's (`checkout_cases.py`) in both.

| figure | CPU time of |
|---|---|
| fill | the cycle that fills 3,000 empty nodes; 10,000 tasks stay pending |
| short cycles | 200 cycles, each after 30 tasks ended; 100 where namespaces share the queue |
| short cycles and ends | the same, with what the ends of the tasks themselves cost |
| simulation, scheduling | all that `simulate.py` and `ila.py` measure |

A ratio is this checkout's CPU time over the base's in one pair; printed are the median, the least and the most of all
pairs, and the median CPU seconds of both. Peak memory is the process's resident memory after the fill, and compared as
a difference. `same` says whether both checkouts made the same decisions. The last lines are the median and the maximum
of the cases' median ratios; cases of which the name begins with `information` are not in them.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.checkout_cases import CASES, INFORMATION

HERE = Path(__file__).resolve().parent
MEMORY = "peak MiB"


@dataclasses.dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout with its own Python."""

    root: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.root / ".venv/bin/python"

    def check(self) -> None:
        """Refuse a folder that is not a checkout in which packages can be run."""
        if not self.python.exists():
            raise SystemExit(f"{self.python} does not exist: run `make setup` in {self.root}")

    def run(self, case: str) -> dict[str, Any]:
        """Run a case with the product's packages of this checkout, and the laboratory of the one that compares."""
        done = subprocess.run(
            [self.python, "-m", "benchmarks.checkout_cases", case],
            env={**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": "0"},  # workloads are this checkout's
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{case} failed with the packages of {self.root}")
        found: dict[str, Any] = json.loads(done.stdout)
        if not Path(found["packages"]).resolve().is_relative_to(self.root):
            raise SystemExit(f"the Python of {self.root} imports {found['packages']}: run `make setup` there")
        return found


def compare(case: str, base: Checkout, this: Checkout, pairs: int) -> list[float]:
    """Run a case in pairs and print a line for each figure; return the median ratios."""
    found: dict[Checkout, list[dict[str, Any]]] = {base: [], this: []}
    for i in range(pairs):
        for checkout in (base, this) if i % 2 == 0 else (this, base):
            found[checkout].append(checkout.run(case))
    digests = {one["digest"] for runs in found.values() for one in runs}
    return [
        ratio
        for figure in found[this][0]["figures"]
        if (ratio := report(case, figure, found[base], found[this], same=len(digests) == 1)) is not None
    ]


def report(
    case: str, figure: str, base: list[dict[str, Any]], this: list[dict[str, Any]], *, same: bool
) -> float | None:
    """Print a figure of a case; return the median ratio, None for memory."""
    before, after = ([one["figures"][figure] for one in runs] for runs in (base, this))
    medians = statistics.median(before), statistics.median(after)
    if figure == MEMORY:
        more = sorted(b - a for a, b in zip(before, after, strict=True))
        print(line(case, figure, f"{statistics.median(more):+.1f}", *spread(more, "+.1f"), *_in(medians, ".1f"), ""))
        return None
    ratios = sorted(b / a for a, b in zip(before, after, strict=True))
    median: float = statistics.median(ratios)
    decisions = "same" if same else "DIFFER"
    print(line(case, figure, f"{median:.3f}", *spread(ratios, ".3f"), *_in(medians, ".3f"), decisions), flush=True)
    return median


def spread(values: list[float], spec: str) -> tuple[str, str]:
    """Return the least and the most."""
    return format(min(values), spec), format(max(values), spec)


def _in(values: tuple[float, float], spec: str) -> tuple[str, str]:
    return format(values[0], spec), format(values[1], spec)


def line(case: str, figure: str, *cells: str) -> str:
    """Columns."""
    return f"{case:<46} {figure:<22}" + "".join(f"{cell:>8}" for cell in cells)


def main() -> None:
    """Compare all cases, or some."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("base", type=Path, help="another checkout, with its own .venv")
    parser.add_argument("--pairs", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", metavar="PATTERN", help=f"run only cases that match, of: {'; '.join(CASES)}"
    )
    arguments = parser.parse_args()
    base, this = Checkout(arguments.base.resolve()), Checkout(HERE.parents[1])
    for checkout in (base, this):
        checkout.check()
    wanted = [case for case in CASES if not arguments.only or any(fnmatch.fnmatch(case, one) for one in arguments.only)]
    if not wanted:
        parser.error(f"no case has such a name; there are: {'; '.join(CASES)}")
    print(line("case", "figure", "median", "least", "most", "base", "this", "decide"))
    medians = {case: compare(case, base, this, arguments.pairs) for case in wanted}
    ratios = [one for case, found in medians.items() if not case.startswith(INFORMATION) for one in found]
    if ratios:
        print(f"\nmedian of {len(ratios)} ratios: {statistics.median(ratios):.3f}; the largest: {max(ratios):.3f}")


if __name__ == "__main__":
    main()
