"""Draw a timeline: attempts as bars, packed into lanes by node, over the job's critical path.

`Picture` turns timelines into coordinates (pixels of the SVG's own view box); the templates only draw them.
"""

import dataclasses
import datetime as dt
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from boathouse_cli import model, timeline

COLOURS: Final[Mapping[timeline.Activity, str]] = {
    timeline.Activity.WAITING: "#dcdcdc",
    timeline.Activity.STARTING: "#b9a6d3",
    timeline.Activity.SETUP: "#8d99ae",
    timeline.Activity.MAP: "#4f8fc9",
    timeline.Activity.SORT: "#efb03f",
    timeline.Activity.UPLOAD: "#76c5c0",
    timeline.Activity.WAIT_FOR_MAPS: "#f1e9d8",
    timeline.Activity.SHUFFLE: "#e2725b",
    timeline.Activity.REDUCE: "#5aa469",
    timeline.Activity.COMMIT: "#6d597a",
    timeline.Activity.WAIT_FOR_EXECUTORS: "#f3d9c9",
    timeline.Activity.EXECUTORS: "#e08e45",
    timeline.Activity.DRIVER: "#b5651d",
    timeline.Activity.RUNNING: "#9ec5e8",
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
NO_NODE: Final = "no node yet"
LEVELS: Final = 4 * LANE
"""Height of the area that shows how many nodes a cluster had."""
CORE_COLOUR: Final = "#4f8fc9"
TRANSIENT_COLOUR: Final = "#efb03f"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """One coloured piece of a bar."""

    x: float
    y: float
    width: float
    height: float = BAR
    colour: str
    title: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Outline of one attempt, with its name if it fits."""

    x: float
    y: float
    width: float
    height: float = BAR
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
class Share:
    """A row of the table of seconds."""

    activity: str
    colour: str
    wall_s: float
    task_s: float


def to_svg(*lines: timeline.Timeline) -> str:
    """Return a self-contained SVG document with the timelines of one or more jobs."""
    return _rendered("timeline.svg.j2", lines, has_legend=True)


def to_html(*lines: timeline.Timeline) -> str:
    """Return a self-contained HTML page with the picture and a table of seconds by phase."""
    return _rendered("timeline.html.j2", lines, has_legend=False)


def _rendered(template: str, lines: Sequence[timeline.Timeline], *, has_legend: bool) -> str:
    import jinja2  # only a picture needs it

    loader = jinja2.PackageLoader("boathouse_cli")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template(template).render(p=Picture(*lines), legend=has_legend)


class Picture:
    """Everything that the templates draw; jobs share nodes and the axis of time."""

    width = WIDTH
    right = WIDTH - RIGHT

    def __init__(self, *lines: timeline.Timeline) -> None:
        self._lines = lines
        self._start_s = min(line.job.created_s for line in lines)
        duration_s = max(line.end_s for line in lines) - self._start_s
        self.title = "; ".join(
            f"{line.job.title}: {line.job.phase or 'Pending'} after {line.duration_s:.1f} s" for line in lines
        )
        self.title_lines = textwrap.wrap(self.title, TITLE_CHARACTERS)
        bars = sorted((bar for line in lines for bar in line.bars), key=lambda bar: bar.start_s)
        self.subtitle = self._subtitle([bar.pod for bar in bars])
        nodes = sorted({bar.pod.node or NO_NODE for bar in bars})
        # The longest name next to the lanes needs this width.
        longest = min(max(map(len, (*nodes, *map(self._path_name, lines)))), LONGEST)
        self.left = max(LEFT, round(20 + CHARACTER * longest))
        self._pixels_per_s = (self.right - self.left) / max(duration_s, 1e-3)
        self.groups, self.rects, self.frames = list[Group](), list[Rect](), list[Frame]()
        self.top = self.bottom = float(TOP + (len(self.title_lines) - 1) * TITLE_LINE)
        for line in lines:
            self._draw_path(line)
        titles = {id(bar): self._of(line) for line in lines for bar in line.bars}
        for node in nodes:
            self._draw_node(node, [bar for bar in bars if (bar.pod.node or NO_NODE) == node], titles)
        self.height = self.bottom + 24
        self.ticks = self._ticks(duration_s)
        self.shares = shares(*lines)

    def _path_name(self, line: timeline.Timeline) -> str:
        return line.path_name if len(self._lines) == 1 else line.job.title

    def _of(self, line: timeline.Timeline) -> str:
        """Return the job's title as a prefix if the picture has several jobs."""
        return f"{line.job.title} " if len(self._lines) > 1 else ""

    def _subtitle(self, pods: Sequence[model.TaskPod]) -> str:
        started = dt.datetime.fromtimestamp(self._start_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        nodes = {pod.node for pod in pods if pod.node}
        progress = "; ".join(line.job.progress for line in self._lines if line.job.progress)
        return ", ".join(filter(None, (f"{len(pods)} pods on {len(nodes)} nodes", progress))) + f"; created {started}"

    def _add_group(self, name: str, height: float) -> float:
        """Add a group below the others; return where it begins."""
        y = self.bottom
        self.groups.append(Group(name=name, y=y, height=height))
        self.bottom += height + GROUP_GAP
        return y

    def _draw_path(self, line: timeline.Timeline) -> None:
        y = self._add_group(self._path_name(line), LANE)
        self._draw_segments(line.critical_path, y, f"{self._of(line)}{line.path_name}: ")
        if line.levels:
            self._draw_levels(line)

    def _draw_segments(self, segments: Iterable[timeline.Segment], y: float, prefix: str) -> None:
        for segment in segments:
            title = (
                f"{prefix}{segment.activity.value}, {segment.duration_s:.2f} s "
                f"(from {segment.start_s - self._start_s:.2f} to {segment.end_s - self._start_s:.2f})"
            )
            x, width = self._span(segment, 0.4)
            self.rects.append(Rect(x=x, y=y, width=width, colour=COLOURS[segment.activity], title=title))

    def _draw_levels(self, line: timeline.Timeline) -> None:
        """Draw the size of a cluster as two areas that are stacked: core nodes below, transient ones above."""
        most = max(level.core + level.transient for level in line.levels)
        y = self._add_group(f"nodes (at most {most})", LEVELS)
        for level in line.levels:
            (x, width), base = self._span(level, 0.4), y + LEVELS
            seconds = f"from {level.start_s - self._start_s:.0f} to {level.end_s - self._start_s:.0f} s"
            title = f"{self._of(line)}{level.core} core and {level.transient} transient nodes, {seconds}"
            for count, colour in ((level.core, CORE_COLOUR), (level.transient, TRANSIENT_COLOUR)):
                height = LEVELS * count / max(most, 1)
                base -= height
                if count:
                    area = Rect(x=x, y=round(base, 2), width=width, height=round(height, 2), colour=colour, title=title)
                    self.rects.append(area)

    def _draw_node(self, node: str, bars: Sequence[timeline.Bar], titles: Mapping[int, str]) -> None:
        """Draw the attempts of a node, in order of their start: each has the lowest lane that is free."""
        free_from: list[float] = []
        for bar in bars:
            lane = next((n for n, free_s in enumerate(free_from) if free_s <= bar.start_s), len(free_from))
            free_from[lane : lane + 1] = [bar.end_s]
            y = self.bottom + lane * LANE + (LANE - BAR) / 2
            drawn = (segment for segment in bar.segments if segment.duration_s > 0)
            self._draw_segments(drawn, y, f"{titles[id(bar)]}{bar.pod.task} attempt {bar.pod.attempt}: ")
            x, width = self._span(bar, 0.8)
            label = bar.pod.task if width > 7 * len(bar.pod.task) else ""
            self.frames.append(Frame(x=x, y=y, width=width, failed=bar.pod.failed, label=label))
        self._add_group(node, LANE * len(free_from))

    def _x(self, at_s: float) -> float:
        return round(self.left + (at_s - self._start_s) * self._pixels_per_s, 2)

    def _span(self, piece: timeline.Segment | timeline.Level | timeline.Bar, least: float) -> tuple[float, float]:
        """Return where a piece begins, and how wide it is."""
        x = self._x(piece.start_s)
        return x, round(max(self._x(piece.end_s) - x, least), 2)

    def _ticks(self, duration_s: float) -> list[tuple[float, str]]:
        step = next(
            step * 10**power for power in range(-2, 7) for step in (1, 2, 5) if step * 10**power * TICKS >= duration_s
        )
        return [(self._x(self._start_s + n * step), f"{n * step:g} s") for n in range(int(duration_s / step) + 1)]


def shares(*lines: timeline.Timeline) -> tuple[Share, ...]:
    """Return the seconds of each activity, along the critical paths and over all attempts."""
    wall_s = timeline.seconds_by_activity(segment for line in lines for segment in line.critical_path)
    task_s = timeline.seconds_by_activity(segment for line in lines for bar in line.bars for segment in bar.segments)
    return tuple(
        Share(activity=activity.value, colour=colour, wall_s=wall_s[activity], task_s=task_s[activity])
        for activity, colour in COLOURS.items()
        if wall_s[activity] or task_s[activity]
    )
