"""Figures 4 and 5 as ours come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.words import per_cent
from boathouse_lab.reproduce.yarn_me import cluster_cases as cluster
from boathouse_lab.reproduce.yarn_me.case import ELASTIC, YARN
from boathouse_lab.reproduce.yarn_me.experiment import gains
from boathouse_lab.reproduce.yarn_me.table1 import NODES, PAGERANK, RECOMMENDER, TABLE1, WORDCOUNT, alike, mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce.yarn_me.case import Case, Seen
    from boathouse_lab.reproduce.yarn_me.table1 import Runs

IMPROVEMENT = figures.Axis(label="Improvement over YARN [%]", low=0, high=100)


def pictures(seen: Mapping[Case, Seen], seeds: int, counts: Sequence[int], part: float) -> tuple[figures.Figure, ...]:
    """Return Figures 4a and b, 4c, 5a, 5b and 5c."""
    shapes: tuple[tuple[str, str, str, dict[int, float]], ...] = (
        (PAGERANK, "4c", "30 % with a single run, rising to 39 % with 5 runs.", {1: 30, 5: 39}),
        (WORDCOUNT, "5a", "Rises with the number of runs, to 41 %; map phases gain 46 % with 3 runs.", {}),
        (RECOMMENDER, "5b", "Rises with the number of runs, to 48 %.", {}),
    )
    alone = [
        _runs(
            seen, seeds, counts, part, name, f"Figure {figure}", {n: g for n, g in paper.items() if n in counts}, shape
        )
        for name, figure, shape, paper in shapes
    ]
    return (_timelines(seen, counts[-1], part), *alone, _mix(seen, seeds, part))


def _timelines(seen: Mapping[Case, Seen], runs: int, part: float) -> figures.Figure:
    recipe = alike(PAGERANK, runs, part)
    found = {name: seen[cluster.cases(recipe, name, 1)[0]] for name in (YARN, ELASTIC)}
    memory: list[figures.Mark] = []
    elastic: list[figures.Mark] = []
    for name, one in found.items():
        assert one.watched is not None
        memory.append(
            figures.Line(label=name, x=one.watched.time_s, y=tuple(100 * m for m in one.watched.memory), step=True)
        )
        if name == ELASTIC:
            elastic.append(figures.Line(label=name, x=one.watched.time_s, y=one.watched.elastic, step=True))
    levels = (
        figures.Level(label="paper's means: 77 and 95 %", at=77, paper=True),
        figures.Level(label="paper's means: 77 and 95 %", at=95, paper=True),
    )
    time = figures.Axis(label="Time [s]", low=0)
    yarn, ours = found[YARN], found[ELASTIC]
    return figures.Figure(
        name="Figures 4a, 4b",
        title=f"Memory in use and elastic tasks over time, {runs} Pagerank runs on {NODES * part:.0f} nodes",
        panels=(
            figures.Panel(
                title="Memory",
                x=time,
                y=figures.Axis(label="Memory given out [%]", low=0, high=105),
                marks=(*memory, *levels),
            ),
            figures.Panel(
                title="Elastic tasks",
                x=time,
                y=figures.Axis(label="Elastic tasks that run", low=0),
                marks=tuple(elastic),
            ),
        ),
        paper_shape="YARN leaves about a quarter of the memory idle; YARN-ME fills it (77 to 95 % on average) and ends "
        "39 % earlier; elastic tasks run whenever memory is scarce.",
        our_shape=f"YARN gives out {per_cent(yarn.memory_utilisation)} on average, YARN-ME "
        f"{per_cent(ours.memory_utilisation)}, tail included; it ends "
        f"{per_cent(1 - ours.makespan_s / yarn.makespan_s)} earlier.",
    )


def _bars(label: str, values: Sequence[Sequence[float]]) -> figures.Bars:
    spans = [cluster.span_of([100 * value for value in one]) for one in values]
    return figures.Bars(
        label=label,
        values=tuple(mean for mean, _, _ in spans),
        low=tuple(low for _, low, _ in spans),
        high=tuple(high for _, _, high in spans),
    )


def _measured(seen: Mapping[Case, Seen], seeds: int, recipe: Runs, measure: Callable[[Seen], float]) -> list[float]:
    return gains(seen, cluster.cases(recipe, ELASTIC, seeds), cluster.cases(recipe, YARN, seeds), measure)


def _runs(
    seen: Mapping[Case, Seen],
    seeds: int,
    counts: Sequence[int],
    part: float,
    name: str,
    figure: str,
    paper: Mapping[int, float],
    shape: str,
) -> figures.Figure:
    measures = {
        "job run time": cluster.job_time_s,
        "map phase": cluster.phase_s("map"),
        "reduce phase": cluster.phase_s("reduce"),
        "makespan": cluster.makespan_s,
    }
    found = {
        label: [_measured(seen, seeds, alike(name, n, part), measure) for n in counts]
        for label, measure in measures.items()
    }
    marks: list[figures.Mark] = [_bars(label, values) for label, values in found.items()]
    if paper:
        marks.append(
            figures.Points(
                label="paper: job run time",
                x=tuple(float(counts.index(n)) for n in paper),
                y=tuple(paper.values()),
                paper=True,
            )
        )
    job = [interval.mean(seed_gains).value for seed_gains in found["job run time"]]
    maps = [interval.mean(seed_gains).value for seed_gains in found["map phase"]]
    return figures.Figure(
        name=figure,
        title=f"{name}: improvement by the number of concurrent runs (bars: mean, whiskers: least and most)",
        panels=(
            figures.Panel(
                title=name,
                x=figures.Axis(label="Runs"),
                y=IMPROVEMENT,
                marks=tuple(marks),
                categories=tuple(str(n) for n in counts),
            ),
        ),
        paper_shape=shape,
        our_shape=f"Job run time: {', '.join(per_cent(gain) for gain in job)} with "
        f"{', '.join(str(n) for n in counts)} runs; "
        f"map phases: {', '.join(per_cent(gain) for gain in maps)}.",
    )


def _mix(seen: Mapping[Case, Seen], seeds: int, part: float) -> figures.Figure:
    parts = {"all": "", **{name: app.letter for name, app in TABLE1.items()}}
    found = {
        "job run time": [_measured(seen, seeds, mixed(part), cluster.app_time_s(letter)) for letter in parts.values()],
        "map phase": [_measured(seen, seeds, mixed(part), cluster.phase_s("map", letter)) for letter in parts.values()],
        "reduce phase": [
            _measured(seen, seeds, mixed(part), cluster.phase_s("reduce", letter)) for letter in parts.values()
        ],
    }
    paper = figures.Points(label="paper: job 60 %, maps 67 and 72 %", x=(0, 0, 3), y=(60, 67, 72), paper=True)
    job = [interval.mean(seed_gains).value for seed_gains in found["job run time"]]
    return figures.Figure(
        name="Figure 5c",
        title="The mix: 3 Pagerank, 3 Recommender, 8 WordCount",
        panels=(
            figures.Panel(
                title="Mix of Table 1",
                x=figures.Axis(label=""),
                y=IMPROVEMENT,
                marks=(*(_bars(label, values) for label, values in found.items()), paper),
                categories=tuple(parts),
            ),
        ),
        paper_shape="60 % lower job run time; map phases 67 % shorter on average, up to 72 % for Recommender.",
        our_shape="Job run time: "
        + ", ".join(f"{name} {per_cent(g)}" for name, g in zip(parts, job, strict=True))
        + ".",
    )
