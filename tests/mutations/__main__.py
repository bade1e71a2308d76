"""Plant faults in the code and run the tests that execute them."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from tests.coverage import recording
from tests.mutations import copies, faults, page, running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = recording.ROOT / "build" / "mutations"
RESULTS = recording.ROOT / "tests" / "mutations" / "results.jsonl"
_LIMITS_S = (15.0, 60.0, float("inf"))
"""The faults whose tests take less come first: the others take long if they survive."""


def main() -> None:
    """Try the faults of some packages, and fail if too few are caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"default: all of {', '.join(faults.PACKAGES)}")
    parser.add_argument(
        "-n", dest="workers", type=int, default=os.cpu_count() or 1, help="workers (default: all cores)"
    )
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--page", action="store_true", help="only write the page and the lists from earlier results")
    arguments = parser.parse_args()
    if unknown := set(arguments.packages) - set(faults.PACKAGES):
        parser.error(f"no package {', '.join(sorted(unknown))}; choose from {', '.join(faults.PACKAGES)}")
    if arguments.page:
        sys.exit(_write_pages(recording.Recording(), running.Results(RESULTS)))
    sys.exit(_run(arguments.packages or list(faults.PACKAGES), arguments.workers, again=arguments.again))


def _run(packages: list[str], workers: int, *, again: bool) -> str | int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the next run continues here"))
    if again:
        RESULTS.unlink(missing_ok=True)
    kept, results = recording.Recording(), running.Results(RESULTS)
    if not kept.tests:
        return "There is no recording of what each test executes: run `make record-coverage` first."
    health = running.Health()
    team = [running.Worker(copies.Copy(FOLDER / f"copy-{number}"), health) for number in range(workers)]
    chosen = {package: faults.choose(package, cache=FOLDER / "faults") for package in packages}
    print(", ".join(f"{package}: {len(own)} faults" for package, own in chosen.items()), flush=True)
    try:
        for worker in team:
            worker.start()
        for limit_s in _LIMITS_S:
            tried = _try(chosen, limit_s, kept, results, team)
    finally:
        for worker in team:
            worker.stop()
    _write_pages(kept, results)
    print(*page.table(tried, {package: len(own) for package, own in chosen.items()}), sep="\n")
    if few := page.below(tried):
        return f"Fewer than 90 % of the planted faults are caught in {', '.join(few)}: see {page.PAGE} and {FOLDER}"
    return 0


def _try(
    chosen: Mapping[str, Sequence[faults.Fault]],
    limit_s: float,
    kept: recording.Recording,
    results: running.Results,
    team: list[running.Worker],
) -> list[page.Tried]:
    packages = {fault.key: package for package, own in chosen.items() for fault in own}
    tried: dict[str, page.Tried] = {}

    def report(fault: faults.Fault, result: running.Result, is_kept: bool) -> None:
        package = packages[fault.key]
        tried[fault.key] = page.Tried(package=package, fault=fault, result=result)
        if not is_kept:
            what = f"caught by {result.caught_by}" if result.is_caught else "SURVIVED"
            own = [tried[other.key] for other in chosen[package] if other.key in tried]
            _write_survivors(package, own, len(chosen[package]))
            number = f"{time.strftime('%H:%M:%S')} {len(tried)}/{len(packages)}"
            print(f"{number} {fault.path}:{fault.line} {result.took_s} s {what}", flush=True)

    running.run(itertools.chain.from_iterable(chosen.values()), limit_s, kept, results, team, report)
    return [tried[key] for key in packages if key in tried]


def _write_survivors(package: str, tried: list[page.Tried], faults: int) -> None:
    (FOLDER / f"survivors-{package}.md").write_text(page.survivors(package, tried, faults, page.reasons()))


def _write_pages(kept: recording.Recording, results: running.Results) -> None:
    """Write the page and the lists of survivors from all results that hold, and forget those of other code."""
    tried: list[page.Tried] = []
    numbers = {}
    by_package = {package: faults.choose(package, cache=FOLDER / "faults") for package in faults.PACKAGES}
    results.keep_only(itertools.chain.from_iterable(by_package.values()))
    for package, chosen in by_package.items():
        own = [
            page.Tried(package=package, fault=fault, result=result)
            for fault in chosen
            if (result := results.get(fault, running.concerning(kept, fault))) is not None
        ]
        _write_survivors(package, own, len(chosen))
        tried += own
        numbers[package] = len(chosen)
    page.PAGE.write_text(page.page(tried, numbers, page.reasons()))


if __name__ == "__main__":
    main()
