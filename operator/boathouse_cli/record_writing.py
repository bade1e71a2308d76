"""Write the workload of a recording for `boathouse simulate`."""

from __future__ import annotations

import json
import secrets
import statistics
from typing import TYPE_CHECKING, Any

from rich import console

from boathouse_cli import record_file, record_workload, text
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_sim import neutral
from boathouse_sim.workload import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def write(recording: Path, target: Path, *, anonymous: bool) -> None:
    """Write a workload file, and say on stderr what is in it.

    Args:
        recording: File of `boathouse record`, into which a process may be recording.
        target: The workload.
        anonymous: Whether names are hashes. Their salt is not kept: the next file has others.

    Raises:
        CommandError: There is no recording, nothing can be taken of it, or the file cannot be written.
    """
    lines = (line for line, _ in record_file.read(recording))
    salt = secrets.token_bytes(16) if anonymous else None
    try:
        built = record_workload.build(lines, "recording" if anonymous else recording.stem, salt=salt)
        built.workload.check()
    except (record_workload.NothingRecordedError, WorkloadError) as error:
        raise CommandError(f"{recording}: {error}", ExitCode.USAGE) from error
    encoded = json.dumps(neutral.encode(built.workload, _about(built)))
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        unfinished.write_text(encoded + "\n")
        unfinished.replace(target)
    except OSError as error:
        raise CommandError(
            f"{target} cannot be written: {error.strerror}: choose another file", ExitCode.USAGE
        ) from error
    screen = console.Console(stderr=True)
    for line in _told(built, target):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def _about(built: record_workload.Built) -> dict[str, Any]:
    """Return what the file says of itself: no names and no dates."""
    return {
        "profile": built.profile,
        "watched_s": round(built.watched_s),
        "observed_mean_job_time_s": round(statistics.fmean(built.job_times_s), 1),
        "left_out": dict(built.left_out),
        "set_aside": dict(built.aside),
        "unread": list(built.unread),
    }


def _told(built: record_workload.Built, target: Path) -> Iterable[str]:
    jobs, tasks, nodes = len(built.workload.jobs), built.workload.tasks, built.workload.cluster.nodes
    mean_s = statistics.fmean(built.job_times_s)
    yield (
        f"{target}: {jobs} jobs with {tasks} tasks on {nodes} nodes, of {text.duration(built.watched_s)}; the mean job "
        f"time was {mean_s:.1f} s{f' with the profile {built.profile}' if built.profile else ''}"
    )
    if built.left_out:
        yield f"left out: {_counts(built.left_out)}"
    if built.aside:
        yield f"set aside while recording: {_counts(built.aside)}"
    if "nodes" in built.unread:
        yield "nodes could not be read: they are as large as what ran on them at once; correct `cluster` in the file"
    profiles = ",".join(dict.fromkeys([built.profile or "boathouse", "fair"]))
    yield f"`boathouse simulate {target} --profile {profiles}` compares profiles"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))
