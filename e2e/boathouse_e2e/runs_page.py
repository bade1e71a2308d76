"""`python -m boathouse_e2e.runs_page`: write the counts of test runs into the pages of docs with tables of them."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from boathouse_e2e import paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REPORTS = paths.REPOSITORY / "build" / "reports"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A page with a table of runs.

    Attributes:
        reports: The folder of pytest's reports under `build/reports`.
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
        by_file=("campaigns", "attacks", "e2e-long"),
    ),
    "clusters": Page(reports="kind", by_file=("e2e",)),
    "kubernetes-versions": Page(reports="kubernetes-1.35", by_file=("e2e",)),
}
"""By the names of the files in docs."""
BEGIN, END = "<!-- runs -->\n", "<!-- /runs -->"


@dataclasses.dataclass(slots=True)
class Row:
    """The counts of some tests.

    Attributes:
        kills: How often they killed the operator; they note it as the property `kills`.
    """

    tests: int = 0
    passed: int = 0
    kills: int = 0
    seconds: float = 0.0

    def add(self, case: ET.Element) -> None:
        """Count a test, unless it was skipped."""
        if case.find("skipped") is not None:
            return
        self.tests += 1
        self.passed += case.find("failure") is None and case.find("error") is None
        self.kills += sum(int(one.get("value", 0)) for one in case.iter("property") if one.get("name") == "kills")
        self.seconds += float(case.get("time", 0))

    def cells(self, name: str, *, kills: bool) -> str:
        """Return the row of the table, with or without the column of kills."""
        killed = f" {self.kills or '–'} |" if kills else ""
        return f"| {name} | {self.tests:,} | {self.passed:,} |{killed} {self.seconds / 60:.1f} |"


def rows(page: Page, reports: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows with their names.

    Raises:
        OSError: A report is missing: the tests have not run to their end.
    """
    for report, name in page.whole.items():
        whole = Row()
        for case in _cases(reports / f"{report}.xml"):
            whole.add(case)
        yield name, whole
    by_file: dict[str, Row] = {}
    for report in page.by_file:
        for case in _cases(reports / f"{report}.xml"):
            by_file.setdefault(f"`{case.get('file', '')}`", Row()).add(case)
    yield from sorted(by_file.items())


def _cases(report: Path) -> Iterator[ET.Element]:
    return ET.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it here


def written(text: str, page: Page, reports: Path) -> str:
    """Return a page's text with its table replaced.

    Raises:
        ValueError: The text has no place for the table.
    """
    head, found, rest = text.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not (found and closed):
        raise ValueError("the page has no place for the table of runs")
    found_rows = list(rows(page, reports / page.reports))
    kills = any(row.kills for _, row in found_rows)
    lines = [f"| tests | run | passed |{' operator killed |' if kills else ''} minutes of tests |"]
    lines += [f"|---|---:|---:|{'---:|' if kills else ''}---:|"]
    lines += [row.cells(name, kills=kills) for name, row in found_rows]
    return f"{head}{BEGIN}{chr(10).join(lines)}\n{END}{tail}"


def path_of(name: str) -> Path:
    """Return where a page is."""
    return paths.REPOSITORY / "docs" / f"{name}.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write pages."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.runs_page", description=__doc__)
    parser.add_argument("pages", nargs="+", choices=sorted(PAGES), help="names of pages")
    parser.add_argument("--reports", type=Path, default=REPORTS, help="pytest's reports (default: build/reports)")
    given = parser.parse_args(arguments)
    for name in given.pages:
        path_of(name).write_text(written(path_of(name).read_text(), PAGES[name], given.reports))


if __name__ == "__main__":
    main()
