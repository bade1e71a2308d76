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
    """Return the phase, a progress bar for each stage, and why the job is pending."""
    drawn = table.Table.grid(padding=(0, 2))
    drawn.add_row(rich_text.Text(job.title, style="bold"), "", f"{job.phase or 'Pending'}, {_age(job, now_s)}")
    for stage in job.stages:
        bar = progress_bar.ProgressBar(total=stage.total, completed=stage.done, width=BAR_WIDTH) if stage.total else ""
        drawn.add_row(stage.name, bar, stage.text)
    if why := tables.why(job):
        drawn.add_row("reason", "", why)
    return drawn


def line(job: model.Job, *, now_s: float) -> str:
    """Return the job's phase, progress and reason in one line, for logs."""
    why = tables.why(job)
    words = (job.title, job.phase or "Pending", job.progress or job.activity, _age(job, now_s), why)
    return " ".join(filter(None, words))


def _age(job: model.Job, now_s: float) -> str:
    return text.duration((job.completed_s or now_s) - job.created_s)
