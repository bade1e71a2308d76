"""Gauges of the scheduler, read from its state at each scrape."""

import statistics
from collections.abc import Callable, Iterable

from boathouse.scheduling import gangs, scheduler
from boathouse.scheduling.pods import facts, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse.suspension import suspending
from boathouse.suspension.stages import Stage
from boathouse.telemetry.metrics import Gauge, Reading
from boathouse_policies import framework, model
from boathouse_policies.profiles import guard

_MILLI = 1000.0
_QUEUE = ("queue",)


class SchedulerGauges(Part):
    """Reads the gauges of a scheduler."""

    def __init__(self, subject: scheduler.Scheduler) -> None:
        super().__init__(subject.state)
        self._operations = subject.executor.operations
        self._guard = guard.guard_of(subject.state.profile)

    def all(self) -> tuple[Gauge, ...]:
        """Return all gauges."""
        return (
            Gauge("boathouse_leader", "1 while this process is the leader", self._leader.valid),
            Gauge(
                "boathouse_leader_epoch",
                "Epoch of this process's leadership; 0 without leadership",
                lambda: self._leader.epoch or 0,
            ),
            Gauge(
                "boathouse_cache_size",
                "Objects in the scheduler's cache",
                lambda: {
                    ("nodes",): len(self._pods.nodes),
                    ("pods",): len(self._ledger),
                    ("assumed_pods",): len(self._pods.assumed()),
                },
                ("type",),
            ),
            Gauge(
                "boathouse_pods",
                "Pods and planned pods by their state in the scheduler",
                self._pods_by_state,
                ("state",),
            ),
            Gauge("boathouse_pending_pods", "Pods that exist and have no node", self._pending_pods, ("state",)),
            Gauge(
                "boathouse_pending_tasks", "Pending tasks by queue and reason", self._pending_tasks, ("queue", "reason")
            ),
            *_of_queues("used", "placed", self._used),
            *_of_queues("demand", "placed or waiting", self._demand),
            Gauge(
                "boathouse_queue_dominant_share_ratio",
                "Dominant share of the cluster that a queue uses",
                self._share,
                _QUEUE,
            ),
            Gauge(
                "boathouse_queue_fair_share_ratio",
                "Weight of a queue divided by that of all queues with tasks",
                self._fair,
                _QUEUE,
            ),
            Gauge(
                "boathouse_reservations",
                "Resources reserved for expected tasks without a pod",
                lambda: {("expected_task",): len(self._reserved())},
                ("state",),
            ),
            Gauge(
                "boathouse_oldest_reservation_age_seconds",
                "Age of the oldest reservation for an expected task; 0 without reservations",
                lambda: self._oldest_s(row.reserved_s for row in self._reserved()),
            ),
            Gauge(
                "boathouse_reserved_nodes",
                "Nodes that the profile reserves for pending tasks",
                lambda: len(self._queue.reserved),
            ),
            Gauge(
                "boathouse_reservation_age_seconds",
                "Age of the oldest reservation of nodes for a driver or executor; 0 without reservations",
                lambda: self._oldest_s(held.since_s for held in self._state.profile.reserve.reservations()),
            ),
            Gauge("boathouse_excluded_nodes", "Node exclusions after kubelet refusals", lambda: len(self._exclusions)),
            Gauge(
                "boathouse_interference_error",
                "Mean relative error of predicted slowdowns of tasks that no model was fitted to, median of namespaces",
                lambda: {(): errors[0]} if (errors := self._figures("interferenceError")) else {},
            ),
            Gauge(
                "boathouse_interference_threshold",
                "Largest slowdown that the profile accepts on a node, over the nodes that do not accept any slowdown",
                self._thresholds,
                ("statistic",),
            ),
            Gauge(
                "boathouse_profile_parts_off",
                "Programs for which a part of the profile is off, because its decisions did harm",
                self._parts_off,
                ("part",),
            ),
            Gauge(
                "boathouse_profile_part_effect_seconds",
                "Job time that a part was to save, and saved by its tasks and by blocks of time; below 0: what it cost",
                self._part_effects,
                ("part", "effect"),
            ),
            Gauge("boathouse_suspended_tasks", "Running tasks whose CPU is lent", lambda: len(self._suspended())),
            Gauge(
                "boathouse_lent_cpu_cores",
                "CPU requests of suspended tasks that their nodes have free",
                lambda: sum(self._lent_milli()) / _MILLI,
            ),
            Gauge(
                "boathouse_owed_cpu_cores",
                "CPU requests that resumed tasks do not have again",
                lambda: sum(map(suspending.ungrown_milli, self._pods.suspensions())) / _MILLI,
            ),
            Gauge("boathouse_in_flight_writes", "Decisions not yet in flight", lambda: len(self._operations)),
        )

    def _pods_by_state(self) -> Reading:
        counts = {state.value: count for state, count in self._pods.counts().items()}
        counts["suspended"] = len(self._suspended())
        counts[PodState.CONFIRMED] -= counts["suspended"]
        return {(state,): count for state, count in counts.items()}

    def _oldest_s(self, since_s: Iterable[float]) -> float:
        return max((self._clock() - began_s for began_s in since_s), default=0.0)

    def _figures(self, name: str) -> list[float]:
        return [value for policy in self._state.profile.figures for value in policy.of_policy().get(name, ())]

    def _thresholds(self) -> Reading:
        values = self._figures("interferenceThreshold")
        return {(of.__name__,): of(values) for of in (min, statistics.median, max)} if values else {}

    def _parts_off(self) -> Reading:
        off = {} if self._guard is None else self._guard.programs_off(self._clock())
        return {(part.value,): off.get(part, 0) for part in guard.Part}

    def _part_effects(self) -> Reading:
        if self._guard is None:
            return {}
        effects, in_blocks = self._guard.effects.items(), self._guard.in_blocks.items()
        return {
            **{(part.value, "predicted"): effect.predicted_s for part, effect in effects},
            **{(part.value, "realised"): effect.realised_s for part, effect in effects},
            **{(part.value, "switchback"): effect.realised_s for part, effect in in_blocks},
        }

    def _suspended(self) -> list[facts.PodFacts]:
        return [row.facts for row in self._pods.suspensions() if row.facts and row.facts.stage is Stage.SUSPENDED]

    def _lent_milli(self) -> list[int]:
        lent = [(pod.suspension, pod.resources.cpu_milli) for pod in self._suspended()]
        return [max(0, record.cpu_request_milli - held_milli) for record, held_milli in lent if record is not None]

    def _pending_pods(self) -> Reading:
        gated = [row.facts is not None and row.facts.is_gated for row in self._pods.waiting()]
        return {("active",): gated.count(False), ("gated",): gated.count(True)}

    def _pending_tasks(self) -> Reading:
        counts: dict[tuple[str, ...], float] = {
            (str(queue), reason): 0.0 for queue in self._queue.queues for reason in ("Active", *map(str, model.Code))
        }
        unschedulable = self._queue.unschedulable()
        for waiting in self._waiting():
            verdict = unschedulable.get(waiting.task_class.id)
            key = (str(waiting.job.queue), "Active" if verdict is None else str(verdict.code))
            counts[key] = counts.get(key, 0.0) + waiting.pool.count
        return counts

    def _waiting(self) -> list[framework.QueuedClass]:
        return [queued for entry in self._jobs.entries() for queued in self._queue.classes_of(entry.job.id)]

    def _reserved(self) -> list[rows.PodRow]:
        return [row for _, gang in self._jobs.all_gangs() for row, _ in gangs.reserved(gang, self._pods)]

    def _used(self) -> dict[str, tuple[int, int]]:
        view = self._ledger.snapshot(0.0)
        usage = {queue: view.queue_usage(queue) for queue in self._queue.queues}
        return {str(queue): (int(held[model.CPU]), int(held[model.MEMORY])) for queue, held in usage.items()}

    def _demand(self) -> dict[str, tuple[int, int]]:
        demand = self._used()
        for queued in self._waiting():
            cpu, memory = demand.get(str(queued.job.queue), (0, 0))
            size, count = queued.task_class.resources, queued.pool.count
            demand[str(queued.job.queue)] = (cpu + count * size.cpu_milli, memory + count * size.memory_bytes)
        return demand

    def _share(self) -> Reading:
        view = self._ledger.snapshot(0.0)
        return {(str(queue),): view.layout.dominant_share(view.queue_usage(queue)) for queue in self._queue.queues}

    def _fair(self) -> Reading:
        queues = self._queue.queues
        demand = self._demand()
        busy = {name for name in queues if demand[str(name)] != (0, 0)}
        total = sum(queues[name].weight for name in busy)
        return {(str(name),): queues[name].weight / total if name in busy else 0.0 for name in queues}


def _of_queues(name: str, which: str, read: Callable[[], dict[str, tuple[int, int]]]) -> tuple[Gauge, Gauge]:
    def cores() -> Reading:
        return {(queue,): cpu_milli / _MILLI for queue, (cpu_milli, _) in read().items()}

    def memory_bytes() -> Reading:
        return {(queue,): memory for queue, (_, memory) in read().items()}

    return (
        Gauge(f"boathouse_queue_{name}_cpu_cores", f"CPU requests {which}", cores, _QUEUE),
        Gauge(f"boathouse_queue_{name}_memory_bytes", f"Memory requests {which}", memory_bytes, _QUEUE),
    )
