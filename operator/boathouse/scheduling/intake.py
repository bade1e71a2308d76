"""Events in: what watches, services and the answers to writes say is taken into the state of the scheduler.

Synchronous: each event is in the pod table and the ledger before the next await.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from boathouse.cluster import boundary, catalogue, store, views, wire
from boathouse.resources import names
from boathouse.scheduling import jobs, limits, outcomes, reasons, refusals
from boathouse.scheduling.pods import facts, ownership, rows, table, translate
from boathouse.scheduling.pods.states import ASSUMED, ON_NODE, PendingReason, PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.telemetry import logs
from boathouse_policies import framework, model

log = logs.get(__name__)

_PLACED = {PodState.BOUND, *ON_NODE}
_DECIDED = {*ASSUMED, *ON_NODE}


class Intake(Part):
    """Takes events in. Every method is synchronous and returns at once."""

    def __init__(
        self,
        state: ClusterState,
        *,
        transform_pod: Callable[[wire.PodView], facts.PodFacts],
        wake: Callable[[], None],
        on_fatal: Callable[[str], None],
    ) -> None:
        super().__init__(state)
        self._refusals = state.jobs.refused
        self._transform_pod, self._wake, self._on_fatal = transform_pod, wake, on_fatal

    def submit(
        self,
        job: model.Job,
        classes: Sequence[model.TaskClass],
        tasks: Sequence[model.Task],
        factory: jobs.PodFactory,
        suspend_until_s: float | None = None,
    ) -> list[model.TaskId]:
        """Replace the tasks that a job still has to do, those that run included; its classes are served in order.

        Returns the tasks of which a pod ended or was deleted: they are not scheduled, and need another task. Raises
        ValueError if a task's class is not among the classes.
        """
        class_ids = {task_class.id for task_class in classes}
        if strange := next((task for task in tasks if task.task_class not in class_ids), None):
            raise ValueError(f"{strange.id} is of class {strange.task_class!r}, which was not submitted with {job.id}")
        if any(task_class.constraints.claims for task_class in classes):
            self._volumes.is_needed = True
        self._wake()
        ended = self._jobs.submit(job, classes, tasks, factory, suspend_until_s)
        self._judge_children(self._pods.children.of_job(job.id))
        return ended

    def withdraw(self, job_id: model.JobId) -> None:
        """Schedule nothing of a job any more. Its pods stay: their owner deletes them."""
        if (entry := self._jobs.entry(job_id)) is not None:
            for task_class in entry.classes:  # also those never queued: such a gang is judged alone
                self._diagnoses.forget(task_class.id)
            self._jobs.withdraw(job_id)
            self._wake()

    def set_queues(self, queues: Sequence[model.Queue]) -> None:
        """Replace the queues."""
        self._queue.set_queues(queues)
        self._wake()

    def on_node(self, change: store.Change[wire.NodeView]) -> None:
        """Take in a change of a node."""
        if isinstance(change, store.Deleted):
            self._node_lost(model.NodeName(change.key))
            return
        try:
            node = translate.node(change.new)
        except ValueError as error:
            self._aside.set_aside(catalogue.NODES, change.new.metadata, boundary.Reason.TRANSLATION, error)
            node = translate.unusable(change.new)
        if self._pods.set_node(node):
            self._nodes_changed()

    def _node_lost(self, name: model.NodeName) -> None:
        queues, changes = self._pods.remove_node(name)
        for queue in queues:  # what pods hold of a node that does not exist is not charged
            self._room_freed(framework.Freed(name, queue))
        self._nodes_changed()
        for change in changes:
            if change.operation is None or not change.operation.has_begun:  # else its answer is awaited
                self._jobs.mark_changed(change.row)

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Take in a change of a pod that is not terminal; one that ends comes as Deleted."""
        if isinstance(change, store.Deleted):
            self._apply(self._pods.left(change.final or change.old))
            self._refusals.relieved(change.old.metadata.namespace)
            return
        self._report_problem(change.new)
        self._apply(self._pods.observe(change.new, change.old if isinstance(change, store.Modified) else None))

    def on_ended(self, change: store.Change[facts.PodFacts]) -> None:
        """Take in a change of a task's pod that has ended: this watch also shows what the other one missed."""
        if isinstance(change, store.Added) and change.new.is_terminal:
            if change.new.task_of is not None:
                self._exclude_node(change.new)
            self._apply(self._pods.end(change.new))

    def on_namespace(self, change: store.Change[wire.ObjectView]) -> None:
        """Take in a change of a namespace's labels."""
        before = change.old.metadata.labels if isinstance(change, store.Modified | store.Deleted) else {}
        labels = None if isinstance(change, store.Deleted) else change.new.metadata.labels
        self._ledger.tallies.set_namespace(change.key, labels)
        if before.get(names.LABEL_QUEUE) != (labels or {}).get(names.LABEL_QUEUE):
            for row in self._pods.waiting():  # pods that wait there may name the queue
                if row.namespace == change.key:
                    self._admit(row)
        self._wake()

    def on_quota(self, change: store.Change[views.QuotaView]) -> None:
        """Take in a change of a ResourceQuota: what gangs request together is compared with it."""
        self._quotas.set(store.subject(change), is_gone=isinstance(change, store.Deleted))
        self._wake()

    def on_device_class(self, change: store.Change[views.DeviceClassView]) -> None:
        """Take in a change of a DeviceClass: the reasons of pods that fit no node may change."""
        self._devices.set(store.subject(change), is_gone=isinstance(change, store.Deleted))
        self._diagnoses.expire()
        self._nodes_changed()

    def on_storage(self) -> None:
        """Take in a change of claims, volumes, or of what provisions them."""
        self._volumes.changed()
        if not self._volumes.is_needed:
            return
        for row in sorted(self._pods.waiting(), key=lambda row: row.id):
            if row.facts is not None and row.facts.claims_by_field and row.promise is None:
                self._aside.run(catalogue.PODS, row.facts.metadata, boundary.Reason.HANDLING, self._admit, row)
        self._nodes_changed()

    def read(self, row: rows.PodRow, pod: wire.PodView | None) -> None:
        """Take in what a GET shows of a pod that was placed and that no watch has shown; None for no pod."""
        if row.state is not PodState.BOUND:
            return  # the watch was faster
        log.warning("a bound pod is missing from the watch", pod=row.id, exists=pod is not None)
        if pod is None:
            self._apply(self._pods.lose(row))
        else:
            self._answered(row, pod, is_read=True)

    def _answered(self, row: rows.PodRow, pod: wire.PodView, *, is_read: bool = False) -> None:
        try:
            reduced = self._transform_pod(pod)
            self._report_problem(reduced)
            self._apply(self._pods.show(row, reduced) if is_read else self._pods.answered(row, reduced))
        except Exception as error:  # noqa: BLE001 - an error of one object must not affect others
            self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.HANDLING, error)

    def _report_problem(self, pod: facts.PodFacts) -> None:
        if pod.problem:
            self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.TRANSLATION, ownership.problem_of(pod))

    def _exclude_node(self, pod: facts.PodFacts) -> None:
        if (reason := refusals.rejection(pod)) is None:
            return
        self._counters.rejection(reason)
        log.warning("a kubelet refused a pod", pod=pod.metadata.key, node=pod.node_name, reason=reason)
        if (row := self._pods.get(pod.id)) is not None and row.task is not None:
            self._exclusions.exclude(row.task.task_class, model.NodeName(pod.node_name))

    def _apply(self, changes: Iterable[rows.Change]) -> None:
        for change in changes:
            for freed in change.freed:
                self._room_freed(freed)
                self._wake()
            if change.affects is not None:
                self._jobs.mark(change.affects)
                self._wake()
            row = change.row
            self._follow(change)
            if row.state is PodState.PENDING:
                self._admit(row)
            elif row.is_on_node:
                if change.before not in _DECIDED and row.facts is not None and self._pods.is_ours(row.facts):
                    self._conditions.forget(row)
                    self._jobs.mark_changed(row)
            elif row.state is None or row.state is PodState.GONE:
                self._ended(change)
        if self._ledger.tallies.has_woken:
            self._wake()

    def _follow(self, change: rows.Change) -> None:
        """Update the gang of a pod, and the pods that it controls, after a transition."""
        row = change.row
        if not self._jobs.gangs and not self._pods.children:
            return
        if row.parent is not None:
            driver = self._pods.children.driver(row.parent)
            self._jobs.touch(None if driver is None else ownership.job_of(driver))
        self._jobs.touch(change.job or row.job)
        if change.before is not row.state and row.uid is not None:
            self._judge_children(self._pods.children.of(row.key).values())

    def _judge_children(self, children: Iterable[rows.PodRow]) -> None:
        """Admit the pending pods of a driver, or withdraw them, by the driver's current state."""
        for row in list(children):
            is_pending = row.state is PodState.PENDING and not row.is_excess
            if is_pending and row.facts is not None and self._jobs.has_driver(row.facts) is (row.task is None):
                self._admit(row)

    def _ended(self, change: rows.Change) -> None:
        if change.has_unmounted:
            self._nodes_changed()
        self._conditions.forget(change.row)
        if change.job is not None:
            self._jobs.mark_ended(change.job, was_pending=change.before not in _PLACED)
        self._wake()

    def _nodes_changed(self) -> None:
        self._queue.nodes_changed()
        self._wake()

    def _admit(self, row: rows.PodRow) -> None:
        """Let a pod without a node be scheduled, or set the condition that says why it is not."""
        pod, scope = row.facts, self._options.namespaces
        if pod is None or not self._pods.is_ours(pod) or (scope and row.namespace not in scope):
            return
        try:
            if pod.task_of is not None:
                self._jobs.mark_changed(row)
            elif (why := self._problem(row, pod)) is not None:
                self._jobs.dismiss(row, is_excess=row.is_excess)
                self._conditions.set_pending(row, why)
        except (ValueError, ArithmeticError) as error:
            self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.TRANSLATION, error)
            self._jobs.dismiss(row)
            self._conditions.set_pending(row, reasons.set_aside(error))
        self._wake()

    def _problem(self, row: rows.PodRow, pod: facts.PodFacts) -> PendingReason | None:
        """Admit a foreign pod; return the reason if it is not admitted."""
        if not pod.is_bindable or (row.parent is not None and not self._jobs.has_driver(pod)):
            self._jobs.dismiss(row)
            return None
        if pod.too_many_constraints:
            return reasons.of_too_many_constraints(pod.too_many_constraints)
        if pod.unsupported is not None:
            return reasons.unsupported(pod.unsupported)
        if pod.claims:
            self._volumes.is_needed = True
            if (why := self._volumes.problem(pod)) is not None:
                return why
        excess = self._jobs.add_foreign(row, pod)
        return None if excess is None else PendingReason(limits.TOO_COMPLEX, excess)

    def finished(self, operation: rows.Operation, outcome: outcomes.Outcome, duration_s: float) -> None:
        """Take in what came of a write."""
        row = operation.row
        match outcome:
            case outcomes.Done():
                self._done(operation, outcome.pod, duration_s)
            case outcomes.NotDone():
                if outcome.excludes_node and operation.node is not None:
                    self._exclusions.exclude(operation.task_class.id, operation.node)
                self._take_back(operation, outcome.reason, has_failed=True)
                self._retry(operation, outcome)
                self._counters.attempt("error", duration_s)
            case outcomes.Elsewhere():
                self._take_back(operation, "PodElsewhere")
                self._answered(row, outcome.pod)
                self._jobs.mark_changed(row)
            case outcomes.Vanished():
                self._take_back(operation, "PodGone")
                if row.uid == operation.task.pod_uid and row.state is PodState.PENDING:  # else it is another pod's turn
                    self._apply(self._pods.lose(row))
            case outcomes.NameTaken():
                self._take_back(operation, "NameTaken", has_failed=True)
                taken = reasons.name_taken(outcome.pod.metadata)
                self._retry(
                    operation, outcomes.NotDone(taken.reason, taken.message, at_least_s=outcomes.QUOTA_BACKOFF_S)
                )
            case outcomes.Skipped():
                self._take_back(operation, table.OUTDATED)
                self._jobs.mark_changed(row)
            case outcomes.Fenced():
                self._on_fatal(outcome.message)
            case _:
                assert_never(outcome)
        self._wake()

    def adjusted(self, row: rows.PodRow, outcome: outcomes.Outcome) -> None:
        """Take in what came of a write of a running task."""
        if isinstance(outcome, outcomes.Fenced):
            self._on_fatal(outcome.message)
        elif isinstance(outcome, outcomes.Done | outcomes.Elsewhere) and outcome.pod is not None:
            self._answered(row, outcome.pod)
        self._wake()

    def _done(self, operation: rows.Operation, pod: wire.PodView | None, duration_s: float) -> None:
        row, entry = operation.row, self._jobs.entry_of(operation.row)
        if entry is not None:
            entry.api_refusal = None
            self._refusals.succeeded(operation)
        if operation.placement is None:
            assert pod is not None
            self._jobs.mark_changed(row)
            self._apply(self._pods.accept_ahead(operation, self._transform_pod(pod)))
            return
        self._counters.attempt("scheduled", duration_s)
        self._counters.pod_attempts.observe(row.failures + 1)
        if entry is not None:
            self._counters.pod_sli_s.observe(self._clock() - row.arrived_s)
        self._queue.succeeded(row.id)
        self._pods.accept(operation)
        uid = pod.metadata.uid if pod is not None else operation.task.pod_uid or ""
        self._conditions.scheduled(row, uid, operation.placement.node)

    def _take_back(self, operation: rows.Operation, why: str, *, has_failed: bool = False) -> None:
        """Take back what was assumed, and say so, unless the pod runs on the node all the same."""
        row = operation.row
        is_there = row.is_on_node and row.facts is not None and row.facts.node_name == operation.node
        if operation.placement is not None and not is_there:
            self._state.report_refused(operation.placement, why)
        self._apply(self._pods.refuse(operation, has_failed=has_failed))
        if operation.placement is None:
            self._jobs.mark_changed(row)

    def _retry(self, operation: rows.Operation, why: outcomes.NotDone) -> None:
        row, task_class = operation.row, operation.task_class.id
        if (entry := self._jobs.entry_of(row)) is None or not row.is_undecided:
            return
        entry.api_refusal = PendingReason(reason=why.reason, message=why.message)
        log.warning("a pod was not scheduled", pod=row.id, job=entry.job.name, reason=why.reason, error=why.message)
        if self._refusals.refused(operation, why):
            return  # the task backs off with others, and is pending again with them
        back_off = functools.partial(self._queue.back_off, row.id, task_class, self._clock(), at_least_s=why.at_least_s)
        if not back_off():
            self._jobs.mark_changed(row)  # the job was submitted again while the write was in flight
            self._state.sync_jobs()
            back_off()
