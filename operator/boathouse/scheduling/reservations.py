"""Reservations for gangs: what is decided before the cycle, because it goes before all that waits.

* An executor that a driver created takes the place of an expected one, on the node where room is reserved for that.
  One that admission made larger takes as many places of one node as cover it. If no node has so many, the places that
  it stands for are released, and it waits in line: nobody could use them.
* A gang that has begun and is short of its minimum, after a restart of the operator or the loss of a node, gets the
  room that an earlier leader had reserved. For the rest its tasks go before all others in the cycle (`is_short`).

Room that is reserved is charged to the queue of the job.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping

from boathouse.scheduling import gang_judge, gang_room, gangs, jobs
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model
from boathouse_policies.framework import eligibility

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
        self._short: dict[model.JobId, int] = {}  # the room changes that were seen at the last attempt
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
        for entry in self._ranked(self._short):
            if self._short[entry.job.id] != self._pods.room_changes:
                self._restore(entry)
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
        self._short.pop(job, None)
        if entry is not None and entry.namespace in self._quotas and job not in self._waiting:
            self._quotas.changed.add(entry.namespace)
        self._waiting.discard(job)
        if entry is None or entry.gang is None or entry.is_aside:
            return []
        found = gangs.members(entry.gang, self._pods, self._clock())
        if found.retry_s is not None:
            self._retry[job] = found.retry_s
        self._room.release(row for row in found.expected if not _is_enough(row.reserved, entry.gang.executor))
        if not (entry.has_begun and found.has_begun) or entry.first:
            self._jobs.mark_job(job)
        entry.has_begun = found.has_begun
        if not found.has_begun:
            entry.first = ()
            if found.driver is not None:
                self._waiting.add(job)
                entry.pending_reason = self._judge.pending_reason(entry, entry.gang)
            self._room.release(found.expected)
            return []
        operations, entry.first = self._seat(entry, found)
        if entry.first:
            self._short[job] = -1
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

    def _seat(self, entry: jobs.Entry, found: gangs.Members) -> tuple[list[rows.Operation], list[rows.PodRow]]:
        """Give executors reserved places; return the writes, and the tasks for which there is no place yet."""
        assert entry.gang is not None
        takers = [row for row in found.takers if self._jobs.hold_of(row) is None][: found.needed]
        reserved = [row for row in found.expected if row.reserved is not None]
        operations, first, open_places = [], list[rows.PodRow](), found.needed - len(takers)
        for row in takers:
            operation = self._take_place(entry, row, reserved.pop()) if reserved else None
            if operation is None:
                first.append(row)
            else:
                operations.append(operation)
        for row in found.others:
            if open_places <= 0 or self._jobs.hold_of(row) is not None:
                continue
            operation = self._take_places(entry, row, reserved)
            operations += [operation] if operation is not None else []
            open_places = max(0, open_places - gangs.stands_for(row, entry.gang.executor))
        self._room.release(reserved[open_places:])
        missing = open_places - min(open_places, len(reserved))
        free = [row for row in found.expected if row.reserved is None]
        return operations, first + free[:missing]

    def _take_place(self, entry: jobs.Entry, row: rows.PodRow, expected: rows.PodRow) -> rows.Operation | None:
        """Bind an executor where room is reserved; None if something changed since."""
        assert expected.reserved is not None
        assert row.task is not None
        node = expected.reserved.node
        self._pods.unreserve(expected)
        return self._bind(entry, row, node)

    def _take_places(self, entry: jobs.Entry, row: rows.PodRow, reserved: list[rows.PodRow]) -> rows.Operation | None:
        """Bind an executor that is not as expected where places of one node together have room for it; None for none.

        Args:
            entry: Its job.
            row: The executor.
            reserved: The places: those that it takes are removed.
        """
        assert entry.gang is not None
        count, found = gangs.stands_for(row, entry.gang.executor), dict[model.NodeName, list[rows.PodRow]]()
        wanted = None if row.facts is None else row.facts.constraints
        if not isinstance(wanted, model.Constraints) or wanted.claims or wanted.host_ports or wanted.concern_pods:
            return None  # a cycle can say where it may go
        for expected in reserved:
            assert expected.reserved is not None
            found.setdefault(expected.reserved.node, []).append(expected)
        for name, places in sorted(found.items()):
            node = self._pods.nodes.get(name)
            if len(places) < count or node is None or eligibility.refusal(wanted, node) is not None:
                continue
            for expected in places[:count]:
                reserved.remove(expected)
                self._pods.unreserve(expected)
            return self._bind(entry, row, name)
        return None

    def _bind(self, entry: jobs.Entry, row: rows.PodRow, node: model.NodeName) -> rows.Operation | None:
        """Bind an executor to a node; None if something changed since."""
        assert row.task is not None
        task_class = next(one for one in entry.classes if one.id == row.task.task_class)
        task = dataclasses.replace(row.task, pod_uid=row.pending_uid)
        bind = model.Bind(task=task, task_class=task_class, job=entry.job, node=node, resources=task_class.resources)
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

    # Room before all others

    def _restore(self, entry: jobs.Entry) -> None:
        """Reserve what a gang that has begun is short of where it was reserved before; a cycle finds the rest."""
        self._reserve_as_before(entry)
        before, entry.first = entry.first, [row for row in entry.first if row.state in _WAITS and row.reserved is None]
        self._short[entry.job.id] = self._pods.room_changes
        if len(entry.first) < len(before):
            self._jobs.mark_job(entry.job.id)
        if not entry.first:
            del self._short[entry.job.id]

    def _reserve_as_before(self, entry: jobs.Entry) -> None:
        """Reserve the room that an earlier leader had reserved, as the driver's pod says, if it is free."""
        driver = None if entry.gang is None else self._pods.get(entry.gang.driver)
        if entry.gang is None or driver is None or driver.facts is None or not driver.facts.reserved:
            return
        nodes = collections.Counter(dict(driver.facts.reserved))
        for row in self._pods.children.of(driver.key).values():
            account = self._ledger.account(row.id)
            nodes -= collections.Counter([] if account is None or account.node is None else [str(account.node)])
        size, places = self._state.axis.amounts(entry.gang.executor.resources), nodes.elements()
        for row in entry.first:
            if row.state is not PodState.PLANNED or row.reserved is not None or row.task is None:
                continue
            node = next(
                (one for one in map(model.NodeName, places) if self._room.has_room(entry.gang.executor, one, size)),
                None,
            )
            if node is None:
                return
            self._room.reserve_at(entry, row, entry.gang.executor, node)


def _is_enough(place: model.Create | None, executor: model.TaskClass) -> bool:
    """Return whether a reservation is of use for an executor: admission may add to its requests and constraints."""
    return place is None or (
        place.task_class.resources.covers(executor.resources) and place.task_class.constraints == executor.constraints
    )


_WAITS = {PodState.PLANNED, PodState.PENDING}
