"""Carry decisions out with one write each. Unless the write certainly succeeded, read the pod's actual state.

Methods return the outcome of the write and do not change the scheduler's state.
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from boathouse import failpoints
from boathouse.cluster import catalogue, client, election, errors, retries, wire
from boathouse.resources import names, quantity
from boathouse.scheduling import outcomes
from boathouse.scheduling.pods import requests, rows
from boathouse.suspension import stages
from boathouse.telemetry import logs, metrics
from boathouse_policies import model

FIELD_MANAGER = "boathouse-"
"""What precedes the epoch in the field manager of a resize, by which the chart's policy rejects old epochs."""
log = logs.get(__name__)

_AMBIGUOUS = retries.Backoff(base_s=0.2, cap_s=5.0, attempts=4)
_TELL_NOTHING = (errors.Unauthorized, errors.NotFound, errors.Conflict, errors.Gone, errors.ServerError)
"""Answers to a dry run that say nothing of the pod."""
_NO_DRY_RUN = "does not support dry run"  # in the answer of an API server that has a webhook with side effects


Judge: TypeAlias = Callable[[wire.PodView | None, outcomes.NotDone], outcomes.Outcome]
"""Returns the outcome of a write, given the actual pod, or None if it does not exist, and the outcome if the pod is
unchanged."""


class Writer:
    """Creates, binds and resizes pods with the epoch of this process's leadership."""

    def __init__(
        self,
        api: client.ApiClient,
        leader: election.LeaderElection,
        counters: metrics.SchedulerMetrics,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._api, self._leader, self._counters, self._sleep = api, leader, counters, sleep
        self._jitter = random.Random()  # noqa: S311 - spreads load, guards nothing

    async def create(self, operation: rows.Operation, manifest: dict[str, Any]) -> outcomes.Outcome:
        """Create a pod, with its node in the same write."""
        metadata = manifest["metadata"] = self.fenced(manifest["metadata"])
        controllers = (owner["uid"] for owner in metadata.get("ownerReferences", []) if owner.get("controller"))
        judged = functools.partial(judge, operation, next(controllers, None))
        write = functools.partial(self._api.create_pod, operation.row.namespace, manifest)
        outcome = await self._attempt("create", operation.row.id, write, judged)
        self._counters.create(_result(outcome))
        return outcome

    async def try_create(self, task: model.TaskId, manifest: dict[str, Any]) -> wire.PodView | outcomes.Outcome | None:
        """Let the API server admit a pod without creating it; return the pod as admitted, or why it is refused.

        Returns None if the API server cannot tell: a webhook has side effects.
        """
        manifest = {**manifest, "metadata": self.fenced(manifest["metadata"])}
        try:
            return await self._api.create(catalogue.PODS, manifest, task.partition("/")[0], dry_run=True)
        except errors.ClusterError as error:
            tells_nothing = isinstance(error, _TELL_NOTHING) or _NO_DRY_RUN in str(error)
            if isinstance(error, errors.ApiError) and not tells_nothing:
                return await self._refused(error)
            log.warning("the API server could not try a pod", pod=task, error=str(error))
            return None

    def fenced(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return metadata with the epoch of this process's leadership."""
        return {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), names.ANNOTATION_EPOCH: str(self._leader.epoch)},
            "labels": {**metadata.get("labels", {}), names.LABEL_FENCED: "true"},
        }

    async def bind(
        self, operation: rows.Operation, annotations: Mapping[str, str] = MappingProxyType({})
    ) -> outcomes.Outcome:
        """Bind an existing pod to its node, and add these annotations."""
        uid, node = operation.task.pod_uid, operation.node
        assert uid is not None
        assert node is not None
        row, added = operation.row, self.fenced({"annotations": annotations})
        more = added["annotations"], added["labels"]
        write = functools.partial(self._api.bind, row.namespace, row.name, uid, node, *more)
        outcome = await self._attempt("bind", row.id, write, functools.partial(judge, operation, None))
        self._counters.bind(_result(outcome))
        return outcome

    def resize(
        self, operation: rows.Operation, resources: dict[str, dict[str, wire.Quantities]]
    ) -> Awaitable[outcomes.Outcome]:
        """Resize an existing pod before it is bound."""
        judged = functools.partial(judge, operation, None)
        return self._resize(operation.row, operation.task.pod_uid or "", resources, "scheduler.resize", judged)

    def resize_running(
        self, row: rows.PodRow, resources: Mapping[str, wire.Quantities], failpoint: str
    ) -> Awaitable[outcomes.Outcome]:
        """Change `requests` and `limits` of the container of a running task."""
        uid = row.uid or ""
        return self._resize(row, uid, {names.CONTAINER: resources}, failpoint, _judge_running(uid, resources))

    def resize_cpu(self, row: rows.PodRow, size: stages.CpuSize, failpoint: str) -> Awaitable[outcomes.Outcome]:
        """Set the CPU of a running task's container."""
        request, limit = (quantity.format_milli(amount) for amount in (size.request_milli, size.limit_milli))
        return self.resize_running(row, {"requests": {"cpu": request}, "limits": {"cpu": limit}}, failpoint)

    async def record(self, row: rows.PodRow, revision: str, record: stages.SuspensionRecord) -> outcomes.Outcome:
        """Write the record of a suspension into one version of a task's pod; `Elsewhere` if that has another version.

        The write needs no fence: if another leader has resized the pod, the version is another.
        """
        uid, text = row.uid or "", record.text()

        def judged(pod: wire.PodView | None, otherwise: outcomes.NotDone) -> outcomes.Outcome:
            if pod is None or pod.metadata.uid != uid or pod.is_terminal:
                return outcomes.Vanished()
            if pod.metadata.annotations.get(names.ANNOTATION_SUSPENSION) == text:
                return outcomes.Done(pod=pod)
            return outcomes.Elsewhere(pod=pod) if pod.metadata.resource_version != revision else otherwise

        write = functools.partial(
            self._api.annotate_status, row.namespace, row.name, resource_version=revision, uid=uid
        )
        added = {names.ANNOTATION_SUSPENSION: text}
        return await self._attempt("record", row.id, functools.partial(write, added), judged)

    async def _resize(
        self,
        row: rows.PodRow,
        uid: str,
        resources: Mapping[str, Mapping[str, wire.Quantities]],
        failpoint: str,
        judged: Judge,
    ) -> outcomes.Outcome:
        """Resize a pod; pods/resize drops annotations, so the field manager names the epoch."""

        def write() -> Awaitable[wire.PodView]:
            manager = f"{FIELD_MANAGER}{self._leader.epoch}"
            return self._api.resize(row.namespace, row.name, resources, manager=manager, uid=uid)

        wanted = resources.get(names.CONTAINER, {}).get("requests", {}).get("cpu")
        held_milli = 0 if row.facts is None else row.facts.cpu_request_milli
        more = 0 if wanted is None else requests.cpu_milli(wanted) - held_milli
        outcome = await self._attempt("resize", row.id, write, judged, failpoint)
        self._counters.resize("up" if more > 0 else "down" if more else "equal", _result(outcome))
        return outcome

    async def _attempt(
        self,
        verb: str,
        task: model.TaskId,
        write: Callable[[], Awaitable[wire.PodView | None]],
        judged: Judge,
        failpoint: str = "",
    ) -> outcomes.Outcome:
        """Write until the API server has answered; if what came of it is not known, read the pod."""
        failures = 0
        while True:
            if (lost := await self._leadership_lost()) is not None:
                return lost
            try:
                with failpoints.around(failpoint or f"scheduler.{verb}"):
                    return outcomes.Done(pod=await write())
            except errors.ClusterError as error:
                self._counters.write_error(verb, outcomes.code(error))
                is_conflict = isinstance(error, errors.Conflict | errors.NotFound)
                if retries.is_worth_retrying(error, idempotent=True) and not isinstance(error, errors.TooManyRequests):
                    failures += 1  # it may have been done, and repeating the same write for the same node is safe
                    if failures < _AMBIGUOUS.attempts:
                        await self._sleep(_AMBIGUOUS.delay_s(failures, self._jitter, at_least_s=error.retry_after_s))
                        continue
                    unknown = "the result of a write is unknown; reading the pod"
                    log.warning(unknown, operation=verb, pod=task, error=str(error))
                elif isinstance(error, errors.ApiError) and not is_conflict:
                    return await self._refused(error)
                otherwise = outcomes.NotDone("Conflict" if is_conflict else "ServerError", str(error))
            pod = await self.read(task)
            if not self._leader.valid():
                return outcomes.Fenced(message="leadership was lost during a write")
            return judged(pod, otherwise)

    async def _refused(self, error: errors.ApiError) -> outcomes.Fenced | outcomes.NotDone:
        if outcomes.may_be_the_fence(error) and (holder := await self._leader.confirm()) is not None:
            return outcomes.Fenced(message=f"{holder}; a write was refused: {error.message}")
        return outcomes.refusal(error)

    async def _leadership_lost(self) -> outcomes.Fenced | None:
        if not self._leader.valid():
            return outcomes.Fenced(message="the lease could not be renewed in time")
        if self._leader.in_doubt and (holder := await self._leader.confirm()) is not None:
            return outcomes.Fenced(message=holder)
        return None

    async def read(self, task: model.TaskId) -> wire.PodView | None:
        """Read a pod, with unlimited retries; return None if it does not exist."""
        namespace, _, name = task.partition("/")
        try:
            return await retries.retrying(
                lambda: self._api.get(catalogue.PODS, name, namespace),
                idempotent=True,
                backoff=retries.Backoff(base_s=0.2, cap_s=5.0, attempts=1_000_000),
                sleep=self._sleep,
            )
        except errors.NotFound:
            return None


def judge(
    operation: rows.Operation, owner: str | None, pod: wire.PodView | None, otherwise: outcomes.NotDone
) -> outcomes.Outcome:
    """Return the outcome of an operation from the actual pod. `owner` is the UID of the controller of a created pod."""
    if operation.task.pod_uid is None:
        if pod is None:
            return otherwise
        if owner != (pod.metadata.controller.uid if pod.metadata.controller else None):
            return outcomes.NameTaken(pod=pod)
    elif pod is None or pod.metadata.uid != operation.task.pod_uid:
        return outcomes.Vanished()
    if not pod.is_terminal and pod.spec.node_name == (operation.node or ""):
        return outcomes.Done(pod=pod)
    if operation.task.pod_uid is not None and pod.is_bindable:
        return otherwise
    return outcomes.Elsewhere(pod=pod)


def _judge_running(uid: str, resources: Mapping[str, wire.Quantities]) -> Judge:
    def judged(pod: wire.PodView | None, otherwise: outcomes.NotDone) -> outcomes.Outcome:
        if pod is None or pod.metadata.uid != uid or pod.is_terminal:
            return outcomes.Vanished()
        container = requests.task_container(pod)
        given = msgspec.to_builtins(container.resources) if container is not None else {}
        is_done = all(
            requests.nano(given.get(part, {}).get(name, "0")) == requests.nano(amount)
            for part, wanted in resources.items()
            for name, amount in wanted.items()
        )
        return outcomes.Done(pod=pod) if is_done else otherwise

    return judged


def _result(outcome: outcomes.Outcome) -> str:
    if isinstance(outcome, outcomes.Done):
        return "success"
    return "conflict" if isinstance(outcome, outcomes.Elsewhere | outcomes.Vanished | outcomes.NameTaken) else "error"
