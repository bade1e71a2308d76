"""Gangs before a cycle: which are in line, and what is reserved for them, because it goes before all that waits.

* A gang is in line if it could start at all, and the quotas of its namespace have room for it.
* Executors that a driver created take reserved places, as the core decides (`framework.gang_minimum`).
* What a gang that has begun is short of, after a restart of the operator or the loss of a node, goes before all others
  in the cycle (`is_short`), to the places first that an earlier leader had reserved (`former_places`).

Room that is reserved is charged to the queue of the job.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping

from boathouse.scheduling import gangs, jobs
from boathouse.scheduling.limits import Amounts
from boathouse.scheduling.pods import rows, translate
from boathouse.scheduling.pods.states import PendingReason, PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_policies.framework import eligibility, gang_minimum

log = logs.get(__name__)


class GangJudge(Part):
    """Judges gangs that have not begun."""

    def may_begin(self, job: model.JobId) -> bool:
        """Say, as its driver is to be created, whether a gang is in line: others may have begun in the same cycle."""
        if (entry := self._jobs.entry(job)) is None or entry.gang is None:
            return True
        self.judge(entry, entry.gang)
        self._jobs.touch(job)
        return entry.pending_reason is None

    def judge(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> None:
        """Note why a gang is not in the queue, and whether only for lack of nodes; None if it is."""
        least = gang.least(self._state.profile.sizer)
        above = gang_minimum.above_limit(least, self._queue.queues.get(entry.job.queue), self._state.axis)
        why = above or gang_minimum.never_fits(least, self._ledger.snapshot(self._clock()))
        wanted = gang_minimum.of_quota(gang, self._limits(entry, gang))
        of_quota = self._of_quota(entry, wanted, self._held(entry, gang))
        if why is None:
            entry.pending_reason, entry.lacks_nodes = of_quota, False
            return
        extended = dict([*gang.leader.resources.extended, *gang.executor.resources.extended])
        hint = next(filter(None, map(self._devices.hint, extended)), "")
        entry.pending_reason = PendingReason(reason=str(model.Code.NEVER_FITS), message=why + (hint and f".{hint}"))
        entry.lacks_nodes = above is None and of_quota is None and not hint

    def has_room_for_executors(self, entry: jobs.Entry, gang: gang_minimum.Gang, executors: int) -> bool:
        """Say whether the quotas have room for so many executors beside all pods that exist, placeholders included."""
        wanted = gang_minimum.promised(gang, self._limits(entry, gang), executors, with_driver=False)
        return self._of_quota(entry, wanted, held={}) is None

    def _of_quota(self, entry: jobs.Entry, wanted: Amounts, held: Amounts) -> PendingReason | None:
        return self._quotas.check(
            entry.namespace, wanted, priority_class=entry.job.priority_class, promised=self._promised(entry), held=held
        )

    def _held(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> Amounts:
        """Return what a gang that has not begun takes of the quotas already, by the pods that show it."""
        placeholders, driver = self._state.placeholders.of(entry.job.id), self._pods.get(gang.driver)
        has_driver = driver is not None and driver.is_submitted and driver.pending_uid is not None
        has_driver = has_driver or gangs.of_driver(gang) in placeholders
        executors = sum(gangs.of_executor(task) in placeholders for task in gang.expected)
        return gang_minimum.promised(gang, self._limits(entry, gang), executors, with_driver=has_driver)

    def _promised(self, but: jobs.Entry) -> Iterator[Amounts]:
        """Yield what other drivers of a namespace may still create of their minimum."""
        for entry, gang in self._jobs.gangs_in(but.namespace):
            members = gangs.members(gang, self._pods)
            if entry is not but and members.driver is not None and members.has_begun:
                missing = gang_minimum.uncreated(gang, members.executors)
                missing = max(0, missing - len(self._state.placeholders.of(entry.job.id)))  # these are counted as used
                is_creating = members.driver.state is PodState.CREATING
                yield gang_minimum.promised(gang, self._limits(entry, gang), missing, with_driver=is_creating)

    def _limits(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> gang_minimum.Limits:
        """Return the limits of the gang's pods, if a quota of their namespace counts any."""
        is_counted = any(self._quotas.counts(entry.namespace, line) for line in translate.LIMITS)
        if not is_counted or not isinstance(entry.factory, jobs.ExpectingFactory):
            return gang_minimum.Limits()
        if entry.limits is None:
            try:
                entry.limits = gang_minimum.Limits(
                    driver=translate.manifest_limits(entry.factory.build(gang.driver, gang.leader.resources, None)),
                    executor=translate.manifest_limits(entry.factory.build_expected(None)),
                )
            except Exception as error:  # noqa: BLE001 - one job's pods must not stop all others
                log.warning("the limits of an application are not known", job=entry.job.name, error=str(error))
                entry.limits = gang_minimum.Limits()
        return entry.limits


RESTORE_S = 15.0
LEARN_S = 5.0
JUDGE_EVERY_S = 1.0


class Reservations(Part):
    """Reserves room for gangs."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._judge = GangJudge(state)
        self.may_begin = self._judge.may_begin
        self._waiting: set[model.JobId] = set()  # gangs that have not begun
        self._retry: dict[model.JobId, float] = {}
        self._judged: tuple[int, Mapping[model.QueueName, model.Queue]] = (-1, {})
        self._checked_at, self._judge_from_s = -1, -math.inf
        self._began_s, self._are_restored = state.clock(), False

    def next_s(self) -> float:
        """Return when `decide` may have something to do though nothing happened; infinity for never."""
        restored_s = math.inf if self._are_restored else self._began_s + RESTORE_S
        return min([restored_s, self._judge_from_s if self._is_outdated() else math.inf, *self._retry.values()])

    def are_restored(self) -> bool:
        """Say whether the applications of all drivers were submitted: until then their reservations are not known.

        After a change of the leader that takes a few seconds, and the room must not be given to others meanwhile. What
        is not submitted within `RESTORE_S` is over. A profile that keeps account of running tasks learns of them as
        their jobs are submitted, so it waits for these too, for at most `LEARN_S`.
        """
        if not self._are_restored:
            passed_s = self._clock() - self._began_s
            are_known = passed_s >= RESTORE_S or all(map(self._jobs.is_known, self._pods.with_reservations()))
            running = () if self._state.profile.running is None else self._pods.running(PodState.CONFIRMED)
            self._are_restored = are_known and (passed_s >= LEARN_S or all(map(self._jobs.is_known, running)))
        return self._are_restored

    def decide(self) -> list[rows.Operation]:
        """Return the writes of executors that take reserved places, and of drivers whose gang can start."""
        operations = self._settle_all() if self._jobs.gangs or self._jobs.touched else []
        for freed in self._pods.take_released():
            self._room_freed(freed)
        return operations

    def _settle_all(self) -> list[rows.Operation]:
        self._check_nodes()
        self._judge_again()
        self._judge_quotas()
        for job in [job for job, due_s in self._retry.items() if due_s <= self._clock()]:
            del self._retry[job]
            self._jobs.touch(job)
        operations: list[rows.Operation] = []
        for _ in range(2):  # what one gang does not need any more of a quota is there for others
            touched = list(self._jobs.touched)
            self._jobs.touched.clear()
            for job in touched:
                operations += self._settle(job)
            self._judge_quotas()
        return operations

    def reserve(self, decision: model.Reservation) -> None:
        """Count an expected task where a plan placed it."""
        self._jobs.touch(decision.job.id)
        row = None if decision.task is None else self._pods.get(decision.task.id)
        if row is None or row.state is not PodState.PLANNED or row.reserved is not None or decision.task is None:
            return
        self._pods.reserve(
            row,
            model.Create(
                task=decision.task,
                task_class=decision.task_class,
                job=decision.job,
                node=decision.node,
                resources=decision.resources or decision.task_class.resources,
            ),
        )

    def _release(self, expected: Iterable[rows.PodRow]) -> None:
        for row in expected:
            self._pods.unreserve(row)

    def _settle(self, job: model.JobId) -> list[rows.Operation]:
        """Let executors take reserved places; keep as many reservations as executors are expected."""
        entry = self._jobs.entry(job)
        self._retry.pop(job, None)
        if entry is not None and entry.namespace in self._quotas and job not in self._waiting:
            self._quotas.changed.add(entry.namespace)
        self._waiting.discard(job)
        if entry is None or entry.gang is None or job in self._jobs.aside:
            return []
        gang = entry.gang
        members = gangs.members(gang, self._pods, lambda row: self._jobs.backoff_of(row) is not None)
        self._release(
            row
            for row, place in gangs.reserved(gang, self._pods)
            if not gang_minimum.is_enough(place.task_class, gang.executor)
        )
        if not (entry.has_begun and members.has_begun) or entry.first:
            self._jobs.changed.add(job)
        entry.has_begun = members.has_begun
        if not members.has_begun:
            entry.first = ()
            if members.driver is not None:
                self._waiting.add(job)
                self._judge.judge(entry, gang)
            self._release(members.expected)
            return []
        operations = self._seat(entry, gang, members)
        if entry.first:
            self._jobs.changed.add(job)
        for operation in operations:
            self._jobs.mark_changed(operation.row)
        return operations

    def _judge_quotas(self) -> None:
        for namespace in self._quotas.changed:
            for entry, _ in self._jobs.gangs_in(namespace):
                if entry.job.id in self._waiting:
                    self._jobs.touch(entry.job.id)
        self._quotas.changed.clear()

    def _is_outdated(self) -> bool:
        changes, queues = self._judged
        return bool(self._waiting) and (changes != self._pods.node_changes or queues is not self._queue.queues)

    def _judge_again(self) -> None:
        """Judge the gangs in line once more after a change of nodes or queues, once a second at most."""
        if self._is_outdated() and self._clock() >= self._judge_from_s:
            self._judge_from_s = self._clock() + JUDGE_EVERY_S
            self._judged = self._pods.node_changes, self._queue.queues
            for job in self._waiting:
                self._jobs.touch(job)

    def _seat(self, entry: jobs.Entry, gang: gang_minimum.Gang, members: gangs.Members) -> list[rows.Operation]:
        """Give executors reserved places; return the writes, and note the tasks for which there is no place yet."""
        places = [gang_minimum.Place(row.id, place.node) for row, place in gangs.reserved(gang, self._pods)]
        seating_ = gang_minimum.seat(gang, members.executors, places, self._pods.nodes, self._clock())
        if seating_.retry_s < math.inf:
            self._retry[entry.job.id] = seating_.retry_s
        by_id, operations, short = {row.id: row for row in members.expected}, [], list(seating_.short)
        for seat in seating_.seats:
            self._release(by_id[expected] for expected in seat.expected)
            if (operation := self._bind(entry, seat)) is None:
                short.append(seat.executor)
            else:
                operations.append(operation)
        self._release(by_id[expected] for expected in seating_.released)
        free = [row for row in members.expected if row.reserved is None]
        entry.first = [row for task in short if (row := self._pods.get(task)) is not None] + free[: seating_.missing]
        return operations

    def _bind(self, entry: jobs.Entry, seat: gang_minimum.Seat) -> rows.Operation | None:
        row = self._pods.get(seat.executor)
        task_class = None if row is None or row.task is None else entry.class_of(row.task.task_class)
        if row is None or row.task is None or task_class is None:
            return None
        task = dataclasses.replace(row.task, pod_uid=row.pending_uid)
        bind = model.Bind(
            task=task, task_class=task_class, job=entry.job, node=seat.node, resources=task_class.resources
        )
        operation = self._pods.decide(row, bind)
        return operation if isinstance(operation, rows.Operation) else None

    def _check_nodes(self) -> None:
        """Take reservations back on nodes that pods may not be bound to any more."""
        if self._checked_at == self._pods.node_changes:
            return
        self._checked_at = self._pods.node_changes
        for entry, gang in sorted(self._jobs.all_gangs(), key=lambda pair: pair[0].precedence):
            for task in (gang.driver, *gang.expected):
                if (row := self._pods.get(task)) is None or (place := row.reserved) is None:
                    continue
                node = self._pods.nodes.get(place.node)
                if node is None or eligibility.refusal(place.task_class.constraints, node) is not None:
                    self._pods.unreserve(row)
                    self._jobs.touch(entry.job.id)
