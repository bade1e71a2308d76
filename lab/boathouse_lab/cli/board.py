"""`boathouse board`: what profiles are worth on many workloads."""

from pathlib import Path
from typing import Annotated

import typer


def board(  # noqa: PLR0917 - typer reads them as options
    quick: Annotated[
        bool, typer.Option("--quick", help="6 workloads, 4 columns and 2 seeds: takes minutes instead of a day.")
    ] = False,
    rows: Annotated[
        list[str] | None, typer.Option("--row", metavar="WORKLOAD", help="Only this workload; can be repeated.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="PROFILE", help="Only fair and this column; can be repeated."),
    ] = None,
    tuning: Annotated[
        bool, typer.Option("--tuning", help="Use odd seeds, for tuning. Default: even seeds, which are reported.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Workloads drawn. Default: 10, with --quick 2.")] = None,
    worlds: Annotated[
        int | None, typer.Option(min=1, help="Runs of a drawn workload. Default: 4, with --quick 1.")
    ] = None,
    results: Annotated[
        Path, typer.Option(metavar="FILE", help="File of results; what is in it already is not simulated again.")
    ] = Path("board.jsonl"),
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Write the tables into this page, and the picture beside it."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes. Default: one per core.")] = None,
) -> None:
    """Compare profiles on many workloads: mean job times over those of fair, with their 95 % intervals.

    A stopped run continues where it was, unless the simulator or the policies have changed since. Progress goes to
    stderr.
    """
    from boathouse_cli.errors import CommandError, ExitCode
    from boathouse_lab.board.plan import Plan
    from boathouse_lab.cli import showing_board

    try:
        plan = Plan.of(
            quick=quick,
            tuning=tuning,
            seeds=seeds,
            worlds=worlds,
            chosen_rows=rows or (),
            chosen_columns=columns or (),
        )
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    showing_board.show(plan, results=results, page=page, jobs=jobs)
