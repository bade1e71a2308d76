"""Simulations by the names of profiles, as the command line gives them.

`Instant` starts tasks when they fit: the operator's way, where a watch tells at once what came free. `Heartbeats` has
YARN's rules as DSS has them, the simulator of the YARN-ME paper's authors: nothing happens but at heartbeats.

| who | what |
|---|---|
| a node, each period at its own phase | reports what ended, then takes at most `allocs_per_node_heartbeat` containers |
| a job's master, from one period after submission | learns of its containers at one heartbeat, launches at the next |
| a job | its master's container is placed first; it ends three heartbeats after its last task was reported |

A container that ended is free on its node at once, but only the node's own heartbeat can use it, and its job is charged
until then. Heartbeats that could change nothing are left out: a node sleeps until a container ends there, a job comes,
a master comes up, or a policy said that it would look again.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import time
from typing import TYPE_CHECKING, Protocol

from boathouse_policies import framework, model, profiles
from boathouse_sim.base_world import MB, Call
from boathouse_sim.clock import Priority, next_beat_ms
from boathouse_sim.live import Live, LiveHeartbeats, Spark
from boathouse_sim.world import Running, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boathouse_sim.base_world import AnyWorld
    from boathouse_sim.clock import Happening
    from boathouse_sim.results import Outcome
    from boathouse_sim.workload import Errors, Workload
    from boathouse_sim.world import JobRun


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    """A node's side.

    Attributes:
        phase_ms: Its heartbeats are at this offset in each period.
        heartbeat: What happens at them.
        awake: Whether its next heartbeat is on the heap.
        too_small_for: The least pending size, by row, for which it had no room; None once room came free.
        ended: Containers to report.
        launching: Containers that were allocated and are not launched.
    """

    name: model.NodeName
    phase_ms: int
    heartbeat: Happening
    awake: bool = False
    too_small_for: Sequence[float] | None = None
    ended: list[Running] = dataclasses.field(default_factory=list)
    launching: int = 0


@dataclasses.dataclass(slots=True, eq=False)
class _Master:
    """A job's master.

    Attributes:
        up: Whether it was launched, so that its tasks are asked for.
        awake: Whether its next heartbeat is on the heap.
        closing: Whether that heartbeat is its last.
        allocated: Containers since its last heartbeat.
        acquired: Containers to launch at its next.
        released: Ends since its last heartbeat.
        counted: Ends that its next heartbeat counts.
        out: Tasks placed and not counted as ended.
    """

    run: JobRun
    phase_ms: int
    container: Running | None = None
    up: bool = False
    awake: bool = False
    closing: bool = False
    allocated: list[Running] = dataclasses.field(default_factory=list)
    acquired: list[Running] = dataclasses.field(default_factory=list)
    released: int = 0
    counted: int = 0
    out: int = 0


class Heartbeats:
    """See the module's docstring.

    Args:
        workload: Its `timing` holds the periods.
        profile: The policies.
        errors: How the truth strays from the estimates.
        seed: Of what is drawn for them.
    """

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = World(workload, profile, self._arrived, self._ended, errors=errors, seed=seed)
        timing = workload.timing
        self.world.clock.patience_ms += _MOST_PERIODS * (timing.node_heartbeat_ms + timing.am_heartbeat_ms)
        self._node_ms, self._master_ms = timing.node_heartbeat_ms, timing.am_heartbeat_ms
        self._needs_room = profile.depends_on_shape_only and not profile.controllers
        self._most = timing.allocs_per_node_heartbeat
        self._coming = 0  # masters that were placed and are not up: their tasks will wait soon
        self._masters: dict[model.JobId, _Master] = {}
        self._by_name: dict[model.NodeName, _Node] = {}
        self._looks_ms: set[int] = set()
        nodes = self.world.nodes
        for i, node in enumerate(nodes):
            phase_ms = round(i * self._node_ms / len(nodes)) % self._node_ms
            self._by_name[node.name] = entry = _Node(
                node.name, phase_ms, Call(self._node_heartbeat, node.name), awake=True
            )
            self.world.clock.background(phase_ms, Priority.NODE_HEARTBEAT, entry.heartbeat)

    def advance(self) -> bool:
        """Process one event; return False at the end."""
        return self.world.clock.step()

    # Nodes

    def _wake(self, node: _Node) -> None:
        if not node.awake:
            node.awake = True
            clock = self.world.clock
            at_ms = next_beat_ms(clock.now_ms, self._node_ms, node.phase_ms)
            clock.background(at_ms, Priority.NODE_HEARTBEAT, node.heartbeat)

    def _wake_all(self) -> None:
        for node in self._by_name.values():
            self._wake(node)

    def _node_heartbeat(self, name: model.NodeName) -> None:
        node = self._by_name[name]
        node.awake = False
        if node.ended:
            self.world.give_back(node.ended)
            node.too_small_for = None
            for task in node.ended:
                master = self._masters[task.run.job.id]
                master.released += 1
                self._wake_master(master)
            node.ended.clear()
        if self._offer(node) and (self.world.waiting or self._coming):
            self._wake(node)

    def _offer(self, node: _Node) -> bool:
        """Let the cycle place on this node; whether another heartbeat soon could change anything."""
        if not self.world.waiting:
            return node.launching > 0
        if self._needs_room and not self._may_fit(node):
            return node.launching > 0
        was_kept = node.name in self.world.room.reserved
        placed, now_s = False, self.world.clock.now_s
        for decision in self.world.decide([node.name], max_per_node=self._most, park=False):
            match decision:
                case model.Create() | model.Bind():
                    self._allocated(decision, node)
                    placed = True
                case model.Reservation(until_s=until_s) | model.Wait(until_s=until_s) if (
                    until_s is not None and until_s > now_s
                ):
                    self._look_at(math.ceil(until_s * 1000))
                case model.Reservation() | model.Wait():
                    pass
                case _:
                    self.world.notify_refused(decision, "NotSupported")  # tasks here only run
        return placed or (node.launching > 0 and not was_kept)

    def _may_fit(self, node: _Node) -> bool:
        """Return whether a cycle that is offered this node may place anything; where it may not, it counts as run."""
        least = self.world.room.least(self.world.profile.sizer)
        if node.too_small_for is not least:
            if not any(map(operator.lt, self.world.ledger.free(node.name) or (), least)):
                return True
            node.too_small_for = least
        self.world.cycles += 1
        return False

    def _look_at(self, at_ms: int) -> None:
        """Schedule a cycle for when a wait expires: time itself is the event."""
        if at_ms not in self._looks_ms:
            self._looks_ms.add(at_ms)
            self.world.clock.background(at_ms, Priority.ARRIVAL, self._look_again)

    def _look_again(self) -> None:
        self._looks_ms.discard(self.world.clock.now_ms)
        self.world.room.tick(self.world.clock.now_s)
        self._wake_all()

    def _allocated(self, decision: model.Placement, node: _Node) -> None:
        task = self.world.place(decision)
        self.world.clock.progress()
        node.launching += 1
        master = self._masters[decision.job.id]
        if master.container is None:
            master.container = task
            self._coming += 1
            return
        master.out += 1
        master.allocated.append(task)
        self._wake_master(master)
        self.world.placed_whole(task.run)

    def _ended(self, tasks: Sequence[Running]) -> None:
        for task in tasks:
            node = self._by_name[task.node]
            node.ended.append(task)
            self._wake(node)

    # Masters

    def _arrived(self, run: JobRun) -> None:
        timing = self.world.workload.timing
        size = model.Resources(cpu_milli=timing.am_container_cores * 1000, memory_bytes=timing.am_container_mb * MB)
        task_class = model.TaskClass(
            id=model.ClassId(f"{run.job.id}/master"), job=run.job.id, resources=size, stage=model.Stage.DRIVER
        )
        self.world.submit(
            run, task_class, [model.Task(id=model.TaskId(f"{task_class.id}-0"), task_class=task_class.id)]
        )
        master = _Master(run, self.world.clock.now_ms % self._master_ms)
        self._masters[run.job.id] = master
        self._wake_master(master)
        self._wake_all()

    def _wake_master(self, master: _Master) -> None:
        if not master.awake:
            master.awake = True
            at_ms = next_beat_ms(self.world.clock.now_ms, self._master_ms, master.phase_ms)
            self.world.clock.background(at_ms, Priority.MASTER_HEARTBEAT, Call(self._master_heartbeat, master))

    def _master_heartbeat(self, master: _Master) -> None:
        master.awake = False
        if master.closing:
            self.world.end_job(master.run)
            return
        if not master.up and not self._come_up(master):
            self._wake_master(master)
            return
        self._launch(master)
        master.out -= master.counted
        master.acquired, master.allocated = master.allocated, []
        master.counted, master.released = master.released, 0
        run = master.run
        idle = not run.unplaced and not master.out and not master.acquired
        if idle and run.phase + 1 < len(run.classes):  # the next phase waited for the end of this one
            self.world.submit_next_phase(run)
            self._wake_all()
        elif idle:
            assert master.container is not None
            self.world.ledger.gone(master.container.id)
            node = self._by_name[master.container.node]
            node.too_small_for = None
            self._wake(node)
            master.closing = True
            self._wake_master(master)
        elif master.acquired or master.counted:
            self._wake_master(master)

    def _come_up(self, master: _Master) -> bool:
        if master.container is None:
            return False
        master.up = True
        self._coming -= 1
        self._by_name[master.container.node].launching -= 1
        self.world.submit_next_phase(master.run)
        self._wake_all()
        return True

    def _launch(self, master: _Master) -> None:
        for task in master.acquired:
            node = self._by_name[task.node]
            node.launching -= 1
            self.world.start(task)
            self._wake(node)


_MOST_PERIODS = 10
"""Heartbeats between two that change something, at most: a master's last three, and those that launch a container."""


class Instant:
    """All that happens at one millisecond, then cycles until nothing more can be placed."""

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = World(workload, profile, self._arrived, self._ended, errors=errors, seed=seed)

    def advance(self) -> bool:
        """Process one event; after the last of a millisecond, the cycles. Return False at the end."""
        clock = self.world.clock
        if not clock.step():
            return False
        if clock.next_ms() != clock.now_ms:
            self.world.run_cycles(self._cycle)
        return True

    def _cycle(self, offered: Iterable[model.NodeName] | None) -> None:
        world, now_s = self.world, self.world.clock.now_s
        for decision in world.decide(offered, park=not world.profile.node_driven):
            match decision:
                case model.Create() | model.Bind():
                    task = world.place(decision)
                    if task.phase < 0:
                        self._master_placed(task)
                        continue
                    world.start(task)
                    world.renewed |= world.placed_whole(task.run)
                case model.Reservation(until_s=until_s) | model.Wait(until_s=until_s) if (
                    until_s is not None and until_s > now_s
                ):
                    world.clock.background(round(until_s * 1000), Priority.ARRIVAL, self._look_again)
                case model.Reservation() | model.Wait():
                    pass
                case _:
                    world.notify_refused(decision, "NotSupported")  # tasks here only run

    def _arrived(self, run: JobRun) -> None:
        self.world.renewed = True
        if run.master is None:
            self.world.submit_next_phase(run)
        else:
            self.world.submit_master(run)

    def _master_placed(self, task: Running) -> None:
        run, clock = task.run, self.world.clock
        assert run.spec.master is not None
        run.container, task.started_ms = task, clock.now_ms
        clock.at(clock.now_ms + run.spec.master.duration_ms, Priority.ARRIVAL, Call(self._master_up, run))

    def _master_up(self, run: JobRun) -> None:
        self.world.renewed = True
        self.world.submit_next_phase(run)

    def _master_gone(self, task: Running) -> None:
        world, cores = self.world, task.run.spec.master.cores if task.run.spec.master is not None else 0
        held_ms = world.clock.now_ms - task.started_ms
        world.tally.mb_ms += task.given_mb * held_ms
        world.tally.core_ms += cores * held_ms
        self.world.freed.add(task.node)
        world.give_back([task])

    def _ended(self, tasks: Sequence[Running]) -> None:
        if self.world.profile.node_driven:
            self.world.freed.update([task.node for task in tasks])
        self.world.give_back(tasks)
        for task in tasks:
            run = task.run
            run.left -= 1
            if not run.left:
                self._job_ended(run)
            elif run.phase + 1 < len(run.classes):
                self.world.renewed |= self.world.ended_whole(run)

    def _job_ended(self, run: JobRun) -> None:
        if run.container is not None:
            self._master_gone(run.container)
        self.world.end_job(run)
        self.world.drop_probe(run)

    def _look_again(self) -> None:
        """Run a cycle for which time itself is the event."""
        self.world.renewed = True


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
    single_node = dataclasses.replace(
        whole, nodes=1, racks=1, machines=(), hosts=(), node_mem_mb=whole.total_mem_mb, node_cores=whole.total_cores
    )
    timing = dataclasses.replace(workload.timing, allocs_per_node_heartbeat=workload.tasks + len(workload.jobs))
    return dataclasses.replace(workload, cluster=single_node, timing=timing)


def with_drivers_outside(workload: Workload) -> Workload:
    """Return the same jobs, submitted by `spark-submit --deploy-mode client`."""
    apps = (dataclasses.replace(app, driver=None) if isinstance(app, Spark) else app for app in workload.apps)
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
    if heartbeat_s is None:
        made = Live if workload.live else Instant
        return made(workload, profile, errors=errors, seed=seed)
    period_ms = round(heartbeat_s * 1000)
    if period_ms < 1:
        raise ValueError(f"the heartbeat must be at least 0.001 s, not {heartbeat_s}")
    timing = dataclasses.replace(workload.timing, node_heartbeat_ms=period_ms, am_heartbeat_ms=period_ms)
    workload = dataclasses.replace(workload, timing=timing)
    if not workload.live:
        return Heartbeats(workload, profile, errors=errors, seed=seed)
    _check_heartbeats(workload)
    return LiveHeartbeats(workload, profile, errors=errors, seed=seed)


def _check_heartbeats(workload: Workload) -> None:
    """Refuse what has no meaning with YARN's heartbeats in a live world."""
    timing = workload.timing
    if timing.am_container_mb or timing.am_container_cores:
        raise ValueError(
            f"{workload.name}: `timing` gives masters a container, for which jobs of live worlds have no place: set "
            "am_container_mb and am_container_cores to 0, or leave the heartbeat's period out"
        )
    whole = [app.id for app in workload.apps if isinstance(app, Spark) and app.min_executors]
    if whole:
        raise ValueError(
            f"{workload.name}: application {whole[0]} starts whole (min_executors), on several nodes at once, and a "
            "heartbeat offers one node: set min_executors to 0, or leave the heartbeat's period out"
        )


def simulate(
    workload: Workload,
    name: str,
    *,
    heartbeat_s: float | None = None,
    errors: Errors | None = None,
    seed: int = 0,
    watch: Callable[[AnyWorld], None] | None = None,
) -> Outcome:
    """Run a simulation to its end: that of `shell`, whose arguments are the same.

    `watch` is called after every event: invariants in tests, progress on a terminal.

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
