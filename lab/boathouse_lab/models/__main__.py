"""Write docs/models.md: how well each model predicts on data that it did not learn from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_lab.models import recorded, remaining, run_times, sizes, slowdowns
from boathouse_lab.reproduce.ikayak.predicting import Trial
from boathouse_lab.reproduce.ila.modelling import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
INTRODUCTION = """# Models

The policies predict run times, slowdowns by neighbours, remaining times of reduces, and sizes of jobs. This page
compares each model with what is trivial, with the paper's as it is written, and with another one, on the same data that
none of them learned from. `{command}` writes it.

* The profile of a paper predicts by the paper's model. The profile `boathouse` predicts slowdowns, remaining times and
  sizes by whichever model has predicted the program best so far. [explain](explain.md) shows which, and its
  error.
* Two tables are of {tasks} recorded tasks of {programs} programs: maps of MRJobs and tasks of Spark applications on
  real kubelets. All other data is the simulator's, whose tasks share CPUs, disks and networks by a law that is of no
  model's form (`conditions.Saturation`).
* Numbers in brackets are 95 % intervals over independent runs. There are {seeds} of each kind.
"""
RUN_TIMES = ("fb2009-hour", "disks")


def page(seeds: int, *, jobs: int = 100, run_times_of: Sequence[str] = RUN_TIMES) -> str:
    """Return the page.

    Args:
        seeds: Independent runs.
        jobs: Of each of ILA's runs; an eighth of them of each of iKayak's programs.
        run_times_of: Workloads of the board whose maps are predicted.
    """
    tasks = recorded.tasks()
    runs = [run_times.Run(row.program, row.input_bytes, row.seconds) for row in tasks]
    tables = (
        slowdowns.compare([Case(seed=seed, jobs=jobs) for seed in range(seeds)]),
        slowdowns.compare_recorded(recorded.samples(tasks)),
        remaining.compare([Trial(seed=seed, jobs=max(2, jobs // 8)) for seed in range(seeds)]),
        run_times.compare(run_times_of, seeds),
        run_times.compare_recorded(runs),
        sizes.compare(seeds),
    )
    command = "python -m boathouse_lab.models" + (f" --seeds {seeds}" if seeds != SEEDS else "")
    introduction = INTRODUCTION.format(
        command=command, seeds=seeds, tasks=len(tasks), programs=len({row.program for row in tasks})
    )
    return "\n".join([introduction, *(table.table() for table in tables)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_lab.models", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="independent runs of each kind")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    chosen = parser.parse_args(arguments)
    chosen.page.write_text(page(chosen.seeds).rstrip("\n") + "\n", encoding="utf-8")


SEEDS = 3

if __name__ == "__main__":
    main()
