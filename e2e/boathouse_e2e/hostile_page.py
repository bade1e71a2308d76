"""`python -m boathouse_e2e.hostile_page`: write what `make test-hostile` measured into docs/security.md."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse_e2e import paths

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = paths.REPOSITORY / "docs" / "security.md"
REPORT = paths.REPOSITORY / "build" / "reports" / "hostile.json"
ATTACKS = {
    "attack": "attack",
    "writes": "writes",
    "events": "events",
    "refused_creates": "refused creates",
    "token_reviews": "TokenReviews",
    "lease_gap_s": "longest gap between renewals [s]",
    "memory_mib": "peak memory [MiB]",
}
PLACEMENT = {
    "placement": "kind of attack",
    "pairs": "pairs",
    "alone_s": "without attack [s]",
    "beside_s": "during attack [s]",
}


def table(columns: dict[str, str], rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a Markdown table; a gap of 0 s means that no two renewals were seen."""
    lines = [f"| {' | '.join(columns.values())} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(_cell(row.get(key)) for key in columns)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if value else "-"
    return "" if value is None else str(value)


def written(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the page with its tables replaced.

    Raises:
        ValueError: The page has no place for a table.
    """
    for name, columns in (("attacks", ATTACKS), ("placement", PLACEMENT)):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        head, found, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"the page has no place for the table of {name}")
        key = next(iter(columns))
        page = f"{head}{begin}{table(columns, [row for row in rows if key in row])}\n{end}{tail}"
    return page


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page from the reports of one or several runs."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.hostile_page", description=__doc__)
    parser.add_argument("reports", nargs="*", type=Path, default=[REPORT], help="build/reports/hostile.json of runs")
    rows = [row for path in parser.parse_args(arguments).reports for row in json.loads(path.read_text())]
    PAGE.write_text(written(PAGE.read_text(), rows))


if __name__ == "__main__":
    main()
