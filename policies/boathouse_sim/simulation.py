"""Simulations by the names of profiles, as the command line gives them."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Protocol

from boathouse_policies import profiles
from boathouse_sim.heartbeat import Heartbeats
from boathouse_sim.instant import Instant
from boathouse_sim.live import Live, Spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_sim.base_world import AnyWorld
    from boathouse_sim.errors import Errors
    from boathouse_sim.results import Outcome
    from boathouse_sim.workload import Workload

MEGANODE = "meganode"
"""Shortest remaining job first on one node as large as all: the bound without fragmentation (the paper's 6.2)."""


YARN_CLIENT = "yarn-client"
"""Drivers of Spark applications run outside of the cluster (client mode)."""


class Shell(Protocol):
    """Drives a world."""

    @property
    def world(self) -> AnyWorld:
        """The world."""
        ...

    def advance(self) -> bool:
        """Process one event; return False at the end."""
        ...


def names() -> tuple[str, ...]:
    """Return all profiles that can be simulated, sorted."""
    return tuple(sorted([*profiles.names(), MEGANODE]))


def pooled(workload: Workload) -> Workload:
    """Return the same jobs on one node as large as all; it takes any number of containers at a heartbeat."""
    whole = workload.cluster
    one = dataclasses.replace(
        whole, nodes=1, racks=1, machines=(), hosts=(), node_mem_mb=whole.total_mem_mb, node_cores=whole.total_cores
    )
    timing = dataclasses.replace(workload.timing, allocs_per_node_heartbeat=workload.tasks + len(workload.jobs))
    return dataclasses.replace(workload, cluster=one, timing=timing)


def with_drivers_outside(workload: Workload) -> Workload:
    """Return the same jobs, submitted by `spark-submit --deploy-mode client`."""
    apps = (dataclasses.replace(one, driver=None) if isinstance(one, Spark) else one for one in workload.apps)
    return dataclasses.replace(workload, apps=tuple(apps))


def shell(
    workload: Workload,
    name: str,
    *,
    heartbeat_s: float | None = None,
    errors: Errors | None = None,
    seed: int = 0,
) -> Shell:
    """Return a simulation, ready to run.

    Args:
        workload: What is simulated.
        name: Of a profile.
        heartbeat_s: Period of nodes' and masters' heartbeats; None starts tasks when they fit.
        errors: How the truth strays from the estimates.
        seed: Of what is drawn for them.

    Raises:
        ValueError: There is no such profile, the period is not positive, or the workload cannot be simulated.
    """
    if name not in names():
        raise ValueError(f"there is no profile {name!r}; choose from: {', '.join(names())}")
    if name == MEGANODE:
        workload = pooled(workload)
    if name == YARN_CLIENT:
        workload = with_drivers_outside(workload)
    profile = profiles.build("srjf" if name == MEGANODE else name)
    if workload.live:
        if heartbeat_s is not None:
            raise ValueError(f"{workload.name}: applications and conditions know no heartbeats: leave the period out")
        return Live(workload, profile, errors=errors, seed=seed)
    if heartbeat_s is None:
        return Instant(workload, profile, errors=errors, seed=seed)
    period_ms = round(heartbeat_s * 1000)
    if period_ms < 1:
        raise ValueError(f"the heartbeat must be at least 0.001 s, not {heartbeat_s}")
    timing = dataclasses.replace(workload.timing, node_heartbeat_ms=period_ms, am_heartbeat_ms=period_ms)
    return Heartbeats(dataclasses.replace(workload, timing=timing), profile, errors=errors, seed=seed)


def simulate(
    workload: Workload,
    name: str,
    *,
    heartbeat_s: float | None = None,
    errors: Errors | None = None,
    seed: int = 0,
    watch: Callable[[AnyWorld], None] | None = None,
) -> Outcome:
    """Run a simulation to its end.

    Args:
        workload: As for `shell`.
        name: As for `shell`.
        heartbeat_s: As for `shell`.
        errors: As for `shell`.
        seed: As for `shell`.
        watch: Called after every event: invariants in tests, progress on a terminal.

    Raises:
        ValueError: As `shell`.
        StuckError: The policy places nothing any more though tasks wait.
    """
    started_s = time.process_time()
    driver = shell(workload, name, heartbeat_s=heartbeat_s, errors=errors, seed=seed)
    while driver.advance():
        if watch is not None:
            watch(driver.world)
    return dataclasses.replace(driver.world.finished(), cpu_s=time.process_time() - started_s)
