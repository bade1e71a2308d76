"""Run the board's simulations, print its tables, and write its page."""

import sys
from pathlib import Path

from boathouse_cli.errors import CommandError, ExitCode
from boathouse_lab.board import page as board_page, results as board_results, summary
from boathouse_lab.board.plan import Plan
from boathouse_lab.board.summary import Cell
from boathouse_lab.cli import reproducing
from boathouse_lab.reproduce import study


def show(plan: Plan, *, results: Path, page: Path | None, jobs: int | None) -> None:
    """Run what is missing, and show it.

    Raises:
        CommandError: The file of results or the page cannot be read or written, or the page has no place for tables.
    """
    try:
        if page is not None:
            board_page.written(page.read_text(encoding="utf-8"), (), "")
        known = board_results.Results(results, board_results.sources())
        wanted = plan.cases()
        have = sum(case in known.found for case in wanted)
        print(f"{len(wanted)} simulations, of which {have} are in {results}", file=sys.stderr, flush=True)
        with reproducing.progress_of() as shown, study.Runner(workers=jobs, progress=shown) as runner:
            cells = summary.cells(plan.carry_out(known, runner))
        print(board_page.tables(cells))
        if page is not None:
            _write(page, cells, _source(plan))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}", ExitCode.USAGE) from None
    except ValueError as error:
        raise CommandError(f"{page}: {error}", ExitCode.USAGE) from None


def _write(page: Path, cells: tuple[Cell, ...], source: str) -> None:
    from boathouse_lab.cli import drawing

    page.write_text(board_page.written(page.read_text(encoding="utf-8"), cells, source), encoding="utf-8")
    picture = page.with_suffix(".svg")
    picture.write_text(drawing.to_svg(board_page.picture(cells)), encoding="utf-8")
    print(f"wrote {page} and {picture}", file=sys.stderr)


def _source(plan: Plan) -> str:
    seeds = ", ".join(map(str, plan.seeds))
    size = f"{len(plan.rows)} workloads, {len(plan.columns)} columns"
    worlds = "1 world" if plan.worlds == 1 else f"{plan.worlds} worlds"
    return f"`boathouse board`, {size}, {worlds} of each of the seeds {seeds}"
