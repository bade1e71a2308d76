"""Stages of long work: said when they begin, timed, and summed up at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

from rich import box, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich import console


@dataclasses.dataclass(slots=True)
class Stages:
    """Prints `==> stage` when one begins and keeps its seconds."""

    screen: console.Console
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time one stage; it is kept also when it fails."""
        self.screen.print(f"[bold]==> {name}[/bold]", highlight=False)
        started_s = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started_s

    def summary(self) -> table.Table:
        """Return the seconds of each stage and their sum."""
        drawn = table.Table("STAGE", "SECONDS", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        drawn.columns[1].justify = "right"
        for name, seconds in self.seconds.items():
            drawn.add_row(name, f"{seconds:.1f}")
        drawn.add_row("together", f"{sum(self.seconds.values()):.1f}", style="bold")
        return drawn
