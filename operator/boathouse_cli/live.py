"""Render a running job's progress from its status. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import progress_bar, table
from rich import text as rich_text

from boathouse_cli import tables, text

if TYPE_CHECKING:
    from boathouse_cli import model

BAR_WIDTH: Final = 40


def draw(job: model.Job, *, now_s: float) -> table.Table:
    """Return the phase, a progress bar each for maps and reduces, and why tasks are pending."""
    drawn = table.Table.grid(padding=(0, 2))
    drawn.add_row(rich_text.Text(job.title, style="bold"), "", f"{job.phase or 'Pending'}, {_age(job, now_s)}")
    for stage, counts in (("maps", job.maps), ("reduces", job.reduces)):
        if counts.total:
            bar = progress_bar.ProgressBar(total=counts.total, completed=counts.succeeded, width=BAR_WIDTH)
            drawn.add_row(stage, bar, f"{counts.succeeded}/{counts.total}, {counts.running} running{_failed(counts)}")
    if why := tables.why(job):
        drawn.add_row("reason", "", why)
    return drawn


def line(job: model.Job, *, now_s: float) -> str:
    """Return the job's phase, progress and reason in one line, for logs."""
    why = tables.why(job)
    return f"{job.title} {job.phase or 'Pending'} {job.progress} {_age(job, now_s)}{' ' + why if why else ''}"


def _age(job: model.Job, now_s: float) -> str:
    return text.duration((job.completed_s or now_s) - job.created_s)


def _failed(counts: model.Counts) -> str:
    return f", {counts.failed_attempts} attempts failed" if counts.failed_attempts else ""
