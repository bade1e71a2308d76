"""Draw the figures of studies as SVG with matplotlib.

The timeline of a job (`picture`) is not drawn here: it has a bar for each attempt with a tooltip, and the extra `cli`
does without matplotlib.
"""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib import figure as mpl_figure

from boathouse_lab.reproduce import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

OKABE_ITO: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
DASHES: Final = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 2)), (0, (1, 2)))
HATCHES: Final = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo")
PAPER: Final = "#000000"
PANEL_IN: Final = (4.3, 3.2)
IN_A_ROW: Final = 3
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, and can be searched
    "svg.hashsalt": "boathouse",  # equal figures are equal bytes
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def to_svg(figure: figures.Figure) -> str:
    """Return an SVG element, without the XML declaration, to be put into a page."""
    count = len(figure.panels)
    columns = min(count, IN_A_ROW)
    rows = -(-count // columns)
    with mpl.rc_context(_STYLE):
        drawn = mpl_figure.Figure(figsize=(PANEL_IN[0] * columns, PANEL_IN[1] * rows), layout="constrained")
        axes = drawn.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in itertools.zip_longest(axes, figure.panels):
            if panel is None:
                ax.set_visible(False)
            else:
                _draw(ax, panel)
        out = io.StringIO()
        drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _draw(ax: Axes, panel: figures.Panel) -> None:
    ax.set_title(panel.title)
    labels = list(dict.fromkeys(mark.label for mark in panel.marks if not mark.paper))
    bars = [mark for mark in panel.marks if isinstance(mark, figures.Bars)]
    for mark in panel.marks:
        place = labels.index(mark.label) % len(OKABE_ITO) if not mark.paper else -1
        _mark(ax, mark, place, bars)
    if panel.categories:
        ax.set_xticks(range(len(panel.categories)), panel.categories)
    _axes(ax, panel)
    _legend(ax, below=bool(panel.categories))


def _legend(ax: Axes, *, below: bool) -> None:
    """Draw each label once. Bars fill their panel, so their legend is below it."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if len(once) > 1 and below:
        ax.legend(list(once.values()), list(once), loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    elif len(once) > 1:
        ax.legend(list(once.values()), list(once))


def _axes(ax: Axes, panel: figures.Panel) -> None:
    ax.set_xlabel(panel.x.label)
    ax.set_ylabel(panel.y.label)
    if panel.x.log:
        ax.set_xscale("log")
    if panel.y.log:
        ax.set_yscale("log")
    ax.set_xlim(panel.x.low, panel.x.high)
    ax.set_ylim(panel.y.low, panel.y.high)


def _mark(ax: Axes, mark: figures.Mark, place: int, bars: Sequence[figures.Bars]) -> None:
    """Draw one mark; the paper's own are black and dotted, ours have a colour and a dash of their own."""
    colour = PAPER if mark.paper else OKABE_ITO[place]
    dash: Any = ":" if mark.paper else DASHES[place]
    match mark:
        case figures.Line():
            _line(ax, mark, colour, dash)
        case figures.Points():
            ax.scatter(
                mark.x, mark.y, label=mark.label, color=colour, marker="D" if mark.paper else "o", s=16, zorder=3
            )
        case figures.Cdf():
            shares = [(i + 1) / len(mark.values) for i in range(len(mark.values))]
            ax.step(
                [*mark.values[:1], *mark.values], [0, *shares], where="post", label=mark.label, color=colour, ls=dash
            )
        case figures.Bars():
            _bars(ax, mark, colour, bars)
        case figures.Level(upright=True):
            ax.axvline(mark.at, label=mark.label, color=colour, ls=dash, lw=1)
        case figures.Level():
            ax.axhline(mark.at, label=mark.label, color=colour, ls=dash, lw=1)


def _line(ax: Axes, mark: figures.Line, colour: str, dash: Any) -> None:
    how = "steps-post" if mark.step else "default"
    marker = "o" if mark.markers else ""
    ax.plot(mark.x, mark.y, label=mark.label, color=colour, ls=dash, drawstyle=how, marker=marker, ms=3)
    if mark.low:
        ax.fill_between(mark.x, mark.low, mark.high, color=colour, alpha=0.15, lw=0, step="post" if mark.step else None)


def _bars(ax: Axes, mark: figures.Bars, colour: str, bars: Sequence[figures.Bars]) -> None:
    width = 0.8 / len(bars)
    at = next(i for i, one in enumerate(bars) if one is mark)
    given = [i for i, value in enumerate(mark.values) if value is not None]
    heights = [value for value in mark.values if value is not None]
    x = [i - 0.4 + width * (at + 0.5) for i in given]
    face, edge, hatch = ("white", PAPER, "//") if mark.paper else (colour, "white", HATCHES[at % len(HATCHES)])
    ax.bar(x, heights, width, label=mark.label, facecolor=face, edgecolor=edge, hatch=hatch)
    if mark.low:
        ends = [
            [height - mark.low[i] for i, height in zip(given, heights, strict=True)],
            [mark.high[i] - height for i, height in zip(given, heights, strict=True)],
        ]
        ax.errorbar(x, heights, ends, fmt="none", ecolor="black", elinewidth=1, capsize=2)
