"""Draw the picture of noop_job.py: progress over time, a map's time in each state, and CPU time by process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks import noop_audit

COLOURS = ("#c9c9c9", "#4477aa", "#66ccee", "#228833", "#ee6677")
POINTS = 400
LINES = {"asked": "asked for", "created": "created", "running": "Running", "ended": "ended", "counted": "in the status"}


def draw(run: noop_audit.Run, path: Path) -> None:
    """Write the SVG: the same bytes for the same figures."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "noop", "font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(9, 8), layout="constrained")
        over_time, stretches, writes = figure.subplots(3, 1, height_ratios=(3, 1.4, 1.6))
        _over_time(over_time, run)
        _stretches(stretches, run)
        _writes(writes, run)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _over_time(axes: Any, run: noop_audit.Run) -> None:
    for (state, label), colour in zip(LINES.items(), COLOURS, strict=True):
        moments = sorted(times_s[state] for times_s in run.maps.values() if state in times_s)
        some = range(0, len(moments), max(1, len(moments) // POINTS))
        axes.plot([moments[i] for i in some], [i + 1 for i in some], label=label, color=colour, linewidth=1.6)
    axes.set(
        title=f"{len(run.maps)} maps that do nothing: {run.elapsed_s * 1000 / run.tasks:.1f} ms of time a task",
        xlabel="seconds since the maps could be placed",
        ylabel="maps",
    )
    axes.legend(loc="lower right", frameon=False)


def _stretches(axes: Any, run: noop_audit.Run) -> None:
    """Draw a map's states. The wait for its turn is only in the title, because it would dwarf the others."""
    left, found = 0.0, run.stretches
    waiting = found.pop("waiting for its turn")
    for (name, values), colour in zip(found.items(), COLOURS[1:], strict=True):
        axes.barh(0, values.mean, left=left, color=colour, label=f"{name}: {values.mean:.0f} ms")
        left += values.mean
    axes.set(
        title=f"a map's way, mean in ms (after {waiting.mean / 1000:.1f} s for those before it)", yticks=(), xlabel="ms"
    )
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45), ncols=2, frameon=False)


def _writes(axes: Any, run: noop_audit.Run) -> None:
    rows = [(f"{who}: {what}", count / run.tasks) for (who, what), count in run.writes.most_common(6)][::-1]
    bars = axes.barh([name for name, _ in rows], [count for _, count in rows], color=COLOURS[1])
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.margins(x=0.12)
    cpu_ms = run.used_s["CPU"] * 1000 / run.tasks
    axes.set(title=f"API writes a task; the operator used {cpu_ms:.2f} ms of CPU a task, {run.rss_mib:.0f} MiB")
