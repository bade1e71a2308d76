"""Draw a timeline: attempts as bars, packed into lanes by node, over the job's critical path.

`layout` turns a timeline into coordinates (pixels of the SVG's own view box); the templates only draw them.
"""

import dataclasses
import datetime as dt
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import jinja2

from boathouse_cli import timeline
from boathouse_cli.timeline import Activity

COLOURS: Final[Mapping[Activity, str]] = {
    Activity.WAITING: "#dcdcdc",
    Activity.STARTING: "#b9a6d3",
    Activity.SETUP: "#8d99ae",
    Activity.MAP: "#4f8fc9",
    Activity.SORT: "#efb03f",
    Activity.UPLOAD: "#76c5c0",
    Activity.WAIT_FOR_MAPS: "#f1e9d8",
    Activity.SHUFFLE: "#e2725b",
    Activity.REDUCE: "#5aa469",
    Activity.COMMIT: "#6d597a",
    Activity.WAIT_FOR_EXECUTORS: "#f3d9c9",
    Activity.EXECUTORS: "#e08e45",
    Activity.DRIVER: "#b5651d",
    Activity.RUNNING: "#9ec5e8",
}

WIDTH: Final = 1200
LEFT: Final = 150
"""Least width of the names next to the lanes."""
RIGHT: Final = 20
TOP: Final = 40
LANE: Final = 16
BAR: Final = 12
GROUP_GAP: Final = 10
TICKS: Final = 10
LONGEST: Final = 60
"""Characters of a name next to the lanes; longer ones are shortened in the middle."""
CHARACTER: Final = 6.6
"""Width of an average character of a name, generously."""
TITLE_CHARACTERS: Final = 140
TITLE_LINE: Final = 18
LEGEND_COLUMNS: Final = 3
LEGEND_LINE: Final = 18
NO_NODE: Final = "no node yet"
LEVELS: Final = 4 * LANE
"""Height of the area that shows how many nodes a cluster had."""
CORE_COLOUR: Final = "#4f8fc9"
TRANSIENT_COLOUR: Final = "#efb03f"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A rectangle that has a title."""

    x: float
    y: float
    width: float
    height: float = BAR
    title: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rect(Shape):
    """One coloured piece of a bar."""

    colour: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frame(Shape):
    """Outline of one attempt, with its name if it fits."""

    failed: bool
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The lanes of one node."""

    name: str
    y: float
    height: float

    @property
    def label(self) -> str:
        """The name, shortened in the middle if it is long."""
        half = LONGEST // 2
        return self.name if len(self.name) <= LONGEST else f"{self.name[:half]}…{self.name[1 - half :]}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on the time axis."""

    x: float
    label: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A row of the table of seconds."""

    activity: str
    colour: str
    wall_s: float
    task_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that the templates draw."""

    title: str
    title_lines: tuple[str, ...]
    subtitle: str
    width: int
    height: float
    top: float
    left: float
    right: int
    bottom: float
    groups: tuple[Group, ...]
    rects: tuple[Rect, ...]
    frames: tuple[Frame, ...]
    ticks: tuple[Tick, ...]
    shares: tuple[Share, ...]

    @property
    def legend_height(self) -> int:
        """Height of the legend below the picture, a line for every three activities."""
        return -(-len(self.shares) // LEGEND_COLUMNS) * LEGEND_LINE


def to_svg(*lines: timeline.Timeline) -> str:
    """Return a self-contained SVG document with the timelines of one or more jobs."""
    return _environment().get_template("timeline.svg.j2").render(p=layout(*lines), legend=True)


def to_html(*lines: timeline.Timeline) -> str:
    """Return a self-contained HTML page with the picture and a table of seconds by phase."""
    return _environment().get_template("timeline.html.j2").render(p=layout(*lines), legend=False)


def layout(*lines: timeline.Timeline) -> Picture:
    """Compute the coordinates of everything in the picture; jobs share nodes and the axis of time."""
    start_s = min(line.start_s for line in lines)
    duration_s = max(line.end_s for line in lines) - start_s
    title = "; ".join(
        f"{line.job.title}: {line.job.phase or 'Pending'} after {line.duration_s:.1f} s" for line in lines
    )
    title_lines = textwrap.wrap(title, TITLE_CHARACTERS)
    left = _left(lines)
    scale = _Scale(start_s=start_s, left=left, pixels_per_s=(WIDTH - left - RIGHT) / max(duration_s, 1e-3))
    y = top = float(TOP + (len(title_lines) - 1) * TITLE_LINE)
    groups: list[Group] = []
    rects: list[Rect] = []
    frames: list[Frame] = []
    for line in lines:
        groups.append(Group(name=_path_name(line, lines), y=y, height=LANE))
        rects += [scale.rect(segment, y, f"{_of(line, lines)}{line.path_name}: ") for segment in line.critical_path]
        y += LANE + GROUP_GAP
        if line.levels:
            most = max(level.core + level.transient for level in line.levels)
            groups.append(Group(name=f"nodes (at most {most})", y=y, height=LEVELS))
            rects += scale.levels(line, y, most, _of(line, lines))
            y += LEVELS + GROUP_GAP
    titles = {
        id(bar): f"{_of(line, lines)}{bar.pod.task} attempt {bar.pod.attempt}: " for line in lines for bar in line.bars
    }
    all_bars = sorted((bar for line in lines for bar in line.bars), key=lambda bar: bar.start_s)
    for node in sorted({bar.pod.node or NO_NODE for bar in all_bars}):
        bars = [bar for bar in all_bars if (bar.pod.node or NO_NODE) == node]
        lanes = _lanes(bars)
        groups.append(Group(name=node, y=y, height=LANE * (max(lanes) + 1)))
        for bar, lane in zip(bars, lanes, strict=True):
            bar_y, name = y + lane * LANE + (LANE - BAR) / 2, titles[id(bar)]
            rects += [scale.rect(segment, bar_y, name) for segment in bar.segments if segment.duration_s > 0]
            frames.append(scale.frame(bar, bar_y, name))
        y += groups[-1].height + GROUP_GAP
    return Picture(
        title=title,
        title_lines=tuple(title_lines),
        subtitle=_subtitle(lines, start_s),
        width=WIDTH,
        height=y + 24,
        top=top,
        left=left,
        right=WIDTH - RIGHT,
        bottom=y,
        groups=tuple(groups),
        rects=tuple(rects),
        frames=tuple(frames),
        ticks=scale.ticks(duration_s),
        shares=shares(*lines),
    )


def shares(*lines: timeline.Timeline) -> tuple[Share, ...]:
    """Return the seconds of each activity, along the critical paths and over all attempts."""
    wall: Counter[Activity] = sum((Counter(line.wall_seconds()) for line in lines), Counter())
    task: Counter[Activity] = sum((Counter(line.task_seconds()) for line in lines), Counter())
    return tuple(
        Share(
            activity=activity.value,
            colour=COLOURS[activity],
            wall_s=wall.get(activity, 0.0),
            task_s=task.get(activity, 0.0),
        )
        for activity in Activity
        if activity in wall or activity in task
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    start_s: float
    left: float
    pixels_per_s: float

    def x(self, at_s: float) -> float:
        return round(self.left + (at_s - self.start_s) * self.pixels_per_s, 2)

    def span(self, piece: timeline.Segment | timeline.Level | timeline.Bar, least: float) -> tuple[float, float]:
        """Return where a piece begins, and how wide it is."""
        x = self.x(piece.start_s)
        return x, round(max(self.x(piece.end_s) - x, least), 2)

    def rect(self, segment: timeline.Segment, y: float, prefix: str) -> Rect:
        title = (
            f"{prefix}{segment.activity.value}, {segment.duration_s:.2f} s "
            f"(from {segment.start_s - self.start_s:.2f} to {segment.end_s - self.start_s:.2f})"
        )
        x, width = self.span(segment, 0.4)
        return Rect(x=x, y=y, width=width, colour=COLOURS[segment.activity], title=title)

    def levels(self, line: timeline.Timeline, y: float, most: int, prefix: str) -> Iterator[Rect]:
        """Yield the size of a cluster as two areas that are stacked: core nodes below, transient ones above."""
        for level in line.levels:
            x, width = self.span(level, 0.4)
            base = y + LEVELS
            seconds = f"from {level.start_s - self.start_s:.0f} to {level.end_s - self.start_s:.0f} s"
            title = f"{prefix}{level.core} core and {level.transient} transient nodes, {seconds}"
            for count, colour in ((level.core, CORE_COLOUR), (level.transient, TRANSIENT_COLOUR)):
                height = LEVELS * count / max(most, 1)
                base -= height
                if count:
                    yield Rect(x=x, y=round(base, 2), width=width, height=round(height, 2), colour=colour, title=title)

    def frame(self, bar: timeline.Bar, y: float, title: str) -> Frame:
        x, width = self.span(bar, 0.8)
        label = bar.pod.task if width > 7 * len(bar.pod.task) else ""
        return Frame(x=x, y=y, width=width, failed=bar.pod.failed, label=label, title=title + _ended(bar))

    def ticks(self, duration_s: float) -> tuple[Tick, ...]:
        step = next(
            step * 10**power for power in range(-2, 7) for step in (1, 2, 5) if step * 10**power * TICKS >= duration_s
        )
        count = int(duration_s / step) + 1
        return tuple(Tick(x=self.x(self.start_s + n * step), label=f"{n * step:g} s") for n in range(count))


def _lanes(bars: Sequence[timeline.Bar]) -> list[int]:
    """Return the lowest free lane for each bar. Bars are in order of their start."""
    free_from: list[float] = []
    lanes: list[int] = []
    for bar in bars:
        lane = next((n for n, free_s in enumerate(free_from) if free_s <= bar.start_s), len(free_from))
        free_from[lane : lane + 1] = [bar.end_s]
        lanes.append(lane)
    return lanes


def _path_name(line: timeline.Timeline, lines: Sequence[timeline.Timeline]) -> str:
    return line.path_name if len(lines) == 1 else line.job.title


def _left(lines: Sequence[timeline.Timeline]) -> float:
    """Return the width that the longest name next to the lanes needs."""
    names = {_path_name(line, lines) for line in lines}
    names |= {bar.pod.node or NO_NODE for line in lines for bar in line.bars}
    return max(LEFT, round(20 + CHARACTER * min(max(map(len, names)), LONGEST)))


def _of(line: timeline.Timeline, lines: Sequence[timeline.Timeline]) -> str:
    """Return the job's title as a prefix if the picture has several jobs."""
    return f"{line.job.title} " if len(lines) > 1 else ""


def _ended(bar: timeline.Bar) -> str:
    seconds = f"{bar.end_s - bar.start_s:.2f} s on {bar.pod.node or NO_NODE}"
    result = bar.pod.result
    return f"{seconds}, failed: {result.reason if result else 'killed'}" if bar.pod.failed else seconds


def _subtitle(lines: Sequence[timeline.Timeline], start_s: float) -> str:
    started = dt.datetime.fromtimestamp(start_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    pods = [bar.pod for line in lines for bar in line.bars]
    nodes = {pod.node for pod in pods if pod.node}
    progress = "; ".join(line.job.progress for line in lines if line.job.progress)
    return ", ".join(filter(None, (f"{len(pods)} pods on {len(nodes)} nodes", progress))) + f"; created {started}"


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("boathouse_cli"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
