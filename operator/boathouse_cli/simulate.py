"""`boathouse simulate`: run a trace or workload under each of several profiles."""

from pathlib import Path
from typing import Annotated, Final

import typer

from boathouse_cli.errors import CommandError, ExitCode

PROFILES: Final = (
    *("boathouse", "capacity", "delay", "fair", "fifo", "fspy", "iao", "ikayak", "ila", "ila-static-1", "ila-static-2"),
    *("ila-static-4", "ila-static-6", "ila-static-8", "koala", "lao", "late", "meganode", "non-spread-out"),
    *("spread-out", "srjf", "yarn", "yarn-client", "yarn-cluster", "yarn-me", "yarn-no-reservations"),
)
"""Those of the simulator, which takes longer to import than `--help` may take; a test compares."""
ORDERS: Final = ("fifo", "ps", "srpt", "fsp")


def simulate(  # noqa: PLR0917  each is an option of the command
    file: Annotated[
        Path, typer.Argument(help="SWIM trace (tab-separated), or JSON in the format neutral-cluster-workload/1.")
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", hidden=True)] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Profile; repeat it or separate by commas for several. {', '.join(PROFILES)}; with "
            f"--fluid: {', '.join(ORDERS)}. Default: fair, with --fluid fsp."
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
    if use_fluid and (nodes is not None or heartbeat is not None):
        raise CommandError("--fluid excludes --nodes and --heartbeat: omit them", ExitCode.USAGE)
    if load is not None and not use_fluid:
        raise CommandError("--load requires --fluid: add --fluid or omit --load", ExitCode.USAGE)
    from boathouse_cli import simulating

    names = [*(profile or []), *(more or [])]
    if use_fluid:
        simulating.show_fluid(file, names, load=0.9 if load is None else load, as_json=as_json)
    else:
        simulating.show(file, names, nodes=nodes, heartbeat_s=heartbeat, seed=seed, as_json=as_json)
