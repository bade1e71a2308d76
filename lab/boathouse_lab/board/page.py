"""The board as a table in Markdown between two marks of a page, and as one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse_lab.board import columns, rows, summary
from boathouse_lab.reproduce import figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.board.summary import Cell, Ratio

BEGIN: Final = "<!-- board -->\n"
END: Final = "<!-- /board -->"
_SHOWN: Final[tuple[str, ...]] = (columns.KUBE_SCHEDULER, columns.BOATHOUSE, columns.NEAR_OPTIMAL)
_IN_A_PANEL: Final = 4
_ABOVE: Final = 1.2
"""Intervals of few seeds reach far above all means, and end at the picture's edge."""


def shown(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that are shown: those that know all alone are one, and that one only where it is a yardstick."""
    hidden = {column.name for column in columns.COLUMNS if column.knows_all}
    return [
        cell
        for cell in cells
        if cell.column not in hidden and (cell.column != columns.NEAR_OPTIMAL or summary.is_yardstick(cell))
    ]


def tables(cells: Sequence[Cell]) -> str:
    """Return the tables: means over fair of all columns, then what fair and the profile boathouse take."""
    found = shown(cells)
    by_cell = {(cell.row, cell.column): cell for cell in found}
    names = list(dict.fromkeys(cell.column for cell in found if cell.column != columns.FAIR))
    names.sort(key=[*columns.BY_NAME, columns.NEAR_OPTIMAL].index)
    picked = [row for row in rows.ROWS if (row.name, columns.FAIR) in by_cell]
    seeds = max((cell.seeds for cell in found), default=0)
    lines = [
        f"Mean job time over that of fair, {seeds} seeds, with 95 % intervals.",
        "",
        f"| workload | fair | {' | '.join(f'{name} / fair' for name in names)} |",
        "|" + "---|" * (len(names) + 2),
    ]
    for row in picked:
        fair = by_cell[row.name, columns.FAIR]
        ratios = [_of(by_cell.get((row.name, name)), "mean") for name in names]
        lines.append(f"| {row.title} (`{row.name}`) | {fair.mean_s:.1f} s | {' | '.join(ratios)} |")
    if any((row.name, columns.BOATHOUSE) in by_cell for row in picked):
        lines += ["", *_by_measure(by_cell, picked)]
    compared = [name for name in names if name.startswith("without ") or name == columns.NEAR_OPTIMAL]
    lines += ["", *_by_part(by_cell, picked, compared)] if compared else []
    return "\n".join(lines)


def _by_measure(by_cell: Mapping[tuple[str, str], Cell], picked: Sequence[rows.Row]) -> Sequence[str]:
    measures = [name for name in summary.MEASURES if name != "mean"]
    lines = [
        "The profile boathouse over fair, and the mean time above that of each job alone.",
        "",
        f"| workload | {' | '.join(measures)} | above alone: fair | boathouse |",
        "|" + "---|" * (len(measures) + 3),
    ]
    for row in picked:
        fair, ours = by_cell[row.name, columns.FAIR], by_cell.get((row.name, columns.BOATHOUSE))
        if ours is not None:
            ratios = [_of(ours, measure) for measure in measures]
            lines.append(f"| `{row.name}` | {' | '.join(ratios)} | {fair.waited_s:.1f} s | {ours.waited_s:.1f} s |")
    return lines


def _by_part(
    by_cell: Mapping[tuple[str, str], Cell], picked: Sequence[rows.Row], compared: Sequence[str]
) -> Sequence[str]:
    lines = [
        "The mean of boathouse over its own without a part (above 1, that part does harm), and over near-optimal.",
        "",
        f"| workload | {' | '.join(f'over {name}' for name in compared)} |",
        "|" + "---|" * (len(compared) + 1),
    ]
    for row in picked:
        cells = [by_cell.get((row.name, name)) for name in compared]
        ratios = [_text(None if cell is None else cell.of_boathouse) for cell in cells]
        lines.append(f"| `{row.name}` | {' | '.join(ratios)} |")
    return lines


def _of(cell: Cell | None, measure: str) -> str:
    return _text(None if cell is None else cell.over_fair.get(measure))


def _text(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    ends = "" if ratio.interval is None else f" ({ratio.interval[0]:.2f}–{ratio.interval[1]:.2f})"
    return f"{ratio.value:.2f}{ends}"


def written(page: str, cells: Sequence[Cell], source: str) -> str:
    """Return the page with its tables replaced.

    Args:
        page: Its content.
        cells: Of the board.
        source: What gave them: the command and the seeds.

    Raises:
        ValueError: The page has no place for tables.
    """
    head, found, rest = page.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not (found and closed):
        raise ValueError(f"the page has no place for the board's tables: {BEGIN.strip()} and {END}")
    return f"{head}{BEGIN}{tables(cells)}\n\nSource: {source}.\n{END}{tail}"


def picture(cells: Sequence[Cell]) -> figures.Figure:
    """Return the picture: by row, means over fair of kube-scheduler's order, boathouse, and near-optimal.

    A board that has none of them shows all of its columns.
    """
    by_cell = {(cell.row, cell.column): cell.over_fair["mean"] for cell in shown(cells)}
    names = [row.name for row in rows.ROWS if (row.name, columns.FAIR) in by_cell]
    found = {column for _, column in by_cell} - {columns.FAIR}
    drawn = [name for name in _SHOWN if name in found] or [name for name in columns.BY_NAME if name in found]
    groups = [names[at : at + _IN_A_PANEL] for at in range(0, len(names), _IN_A_PANEL)]
    return figures.Figure(
        name="The board",
        title="Mean job time over that of fair",
        panels=tuple(_panel(group, drawn, by_cell) for group in groups),
        paper_shape="No paper's.",
        our_shape="Below 1: faster than fair.",
    )


def _panel(names: Sequence[str], drawn: Sequence[str], by_cell: Mapping[tuple[str, str], Ratio]) -> figures.Panel:
    bars = tuple(_bars(column, [by_cell.get((name, column)) for name in names]) for column in drawn)
    highest = max(value for column_bars in bars for value in (*column_bars.values, 1.0) if value is not None)
    return figures.Panel(
        title="",
        x=figures.Axis(label=""),
        y=figures.Axis(label="Mean job time over fair", low=0, high=_ABOVE * highest),
        marks=(*bars, figures.Level(label=columns.FAIR, at=1.0)),
        categories=tuple(names),
    )


def _bars(column: str, ratios: Sequence[Ratio | None]) -> figures.Bars:
    """Return the bars of a column; ends of intervals are by place, as `figures.Bars` has them."""
    ends = [(0.0, 0.0) if one is None else one.interval or (one.value, one.value) for one in ratios]
    return figures.Bars(
        label=column,
        values=tuple(None if one is None else one.value for one in ratios),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
    )
