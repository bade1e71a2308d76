"""Simulations by the names of profiles, as the command line gives them.

`Instant` starts tasks when they fit: the operator's way, where a watch tells at once what came free. `Heartbeats` has
YARN's rules (docs/simulator.md) as DSS has them, the simulator of the YARN-ME paper's authors. A job's master comes up
one period after its submission at the earliest. A container that ended is free on its node at once, but only the node's
own heartbeat can use it, and its job is charged until then. Heartbeats that could change nothing are left out: a node
sleeps until a container ends there, a job comes, a master comes up, or a policy said that it would look again.
"""

import dataclasses
import math
import operator
import time
from collections.abc import Callable, Iterable, Sequence

from typing_extensions import override

from boathouse_policies import framework, model, profiles
from boathouse_sim.base_world import AnyWorld, Call, Shell, size
from boathouse_sim.clock import Beat, Priority
from boathouse_sim.live import Live, LiveHeartbeats, Spark
from boathouse_sim.results import Outcome
from boathouse_sim.workload import Errors, Workload
from boathouse_sim.world import JobRun, Running, World


class Instant(Shell):
    """All that happens at one millisecond, then cycles until nothing more can be placed."""

    world: World
    to_ms: Callable[[float], int] = staticmethod(round)

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        self.world = World(workload, profile, self._arrived, self._ended, errors=errors, seed=seed)

    @override
    def _settle(self) -> None:
        self.world.run_cycles(self._cycle)

    def _cycle(self, offered: Iterable[model.NodeName] | None) -> None:
        for decision in self.world.decide(offered, park=not self.world.profile.node_driven):
            self._carry_out(decision)

    def _carry_out(self, decision: model.Decision) -> None:
        match decision:
            case model.Create() | model.Bind():
                self._place(decision)
            case model.Reservation() | model.Wait():
                self.look_at(decision)
            case _:
                self.world.notify_refused(decision, "NotSupported")  # tasks here only run

    def _place(self, decision: model.Placement) -> None:
        task = self.world.place(decision)
        if task.phase < 0:
            self._master_placed(task)
        else:
            self.world.start(task)
            self.world.renewed |= self.world.placed_whole(task.run)

    def _arrived(self, run: JobRun) -> None:
        if run.master is None:
            self._master_up(run)
        else:
            self.world.renewed = True
            self.world.submit(run, run.master)

    def _master_placed(self, task: Running) -> None:
        run, clock = task.run, self.world.clock
        assert run.spec.master is not None
        run.container, task.started_ms = task, clock.now_ms
        clock.after(run.spec.master.duration_ms, self._master_up, run)

    def _master_up(self, run: JobRun) -> None:
        self.world.renewed = True
        self.world.submit_next_phase(run)

    def _master_gone(self, task: Running) -> None:
        world, master = self.world, task.run.spec.master
        assert master is not None
        held_ms = world.clock.now_ms - task.started_ms
        world.tally.mb_ms += task.given_mb * held_ms
        world.tally.core_ms += master.cores * held_ms
        world.freed.add(task.node)
        world.give_back([task])

    def _ended(self, tasks: Sequence[Running]) -> None:
        if self.world.profile.node_driven:
            self.world.freed.update([task.node for task in tasks])
        self.world.give_back(tasks)
        for task in tasks:
            run = task.run
            run.left -= 1
            if run.left:
                self.world.renewed |= self.world.ended_whole(run)
                continue
            if run.container is not None:
                self._master_gone(run.container)
            self.world.end_job(run)
            self.world.drop_probe(run)


@dataclasses.dataclass(slots=True, eq=False)
class _Node:
    name: model.NodeName
    beat: Beat
    too_small_for: Sequence[float] | None = None
    """The least pending size, by row, for which it had no room; None once room came free."""
    ended: list[Running] = dataclasses.field(default_factory=list)  # containers to report
    launching: int = 0  # containers that were allocated and are not launched


@dataclasses.dataclass(slots=True, eq=False)
class _Master:
    run: JobRun
    beat: Beat = dataclasses.field(init=False)
    container: Running | None = None
    up: bool = False  # whether it was launched, so that its tasks are asked for
    closing: bool = False  # whether its next heartbeat is its last
    allocated: list[Running] = dataclasses.field(default_factory=list)  # containers since its last heartbeat
    acquired: list[Running] = dataclasses.field(default_factory=list)  # containers to launch at its next
    released: int = 0  # ends since its last heartbeat
    counted: int = 0  # ends that its next heartbeat counts
    out: int = 0  # tasks placed and not counted as ended


class Heartbeats(Instant):
    """See the module's docstring. The workload's `timing` holds the periods."""

    to_ms = staticmethod(math.ceil)

    def __init__(
        self, workload: Workload, profile: framework.Profile, *, errors: Errors | None = None, seed: int = 0
    ) -> None:
        super().__init__(workload, profile, errors=errors, seed=seed)
        self._needs_room = profile.depends_on_shape_only and not profile.controllers
        self._coming = 0  # masters that were placed and are not up: their tasks will wait soon
        self._masters: dict[model.JobId, _Master] = {}
        self._looks_ms: set[int] = set()
        self._by_name = {name: _Node(name, beat) for name, beat in self.beats(self._node_heartbeat).items()}
        for node in self._by_name.values():
            node.beat.wake(node.beat.phase_ms)

    @override
    def advance(self) -> bool:
        return self.world.clock.step()

    # Nodes

    def _wake_all(self) -> None:
        for node in self._by_name.values():
            node.beat.wake()

    def _node_heartbeat(self, name: model.NodeName) -> None:
        node = self._by_name[name]
        node.beat.awake = False
        if node.ended:
            self.world.give_back(node.ended)
            node.too_small_for = None
            for task in node.ended:
                master = self._masters[task.run.job.id]
                master.released += 1
                master.beat.wake()
            node.ended.clear()
        if self._offer(node) and (self.world.waiting or self._coming):
            node.beat.wake()

    def _offer(self, node: _Node) -> bool:
        """Let the cycle place on this node; whether another heartbeat soon could change anything."""
        if not self.world.waiting or (self._needs_room and not self._may_fit(node)):
            return node.launching > 0
        was_kept, before = node.name in self.world.room.reserved, len(self.world.ledger)
        most = self.world.workload.timing.allocs_per_node_heartbeat
        for decision in self.world.decide([node.name], max_per_node=most, park=False):
            self._carry_out(decision)
        return len(self.world.ledger) > before or (node.launching > 0 and not was_kept)

    def _may_fit(self, node: _Node) -> bool:
        """Return whether a cycle that is offered this node may place anything; where it may not, it counts as run."""
        least = self.world.room.least(self.world.profile.sizer)
        if node.too_small_for is not least:
            if not any(map(operator.lt, self.world.ledger.free(node.name) or (), least)):
                return True
            node.too_small_for = least
        self.world.cycles += 1
        return False

    @override
    def _look_at_ms(self, at_ms: int) -> None:
        if at_ms not in self._looks_ms:  # many decisions wait for one moment
            self._looks_ms.add(at_ms)
            super()._look_at_ms(at_ms)

    @override
    def _look_again(self) -> None:
        self._looks_ms.discard(self.world.clock.now_ms)
        self.world.room.tick(self.world.clock.now_s)
        self._wake_all()

    @override
    def _place(self, decision: model.Placement) -> None:
        task = self.world.place(decision)
        self.world.clock.progress()
        self._by_name[task.node].launching += 1
        master = self._masters[decision.job.id]
        if master.container is None:
            master.container = task
            self._coming += 1
            return
        master.out += 1
        master.allocated.append(task)
        master.beat.wake()
        self.world.placed_whole(task.run)

    @override
    def _ended(self, tasks: Sequence[Running]) -> None:
        for task in tasks:
            node = self._by_name[task.node]
            node.ended.append(task)
            node.beat.wake()

    # Masters

    @override
    def _arrived(self, run: JobRun) -> None:
        timing, clock, job = self.world.workload.timing, self.world.clock, run.job.id
        room, name = size(timing.am_container_cores, timing.am_container_mb), model.ClassId(f"{job}/master")
        self.world.submit(run, model.TaskClass(id=name, job=job, resources=room, stage=model.Stage.DRIVER))
        self._masters[job] = master = _Master(run)
        heartbeat, phase_ms = Call(self._master_heartbeat, master), clock.now_ms % timing.am_heartbeat_ms
        master.beat = Beat(clock, timing.am_heartbeat_ms, phase_ms, Priority.MASTER_HEARTBEAT, heartbeat)
        master.beat.wake()
        self._wake_all()

    def _master_heartbeat(self, master: _Master) -> None:
        master.beat.awake = False
        if master.closing:
            self.world.end_job(master.run)
            return
        if not master.up and not self._come_up(master):
            master.beat.wake()
            return
        for task in master.acquired:
            node = self._by_name[task.node]
            node.launching -= 1
            self.world.start(task)
            node.beat.wake()
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
            self.world.ledger.gone(master.container.task.id)
            node = self._by_name[master.container.node]
            node.too_small_for = None
            node.beat.wake()
            master.closing = True
            master.beat.wake()
        elif master.acquired or master.counted:
            master.beat.wake()

    def _come_up(self, master: _Master) -> bool:
        if master.container is None:
            return False
        master.up = True
        self._coming -= 1
        self._by_name[master.container.node].launching -= 1
        self.world.submit_next_phase(master.run)
        self._wake_all()
        return True


MEGANODE = "meganode"
"""Shortest remaining job first on one node as large as all: the bound without fragmentation (the paper's 6.2)."""


YARN_CLIENT = "yarn-client"  # drivers of Spark applications run outside of the cluster (client mode)


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
    workload: Workload, name: str, *, heartbeat_s: float | None = None, errors: Errors | None = None, seed: int = 0
) -> Shell:
    """Return a simulation with the profile of this name, ready to run.

    Nodes and masters have heartbeats of this period; with None, tasks start when they fit. `errors` says how the truth
    strays from the estimates, `seed` is of what is drawn. A ValueError says that there is no such profile, that the
    period is not positive, or that the workload cannot be simulated.
    """
    if name not in names():
        raise ValueError(f"there is no profile {name!r}; choose from: {', '.join(names())}")
    if name == MEGANODE:
        workload, name = pooled(workload), "srjf"
    if name == YARN_CLIENT:
        workload = with_drivers_outside(workload)
    profile = profiles.build(name)
    if heartbeat_s is None:
        return (Live if workload.live else Instant)(workload, profile, errors=errors, seed=seed)
    period_ms = round(heartbeat_s * 1000)
    if period_ms < 1:
        raise ValueError(f"the heartbeat must be at least 0.001 s, not {heartbeat_s}")
    timing = dataclasses.replace(workload.timing, node_heartbeat_ms=period_ms, am_heartbeat_ms=period_ms)
    workload = dataclasses.replace(workload, timing=timing)
    if workload.live:
        _check_heartbeats(workload)
    return (LiveHeartbeats if workload.live else Heartbeats)(workload, profile, errors=errors, seed=seed)


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
    """Run the simulation of `shell` to its end, and call `watch` after every event: invariants, or progress.

    A StuckError says that the policy places nothing any more though tasks wait.
    """
    started_s = time.process_time()
    driver = shell(workload, name, heartbeat_s=heartbeat_s, errors=errors, seed=seed)
    while driver.advance():
        if watch is not None:
            watch(driver.world)
    return dataclasses.replace(driver.world.finished(), cpu_s=time.process_time() - started_s)
