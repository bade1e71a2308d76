"""Reservations for gangs: what is decided before the cycle, because it goes before all that waits.

* An executor that a driver created takes the place of an expected one, on the node where room is reserved for that.
* A gang that has begun and is short of its minimum, after a restart of the operator or the loss of a node, gets room
  before anything else, task by task.
* A gang that could not start for `PATIENCE_S` gets room reserved as it comes free, task by task, until all of it can
  start. One gang at a time does so, the one that waited for longest: two would wait for each other. It must fit beside
  the pods that belong to no job of ours, and gives up after `DRAIN_S`.

Room that is reserved is charged to the queue of the job.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from boathouse.scheduling import cycle, gangs, jobs, pod_conditions
from boathouse.scheduling.pods import holders, rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.scheduling.tenants import fitting
from boathouse.telemetry import logs
from boathouse_policies import framework, model
from boathouse_policies.framework import eligibility

log = logs.get(__name__)

PATIENCE_S = 30.0
DRAIN_S = 600.0
RETRY_S = 5.0
RESTORE_S = 15.0
JUDGE_EVERY_S = 1.0


@dataclasses.dataclass(slots=True, kw_only=True)
class _Drain:
    """The gang for which nodes are drained of other tasks.

    Attributes:
        job: Its job.
        until_s: When it gives up.
        at_change: The room changes that were seen at the last attempt.
    """

    job: model.JobId
    until_s: float
    at_change: int = -1


class Reservations(Part):
    """Reserves room for gangs.

    Args:
        state: The state of the scheduler.
        profile: Returns the profile with the filters of the moment.
    """

    def __init__(self, state: ClusterState, profile: Callable[[], framework.Profile]) -> None:
        super().__init__(state)
        self._profile = profile
        self._short: dict[model.JobId, int] = {}  # the room changes that were seen at the last attempt
        self._waiting: dict[model.JobId, float] = {}  # gangs that have not begun, and since when
        self._drain: _Drain | None = None
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
        if self._drain is not None:
            due.append(self._drain.until_s)
        elif self._waiting:
            due.append(max(min(self._waiting.values()) + PATIENCE_S, self._clock() + RETRY_S))
        return min(due, default=math.inf)

    def are_restored(self) -> bool:
        """Say whether the applications of all drivers were submitted: until then their reservations are not known.

        After a change of the leader that takes a few seconds, and the room must not be given to others meanwhile. What
        is not submitted within `RESTORE_S` is over.
        """
        if not self._are_restored:
            self._are_restored = self._clock() >= self._began_s + RESTORE_S or all(
                map(self._jobs.is_known, self._pods.with_reservations())
            )
        return self._are_restored

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
                operations += self._restore(entry)
        operations += self._go_on_draining()
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
        if entry is None or entry.gang is None or entry.is_aside:
            self._forget(job)
            return []
        found = gangs.members(entry.gang, self._pods, self._clock())
        if found.retry_s is not None:
            self._retry[job] = found.retry_s
        if not (entry.has_begun and found.has_begun) or entry.first:
            self._jobs.mark_job(job)
        entry.has_begun = found.has_begun
        if not found.has_begun:
            entry.first = ()
            if found.driver is None:
                self._forget(job)
            else:
                self._waiting.setdefault(job, self._clock())
                entry.trouble = self._trouble(entry, entry.gang)
            if not entry.is_draining:
                self._release(found.expected)
            return []
        self._forget(job)
        operations, entry.first = self._seat(entry, found)
        if entry.first:
            self._short[job] = -1
            self._jobs.mark_job(job)
        for operation in operations:
            self._jobs.mark_changed(operation.row)
        return operations

    def may_begin(self, job: model.JobId) -> bool:
        """Say, as its driver is to be created, whether a gang is in line: others may have begun in the same cycle."""
        entry = self._jobs.entry(job)
        if entry is None or entry.gang is None:
            return True
        entry.trouble = self._trouble(entry, entry.gang)
        self._jobs.touch(job)
        return entry.trouble is None

    def _trouble(self, entry: jobs.Entry, gang: gangs.Gang) -> pod_conditions.PendingReason | None:
        """Say why a gang is out of the line; None if it is in it."""
        why = fitting.above_limit(gang, self._queue.queues.get(entry.job.queue))
        why = why or fitting.never_fits(gang, fitting.empty(self._pods.nodes.values()))
        if why is not None:
            return pod_conditions.PendingReason(reason=str(model.Code.NEVER_FITS), message=why)
        return self._quotas.check(
            entry.namespace,
            fitting.amounts(gang),
            priority_class=entry.job.priority_class,
            promised=self._promised(entry),
        )

    def _promised(self, but: jobs.Entry) -> Iterator[Mapping[str, int]]:
        """Yield what other drivers of a namespace may still create of their minimum."""
        for entry, gang in self._jobs.gangs_in(but.namespace):
            found = gangs.members(gang, self._pods, self._clock())
            if entry is but or found.driver is None or not found.has_begun:
                continue
            missing = max(0, len(gang.expected) - found.children)
            yield {name: missing * amount for name, amount in holders.amounts(gang.executor.resources).items()}
            if found.driver.state is PodState.CREATING:
                yield holders.amounts(gang.leader.resources)

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
        takers = [row for row in found.takers if self._jobs.hold_of(row) is None][: found.needed]
        reserved = [row for row in found.expected if row.reserved is not None]
        operations, first, open_places = [], [], found.needed - len(takers)
        for row in takers:
            operation = self._take_place(entry, row, reserved.pop()) if reserved else None
            if operation is None:
                first.append(row)
            else:
                operations.append(operation)
        self._release(reserved[open_places:])
        missing = open_places - min(open_places, len(reserved))
        free = [row for row in found.expected if row.reserved is None]
        return operations, first + free[:missing]

    def _take_place(self, entry: jobs.Entry, row: rows.PodRow, expected: rows.PodRow) -> rows.Operation | None:
        """Bind an executor where room is reserved; None if something changed since."""
        assert expected.reserved is not None
        assert row.task is not None
        node = expected.reserved.node
        self._pods.unreserve(expected)
        task_class = next(one for one in entry.classes if one.id == row.task.task_class)
        task = dataclasses.replace(row.task, pod_uid=row.pending_uid)
        bind = model.Bind(task=task, task_class=task_class, job=entry.job, node=node, resources=task_class.resources)
        operation = self._pods.decide(row, bind)
        return operation if isinstance(operation, rows.Operation) else None

    def _release(self, expected: Iterable[rows.PodRow]) -> None:
        for row in expected:
            self._pods.unreserve(row)

    def _forget(self, job: model.JobId) -> None:
        """A gang does not wait any more: it has begun, or is over."""
        self._waiting.pop(job, None)
        if self._drain is not None and self._drain.job == job:
            self._stop_draining()

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

    def _restore(self, entry: jobs.Entry) -> list[rows.Operation]:
        """Find room for what a gang that has begun is short of."""
        self._reserve_as_before(entry)
        operations = self._place(entry, [row for row in entry.first if row.state in _WAITS and row.reserved is None])
        entry.first = [row for row in entry.first if row.state in _WAITS and row.reserved is None]
        self._short[entry.job.id] = self._pods.room_changes
        if not entry.first:
            del self._short[entry.job.id]
        return operations

    def _reserve_as_before(self, entry: jobs.Entry) -> None:
        """Reserve the room that an earlier leader had reserved, as the driver's pod says, if it is free."""
        driver = None if entry.gang is None else self._pods.get(entry.gang.driver)
        if entry.gang is None or driver is None or driver.facts is None or not driver.facts.reserved:
            return
        nodes = collections.Counter(dict(driver.facts.reserved))
        for row in self._pods.children.of(driver.uid).values():
            account = self._ledger.account(row.id)
            nodes -= collections.Counter([] if account is None or account.node is None else [str(account.node)])
        size, places = self._state.axis.amounts(entry.gang.executor.resources), nodes.elements()
        for row in entry.first:
            if row.state is not PodState.PLANNED or row.reserved is not None or row.task is None:
                continue
            node = next(
                (one for one in map(model.NodeName, places) if self._has_room(entry.gang.executor, one, size)), None
            )
            if node is None:
                return
            self._reserve_at(entry, row, entry.gang.executor, node)

    def _reserve_at(
        self, entry: jobs.Entry, row: rows.PodRow, task_class: model.TaskClass, node: model.NodeName
    ) -> None:
        assert row.task is not None
        one, size = dataclasses.replace(task_class, gang_min=0), task_class.resources
        self._pods.reserve(row, model.Create(task=row.task, task_class=one, job=entry.job, node=node, resources=size))

    def _free(self) -> Iterator[fitting.Space]:
        """Yield what is free on each node."""
        names = self._state.axis.names
        for name, node in sorted(self._pods.nodes.items()):
            free = self._ledger.free(name)
            if free is not None:
                yield fitting.Space(node, dict(zip(names, free, strict=False)))

    def _has_room(self, task_class: model.TaskClass, name: model.NodeName, size: Sequence[int]) -> bool:
        node, free = self._pods.nodes.get(name), self._ledger.free(name)
        if node is None or free is None or eligibility.refusal(task_class.constraints, node) is not None:
            return False
        return all(left >= amount for left, amount in zip(free, size, strict=False) if amount)

    def _place(self, entry: jobs.Entry, todo: list[rows.PodRow]) -> list[rows.Operation]:
        """Run a cycle for some tasks of a job alone; reserve room for those without a pod, and bind the others."""
        tasks = []
        for row in todo:
            assert row.task is not None
            is_new = row.pending_uid is None
            tasks.append(dataclasses.replace(row.task, pod_uid=row.pending_uid, expected=is_new))
        if not tasks:
            return []
        wanted, by_task = {task.task_class for task in tasks}, {row.id: row for row in todo}
        classes = [dataclasses.replace(one, gang_min=0) for one in entry.classes if one.id in wanted]
        queue = framework.SchedulingQueue(self._state.axis, self._queue.queues.values())
        try:
            queue.submit(entry.job, classes, tasks)
            plan = cycle.run(queue, self._plain_profile(), self._ledger.snapshot(self._clock()), self._diagnoses.wants)
        except Exception as error:  # noqa: BLE001 - one job must not keep the others from being scheduled
            self._state.set_job_aside(entry, error)
            return []
        self._diagnoses.update(plan)
        operations = []
        for decision in plan.decisions:
            if isinstance(decision, model.Bind):
                operation = self._pods.decide(by_task[decision.task.id], decision)
                operations += [operation] if isinstance(operation, rows.Operation) else []
            elif isinstance(decision, model.Reservation):
                self.reserve(decision)
        return operations

    def _plain_profile(self) -> framework.Profile:
        """Return the filters and the score of the profile alone: there is one job, and its tasks are of full size."""
        profile = self._profile()
        return framework.Profile(name=profile.name, filters=profile.filters, score=profile.score, scores=profile.scores)

    def reserve(self, decision: model.Reservation) -> None:
        """Count an expected task where a plan placed it."""
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

    # A gang that waited for long

    def _go_on_draining(self) -> list[rows.Operation]:
        if self._drain is not None and self._clock() >= self._drain.until_s:
            log.warning("a gang gives up room that was reserved for it", job=self._drain.job)
            self._waiting[self._drain.job] = self._clock()
            self._stop_draining()
        if self._drain is None:
            self._begin_draining()
        if self._drain is None or self._drain.at_change == self._pods.room_changes:
            return []
        entry = self._jobs.entry(self._drain.job)
        if entry is None or entry.gang is None or entry.trouble is not None:
            self._stop_draining()
            return []
        operations = self._accumulate(entry, entry.gang)
        if self._drain is not None:
            self._drain.at_change = self._pods.room_changes
        return operations

    def _begin_draining(self) -> None:
        """Choose the gang of the highest priority that has waited for longest, and could start once others ended."""
        now_s = self._clock()
        due = [job for job, since_s in self._waiting.items() if since_s + PATIENCE_S <= now_s]
        entries = [one for job in due if (one := self._jobs.entry(job)) is not None and self._may_drain(one)]
        if not entries:
            return
        spaces = fitting.without(fitting.empty(self._pods.nodes.values()), self._pods.held_by_others())
        entries.sort(key=lambda one: (-one.job.priority, self._waiting[one.job.id], one.job.id))
        fit = (one for one in entries if one.gang and fitting.never_fits(one.gang, spaces) is None)
        entry = next(fit, None)
        if entry is not None:
            log.info("room is reserved for a gang as it comes free", job=entry.job.name)
            entry.is_draining, self._drain = True, _Drain(job=entry.job.id, until_s=now_s + DRAIN_S)
            self._jobs.mark_job(entry.job.id)

    def _may_drain(self, entry: jobs.Entry) -> bool:
        driver = None if entry.gang is None else self._pods.get(entry.gang.driver)
        is_pending = driver is not None and driver.state is PodState.PLANNED and not driver.has_ended
        is_out = entry.trouble is not None or entry.is_aside or bool(entry.excess)
        return is_pending and not is_out and self._jobs.hold_of_job(entry.job.id) is None

    def _stop_draining(self) -> None:
        if self._drain is None:
            return
        entry, self._drain = self._jobs.entry(self._drain.job), None
        if entry is None or not entry.is_draining:
            return
        entry.is_draining = False
        self._jobs.mark_job(entry.job.id)
        found = None if entry.gang is None else gangs.members(entry.gang, self._pods, self._clock())
        if found is not None and not found.has_begun:
            self._release([*found.expected, *([found.driver] if found.driver is not None else ())])

    def _accumulate(self, entry: jobs.Entry, gang: gangs.Gang) -> list[rows.Operation]:
        """Reserve room for what of a gang has none; start the driver once all of it has."""
        found = gangs.members(gang, self._pods, self._clock())
        driver = found.driver
        if driver is None or driver.state is not PodState.PLANNED or not self._may_drain(entry):
            self._stop_draining()
            return []
        todo = [driver, *found.expected[: found.needed]]
        if not self.may_begin(entry.job.id):
            self._stop_draining()
            return []
        self._release(todo)
        whole = fitting.fit(gang, self._free(), fitting.is_allowed)
        if whole.driver is not None and whole.beside >= found.needed:
            self._reserve_at(entry, driver, gang.leader, whole.driver)
        self._place(entry, [row for row in todo if row.reserved is None])
        if any(row.reserved is None for row in todo) or driver.reserved is None:
            return []
        place, driver_task = driver.reserved, driver.task
        assert driver_task is not None
        self._pods.unreserve(driver)
        operation = self._pods.decide(driver, dataclasses.replace(place, task=driver_task))
        self._jobs.touch(entry.job.id)
        if not isinstance(operation, rows.Operation):
            self._stop_draining()
            return []
        entry.is_draining, self._drain = False, None
        self._waiting.pop(entry.job.id, None)
        return [operation]


_WAITS = {PodState.PLANNED, PodState.PENDING}
