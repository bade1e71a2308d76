"""Record what every profile decides, and compare two recordings.

    python -m benchmarks.decisions record FOLDER [--quick] [--only PATTERN] [--workers N]
    python -m benchmarks.decisions compare FOLDER FOLDER [--strict] [--common]

`record` plays random worlds, the workloads in `data/` and the quick form of each paper's study, and writes every
decision with its time, task, node and resources, and why the rest is pending. `compare` names the first difference of
each scenario. It exits with 1 where a mean differs by more than 0.5 %, with `--strict` where anything differs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import multiprocessing
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import compare, journal, scenarios

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def main() -> int:
    """Read the command line and do what it says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="record the decisions of all scenarios")
    record.add_argument("folder", type=Path)
    record.add_argument("--quick", action="store_true", help="a few scenarios of each kind, for every profile")
    record.add_argument(
        "--only", default="*", metavar="PATTERN", help="record only these scenarios, for example 'core/ila*'"
    )
    record.add_argument("--workers", type=int, default=1, help="processes; recordings do not depend on it (default: 1)")
    compared = commands.add_parser("compare", help="compare two recordings")
    compared.add_argument("a", type=Path)
    compared.add_argument("b", type=Path)
    compared.add_argument("--strict", action="store_true", help="exit with 1 if anything differs")
    compared.add_argument("--common", action="store_true", help="leave out runs that only one recording has")
    compared.add_argument("--most", type=int, default=3, help="maximum divergences shown per scenario (default: 3)")
    arguments = parser.parse_args()
    if arguments.command == "record":
        return _record(arguments.folder, arguments.only, arguments.workers, quick=arguments.quick)
    for folder in (arguments.a, arguments.b):
        if not any(folder.rglob(f"*{journal.SUFFIX}")):
            print(f"{folder} has no recordings: make them with `record {folder}`")
            return 2
    found = list(compare.folders(arguments.a, arguments.b, common=arguments.common))
    return _report(found, arguments.most, strict=arguments.strict)


def _record(folder: Path, pattern: str, workers: int, *, quick: bool) -> int:
    known = scenarios.catalogue(quick=quick)
    chosen = sorted((one for one in known.values() if fnmatch.fnmatch(one.name, pattern)), key=lambda one: -one.cost)
    if not chosen:
        print(f"no scenario has a name like {pattern!r}; the names begin with: {', '.join(_kinds(known))}")
        return 2
    total_s = 0.0
    for i, (name, seconds, written) in enumerate(
        _recorded(folder, [one.name for one in chosen], workers, quick=quick), 1
    ):
        total_s += seconds
        print(f"{i}/{len(chosen)} {name}: {written} records, {seconds:.1f} s CPU", flush=True)
    print(f"recorded {len(chosen)} scenarios in {total_s:.0f} s CPU")
    return 0


def _kinds(names: Iterable[str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in names})


def _recorded(folder: Path, names: Sequence[str], workers: int, *, quick: bool) -> Iterable[tuple[str, float, int]]:
    if workers == 1:
        for name in names:
            yield scenarios.record(folder, name, quick=quick)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(scenarios.record, folder, name, quick=quick) for name in names]
        for done in concurrent.futures.as_completed(futures):
            yield done.result()


def _report(found: Sequence[compare.Comparison], most: int, *, strict: bool) -> int:
    """Print where recordings differ; return the exit code."""
    for one in found:
        if not one.equal:
            print("\n".join(compare.lines(one, most=most)))
    equal, tolerable = sum(one.equal for one in found), sum(one.tolerable for one in found)
    print(f"{equal} of {len(found)} scenarios are equal; the means of {tolerable} are within {compare.TOLERANCE:.1%}")
    return int(not found or equal < len(found) if strict else not found or tolerable < len(found))


if __name__ == "__main__":
    sys.exit(main())
