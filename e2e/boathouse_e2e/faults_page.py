"""`python -m boathouse_e2e.faults_page`: write the counts of the last `make test-all` into docs/faults.md."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from boathouse_e2e import paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = paths.REPOSITORY / "docs" / "faults.md"
REPORTS = paths.REPOSITORY / "build" / "reports"
WHOLE = {
    "unit": "unit, property and wire tests",
    "contract": "contract and fault tests, short",
    "hostile-short": "attacks, short",
    "e2e": "end-to-end, short",
}
"""Reports of `make test`, each of which is one row."""
CAMPAIGNS = ("campaigns", "attacks", "e2e-long")
"""Reports with a row for each file of tests."""
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

    def cells(self, name: str) -> str:
        """Return the row of the table."""
        return f"| {name} | {self.tests:,} | {self.passed:,} | {self.kills or '–'} | {self.seconds / 60:.1f} |"


def rows(reports: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows with their names.

    Raises:
        OSError: A report is missing: `make test-all` has not run to its end.
    """
    for report, name in WHOLE.items():
        whole = Row()
        for case in _cases(reports / f"{report}.xml"):
            whole.add(case)
        yield name, whole
    by_file: dict[str, Row] = {}
    for report in CAMPAIGNS:
        for case in _cases(reports / f"{report}.xml"):
            by_file.setdefault(f"`{case.get('file', '')}`", Row()).add(case)
    yield from sorted(by_file.items())


def _cases(report: Path) -> Iterator[ET.Element]:
    return ET.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it here


def written(page: str, reports: Path) -> str:
    """Return the page with its table replaced.

    Raises:
        ValueError: The page has no place for the table.
    """
    head, found, rest = page.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not (found and closed):
        raise ValueError("the page has no place for the table of runs")
    lines = ["| tests | run | passed | operator killed | minutes of tests |", "|---|---:|---:|---:|---:|"]
    lines += [row.cells(name) for name, row in rows(reports)]
    return f"{head}{BEGIN}{chr(10).join(lines)}\n{END}{tail}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.faults_page", description=__doc__)
    parser.add_argument("reports", nargs="?", type=Path, default=REPORTS, help="folder with the reports of pytest")
    PAGE.write_text(written(PAGE.read_text(), parser.parse_args(arguments).reports))


if __name__ == "__main__":
    main()
