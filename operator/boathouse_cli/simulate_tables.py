"""Tables of simulation results. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_sim.results import Outcome


def outcomes(title: str, found: Mapping[str, Outcome]) -> table.Table:
    """Return a table with a row for each profile."""
    one = next(iter(found.values()))
    drawn = table.Table(
        title=f"{title}: {one.jobs:,} jobs, {one.tasks:,} tasks; times in seconds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    drawn.add_column("PROFILE", no_wrap=True)
    for column in ("MEAN", "MEDIAN", "P95", "MAKESPAN", "MEMORY", "CPU", "ELASTIC", "LOCAL", "SUSPENDED"):
        drawn.add_column(column, justify="right", no_wrap=True)
    has_gangs = any(one.gang_wait_s is not None for one in found.values())
    for column in (*(("GANGS WAIT", "KEPT IDLE") if has_gangs else ()), "EVENTS/S"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for name, one in found.items():
        drawn.add_row(
            name,
            f"{one.mean_job_time_s:,.1f}",
            f"{one.median_job_time_s:,.1f}",
            f"{one.p95_job_time_s:,.1f}",
            f"{one.makespan_s:,.0f}",
            "" if one.memory_utilisation is None else f"{one.memory_utilisation:.1%}",
            f"{one.cpu_utilisation:.1%}",
            f"{one.elastic_tasks:,}",
            "" if one.node_local_share is None else f"{one.node_local_share:.1%}",
            f"{one.suspensions:,}" if one.suspensions else "",
            *_of_gangs(one, shown=has_gangs),
            f"{one.events / one.cpu_s:,.0f}" if one.cpu_s > 0 else "",
        )
    return drawn


def _of_gangs(one: Outcome, *, shown: bool) -> tuple[str, ...]:
    """Return how long applications that start whole waited, and the CPU that was kept for them and free."""
    return (f"{one.gang_wait_s or 0.0:,.1f}", f"{one.kept_idle_share:.1%}") if shown else ()


def assumptions(values: Mapping[str, float | str]) -> str:
    """Return one line with the workload's assumptions."""
    return "assumed: " + ", ".join(f"{name} {value}" for name, value in values.items())
