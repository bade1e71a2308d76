"""`python -m boathouse_lab.reproduce.pages`: write what the studies found into the pages of docs/policies.

Each study's run is stored in docs/policies/figures; the tables of the pages are written from these files alone.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse_lab.reproduce import studies
from boathouse_lab.reproduce.claim import Kind, Relation
from boathouse_lab.reproduce.stored import Stored
from boathouse_lab.reproduce.study import Form, Runner, Scale
from boathouse_lab.reproduce.values import asked, class_of, number, span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "policies"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"
_COLUMNS = ("figure", "claim", "class", "paper", "ours (95 %)", "holds")


def table(run: Stored) -> str:
    """Return a run's summary and rows in Markdown."""
    lines = [*_summary(run), "", f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    lines += [f"| {' | '.join(_cells(row))} |" for row in run.rows]
    return "\n".join(lines)


def _summary(run: Stored) -> Sequence[str]:
    held = Counter(row["kind"] for row in run.rows if row["holds"])
    total = Counter(row["kind"] for row in run.rows)
    by_kind = ", ".join(
        f"{class_of(kind, calibrated=False)} {held[kind]} of {total[kind]}" for kind in Kind if total[kind]
    )
    calibrated = [row for row in run.rows if row["calibrated"]]
    first = f"{held.total()} of {len(run.rows)} rows hold ({by_kind})."
    if calibrated:
        met = sum(row["holds"] for row in calibrated)
        first += f" The setting was calibrated on {len(calibrated)} of them, of which {met} hold."
    if run.text:
        first += f" Lines are those of `{run.text}`, a text of the paper that is not part of this repository."
    first += f" Source: {run.source}, {run.seeds} seeds."
    return [
        first,
        "",
        f"All fields: [figures/{run.study}.json](figures/{run.study}.json).",
    ]


def _cells(row: Mapping[str, Any]) -> Sequence[str]:
    unit, interval, paper = row["unit"], row["interval"], row["paper_value"]
    spread = f" ({span(tuple(interval), unit)})" if interval and interval[0] != interval[1] else ""
    value = f"{number(row['value'], unit)}{spread}" if row["value"] is not None else "–"
    said = f"<br>“{row['sentence']}” (line {row['line']})" if row["sentence"] else ""
    cells = (
        row["figure"].removeprefix("Figure ").removeprefix("Figures "),
        f"{row['claim']}{said}<br>`{row['id']}`",
        class_of(Kind(row["kind"]), calibrated=row["calibrated"]),
        asked(Relation(row["relation"]), tuple(paper) if isinstance(paper, list) else paper, unit, row["tolerance"]),
        value,
        "yes" if row["holds"] else "no",
    )
    return [cell.replace("|", "\\|") for cell in cells]


def written(page: str, run: Stored) -> str:
    """Return the page with its table replaced.

    Raises:
        ValueError: The page has no place for a table.
    """
    head, found, rest = page.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"the page of {run.study} has no place for a table: {BEGIN.strip()} and {END}")
    return f"{head}{BEGIN}{table(run)}\n{END}{tail}"


def page_of(study: str) -> Path:
    """Return the path of a study's page."""
    return FOLDER / f"{study}.md"


def stored() -> list[Stored]:
    """Return the runs that docs/policies/figures holds."""
    return [Stored.parsed(file.read_text(encoding="utf-8")) for file in sorted((FOLDER / "figures").glob("*.json"))]


def stale() -> list[str]:
    """Return the studies whose page does not show the stored run."""
    return [run.study for run in stored() if _page(run) != page_of(run.study).read_text(encoding="utf-8")]


def _page(run: Stored) -> str:
    return written(page_of(run.study).read_text(encoding="utf-8"), run)


def run_in_full(study: str, runner: Runner) -> None:
    """Run a study's full form and store what it found."""
    (chosen,) = studies.chosen(study)
    scale = Scale.of(Form.FULL)
    found = Stored.of(chosen, scale, chosen.run(scale, runner).claims)
    (FOLDER / "figures" / f"{study}.json").write_text(found.as_text(), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run studies if asked to, then write the pages, or check that they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_lab.reproduce.pages", description=__doc__)
    parser.add_argument("--run", nargs="+", choices=studies.names(), default=[], help="studies to run in full first")
    parser.add_argument("--workers", type=int, help="processes of a run; default: one a core")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs from its figures")
    chosen = parser.parse_args(arguments)
    with Runner(workers=chosen.workers) as runner:
        for study in chosen.run:
            run_in_full(study, runner)
    if not chosen.check:
        for run in stored():
            page_of(run.study).write_text(_page(run), encoding="utf-8")
    elif found := stale():
        parser.exit(1, f"pages that differ from their figures: {', '.join(found)}. Run `make pages`.\n")


if __name__ == "__main__":
    main()
