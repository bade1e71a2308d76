"""Gauges of the scheduler, read from its state at each scrape."""

import statistics
from collections.abc import Iterator
from typing import Any

from boathouse.scheduling import scheduler, writer
from boathouse.scheduling.pods import facts, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse.suspension import reconciler
from boathouse.suspension.stages import Stage
from boathouse.telemetry import metrics
from boathouse_policies import framework, model
from boathouse_policies.profiles import guard

_MILLI = 1000.0
_REASONS = tuple(str(code) for code in model.Code)


class SchedulerGauges(Part):
    """Reads the gauges of a scheduler."""

    def __init__(self, subject: scheduler.Scheduler, leader: writer.Leadership) -> None:
        super().__init__(subject.state)
        self._operations = subject.executor.operations
        self._leader = leader
        self._guard = guard.guard_of(subject.state.profile)

    def register(self, target: metrics.ScrapeGauges) -> None:
        """Expose all gauges."""
        leader = self._leader
        gauges: tuple[tuple[str, str, tuple[str, ...], Any], ...] = (
            ("leader", "1 while this process is the leader", (), lambda: {(): float(leader.valid())}),
            (
                "leader_epoch",
                "Epoch of this process's leadership; 0 without leadership",
                (),
                lambda: {(): float(leader.epoch or 0)},
            ),
            ("cache_size", "Objects in the scheduler's cache", ("type",), self._cache_size),
            ("pods", "Pods and planned pods by their state in the scheduler", ("state",), self._pods_by_state),
            ("pending_pods", "Pods that exist and have no node", ("state",), self._pending_pods),
            ("pending_tasks", "Pending tasks by queue and reason", ("queue", "reason"), self._pending_tasks),
            ("queue_used_cpu_cores", "CPU requests placed", ("queue",), lambda: _by_queue(self._used(), 0, _MILLI)),
            ("queue_used_memory_bytes", "Memory requests placed", ("queue",), lambda: _by_queue(self._used(), 1, 1.0)),
            (
                "queue_demand_cpu_cores",
                "CPU requests placed or waiting",
                ("queue",),
                lambda: _by_queue(self._demand(), 0, _MILLI),
            ),
            (
                "queue_demand_memory_bytes",
                "Memory requests placed or waiting",
                ("queue",),
                lambda: _by_queue(self._demand(), 1, 1.0),
            ),
            (
                "queue_dominant_share_ratio",
                "Dominant share of the cluster that a queue uses",
                ("queue",),
                self._share,
            ),
            (
                "queue_fair_share_ratio",
                "Weight of a queue divided by that of all queues with tasks",
                ("queue",),
                self._fair,
            ),
            (
                "reservations",
                "Resources reserved for expected tasks without a pod",
                ("state",),
                self._reservations,
            ),
            (
                "oldest_reservation_age_seconds",
                "Age of the oldest reservation for an expected task; 0 without reservations",
                (),
                self._oldest_reservation,
            ),
            (
                "reserved_nodes",
                "Nodes that the profile reserves for pending tasks",
                (),
                lambda: {(): float(len(self._queue.reserved))},
            ),
            (
                "reservation_age_seconds",
                "Age of the oldest reservation of nodes for a driver or executor; 0 without reservations",
                (),
                self._oldest_reserved_node,
            ),
            (
                "excluded_nodes",
                "Node exclusions after kubelet refusals",
                (),
                lambda: {(): float(len(self._exclusions))},
            ),
            (
                "interference_error",
                "Mean relative error of predicted slowdowns of tasks that no model was fitted to, median of namespaces",
                (),
                self._model_error,
            ),
            (
                "interference_threshold",
                "Largest slowdown that the profile accepts on a node, over the nodes that do not accept any slowdown",
                ("statistic",),
                self._thresholds,
            ),
            (
                "profile_parts_off",
                "Programs for which a part of the profile is off, because its decisions did harm",
                ("part",),
                self._parts_off,
            ),
            (
                "profile_part_effect_seconds",
                "Job time that a part was to save, and saved by its tasks and by blocks of time; below 0: what it cost",
                ("part", "effect"),
                self._part_effects,
            ),
            (
                "suspended_tasks",
                "Running tasks whose CPU is lent",
                (),
                lambda: {(): float(len(self._suspended()))},
            ),
            (
                "lent_cpu_cores",
                "CPU requests of suspended tasks that their nodes have free",
                (),
                lambda: {(): sum(map(_lent_milli, self._suspended())) / _MILLI},
            ),
            (
                "owed_cpu_cores",
                "CPU requests that resumed tasks do not have again",
                (),
                lambda: {(): self._owed_milli() / _MILLI},
            ),
            ("in_flight_writes", "Decisions not yet in flight", (), lambda: {(): float(len(self._operations))}),
        )
        for name, documentation, labels, read in gauges:
            target.add(
                metrics.Gauge(name=f"{metrics.PREFIX}_{name}", documentation=documentation, labels=labels, read=read)
            )

    def _cache_size(self) -> metrics.Reading:
        return {
            ("nodes",): float(len(self._pods.nodes)),
            ("pods",): float(len(self._ledger)),
            ("assumed_pods",): float(sum(1 for _ in self._pods.assumed())),
        }

    def _pods_by_state(self) -> metrics.Reading:
        counts = {state.value: count for state, count in self._pods.counts().items()}
        counts["suspended"] = len(self._suspended())
        counts[PodState.CONFIRMED] -= counts["suspended"]
        return {(state,): float(count) for state, count in counts.items()}

    def _oldest_reserved_node(self) -> metrics.Reading:
        reserved = self._state.profile.reserve.reservations()
        return {(): max((self._clock() - reservation.since_s for reservation in reserved), default=0.0)}

    def _figures(self, name: str) -> list[float]:
        """Return what the profile's policies say under a name."""
        return [value for policy in self._state.profile.figures for value in policy.of_policy().get(name, ())]

    def _model_error(self) -> metrics.Reading:
        errors = self._figures("interferenceError")
        return {(): errors[0]} if errors else {}

    def _thresholds(self) -> metrics.Reading:
        values = self._figures("interferenceThreshold")
        thresholds = {"min": min(values), "median": statistics.median(values), "max": max(values)} if values else {}
        return {(name,): value for name, value in thresholds.items()}

    def _parts_off(self) -> metrics.Reading:
        off = {} if self._guard is None else self._guard.programs_off(self._clock())
        return {(part.value,): float(off.get(part, 0)) for part in guard.Part}

    def _part_effects(self) -> metrics.Reading:
        if self._guard is None:
            return {}
        effects, in_blocks = self._guard.effects.items(), self._guard.in_blocks.items()
        return {
            **{(part.value, "predicted"): effect.predicted_s for part, effect in effects},
            **{(part.value, "realised"): effect.realised_s for part, effect in effects},
            **{(part.value, "switchback"): effect.realised_s for part, effect in in_blocks},
        }

    # Suspended tasks

    def _suspended(self) -> list[facts.PodFacts]:
        return [row.facts for row in self._pods.suspensions() if row.facts and row.facts.stage is Stage.SUSPENDED]

    def _owed_milli(self) -> int:
        return sum(map(reconciler.ungrown_milli, self._pods.suspensions()))

    # Pending tasks

    def _pending_pods(self) -> metrics.Reading:
        states = dict.fromkeys(("active", "gated"), 0)
        for row in self._pods.waiting():
            states["gated" if row.facts is not None and row.facts.is_gated else "active"] += 1
        return {(state,): float(count) for state, count in states.items()}

    def _pending_tasks(self) -> metrics.Reading:
        counts: dict[tuple[str, ...], float] = {
            (str(queue), reason): 0.0 for queue in self._queue.queues for reason in ("Active", *_REASONS)
        }
        unschedulable = self._queue.unschedulable()
        for waiting in self._waiting():
            verdict = unschedulable.get(waiting.task_class.id)
            key = (str(waiting.job.queue), "Active" if verdict is None else str(verdict.code))
            counts[key] = counts.get(key, 0.0) + waiting.pool.count
        return counts

    def _waiting(self) -> list[framework.QueuedClass]:
        return [queued for entry in self._jobs.entries() for queued in self._queue.classes_of(entry.job.id)]

    def _reservations(self) -> metrics.Reading:
        return {("expected_task",): float(sum(1 for _ in self._reserved()))}

    def _oldest_reservation(self) -> metrics.Reading:
        return {(): max((self._clock() - row.reserved_s for row in self._reserved()), default=0.0)}

    def _reserved(self) -> Iterator[rows.PodRow]:
        gangs = (entry.gang for entry in self._jobs.entries() if entry.gang is not None)
        expected = (self._pods.get(task) for gang in gangs for task in gang.expected)
        return (row for row in expected if row is not None and row.reserved is not None)

    # Queues

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

    def _share(self) -> metrics.Reading:
        view = self._ledger.snapshot(0.0)
        return {(str(queue),): view.layout.dominant_share(view.queue_usage(queue)) for queue in self._queue.queues}

    def _fair(self) -> metrics.Reading:
        queues = self._queue.queues
        demand = self._demand()
        busy = {name for name in queues if demand[str(name)] != (0, 0)}
        total = sum(queues[name].weight for name in busy)
        return {(str(name),): queues[name].weight / total if name in busy else 0.0 for name in queues}


def _lent_milli(pod: facts.PodFacts) -> int:
    return 0 if pod.suspension is None else max(0, pod.suspension.cpu_request_milli - pod.resources.cpu_milli)


def _by_queue(amounts: dict[str, tuple[int, int]], which: int, unit: float) -> metrics.Reading:
    return {(queue,): pair[which] / unit for queue, pair in amounts.items()}
