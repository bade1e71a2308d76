"""The scheduler's one record of pods: a row for each pod and each task, with its state, its facts and its operation.

Every change of a pod goes through a transition of `states`. Methods are synchronous, call none of the scheduler's
parts, and return what others act on. The table is the only writer of the ledger's pods and of the sums and indexes
over rows: holders, mounts, promises of volumes.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from boathouse.scheduling.pods import facts, indexes, ownership, states
from boathouse.scheduling.pods.rows import Change, Operation, PodKey, PodRow
from boathouse.scheduling.pods.states import ON_NODE, LedgerAction, PodState, Trigger, after
from boathouse.scheduling.volumes import book
from boathouse.suspension import stages
from boathouse_policies import framework, model

OUTDATED = "Outdated"  # others were faster than a decision: its pod, node or job went or has changed
_RESERVED = "reserved:"
_UNWRITTEN = {PodState.PLANNED, PodState.CREATING}


class PodTable:
    """All pods that the scheduler knows, and all tasks that are to get one."""

    def __init__(
        self,
        ledger: framework.Ledger,
        volumes: book.VolumeBook,
        clock: Callable[[], float],
        *,
        scheduler_name: str,
        queue_of: ownership.ChargedQueueOf,
    ) -> None:
        self.ledger = ledger
        self.holders = indexes.Holders()
        self.nodes: dict[model.NodeName, model.Node] = {}
        self.children = indexes.Children()
        self.node_changes = 0  # counts how often a node changed
        self._volumes, self._mounts, self._clock = volumes, volumes.mounts, clock
        self._scheduler_name, self._queue_of = scheduler_name, queue_of
        self._rows: dict[model.TaskId, PodRow] = {}
        self._by_state: dict[PodState, dict[model.TaskId, PodRow]] = {state: {} for state in PodState}
        self._by_job: dict[model.JobId, dict[model.TaskId, PodRow]] = {}
        self._ended: dict[model.JobId, dict[model.TaskId, PodRow]] = {}
        self._displaced: dict[model.JobId, dict[model.TaskId, None]] = {}
        self._suspensions: dict[model.TaskId, PodRow] = {}
        self._released: list[framework.Freed] = []
        self._newest = 0
        self.nominations = indexes.Nominations()

    # Tasks

    def submit(self, job: model.JobId, tasks: Iterable[model.Task]) -> list[model.TaskId]:
        """Replace the tasks of a job; return those of which a pod ended: they need another task.

        A task whose name a foreign pod has gets a row when that pod is deleted.
        """
        self._forget_displaced(job)
        former, ended = self._by_job.pop(job, {}), []
        current = self._by_job.setdefault(job, {})
        for task in tasks:
            if (row := self._rows.get(task.id)) is not None and row.has_ended and row.job == job:
                ended.append(task.id)
                continue
            if row is not None and row.has_ended and row.job is not None:  # an earlier job had a task of the name
                del self._ended[row.job][row.id]
                self._clear_task(row)
            if row is not None and row.facts is not None and row.facts.task_of != job:
                self._defer_task(row, job, task)
                continue
            former.pop(task.id, None)
            if row is None or row.state is None:
                row = PodRow(task.id, task.id.partition("/")[0])
            current[task.id] = self._set_task(row, job, task, is_submitted=True)
            if row.state is None:
                self._apply(row, Trigger.SUBMITTED)
        for row in former.values():
            if row.is_submitted:
                self._clear_task(row)
            else:
                current[row.id] = row  # a pod that a pod of the job made
        return ended

    def withdraw(self, job: model.JobId) -> None:
        """Remove the tasks of a job. Their pods remain: they are their owner's to delete."""
        self._forget_displaced(job)
        for row in [*self._by_job.pop(job, {}).values(), *self._ended.pop(job, {}).values()]:
            self._clear_task(row)

    def displaced(self, job: model.JobId) -> PodRow | None:
        """Return a foreign pod that has the name of a task of a job; None if there is none."""
        return next((self._rows[task] for task in self._displaced.get(job, ())), None)

    def _defer_task(self, row: PodRow, job: model.JobId, task: model.Task) -> None:
        """Defer a task until the pod that has its name is deleted."""
        row.successor = job, task
        self._displaced.setdefault(job, {})[row.id] = None

    def _forget_displaced(self, job: model.JobId) -> None:
        for task in self._displaced.pop(job, ()):
            self._rows[task].successor = None

    def admit(self, row: PodRow, job: model.JobId, task: model.Task) -> bool:
        """Add a foreign pod as a task; return whether it was not one before."""
        if row.task == task:
            return False
        self._by_job.setdefault(job, {})[row.id] = self._set_task(row, job, task, is_submitted=False)
        return True

    def dismiss(self, row: PodRow, *, is_excess: bool = False) -> None:
        """Remove the task of a foreign pod."""
        if row.job is not None:
            self._by_job[row.job].pop(row.id, None)
        self._clear_task(row)
        row.is_excess = is_excess

    def _set_task(self, row: PodRow, job: model.JobId, task: model.Task, *, is_submitted: bool) -> PodRow:
        if row.job != job:
            if row.job is not None:
                self._by_job.get(row.job, {}).pop(row.id, None)
            row.arrived_s, row.has_ended = self._clock(), False
        row.task, row.job, row.is_submitted, row.is_excess = task, job, is_submitted, False
        return row

    def _clear_task(self, row: PodRow) -> None:
        self.unreserve(row)
        row.task, row.job, row.is_submitted, row.has_ended = None, None, False, False
        self._list(row, row.state)

    # Nodes

    def set_node(self, node: model.Node) -> bool:
        """Add or replace a node; return whether anything changed."""
        if node.name not in self.nodes:
            self.nodes[node.name] = node
            self._count_holders(node.name, +1)
        self.nodes[node.name] = node
        has_changed = self.ledger.set_node(node)
        self.node_changes += has_changed
        return has_changed

    def remove_node(self, name: model.NodeName) -> tuple[set[model.QueueName], list[Change]]:
        """Remove a node, and void the operations that place pods on it. Return the queues that its pods charge too."""
        self._count_holders(name, -1)
        self.nodes.pop(name, None)
        self.node_changes += 1
        queues, assumed = self.ledger.queues_on(name), self.ledger.remove_node(name)
        for task in assumed:
            if task.startswith(_RESERVED):
                self._rows[model.TaskId(task.removeprefix(_RESERVED))].reserved = None
        return queues, [self._release(self._rows[task]) for task in assumed if not task.startswith(_RESERVED)]

    def _count_holders(self, node: model.NodeName, sign: int) -> None:
        for row in self._in(ON_NODE):
            if row.facts is not None and row.facts.node_name == node:
                self._hold(row, sign)

    # Evidence

    def observe(self, pod: facts.PodFacts, former: facts.PodFacts | None = None) -> list[Change]:
        """Take over what the watch of pods that hold resources shows."""
        revision, row = pod.revision, self._rows.get(pod.id)
        is_restored = former is not None and revision < former.revision  # etcd was restored
        self._newest = revision if is_restored else max(self._newest, revision)
        on_node = row if row is not None and row.is_on_node and row.uid == pod.metadata.uid else None
        held = former if on_node is None else on_node.facts
        if held is None or not pod.node_name or pod.is_terminal:
            return self.show(row, pod)
        if on_node is not None and revision < held.revision and not is_restored:
            return []  # the answer to a write has shown more
        if held.charge == pod.charge:
            if on_node is not None:
                on_node.facts = pod  # most changes are of this kind: a kubelet tells how its pod fares
            return []
        return self.show(row, pod)

    def left(self, pod: facts.PodFacts) -> list[Change]:
        """Note that the watch of pods that hold resources does not show a pod any more."""
        self._newest = max(self._newest, pod.revision)
        return self.end(pod)

    def answered(self, row: PodRow, pod: facts.PodFacts) -> list[Change]:
        """Take over what the answer to a request shows of a pod, unless the watch has shown more since."""
        requested_row, row, is_older = row, self._rows.get(pod.id) or row, pod.revision < self._newest
        if pod.is_terminal or (row.uid is None and is_older):  # the watch has shown it, and its end
            return self.end(pod)
        if row.uid is None:
            is_stale = False
        elif row.uid == pod.metadata.uid:
            is_stale = row.state in {None, PodState.GONE} or row.facts is None or pod.revision < row.facts.revision
        else:
            is_stale = is_older or requested_row.uid == pod.metadata.uid
        return [] if is_stale else self.show(row, pod)

    def show(self, row: PodRow | None, pod: facts.PodFacts) -> list[Change]:
        """Take over what is shown of a pod; None for one without a row."""
        changes: list[Change] = []
        if row is not None and row.uid not in {None, pod.metadata.uid} and row.state not in {None, PodState.GONE}:
            changes += self.lose(row)
            row = self._rows.get(pod.id, row)
        if pod.is_terminal:
            return changes + self.end(pod)
        if row is not None and row.is_submitted and pod.task_of != row.job:  # somebody else's that has a task's name
            if row.state in _UNWRITTEN:
                return [*changes, *self._displace(row, pod)]
            if row.state is PodState.BOUND:
                changes.append(self._apply(row, Trigger.ENDED))
            if not pod.node_name and pod.task_of is None:
                return changes
        if row is None:
            row = PodRow(pod.id, pod.metadata.namespace)
        return [*changes, self._apply(row, pod.trigger, pod)]

    def _displace(self, row: PodRow, pod: facts.PodFacts) -> list[Change]:
        """Replace the row of a task without a pod by that of a foreign pod of the same name."""
        assert row.job is not None
        assert row.task is not None
        job, task = row.job, row.task
        changes = [self._apply(row, Trigger.REFUSED)] if row.state is PodState.CREATING else []
        del self._by_job[job][row.id]
        self._clear_task(row)
        foreign_row = PodRow(pod.id, pod.metadata.namespace)
        self._defer_task(foreign_row, job, task)
        return [*changes, dataclasses.replace(self._apply(foreign_row, pod.trigger, pod), affects=job)]

    def end(self, pod: facts.PodFacts) -> list[Change]:
        """Update the row of a pod that ended or was deleted. The end of an earlier pod of the name has no effect."""
        if (row := self._rows.get(pod.id)) is None or row.uid not in {None, pod.metadata.uid}:
            return []
        if row.uid is None and row.is_submitted and pod.task_of != row.job:
            return []
        row.uid = model.PodUid(pod.metadata.uid)
        return self.lose(row)

    def lose(self, row: PodRow) -> list[Change]:
        """Note that a pod is not there any more. The task that has given way to it gets its name."""
        change, waiting = self._apply(row, Trigger.ENDED), row.successor
        if waiting is None:
            return [change]
        (job, task), row.successor = waiting, None
        self._displaced[job].pop(row.id)
        fresh = self._set_task(PodRow(row.id, row.namespace), job, task, is_submitted=True)
        self._by_job.setdefault(job, {})[row.id] = fresh
        return [change, dataclasses.replace(self._apply(fresh, Trigger.SUBMITTED), affects=job)]

    def is_ours(self, pod: facts.PodFacts) -> bool:
        """Say whether a pod is this scheduler's to place, or was."""
        return pod.task_of is not None or pod.scheduler_name == self._scheduler_name

    # Operations

    def decide(self, row: PodRow, placement: model.Placement) -> Operation | str:
        """Assume a placement and return its operation; a word says why there is none: something changed since."""
        needed = PodState.PENDING if isinstance(placement, model.Bind) else PodState.PLANNED
        if row.state is not needed or row.pending_uid != placement.task.pod_uid:
            return OUTDATED
        if claims := placement.task_class.constraints.claims:
            row.promise = self._volumes.promise(row.id, claims, self.nodes[placement.node])
            if row.promise is None:
                return "VolumeTaken"
        return self._begin(Trigger.DECIDED, Operation(row, placement.task, placement.task_class, placement))

    def decide_ahead(self, task: model.Task, task_class: model.TaskClass) -> Operation | None:
        """Return the operation that creates a task's pod without a node; None if the task has a pod, or soon will."""
        if (row := self._rows.get(task.id)) is None or row.state is not PodState.PLANNED:
            return None
        return self._begin(Trigger.DECIDED_AHEAD, Operation(row, task, task_class, None))

    def _begin(self, trigger: Trigger, operation: Operation) -> Operation:
        operation.row.operation = operation
        self._apply(operation.row, trigger)
        return operation

    def accept(self, operation: Operation) -> None:
        """Note that the API server accepted a placement; nothing happens if the operation is void."""
        operation.row.failures = 0
        if operation.is_current:
            self._apply(operation.row, Trigger.ACCEPTED)

    def accept_ahead(self, operation: Operation, pod: facts.PodFacts) -> list[Change]:
        """Note that the API server created a pod without a node."""
        row = operation.row
        if not operation.is_current:
            return self.answered(row, pod)
        if row.facts is not None and row.facts.revision > pod.revision:
            pod = row.facts
        return [self._apply(row, Trigger.ACCEPTED_AHEAD, pod)]

    def refuse(self, operation: Operation, *, has_failed: bool = False) -> list[Change]:
        """Take back what was assumed for a write that was not done, or has failed; nothing happens if it is void."""
        operation.row.failures += has_failed
        return [self._release(operation.row)] if operation.is_current else []

    def _release(self, row: PodRow) -> Change:
        return self._apply(row, Trigger.REFUSED if row.facts is None else Trigger.RETURNED)

    # Reservations: room for a task that is expected, or whose job starts whole

    def reserve(self, row: PodRow, placement: model.Create) -> None:
        """Count a task on a node though it has no pod and none is created yet."""
        assert row.state is PodState.PLANNED
        assert row.reserved is None
        task = dataclasses.replace(placement.task, id=model.TaskId(_RESERVED + row.id))
        self.ledger.assume(dataclasses.replace(placement, task=task))
        row.reserved, row.reserved_s = placement, self._clock()

    def unreserve(self, row: PodRow) -> None:
        """Take a reservation back, if there is one."""
        if row.reserved is not None:
            row.reserved = None
            if (freed := self.ledger.gone(model.TaskId(_RESERVED + row.id))) is not None:
                self._released.append(freed)

    # Suspensions

    def suspend(self, row: PodRow, order: stages.Order) -> stages.Suspension:
        """Note that a suspension of a running task begins; return it."""
        suspension = row.suspension = stages.Suspension(since_s=self._clock(), order=order)
        self._suspensions[row.id] = row
        return suspension

    def carried_out(self, row: PodRow) -> None:
        """Note that the order of a suspension was carried out, or not."""
        if row.suspension is not None:
            row.suspension.order = None
            self._list_suspension(row)

    def charge_at_least(self, row: PodRow, size: model.Resources) -> None:
        """Charge a suspended task at least this size from now on, until its pod has it again."""
        if row.suspension is not None:
            row.suspension.charged = size
            self.ledger.assume_resize(row.id, size)

    def suspensions(self) -> Collection[PodRow]:
        """Return the running tasks whose suspension is not over, or was begun by another writer."""
        return self._suspensions.values()

    def _show_suspension(self, row: PodRow, pod: facts.PodFacts) -> None:
        """Take over the stage of a task's suspension; one that is shown without an order was begun earlier."""
        stage = pod.stage
        if row.suspension is None and stage.is_open:
            row.suspension = stages.Suspension()
        if row.suspension is not None:
            row.suspension.show(stage, pod.suspension, self._clock())

    def _list_suspension(self, row: PodRow) -> None:
        if row.suspension is not None and (row.suspension.is_over or row.state not in ON_NODE):
            row.suspension = None
        if row.suspension is not None and row.state in states.RUNNING:
            self._suspensions[row.id] = row
        else:
            self._suspensions.pop(row.id, None)

    # Resizes of running tasks: what is charged for them before a watch shows it

    def assume_resize(self, row: PodRow, size: model.Resources) -> None:
        """Charge a running task at least this size, until a watch shows it or the resize has failed."""
        self.ledger.assume_resize(row.id, size)

    def forget_resize(self, row: PodRow) -> framework.Freed | None:
        """Charge what was shown last of a task, after its resize has failed. Return the released room."""
        return self.ledger.forget_resize(row.id)

    def take_released(self) -> list[framework.Freed]:
        """Return the room of reservations that were taken back since the last call."""
        released, self._released = self._released, []
        return released

    # Reading

    def get(self, task: model.TaskId) -> PodRow | None:
        """Return the row of a pod."""
        return self._rows.get(task)

    def parent(self, pod: facts.PodFacts) -> PodRow | None:
        """Return the row of the pod that controls a pod, in the same namespace; None if it is not there."""
        owner = pod.metadata.controller
        row = None if owner is None else self._rows.get(model.TaskId(f"{pod.metadata.namespace}/{owner.name}"))
        return row if row is not None and owner is not None and row.uid == owner.uid else None

    def of_job(self, job: model.JobId) -> Mapping[model.TaskId, PodRow]:
        """Return the rows of a job's tasks of which no pod has ended, in the order of their submission."""
        return self._by_job.get(job, {})

    def waiting(self) -> Iterator[PodRow]:
        """Yield the pods of this scheduler without a node."""
        without_node = self._in((PodState.PENDING, PodState.BINDING))
        return (row for row in without_node if row.facts is not None and self.is_ours(row.facts))

    def unconfirmed(self, age_s: float = 0.0) -> list[PodRow]:
        """Return the pods that were placed at least this long ago and that no watch shows on their node."""
        return [row for row in self._by_state[PodState.BOUND].values() if row.since_s + age_s <= self._clock()]

    def with_reservations(self) -> Iterator[PodRow]:
        """Yield the pods that run and have fewer pods of their own on nodes than room was reserved for."""
        for row in self._in(states.RUNNING):
            reserved = 0 if row.facts is None else sum(count for _, count in row.facts.reserved)
            if reserved > sum(child.state in ON_NODE for child in self.children.of(row.key).values()):
                yield row

    def running(self, state: PodState) -> Iterator[PodRow]:
        """Yield the pods in one of the states on a node."""
        return iter(self._in((state,)))

    def assumed(self) -> Sequence[PodRow]:
        """Return the pods that are being written, or that were written and are not confirmed."""
        return self._in(states.ASSUMED)

    def counts(self) -> Mapping[PodState, int]:
        """Return the number of rows in each state."""
        return {state: len(rows) for state, rows in self._by_state.items()}

    def _in(self, wanted: Iterable[PodState]) -> Sequence[PodRow]:
        return [row for state in wanted for row in self._by_state[state].values()]

    def job_of(self, row: PodRow) -> model.JobId | None:
        """Return the job of an assumed pod, also if that was withdrawn since."""
        if row.operation is not None:
            return row.operation.task_class.job
        account = self.ledger.account(row.id)
        return None if account is None else account.job

    def offered(self) -> frozenset[str]:
        """Return the names of the extended resources that nodes have."""
        return frozenset(name for node in self.nodes.values() for name, _ in node.allocatable.extended)

    def drift(self, pods: Iterable[facts.PodFacts]) -> framework.Drift:
        """Compare the ledger with these pods and with the nodes."""
        return self.ledger.compare([self._account(pod) for pod in pods if pod.node_name], self.nodes.values())

    # Transitions

    def _apply(self, row: PodRow, trigger: Trigger, pod: facts.PodFacts | None = None) -> Change:
        before, operation, job, was_mounted = row.state, row.operation, row.job, row.mounted is not None
        to, action = after(before, trigger)
        if before in ON_NODE:
            self._hold(row, -1)
        if pod is not None:
            row.facts, row.uid = pod, model.PodUid(pod.metadata.uid)
            self._relate(row, pod)
            self._show_suspension(row, pod)
        freed = self._charge(row, action)
        if row.reserved is not None and to is not PodState.PLANNED:
            self.unreserve(row)
        if to not in states.WITH_OPERATION:
            row.operation = None
        if to in ON_NODE:
            self._hold(row, +1)
        elif to is PodState.GONE:
            self._bury(row)
        if to is not before:
            row.state, row.since_s = to, self._clock()
            self._list(row, before)
        if row.nominated is not None or to is PodState.PENDING:
            node = row.facts.status.nominated_node_name if row.facts is not None and to is PodState.PENDING else ""
            freed += self.nominations.set(row, model.NodeName(node) if node else None)
        self._list_suspension(row)
        return Change(row, before, job, freed, was_mounted and row.mounted is None, operation)

    def _list(self, row: PodRow, before: PodState | None) -> None:
        if before is not None:
            del self._by_state[before][row.id]
        if row.state is None or (row.task is None and row.state in states.WITHOUT_POD):
            row.state = None
            self._rows.pop(row.id, None)
        else:
            self._rows[row.id] = self._by_state[row.state][row.id] = row

    def _charge(self, row: PodRow, action: LedgerAction) -> list[framework.Freed]:
        """Charge the ledger and list the mounts; return the released room."""
        freed, mounted, former = None, None, row.mounted
        if action is LedgerAction.KEEP:
            return []
        if action is LedgerAction.OBSERVE:
            assert row.facts is not None
            freed = self.ledger.observe(self._account(row.facts))
            freed = self._charge_suspension(row, row.facts) or freed
            mounted = (model.NodeName(row.facts.node_name), claims) if (claims := row.facts.claims) else None
        elif action is LedgerAction.FREE:
            freed = self.ledger.gone(row.id)
        else:
            assert row.operation is not None
            assert row.operation.placement is not None
            self.ledger.assume(row.operation.placement)
            mounted = None if row.promise is None else (row.promise.node, row.promise.claims)
        if mounted != former:
            self._mounts.replace(row.id, former, mounted)
            row.mounted = mounted
        if row.promise is not None and action is not LedgerAction.ASSUME:
            self._volumes.release(row.promise)
            row.promise = None
        return [] if freed is None else [freed]

    def _charge_suspension(self, row: PodRow, pod: facts.PodFacts) -> framework.Freed | None:
        """Charge the original CPU of a task that continues, until its pod has that or another writer resized it."""
        if (suspension := row.suspension) is None:
            return None
        if suspension.stage is stages.Stage.CONTINUING and pod.suspension is not None:
            self.charge_at_least(row, pod.resources.most(model.Resources(cpu_milli=pod.suspension.cpu_request_milli)))
        elif suspension.charged is None:
            return None
        elif suspension.stage.is_shrunk or suspension.stage is stages.Stage.ORPHAN:
            self.charge_at_least(row, suspension.charged)  # its resume has begun, and the watch is behind
        else:
            suspension.charged = None
            return self.ledger.forget_resize(row.id)
        return None

    def _account(self, pod: facts.PodFacts) -> framework.Account:
        driver = self.children.driver(self._parent_of(pod)) if self.children else None
        return ownership.of(pod, scheduler_name=self._scheduler_name, queue_of=self._queue_of, driver=driver)

    def _parent_of(self, pod: facts.PodFacts) -> PodKey | None:
        return ownership.parent_of(pod.metadata) if pod.scheduler_name == self._scheduler_name else None

    def _relate(self, row: PodRow, pod: facts.PodFacts) -> None:
        """List a pod that another pod controls, and charge the pods of one that is shown after them."""
        parent = self._parent_of(pod)
        if parent != row.parent:
            if row.parent is not None:
                self.children.leave(row)
            row.parent = parent
        if parent is not None:
            owner = self.parent(pod)
            driver = None if owner is None or owner.facts is None or owner.facts.task_of is None else owner.facts
            self.children.join(row, driver)
        for child in self.children.adopt(pod) if pod.task_of is not None and self.children else ():
            if child.state in ON_NODE and child.facts is not None:
                freed = self.ledger.observe(self._account(child.facts))
                self._released += [] if freed is None else [freed]

    def _bury(self, row: PodRow) -> None:
        """Reduce the row to the use of a submitted task's name; drop the data of a foreign pod."""
        row.facts, row.suspension, row.is_excess = None, None, False
        self.children.leave(row)
        if row.job is not None:
            self._by_job.get(row.job, {}).pop(row.id, None)
        if row.is_submitted and row.job is not None:
            row.has_ended = True
            self._ended.setdefault(row.job, {})[row.id] = row
        else:
            row.task = row.job = None

    def _hold(self, row: PodRow, sign: int) -> None:
        if row.facts is not None and row.facts.node_name in self.nodes:
            self.holders.add(row.namespace, ownership.holder_of(row.facts), row.facts.resources, sign)
