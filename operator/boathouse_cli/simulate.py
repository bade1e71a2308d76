"""`boathouse simulate`: run a trace or workload under each of several profiles."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich import console, progress

from boathouse_cli import options, simulate_tables
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_sim import fluid, ground, neutral, results, simulation, swim, swim_model
from boathouse_sim.workload import Workload, WorkloadError

_EVERY = 512  # events between two progress checks
_WIDTH = 120  # columns of output that is not a terminal
_LOG_EVERY_S = 10.0  # interval of progress lines where stderr is not a terminal

Ticker = Callable[[ground.AnyGround], None]


def simulate(  # noqa: PLR0917  each is an option of the command
    file: Annotated[
        Path, typer.Argument(help="SWIM trace (tab-separated), or JSON in the format neutral-cluster-workload/1.")
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", hidden=True)] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Profile; repeat it or separate by commas for several. {', '.join(simulation.names())}; with "
            f"--fluid: {', '.join(fluid.Order)}. Default: fair, with --fluid fsp."
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of nodes. Default: that of the workload.")] = None,
    heartbeat: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Allocate only at node heartbeats, with YARN's protocol and masters."),
    ] = None,
    use_fluid: Annotated[
        bool,
        typer.Option("--fluid", help="Simulate a SWIM trace on one fluid resource with exact sizes, like schedsim."),
    ] = False,
    load: Annotated[float | None, typer.Option(help="With --fluid: ratio of work to time. Default: 0.9.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate scheduling policies on a trace or workload. Prints job times, makespan and utilization."""
    names = _names([*(profile or []), *(more or [])], use_fluid=use_fluid)
    if use_fluid and (nodes is not None or heartbeat is not None):
        raise CommandError("--fluid excludes --nodes and --heartbeat: omit them", ExitCode.USAGE)
    if load is not None and not use_fluid:
        raise CommandError("--load requires --fluid: add --fluid or omit --load", ExitCode.USAGE)
    try:
        if use_fluid:
            title, outcomes = file.stem, _fluid(_swim(file), names, 0.9 if load is None else load)
            assumptions: dict[str, float | str] = {"load": 0.9 if load is None else load}
        else:
            workload = _workload(file)
            workload = workload if nodes is None else workload.on(nodes)
            title, assumptions = workload.name, dict(workload.assumptions)
            outcomes = {name: _run(workload, name, heartbeat_s=heartbeat, seed=seed) for name in names}
    except (ValueError, ground.StuckError) as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
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
    screen.print(simulate_tables.outcomes(title, outcomes))
    if assumptions:
        screen.print(simulate_tables.assumptions(assumptions), style="dim", highlight=False)


def _names(asked: Sequence[str], *, use_fluid: bool) -> list[str]:
    names = [name for words in asked for name in words.split(",") if name]
    known = tuple(fluid.Order) if use_fluid else simulation.names()
    for name in names:
        if name not in known:
            kind = "order of --fluid" if use_fluid else "profile"
            raise CommandError(f'"{name}" is not a known {kind}: choose from {", ".join(known)}', ExitCode.USAGE)
    return list(dict.fromkeys(names)) or ["fsp" if use_fluid else "fair"]


def _workload(file: Path) -> Workload:
    if not _is_json(file):
        return swim_model.workload(file.stem, _swim(file), swim_model.SwimModel.load())
    return neutral.read_neutral(file)


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
        raise CommandError(f"{file} cannot be read: {error.strerror}", ExitCode.NOT_FOUND) from None


def _fluid(jobs: Sequence[swim.SwimJob], names: Sequence[str], load: float) -> dict[str, results.Outcome]:
    arrival_s, size_s = np.array([job.submit_s for job in jobs]), fluid.sizes_s(jobs, load)
    outcomes = {}
    for name in names:
        started_s = time.process_time()
        end_s = fluid.finish_s(fluid.Order(name), arrival_s, size_s)
        cpu_s = time.process_time() - started_s
        outcomes[name] = results.of_fluid(arrival_s, size_s, end_s, cpu_s=cpu_s)
    return outcomes


def _run(workload: Workload, name: str, *, heartbeat_s: float | None, seed: int) -> results.Outcome:
    total = workload.tasks
    errors = console.Console(stderr=True)
    if not errors.is_terminal:
        return simulation.simulate(
            workload, name, heartbeat_s=heartbeat_s, seed=seed, watch=_logged(name, total, time.monotonic)
        )
    with progress.Progress(console=errors, transient=True) as bar:
        shown = bar.add_task(name, total=total)
        watch = _each(lambda seen: bar.update(shown, completed=seen.tally.tasks))
        return simulation.simulate(workload, name, heartbeat_s=heartbeat_s, seed=seed, watch=watch)


def _logged(name: str, total: int, clock_s: Callable[[], float]) -> Ticker:
    """Return a callback that prints progress to stderr every ten seconds."""
    last_s = clock_s()

    def log(world: ground.AnyGround) -> None:
        nonlocal last_s
        if clock_s() - last_s >= _LOG_EVERY_S:
            last_s = clock_s()
            print(f"{name}: {world.tally.tasks} of {total} tasks started", file=sys.stderr, flush=True)

    return _each(log)


def _each(callback: Ticker) -> Ticker:
    """Return a ticker that calls the callback for every `_EVERY`th event."""
    counted = 0

    def count(world: ground.AnyGround) -> None:
        nonlocal counted
        counted += 1
        if not counted % _EVERY:
            callback(world)

    return count
