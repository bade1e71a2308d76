"""Run the simulations of `boathouse simulate`, and print their results."""

import contextlib
import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich import box, console, progress, table

from boathouse_cli import options
from boathouse_cli.errors import UsageError
from boathouse_sim import base_world, fluid, neutral, results, simulation, swim
from boathouse_sim.workload import Workload, WorkloadError


def _table(title: str, found: Mapping[str, results.Outcome]) -> table.Table:
    first = next(iter(found.values()))
    has_gangs = any(outcome.gang_wait_s is not None for outcome in found.values())
    # How long applications that start whole waited, and the CPU that was kept for them and free
    heads = (
        *("MEAN", "MEDIAN", "P95", "MAKESPAN", "MEMORY", "CPU", "ELASTIC", "LOCAL", "SUSPENDED"),
        *(("GANGS WAIT", "KEPT IDLE") if has_gangs else ()),
        "EVENTS/S",
    )
    drawn = table.Table(
        table.Column("PROFILE", no_wrap=True),
        *(table.Column(head, justify="right", no_wrap=True) for head in heads),
        title=f"{title}: {first.jobs:,} jobs, {first.tasks:,} tasks; times in seconds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name, outcome in found.items():
        drawn.add_row(
            name,
            f"{outcome.mean_job_time_s:,.1f}",
            f"{outcome.median_job_time_s:,.1f}",
            f"{outcome.p95_job_time_s:,.1f}",
            f"{outcome.makespan_s:,.0f}",
            "" if outcome.memory_utilisation is None else f"{outcome.memory_utilisation:.1%}",
            f"{outcome.cpu_utilisation:.1%}",
            f"{outcome.elastic_tasks:,}",
            "" if outcome.node_local_share is None else f"{outcome.node_local_share:.1%}",
            f"{outcome.suspensions:,}" if outcome.suspensions else "",
            *((f"{outcome.gang_wait_s or 0.0:,.1f}", f"{outcome.kept_idle_share:.1%}") if has_gangs else ()),
            f"{outcome.events / outcome.cpu_s:,.0f}" if outcome.cpu_s > 0 else "",
        )
    return drawn


_EVERY = 512  # events between two progress checks
_WIDTH = 120  # columns of output that is not a terminal
_LOG_EVERY_S = 10.0  # interval of progress lines where stderr is not a terminal


def show(
    file: Path, asked: Sequence[str], *, nodes: int | None, heartbeat_s: float | None, seed: int, as_json: bool
) -> None:
    """Simulate a workload under each profile, and print the results."""
    names = _names(asked, use_fluid=False)
    with _explained():
        if _is_json(file):
            workload = neutral.read_neutral(file)
        else:
            workload = swim.workload(file.stem, _swim(file), swim.SwimModel.load())
        workload = workload if nodes is None else workload.on(nodes)
        outcomes = {name: _run(workload, name, heartbeat_s=heartbeat_s, seed=seed) for name in names}
    _print(workload.name, outcomes, dict(workload.assumptions), as_json=as_json)


def show_fluid(file: Path, asked: Sequence[str], *, load: float, as_json: bool) -> None:
    """Simulate a trace on a fluid resource under each order, and print the results."""
    names = _names(asked, use_fluid=True)
    with _explained():
        outcomes = _fluid(_swim(file), names, load)
    _print(file.stem, outcomes, {"load": load}, as_json=as_json)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (ValueError, base_world.StuckError) as error:
        raise UsageError(str(error)) from None


def _print(
    title: str, outcomes: dict[str, results.Outcome], assumptions: dict[str, float | str], *, as_json: bool
) -> None:
    if as_json:
        printed: dict[str, object] = {
            "workload": title,
            "profiles": {name: outcome.as_json() for name, outcome in outcomes.items()},
        }
        if assumptions:
            printed["assumptions"] = assumptions
        options.print_data(printed, options.Format.JSON)
        return
    screen = console.Console(width=None if sys.stdout.isatty() else _WIDTH)
    screen.print(_table(title, outcomes))
    if assumptions:
        line = ", ".join(f"{name} {value}" for name, value in assumptions.items())
        screen.print(f"assumed: {line}", style="dim", highlight=False)


def _names(asked: Sequence[str], *, use_fluid: bool) -> list[str]:
    names = [name for words in asked for name in words.split(",") if name]
    known = tuple(fluid.Order) if use_fluid else simulation.names()
    for name in names:
        if name not in known:
            kind = "order of --fluid" if use_fluid else "profile"
            raise UsageError(f'"{name}" is not a known {kind}: choose from {", ".join(known)}')
    return list(dict.fromkeys(names)) or ["fsp" if use_fluid else "fair"]


def _swim(file: Path) -> list[swim.SwimJob]:
    if _is_json(file):
        raise WorkloadError(f"{file.name} is JSON: --fluid takes a SWIM trace, tab-separated without a header")
    try:
        return swim.read_swim(file)
    except UnicodeDecodeError:
        raise WorkloadError(f"{file.name} is not a text file: pass a SWIM trace or a JSON workload") from None


def _is_json(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(64).lstrip().startswith((b"{", b"["))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _fluid(jobs: Sequence[swim.SwimJob], names: Sequence[str], load: float) -> dict[str, results.Outcome]:
    arrival_s, size_s = np.array([job.submit_s for job in jobs]), fluid.sizes_s(jobs, load)
    outcomes = {}
    for name in names:
        started_s = time.process_time()
        end_s = fluid.finish_s(fluid.Order(name), arrival_s, size_s)
        outcomes[name] = results.of_fluid(arrival_s, size_s, end_s, cpu_s=time.process_time() - started_s)
    return outcomes


def _run(workload: Workload, name: str, *, heartbeat_s: float | None, seed: int) -> results.Outcome:
    """Simulate with a bar of progress, or lines of it every ten seconds where stderr is not a terminal."""
    errors, total = console.Console(stderr=True), workload.tasks
    bar = progress.Progress(console=errors, transient=True)
    shown, events, last_s = bar.add_task(name, total=total), itertools.count(1), time.monotonic()

    def watch(world: base_world.AnyWorld) -> None:
        nonlocal last_s
        if next(events) % _EVERY:
            return
        if errors.is_terminal:
            bar.update(shown, completed=world.tally.tasks)
        elif time.monotonic() - last_s >= _LOG_EVERY_S:
            last_s = time.monotonic()
            print(f"{name}: {world.tally.tasks} of {total} tasks started", file=sys.stderr, flush=True)

    with bar if errors.is_terminal else contextlib.nullcontext():
        return simulation.simulate(workload, name, heartbeat_s=heartbeat_s, seed=seed, watch=watch)
