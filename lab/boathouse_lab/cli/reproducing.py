"""Run the studies of `boathouse reproduce`, and print their claims."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich import console, progress

from boathouse_cli import options
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_lab.cli import text
from boathouse_lab.reproduce import studies, study

_WIDTH = 180  # columns of output that is not a terminal
_LOG_EVERY_S = 10.0  # interval of progress lines where stderr is not a terminal


def show(
    paper: str, *, quick: bool, as_json: bool, report: Path | None, seeds: int | None, workers: int | None
) -> None:
    """Run the studies of a paper, and print the claims with our results.

    Raises:
        CommandError: There is no such paper, a library is missing, or the report cannot be written.
    """
    try:
        chosen = studies.chosen(paper)
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    write = _writer(report)
    scale = study.Scale.of(study.Form.QUICK if quick else study.Form.FULL, seeds)
    with progress_of() as shown, study.Runner(workers=workers, progress=shown) as runner:
        found = [(one, one.run(scale, runner)) for one in chosen]
    claims = [claim for _, findings in found for claim in findings.claims]
    if write is not None:
        write(found, scale)
    if as_json:
        options.print_data([claim.as_json() for claim in claims], options.Format.JSON)
        return
    screen = console.Console(width=None if sys.stdout.isatty() else _WIDTH)
    for one, findings in found:
        screen.print(f"\n[bold]{one.title}[/bold]", highlight=False)
        screen.print(text.claims(findings.claims), highlight=False)
    screen.print(f"\n{sum(claim.holds for claim in claims)} of {len(claims)} claims hold", highlight=False)
    if report is not None:
        print(f"wrote {report}", file=sys.stderr)


Found = list[tuple[study.Study, study.Findings]]


def _writer(report: Path | None) -> Callable[[Found, study.Scale], None] | None:
    """Return a function that writes the report. Raises before the simulations if the report cannot be written."""
    if report is None:
        return None
    from boathouse_lab.cli import report as html_report

    try:
        report.touch()
    except OSError as error:
        raise CommandError(f"{report} cannot be written: {error.strerror}", ExitCode.USAGE) from None

    def write(found: Found, scale: study.Scale) -> None:
        parts = [html_report.Part(paper=one.paper, title=one.title, findings=all_) for one, all_ in found]
        report.write_text(html_report.to_html(parts, scale))

    return write


@contextlib.contextmanager
def progress_of() -> Iterator[study.Progress]:
    """Show progress: a bar on a terminal, otherwise a line every ten seconds."""
    errors = console.Console(stderr=True)
    if not errors.is_terminal:
        yield _Lines(time.monotonic)
        return
    columns = (
        *progress.Progress.get_default_columns()[:-1],
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=errors, transient=True) as bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: progress.Progress) -> None:
        self._bar = bar
        self._shown: progress.TaskID | None = None

    def begin(self, what: str, total: int) -> None:
        self._shown = self._bar.add_task(what, total=total)

    def advance(self) -> None:
        if self._shown is not None:
            self._bar.advance(self._shown)


class _Lines:
    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._what, self._total, self._done = "", 0, 0
        self._last_s = clock_s()

    def begin(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._say()

    def advance(self) -> None:
        self._done += 1
        if self._done == self._total or self._clock_s() - self._last_s >= _LOG_EVERY_S:
            self._say()

    def _say(self) -> None:
        self._last_s = self._clock_s()
        print(f"{self._what}: {self._done} of {self._total} simulations", file=sys.stderr, flush=True)
