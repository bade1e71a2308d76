"""Reservations for gangs: what is decided before the cycle, because it goes before all that waits.

* Executors that a driver created take reserved places, as the core decides (`framework.gang_minimum`).
* What a gang that has begun is short of, after a restart of the operator or the loss of a node, goes before all others
  in the cycle (`is_short`), to the places first that an earlier leader had reserved (`former_places`).

Room that is reserved is charged to the queue of the job.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping

from boathouse.scheduling import gang_judge, gang_room, gangs, jobs
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model
from boathouse_policies.framework import eligibility, gang_minimum

RESTORE_S = 15.0
LEARN_S = 5.0
JUDGE_EVERY_S = 1.0


class Reservations(Part):
    """Reserves room for gangs.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._room, self._judge = gang_room.GangRoom(state), gang_judge.GangJudge(state)
        self._waiting: set[model.JobId] = set()  # gangs that have not begun
        self.reserve, self.may_begin = self._room.reserve, self._judge.may_begin
        self._retry: dict[model.JobId, float] = {}
        self._checked_at = -1
        self._began_s = state.clock()
        self._are_restored = False
        self._judged: tuple[int, Mapping[model.QueueName, model.Queue]] = (-1, {})
        self._judge_from_s = -math.inf

    def next_s(self) -> float:
        """Return when `decide` may have something to do though nothing happened; infinity for never."""
        due = list(self._retry.values())
        if not self._are_restored:
            due.append(self._began_s + RESTORE_S)
        if self._is_outdated():
            due.append(self._judge_from_s)
        return min(due, default=math.inf)

    def are_restored(self) -> bool:
        """Say whether the applications of all drivers were submitted: until then their reservations are not known.

        After a change of the leader that takes a few seconds, and the room must not be given to others meanwhile. What
        is not submitted within `RESTORE_S` is over. A profile that keeps account of running tasks learns of them as
        their jobs are submitted, so it waits for these too, for at most `LEARN_S`.
        """
        if not self._are_restored:
            passed_s = self._clock() - self._began_s
            are_known = passed_s >= RESTORE_S or all(map(self._jobs.is_known, self._pods.with_reservations()))
            self._are_restored = are_known and (passed_s >= LEARN_S or self._are_learned())
        return self._are_restored

    def _are_learned(self) -> bool:
        """Return whether the jobs of all running tasks were submitted, if the profile keeps account of these."""
        if self._state.profile.running is None:
            return True
        tasks = (row for row in self._pods.running(PodState.CONFIRMED) if row.facts and row.facts.task_of is not None)
        return all(self._jobs.owner_of(row) is not None for row in tasks)

    def decide(self) -> list[rows.Operation]:
        """Return the writes of executors that take reserved places, and of drivers whose gang can start."""
        if not self._jobs.gangs and not self._jobs.touched:
            return self._freed([])
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
        return self._freed(operations)

    def _freed(self, operations: list[rows.Operation]) -> list[rows.Operation]:
        for freed in self._pods.take_released():
            self._room_freed(freed)
        return operations

    def _ranked(self, which: Iterable[model.JobId]) -> list[jobs.Entry]:
        found = [entry for job in which if (entry := self._jobs.entry(job)) is not None]
        return sorted(found, key=lambda entry: (-entry.job.priority, entry.job.submitted_s, entry.job.id))

    # A gang whose tasks changed

    def _settle(self, job: model.JobId) -> list[rows.Operation]:
        """Let executors take reserved places; keep as many reservations as executors are expected."""
        entry = self._jobs.entry(job)
        self._retry.pop(job, None)
        if entry is not None and entry.namespace in self._quotas and job not in self._waiting:
            self._quotas.changed.add(entry.namespace)
        self._waiting.discard(job)
        if entry is None or entry.gang is None or entry.is_aside:
            return []
        found = gangs.members(entry.gang, self._pods, lambda row: self._jobs.hold_of(row) is not None)
        self._room.release(row for row in found.expected if not _is_enough(row.reserved, entry.gang.executor))
        if not (entry.has_begun and found.has_begun) or entry.first:
            self._jobs.mark_job(job)
        entry.has_begun = found.has_begun
        if not found.has_begun:
            entry.first = ()
            if found.driver is not None:
                self._waiting.add(job)
                self._judge.judge(entry, entry.gang)
            self._room.release(found.expected)
            return []
        operations = self._seat(entry, entry.gang, found)
        if entry.first:
            self._jobs.mark_job(job)
        for operation in operations:
            self._jobs.mark_changed(operation.row)
        return operations

    def _judge_quotas(self) -> None:
        """Judge the gangs of namespaces once more of which a quota changed."""
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

    def _seat(self, entry: jobs.Entry, gang: gang_minimum.Gang, found: gangs.Members) -> list[rows.Operation]:
        """Give executors reserved places; return the writes, and note the tasks for which there is no place yet."""
        seating_ = gang_minimum.seat(gang, found.executors, found.places, self._pods.nodes, self._clock())
        if seating_.retry_s < math.inf:
            self._retry[entry.job.id] = seating_.retry_s
        by_id, operations, short = {row.id: row for row in found.expected}, [], list(seating_.short)
        for seat in seating_.seats:
            self._room.release(by_id[expected] for expected in seat.expected)
            operation = self._bind(entry, seat)
            if operation is None:
                short.append(seat.executor)
            else:
                operations.append(operation)
        self._room.release(by_id[expected] for expected in seating_.released)
        free = [row for row in found.expected if row.reserved is None]
        entry.first = [row for task in short if (row := self._pods.get(task)) is not None] + free[: seating_.missing]
        return operations

    def _bind(self, entry: jobs.Entry, seat: gang_minimum.Seat) -> rows.Operation | None:
        """Bind an executor to its seat's node; None if something changed since."""
        row = self._pods.get(seat.executor)
        if row is None or row.task is None:
            return None
        task_class = next(one for one in entry.classes if one.id == row.task.task_class)
        task = dataclasses.replace(row.task, pod_uid=row.pending_uid)
        size = task_class.resources
        bind = model.Bind(task=task, task_class=task_class, job=entry.job, node=seat.node, resources=size)
        operation = self._pods.decide(row, bind)
        return operation if isinstance(operation, rows.Operation) else None

    def _check_nodes(self) -> None:
        """Take reservations back on nodes that pods may not be bound to any more."""
        if self._checked_at == self._pods.node_changes:
            return
        self._checked_at = self._pods.node_changes
        for entry in self._ranked(self._jobs.gangs):
            if entry.gang is None:
                continue
            for task in (entry.gang.driver, *entry.gang.expected):
                row = self._pods.get(task)
                if row is None or (place := row.reserved) is None:
                    continue
                node = self._pods.nodes.get(place.node)
                if node is None or eligibility.refusal(place.task_class.constraints, node) is not None:
                    self._pods.unreserve(row)
                    self._jobs.touch(entry.job.id)


def _is_enough(place: model.Create | None, executor: model.TaskClass) -> bool:
    return place is None or gang_minimum.is_enough(place.task_class, executor)
