"""Effects out: a queue of operations, and workers that write them. What came of each is an event for the intake."""

import collections
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

from typing_extensions import override

from boathouse import fair
from boathouse.cluster import boundary, catalogue, wire
from boathouse.resources import names
from boathouse.scheduling import admitted, gangs, jobs, outcomes, reasons
from boathouse.scheduling.pods import rows, translate
from boathouse.scheduling.state import ClusterState, WorkingPart
from boathouse.scheduling.volumes import book, objects
from boathouse.telemetry import logs
from boathouse_policies import model

log = logs.get(__name__)

VOLUMES_BOUND_WITHIN_S = 600.0  # as kube-scheduler's bindTimeoutSeconds
SET_ASIDE_S = 10.0  # how long a pod waits at least that could not be written because of a fault
SLOW_START = 2  # how many writes of a namespace may be in flight at first: more as they succeed
LONGEST_FIGURES = 512  # maximum size of the annotation with figures, in characters
_OF_SIZE = {names.ANNOTATION_IDEAL_MEMORY, names.ANNOTATION_DECISION}  # annotations of a pod that follow from its size


class Executor(WorkingPart):
    """Writes operations, several at a time, of several namespaces in turn."""

    def __init__(
        self, state: ClusterState, *, finished: Callable[[rows.Operation, outcomes.Outcome, float], None]
    ) -> None:
        super().__init__(state)
        self._volume_writer = objects.VolumeWriter(state.api, state.leader, state.volumes)
        self._finished = finished
        self._parked: list[rows.Operation] = []  # no worker waits for volumes: that may take minutes
        self.operations: fair.FairQueue[rows.Operation] = fair.FairQueue(state.options.workers, slow_start=SLOW_START)

    def start(self, operation: rows.Operation) -> None:
        """Queue an operation."""
        self.operations.put(operation.row.namespace, operation)
        self._begin_queued()

    def check_volumes(self) -> None:
        """Queue the operations whose volumes are bound, and fail those whose volumes cannot be bound."""
        parked, self._parked = self._parked, []
        for operation in parked:
            promise, awaits = operation.row.promise, operation.awaits
            if not operation.is_current or promise is None or awaits is None or self._volume_writer.is_bound(promise):
                self.start(operation)
            elif (failed := self._volumes_failed(operation, promise, awaits)) is None:
                self._parked.append(operation)
            else:
                self._finish(operation, dataclasses.replace(failed, excludes_node=True))

    def _volumes_failed(
        self, operation: rows.Operation, promise: book.Promise, awaits: book.Revisions
    ) -> outcomes.NotDone | None:
        try:
            failed = self._volume_writer.failure(promise, awaits)
        except Exception as error:  # noqa: BLE001 - what one claim or volume holds must not stop the others
            return self._set_aside(operation, error)
        if failed is not None or self._clock() < operation.until_s:
            return failed
        message = f"the volumes of {', '.join(promise.claims)} were not bound in {VOLUMES_BOUND_WITHIN_S:.0f} s"
        return outcomes.NotDone(reason=objects.TIMED_OUT, message=message)

    def _set_aside(self, operation: rows.Operation, error: Exception) -> outcomes.NotDone:
        """Report that a pod cannot be written because of a fault, and return the outcome, after which it is retried."""
        row, why = operation.row, reasons.set_aside(error)
        subject = wire.ObjectMeta(namespace=row.namespace, name=row.name, uid=row.uid or "")
        self._aside.set_aside(catalogue.PODS, subject, boundary.Reason.WRITING, error)
        return outcomes.NotDone(reason=why.reason, message=why.message, at_least_s=SET_ASIDE_S)

    def _finish(self, operation: rows.Operation, outcome: outcomes.Outcome) -> None:
        """Hand on what came of an operation; when that raises, set its job aside, or a pod without one.

        What was assumed for it stays assumed until the watch or the comparison with a list corrects it.
        """
        try:
            self._finished(operation, outcome, time.perf_counter() - operation.decided_s)
        except Exception as error:  # noqa: BLE001 - one pod must not keep the others from being written
            if (entry := self._jobs.entry_of(operation.row)) is None:
                self._set_aside(operation, error)
            else:
                self._state.set_job_aside(entry, error)

    @override
    def _begin_queued(self) -> None:
        while self._group is not None and (taken := self.operations.take()) is not None:
            self._group.create_task(self._work(*taken))

    async def _work(self, namespace: str, operation: rows.Operation) -> None:
        succeeded, operation.has_begun = None, True
        try:
            try:
                outcome = await self._carry_out(operation)
            except Exception as error:  # noqa: BLE001 - one pod must not keep the others from being written
                outcome = self._set_aside(operation, error)
            operation.has_begun = False
            if isinstance(outcome, dict):
                operation.awaits, operation.until_s = outcome, self._clock() + VOLUMES_BOUND_WITHIN_S
                self._parked.append(operation)
                self.check_volumes()  # they may have been bound while the last write was answered
            else:
                if isinstance(outcome, outcomes.Done | outcomes.NotDone | outcomes.NameTaken):
                    succeeded = isinstance(outcome, outcomes.Done)  # of other outcomes the next writes learn nothing
                self._finish(operation, outcome)
        except BaseException:
            self._group = None  # it ends, and takes no more operations
            raise
        finally:
            self.operations.done(namespace, succeeded=succeeded)
        self._begin_queued()

    async def _carry_out(self, operation: rows.Operation) -> outcomes.Outcome | book.Revisions:
        if operation.row.report is not None:
            await self._conditions.cancel_writes(operation.row)
        if not self._is_valid(operation):
            return outcomes.Skipped()
        promise = operation.row.promise
        if promise is not None and (so_far := await self._volume_writer.prepare(promise)) is not None:
            return so_far
        if operation.task.pod_uid is not None:
            return await self._bind(operation)
        manifest, entry = self._build(operation, operation.node), self._jobs.entry_of(operation.row)
        if isinstance(manifest, outcomes.NotDone):
            return manifest
        manifest["metadata"].setdefault("annotations", {}).update(self._reserved(operation) | _figures(operation))
        if entry is None or (tried := await self._try(operation, entry, manifest)) is None:
            return await self._create(operation, manifest)
        return tried

    async def _create(self, operation: rows.Operation, manifest: dict[str, Any]) -> outcomes.Outcome:
        """Create a pod, and compare the first of a class with its manifest: admission may have changed it."""
        task_class, entry = operation.task_class.id, self._jobs.entry_of(operation.row)
        if entry is not None and task_class in entry.unpredictable:
            manifest["spec"].pop("nodeName", None)
        outcome = await self._writer.create(operation, manifest)
        if not isinstance(outcome, outcomes.Done) or outcome.pod is None or entry is None:
            return outcome
        if task_class not in entry.admission:
            self._compare(entry, task_class, manifest, outcome.pod)
        if operation.node is None or outcome.pod.spec.node_name:
            return outcome
        return outcomes.Elsewhere(pod=outcome.pod)  # its node is chosen by what it is now

    async def _try(
        self, operation: rows.Operation, entry: jobs.Entry, manifest: dict[str, Any]
    ) -> outcomes.Outcome | None:
        """Let the API server try pods that it may change or refuse; return the outcome, or None to create the pod.

        These are the first pod of a class where admission is known to change pods, and an executor such as a driver
        will create: the driver would not learn why its executors are refused, and nobody would say so.
        """
        task_class, has_news = operation.task_class.id, False
        if operation.row.namespace in self._jobs.changing and task_class not in entry.admission:
            tried = await self._writer.try_create(operation.row.id, manifest)
            if tried is None or isinstance(tried, outcomes.NotDone):  # a webhook may refuse no more than dry runs
                entry.unpredictable.add(task_class)
            elif not isinstance(tried, wire.PodView):
                return tried
            else:
                has_news |= self._compare(entry, task_class, manifest, tried)
        if (expected := self._expected_manifest(operation, entry)) is not None and entry.gang is not None:
            tried = await self._writer.try_create(operation.row.id, expected)
            if isinstance(tried, outcomes.NotDone):
                message = f"the API server refuses the executors: {tried.message}"
                return dataclasses.replace(tried, message=message, is_of_class=True)
            if isinstance(tried, wire.PodView):
                has_news |= self._compare(entry, entry.gang.executor.id, expected, tried)
            elif tried is None:
                entry.unpredictable.add(entry.gang.executor.id)
            else:
                return tried
        return outcomes.Skipped() if has_news or self._is_outdated(operation) else None

    def _compare(
        self, entry: jobs.Entry, task_class: model.ClassId, manifest: dict[str, Any], pod: wire.PodView
    ) -> bool:
        """Note what admission added to a pod; return whether the class is scheduled in another way now."""
        try:
            return self._jobs.learn(entry, task_class, admitted.changes(manifest, pod))
        except (ValueError, ArithmeticError) as error:
            log.warning("what admission adds to a pod is not known", pod=pod.metadata.key, error=str(error))
            return False

    def _expected_manifest(self, operation: rows.Operation, entry: jobs.Entry) -> dict[str, Any] | None:
        is_driver = entry.gang is not None and operation.row.id == entry.gang.driver
        if not is_driver or not isinstance(entry.factory, jobs.ExpectingFactory):
            return None
        try:
            manifest = entry.factory.build_expected(self._expected(entry, operation.row.id))
            translate.manifest_resources(manifest)  # which adds the requests that limits imply
        except Exception:
            log.exception("an executor could not be built", pod=operation.row.id, job=entry.job.name)
            return None
        return manifest

    def _reserved(self, operation: rows.Operation) -> dict[str, str]:
        entry = self._jobs.entry_of(operation.row)
        if entry is None or entry.gang is None or not operation.row.is_submitted:
            return {}
        nodes = collections.Counter(place.node for _, place in gangs.reserved(entry.gang, self._pods))
        return {names.ANNOTATION_RESERVED: json.dumps(nodes, sort_keys=True)} if nodes else {}

    async def _bind(self, operation: rows.Operation) -> outcomes.Outcome:
        sized, is_ours = {}, operation.row.is_submitted  # else it is somebody else's, or one that a driver made
        if is_ours and operation.resources != operation.task_class.resources:
            manifest = self._build(operation, None)
            if isinstance(manifest, outcomes.NotDone):
                return manifest
            sizes = {container["name"]: container["resources"] for container in manifest["spec"]["containers"]}
            resized = await self._writer.resize(operation, sizes)
            if not isinstance(resized, outcomes.Done | outcomes.Elsewhere):
                return resized
            built = manifest["metadata"].get("annotations", {})
            sized = {key: built[key] for key in _OF_SIZE & built.keys()}
        return await self._writer.bind(operation, sized | self._reserved(operation) | _figures(operation))

    def _build(self, operation: rows.Operation, node: model.NodeName | None) -> dict[str, Any] | outcomes.NotDone:
        """Return the manifest of the pod, unless it requests more than was decided."""
        task, resources, entry = operation.row.id, operation.resources, self._jobs.entry_of(operation.row)
        if entry is None or entry.factory is None:
            return outcomes.NotDone(reason="JobGone", message="the job of the task no longer exists")
        try:
            size = entry.of_manifest(operation.task_class.id, resources)
            manifest = entry.factory.build(task, size, node, self._expected(entry, task))
            requested = translate.manifest_resources(manifest)
        except Exception as error:  # one job's pods must not stop all others
            log.exception("a pod could not be built", pod=task, job=entry.job.name)
            message = f"the pod could not be built: {error}"
        else:
            if resources.covers(requested):
                return manifest
            more = "a pod requests more than the scheduler decided"
            log.error(more, pod=task, decided=str(resources), asked=str(requested))
            message = f"the pod requests {requested}, but the scheduler decided {resources}"
        return outcomes.NotDone(reason="PodInvalid", message=message, at_least_s=SET_ASIDE_S)

    def _expected(self, entry: jobs.Entry, task: model.TaskId) -> model.Resources | None:
        """Return the size that was chosen for the executors of a driver; None for another task."""
        if entry.gang is None or task != entry.gang.driver:
            return None
        sizes = (place.resources for _, place in gangs.reserved(entry.gang, self._pods))
        return next((entry.of_manifest(entry.gang.executor.id, size) for size in sizes), None)

    def _is_valid(self, operation: rows.Operation) -> bool:
        row = operation.row
        if not operation.is_current or row.task is None or self._jobs.backoff_of(row) is not None:
            return False  # it is void, its job is gone, or its namespace was refused a pod since
        if row.pending_uid != operation.task.pod_uid or not row.may_be_placed:
            return False  # a watch shows a pod, or the pod is being deleted
        if self._is_outdated(operation):
            return False  # it was decided before it was known what admission adds to the pod
        if operation.node is None:
            return True
        wanted, free = self._state.axis.amounts(operation.resources), self._ledger.free(operation.node)
        if free is None or operation.node not in self._pods.nodes:
            return False
        return all(left >= 0 for left, amount in zip(free, wanted, strict=False) if amount)

    def _is_outdated(self, operation: rows.Operation) -> bool:
        entry, decided = self._jobs.entry_of(operation.row), operation.task_class
        if entry is None or entry.admission.get(decided.id) is None:
            return False
        current = entry.class_of(decided.id) or decided
        return (current.resources, current.constraints) != (decided.resources, decided.constraints)


def _figures(operation: rows.Operation) -> dict[str, str]:
    """Return the annotation with what the policies computed for a placement, as far as it is short."""
    figures = {} if operation.placement is None else dict(operation.placement.figures)
    text = json.dumps({name: round(value, 4) for name, value in figures.items()}) if figures else ""
    return {names.ANNOTATION_FIGURES: text} if 0 < len(text) <= LONGEST_FIGURES else {}
