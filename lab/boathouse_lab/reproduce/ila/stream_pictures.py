"""Figures 5 to 8 as ours come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import figures
from boathouse_lab.reproduce.figures import bars
from boathouse_lab.reproduce.ila import schedulers, setting
from boathouse_lab.reproduce.ila.experiment import local, slower, title
from boathouse_lab.reproduce.words import per_cent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.ila.case import Case, Seen
    from boathouse_lab.reproduce.ila.experiment import Runs

POINTS = 200
"""Of a CDF: maps are thousands."""


def pictures(runs: Runs, seen: Mapping[Case, Seen]) -> tuple[figures.Figure, ...]:
    """Return all four pictures."""
    return (_job_times(runs, seen), _throughput(runs, seen), _locality(runs, seen), _slowdowns(runs, seen))


def _job_times(runs: Runs, seen: Mapping[Case, Seen]) -> figures.Figure:
    y = figures.Axis(label="Job time over that under ILA", low=0)
    panels = tuple(
        figures.Panel(
            title=words,
            x=figures.Axis(label="Type of job"),
            y=y,
            categories=tuple(kinds),
            marks=(
                *(
                    bars(title(one), [runs.over(seen, one, schedulers.ILA, slower((kind,))) for kind in kinds])
                    for one in schedulers.ALL
                    if one != schedulers.ILA
                ),
                figures.Level(label="ILA", at=1.0),
            ),
        )
        for words, kinds in (("I/O-bound", setting.IO_KINDS), ("CPU-bound", setting.CPU_KINDS))
    )
    means = {one: runs.over(seen, one, schedulers.ILA, slower(setting.KINDS)).value for one in schedulers.ALL}
    said = ", ".join(f"{title(one)} {means[one]:.1f}" for one in schedulers.ALL if one != schedulers.ILA)
    return figures.Figure(
        name="Figure 5",
        title="Job time by type and scheduler, as a multiple of ILA's",
        panels=panels,
        paper_shape="1.5 to 6.5 times longer without regard to interference, small jobs most; IAO 1.1 to 2.0 times.",
        our_shape=f"Means over types: {said}.",
    )


def _throughput(runs: Runs, seen: Mapping[Case, Seen]) -> figures.Figure:
    found = [runs.mean(seen, one, lambda s: s.throughput) for one in schedulers.ALL]
    panel = figures.Panel(
        title="25 jobs",
        x=figures.Axis(label="Scheduler"),
        y=figures.Axis(label="Throughput [maps/s]", low=0),
        categories=tuple(title(one) for one in schedulers.ALL),
        marks=(bars("throughput", found),),
    )
    said = ", ".join(f"{title(one)} {e.value:.1f}" for one, e in zip(schedulers.ALL, found, strict=True))
    return figures.Figure(
        name="Figure 6",
        title="Throughput by scheduler",
        panels=(panel,),
        paper_shape="The oblivious ones are alike; ILA up to 1.9 times as high, and 1.3 times IAO's.",
        our_shape=f"Maps a second: {said}.",
    )


def _locality(runs: Runs, seen: Mapping[Case, Seen]) -> figures.Figure:
    shown = (*schedulers.ALL, schedulers.SEEING)
    panels = tuple(
        figures.Panel(
            title=words,
            x=figures.Axis(label="Type of job"),
            y=figures.Axis(label="Share of maps with local input", low=0, high=1),
            categories=tuple(kinds),
            marks=tuple(bars(title(one), [runs.mean(seen, one, local((kind,))) for kind in kinds]) for one in shown),
        )
        for words, kinds in (("I/O-bound", setting.LOCATED_IO), ("CPU-bound", setting.CPU_KINDS))
    )
    share = local(setting.LOCATED_IO)
    said = ", ".join(f"{title(one)} {per_cent(runs.mean(seen, one, share).value)}" for one in shown)
    return figures.Figure(
        name="Figure 7",
        title="Maps whose input is on their node, or on a virtual machine of their host",
        panels=panels,
        paper_shape="I/O-bound: ILA 90 %, Delay 75 %, greedy ones 55 %. CPU-bound: Delay most, ILA 60 %.",
        our_shape=f"I/O-bound, means over types: {said}.",
    )


def _slowdowns(runs: Runs, seen: Mapping[Case, Seen]) -> figures.Figure:
    marks: list[figures.Mark] = []
    for one in schedulers.ALL:
        every = np.concatenate([seen[case].slowdowns for case in runs.cases(one)])
        marks.append(figures.cdf(title(one), _thinned(every.tolist())))
    marks.append(
        figures.Points(label="the paper's ILA", x=(1.0, 1.5, 2.5), y=(0.7, 0.9, 0.99), paper=True),
    )
    panel = figures.Panel(
        title="All maps",
        x=figures.Axis(label="Run time over that alone with local input", log=True),
        y=figures.Axis(label="Share of maps", low=0, high=1),
        marks=tuple(marks),
    )
    ours = runs.mean(seen, schedulers.ILA, lambda s: s.at_most(1.5)).value
    fair = runs.mean(seen, schedulers.PURE_FAIR, lambda s: s.at_most(1.5)).value
    return figures.Figure(
        name="Figure 8",
        title="How much longer maps run than alone",
        panels=(panel,),
        paper_shape="ILA: 70 % not slowed, 90 % < 1.5×, 99 % < 2.5×. Oblivious: 15 % not slowed, up to 60 % > 2×.",
        our_shape=f"Slower by less than 1.5×: {per_cent(ours)} under ILA, {per_cent(fair)} under PureFair.",
    )


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(np.quantile(values, np.linspace(0, 1, POINTS)).tolist())
