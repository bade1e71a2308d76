"""Follow a job until it ends, drawing its progress."""

import math
import time
from typing import Final

import typer
from rich import console as rich_console
from rich import live as rich_live
from rich import progress_bar, table
from rich import text as rich_text

from boathouse_cli import explain, kinds, model, tables
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.gateway import Gateway

POLL_S: Final = 1.0
LINE_EVERY_S: Final = 10.0
"""Interval of lines where the output is not a terminal; a change of phase prints a line at once."""


def draw(job: model.Job, *, now_s: float) -> table.Table:
    """Return the phase, a progress bar for each stage, and why the job is pending."""
    drawn = table.Table.grid(padding=(0, 2))
    drawn.add_row(rich_text.Text(job.title, style="bold"), "", f"{job.phase or 'Pending'}, {_age(job, now_s)}")
    for stage in job.stages:
        bar = progress_bar.ProgressBar(total=stage.total, completed=stage.done, width=40) if stage.total else ""
        drawn.add_row(stage.name, bar, stage.text)
    if why := tables.why(job):
        drawn.add_row("reason", "", why)
    return drawn


def line(job: model.Job, *, now_s: float) -> str:
    """Return the job's phase, progress and reason in one line, for logs."""
    words = (job.title, job.phase or "Pending", job.progress or job.activity, _age(job, now_s), tables.why(job))
    return " ".join(filter(None, words))


def _age(job: model.Job, now_s: float) -> str:
    return model.duration((job.completed_s or now_s) - job.created_s)


def follow(
    gateway: Gateway, kind: kinds.Kind, name: str, screen: rich_console.Console, *, timeout_s: float | None = None
) -> model.Job:
    """Wait until a job ends."""
    deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    last_line = ("", 0.0)
    with rich_live.Live(console=screen, refresh_per_second=4, transient=True) as view:
        while True:
            job = kinds.job(gateway, kind, name)
            if screen.is_terminal:
                view.update(draw(job, now_s=time.time()))
            else:
                last_line = _say(job, last_line, screen)
            if job.finished:
                return job
            if time.monotonic() > deadline_s:
                raise CommandError(
                    f"{job.title} has not ended after {timeout_s:.0f} s: see `boathouse explain {job.title}`",
                    ExitCode.TIMEOUT,
                )
            time.sleep(POLL_S)


def _say(job: model.Job, last_line: tuple[str, float], screen: rich_console.Console) -> tuple[str, float]:
    phase, at_s = last_line
    now_s = time.monotonic()
    if job.phase == phase and now_s - at_s < LINE_EVERY_S:
        return last_line
    screen.print(line(job, now_s=time.time()), highlight=False, soft_wrap=True)
    return job.phase, now_s


def follow_driver(gateway: Gateway, name: str) -> None:
    """Print the logs of a SparkApp's drivers, attempt after attempt, until it ends; its phases on stderr."""
    screen, last_line = rich_console.Console(stderr=True), ("", 0.0)
    printed: set[str] = set()
    while True:
        job = kinds.job(gateway, kinds.SPARKAPP, name)
        for pod in sorted(kinds.pods(gateway, kinds.SPARKAPP, job), key=lambda pod: pod.attempt):
            if pod.task == model.DRIVER and pod.started_s is not None and pod.name not in printed:
                printed.add(pod.name)
                for line in gateway.log(pod.name, pod.container, tail=None, follow=True):
                    print(line, flush=True)
        if job.finished:
            _conclude(job, screen)
            return
        if not printed:
            last_line = _say(job, last_line, screen)
        time.sleep(POLL_S)


def until_end(gateway: Gateway, kind: kinds.Kind, name: str, *, timeout_s: float | None = None) -> None:
    """Follow a job until it ends, and say how; the exit code says whether it failed."""
    screen = rich_console.Console()
    _conclude(follow(gateway, kind, name, screen, timeout_s=timeout_s), screen)


def _conclude(ended: model.Job, screen: rich_console.Console) -> None:
    headline = explain.explain_job(ended, [], None, now_s=time.time()).headline
    screen.print(headline, highlight=False, markup=False, soft_wrap=True)
    if ended.phase != "Succeeded":
        raise typer.Exit(ExitCode.JOB_FAILED)
