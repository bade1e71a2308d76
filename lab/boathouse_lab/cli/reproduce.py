"""`boathouse reproduce`: compare the papers' claims with our results."""

from pathlib import Path
from typing import Annotated

import typer

from boathouse_lab.reproduce import studies


def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="PAPER", help=f"Paper: {', '.join([*studies.names(), studies.ALL])}.")
    ] = studies.ALL,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use smaller sizes and 3 seeds: takes minutes instead of an hour.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write an HTML page with all claims and figures.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Independent runs of random workloads. Default: 10, with --quick 3.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; they do not change the results. Default: one per core.")
    ] = None,
) -> None:
    """Run the papers' experiments. Prints each claim with the paper's value, ours, the baseline's and a verdict.

    A claim that does not hold is a result, not an error: the exit code is 0. Progress goes to stderr.
    """
    from boathouse_lab.cli import reproducing

    reproducing.show(paper, quick=quick, as_json=as_json, report=report, seeds=seeds, workers=workers)
