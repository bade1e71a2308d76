"""`python -m boathouse_e2e.runs_page`: write the counts of test runs into the pages of docs with tables of them."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import paths, results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

REPORTS = paths.REPOSITORY / "build" / "reports"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A page with a table of runs.

    Attributes:
        reports: The folder of results under `build/reports`.
        whole: Reports that are one row each, with the rows' names.
        by_file: Reports with a row for each file of tests.
    """

    reports: str = "."
    whole: Mapping[str, str] = dataclasses.field(default_factory=dict)
    by_file: tuple[str, ...] = ()


PAGES = {
    "faults": Page(
        whole={
            "unit": "unit, property and wire tests",
            "contract": "contract and fault tests, short",
            "hostile-short": "attacks, short",
            "e2e": "end-to-end, short",
        },
        by_file=(
            *("faults", "faults-at-random", "faults-clusters", "faults-clusters-at-random"),
            *("hostile-long", "e2e-long", "e2e-hadoop", "autoscaling", "e2e-scaling", "soak"),
        ),
    ),
    "clusters": Page(reports="kind", by_file=("e2e",)),
    "kubernetes-versions": Page(reports="kubernetes-1.35", by_file=("e2e",)),
}
"""By the names of the files in docs."""
BEGIN, END = "<!-- runs -->\n", "<!-- /runs -->"


HEAD = """| tests | run | passed | operator killed | minutes of tests | date |
|---|---:|---:|---:|---:|---|
"""


@dataclasses.dataclass(slots=True)
class Row:
    """The counts of some tests.

    Attributes:
        kills: How often they killed the operator; they note it as the property `kills`.
        date: Of their run, YYYY-MM-DD.
    """

    date: str
    tests: int = 0
    passed: int = 0
    kills: int = 0
    seconds: float = 0.0

    def add(self, phases: Sequence[results.Row]) -> None:
        """Count a test with its phases, unless it was skipped."""
        outcomes = {phase.outcome for phase in phases}
        if "skipped" in outcomes:
            return
        self.tests += 1
        self.passed += outcomes == {"passed"}
        self.kills += sum(int(phase.properties.get("kills", 0)) for phase in phases)
        self.seconds += sum(phase.wall_s for phase in phases)

    def line(self, name: str) -> str:
        """Return the row of the table."""
        killed = self.kills or "–"
        return f"| {name} | {self.tests:,} | {self.passed:,} | {killed} | {self.seconds / 60:.1f} | {self.date} |"


def rows(page: Page, reports: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the results that are there, with their names."""
    for report, name in page.whole.items():
        for row in _counted(reports / f"{report}.jsonl", lambda _: "").values():
            yield name, row
    for report in page.by_file:
        counted = _counted(reports / f"{report}.jsonl", lambda test: test.partition("::")[0])
        yield from ((f"`{file}`", row) for file, row in counted.items())


def _counted(report: Path, group: Callable[[str], str]) -> dict[str, Row]:
    tests: dict[str, list[results.Row]] = {}
    for phase in results.read(report):
        if phase.phase != results.SESSION:
            tests.setdefault(phase.test, []).append(phase)
    found: dict[str, Row] = {}
    for test, phases in tests.items():
        found.setdefault(group(test), Row(date=phases[-1].date)).add(phases)
    return found


def written(text: str, page: Page, reports: Path) -> str:
    """Return a page's text with the rows of the reports in its table. Rows of other runs stay, with their dates.

    Raises:
        ValueError: The text has no place for the table, or there is no report.
    """
    head, found, rest = text.partition(BEGIN)
    table, closed, tail = rest.partition(END)
    if not (found and closed):
        raise ValueError("the page has no place for the table of runs")
    new = {name: row.line(name) for name, row in rows(page, reports / page.reports)}
    if not new:
        raise ValueError(f"{reports / page.reports} has no report of the page: run its tests")
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()[2:]} | new
    order = list(page.whole.values())
    ordered = sorted(lines, key=lambda name: (order.index(name) if name in order else len(order), name))
    return f"{head}{BEGIN}{HEAD}{''.join(f'{lines[name]}{chr(10)}' for name in ordered)}{END}{tail}"


def path_of(name: str) -> Path:
    """Return where a page is."""
    return paths.REPOSITORY / "docs" / f"{name}.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write pages."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.runs_page", description=__doc__)
    parser.add_argument("pages", nargs="+", choices=sorted(PAGES), help="names of pages")
    parser.add_argument("--reports", type=Path, default=REPORTS, help="folder of results (default: build/reports)")
    given = parser.parse_args(arguments)
    for name in given.pages:
        try:
            text = written(path_of(name).read_text(), PAGES[name], given.reports)
        except ValueError as error:
            parser.error(str(error))
        path_of(name).write_text(text)


if __name__ == "__main__":
    main()
