"""Carry decisions out with one write each. Unless the write certainly succeeded, read the pod's actual state.

Methods return the outcome of the write and do not change the scheduler's state.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, retries, wire
from boathouse.resources import names
from boathouse.scheduling import outcomes
from boathouse.scheduling.pods import rows
from boathouse.telemetry import logs, metrics
from boathouse_policies import model

T = TypeVar("T")
log = logs.get(__name__)

_AMBIGUOUS = retries.Backoff(base_s=0.2, cap_s=5.0, attempts=4)
_UNTIL_ANSWERED = retries.Backoff(base_s=0.2, cap_s=5.0, attempts=1_000_000)


class Leadership(Protocol):
    """Leadership of this process and its epoch; `cluster.election.LeaderElection` implements it."""

    @property
    def epoch(self) -> int | None:
        """Epoch of this process's leadership, or None."""

    @property
    def in_doubt(self) -> bool:
        """Whether a write was refused and the Lease could not be read since."""

    def valid(self) -> bool:
        """Return whether this process is the leader now."""

    async def confirm(self) -> str | None:
        """Read the Lease; return the leader, or None if it is this process. Waits while the Lease is unreadable."""


class Writer:
    """Creates, binds and resizes pods with the epoch of this process's leadership.

    Args:
        api: Client of the API server.
        leader: Leader election, which is checked before every write.
        counters: Counters of writes.
        sleep: Sleeps between attempts.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: Leadership,
        counters: metrics.SchedulerMetrics,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._leader = leader
        self._counters = counters
        self._sleep = sleep
        self._jitter = random.Random()  # noqa: S311 - spreads load, guards nothing

    async def create(self, operation: rows.Operation, manifest: dict[str, Any]) -> outcomes.Outcome:
        """Create a pod, with its node in the same write."""
        metadata = manifest["metadata"]
        metadata.setdefault("annotations", {})[names.ANNOTATION_EPOCH] = str(self._leader.epoch)
        metadata.setdefault("labels", {})[names.LABEL_FENCED] = "true"

        async def write() -> outcomes.Outcome:
            failpoints.hit("before-scheduler.create")
            made = await self._api.create_pod(operation.row.namespace, manifest)
            failpoints.hit("after-scheduler.create")
            return outcomes.Done(pod=made)

        outcome = await self._attempt("create", operation, write, owner=_controller_uid(metadata))
        self._counters.create(_result(outcome))
        return outcome

    async def bind(
        self, operation: rows.Operation, annotations: Mapping[str, str] = MappingProxyType({})
    ) -> outcomes.Outcome:
        """Bind an existing pod to its node, and add these annotations."""
        uid, node = operation.task.pod_uid, operation.node
        assert uid is not None
        assert node is not None
        noted = {**annotations, names.ANNOTATION_EPOCH: str(self._leader.epoch)}
        labels = {names.LABEL_FENCED: "true"}

        async def write() -> outcomes.Outcome:
            failpoints.hit("before-scheduler.bind")
            await self._api.bind(operation.row.namespace, operation.row.name, uid, node, noted, labels)
            failpoints.hit("after-scheduler.bind")
            return outcomes.Done()

        outcome = await self._attempt("bind", operation, write)
        self._counters.bind(_result(outcome))
        return outcome

    async def resize(
        self, operation: rows.Operation, resources: dict[str, dict[str, wire.Quantities]]
    ) -> outcomes.Outcome:
        """Resize an existing pod before it is bound."""

        async def write() -> outcomes.Outcome:
            return outcomes.Done(pod=await self._api.resize(operation.row.namespace, operation.row.name, resources))

        return await self._attempt("resize", operation, write)

    # Writes

    async def _attempt(
        self,
        verb: str,
        operation: rows.Operation,
        write: Callable[[], Awaitable[outcomes.Outcome]],
        *,
        owner: str | None = None,
    ) -> outcomes.Outcome:
        failures = 0
        while True:
            if (lost := await self._leadership_lost()) is not None:
                return lost
            try:
                return await write()
            except errors.ClusterError as error:
                self._counters.write_error(verb, outcomes.code(error))
                if not retries.is_worth_retrying(error, idempotent=True) or isinstance(error, errors.TooManyRequests):
                    return await self._definite(error, operation, owner)
                failures += 1  # it may have been done, and repeating the same write for the same node is safe
                if failures >= _AMBIGUOUS.attempts:
                    log.warning(
                        "the result of a write is unknown; reading the pod",
                        operation=verb,
                        pod=operation.row.id,
                        error=str(error),
                    )
                    return await self._truth(
                        operation, owner, outcomes.NotDone(reason="ServerError", message=str(error))
                    )
                await self._sleep(_AMBIGUOUS.delay_s(failures, self._jitter, at_least_s=retries.retry_after_s(error)))

    async def _definite(
        self, error: errors.ClusterError, operation: rows.Operation, owner: str | None
    ) -> outcomes.Outcome:
        if isinstance(error, errors.Conflict | errors.NotFound):
            again = outcomes.NotDone(reason="Conflict", message=str(error))
            return await self._truth(operation, owner, again)
        if isinstance(error, errors.ApiError):
            if outcomes.may_be_the_fence(error) and (holder := await self._leader.confirm()) is not None:
                return outcomes.Fenced(message=f"{holder}; a write was refused: {error.message}")
            return outcomes.refusal(error)
        return await self._truth(operation, owner, outcomes.NotDone(reason="ServerError", message=str(error)))

    async def _leadership_lost(self) -> outcomes.Fenced | None:
        if not self._leader.valid():
            return outcomes.Fenced(message="the lease could not be renewed in time")
        if self._leader.in_doubt and (holder := await self._leader.confirm()) is not None:
            return outcomes.Fenced(message=holder)
        return None

    # Actual state

    async def _truth(
        self, operation: rows.Operation, owner: str | None, otherwise: outcomes.NotDone
    ) -> outcomes.Outcome:
        """Read the pod until the server responds, and return the outcome of the operation."""
        pod = await self.read(operation.row.id)
        if not self._leader.valid():
            return outcomes.Fenced(message="leadership was lost during a write")
        return judge(operation, owner, pod, otherwise)

    async def read(self, task: model.TaskId) -> wire.PodView | None:
        """Read a pod, with unlimited retries; return None if it does not exist."""
        namespace, _, name = task.partition("/")
        try:
            return await retries.retrying(
                lambda: self._api.get(catalogue.PODS, name, namespace),
                idempotent=True,
                backoff=_UNTIL_ANSWERED,
                sleep=self._sleep,
            )
        except errors.NotFound:
            return None


def judge(
    operation: rows.Operation, owner: str | None, pod: wire.PodView | None, otherwise: outcomes.NotDone
) -> outcomes.Outcome:
    """Return the outcome of an operation from the actual pod.

    Args:
        operation: The operation.
        owner: UID of the controller of a pod that this operator creates.
        pod: The actual pod; None if it does not exist.
        otherwise: The outcome if the pod is unchanged.
    """
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


def _controller_uid(metadata: dict[str, Any]) -> str | None:
    owners = metadata.get("ownerReferences", [])
    return next((owner["uid"] for owner in owners if owner.get("controller")), None)


def _result(outcome: outcomes.Outcome) -> str:
    if isinstance(outcome, outcomes.Done):
        return "success"
    is_conflict = isinstance(outcome, outcomes.Elsewhere | outcomes.Vanished | outcomes.NameTaken)
    return "conflict" if is_conflict else "error"
