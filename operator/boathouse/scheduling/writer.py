"""Carries decisions out: one write each, and after anything but a clear yes the truth about the pod is read.

Nothing here changes what the scheduler knows; every method returns what came of the write.
"""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, retries, wire
from boathouse.resources import names
from boathouse.scheduling import outcomes
from boathouse.telemetry import logs, metrics
from boathouse_policies import model

T = TypeVar("T")
log = logs.get(__name__)

_AMBIGUOUS = retries.Backoff(base_s=0.2, cap_s=5.0, attempts=4)
_UNTIL_ANSWERED = retries.Backoff(base_s=0.2, cap_s=5.0, attempts=1_000_000)


class Leadership(Protocol):
    """Whether we may write, and under which epoch: `cluster.election.LeaderElection` is one."""

    @property
    def epoch(self) -> int | None:
        """The epoch of our leadership."""

    @property
    def in_doubt(self) -> bool:
        """Whether a refused write raised the question who leads, and the Lease could not be read since."""

    def valid(self) -> bool:
        """Whether we lead at this very moment."""

    async def confirm(self) -> str | None:
        """Read the Lease: who leads now, or None while we do. Waits while the Lease cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A pod and where it is to be.

    Attributes:
        task: Its name.
        node: The node; None for a pod that is made ahead.
        uid: Its UID, where it exists.
    """

    task: model.TaskId
    node: model.NodeName | None
    uid: model.PodUid | None = None

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.task.partition("/")[0]

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.task.partition("/")[2]


class Writer:
    """Creates, binds and resizes pods under the epoch of our leadership.

    Args:
        api: Speaks to the API server.
        leader: Asked before every write.
        counters: Where writes are counted.
        sleep: How to wait between attempts.
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

    async def create(self, target: Target, manifest: dict[str, Any]) -> outcomes.Outcome:
        """Create a pod, with its node in the same write."""
        metadata = manifest["metadata"]
        metadata.setdefault("annotations", {})[names.ANNOTATION_EPOCH] = str(self._leader.epoch)
        metadata.setdefault("labels", {})[names.LABEL_FENCED] = "true"

        async def write() -> outcomes.Outcome:
            failpoints.hit("before-scheduler.create")
            made = await self._api.create_pod(target.namespace, manifest)
            failpoints.hit("after-scheduler.create")
            return outcomes.Done(pod=made)

        outcome = await self._attempt("create", target, write, owner=_controller_uid(metadata))
        self._counters.create(_result(outcome))
        return outcome

    async def bind(self, target: Target, annotations: Mapping[str, str] = MappingProxyType({})) -> outcomes.Outcome:
        """Bind a pod that exists to its node, and let it have these annotations."""
        assert target.uid is not None
        assert target.node is not None
        uid, node = target.uid, target.node
        noted = {**annotations, names.ANNOTATION_EPOCH: str(self._leader.epoch)}
        labels = {names.LABEL_FENCED: "true"}

        async def write() -> outcomes.Outcome:
            failpoints.hit("before-scheduler.bind")
            await self._api.bind(target.namespace, target.name, uid, node, noted, labels)
            failpoints.hit("after-scheduler.bind")
            return outcomes.Done()

        outcome = await self._attempt("bind", target, write)
        self._counters.bind(_result(outcome))
        return outcome

    async def resize(self, target: Target, resources: dict[str, dict[str, wire.Quantities]]) -> outcomes.Outcome:
        """Resize a pod that exists, before it is bound."""

        async def write() -> outcomes.Outcome:
            return outcomes.Done(pod=await self._api.resize(target.namespace, target.name, resources))

        return await self._attempt("resize", target, write)

    # One write

    async def _attempt(
        self,
        operation: str,
        target: Target,
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
                self._counters.write_error(operation, outcomes.code(error))
                if not retries.is_worth_retrying(error, idempotent=True) or isinstance(error, errors.TooManyRequests):
                    return await self._definite(error, target, owner)
                failures += 1  # it may have been done: the same write again, to the same node, does no harm
                if failures >= _AMBIGUOUS.attempts:
                    log.warning("no clear answer", operation=operation, pod=target.task, error=str(error))
                    return await self._truth(target, owner, outcomes.NotDone(reason="ServerError", message=str(error)))
                await self._sleep(_AMBIGUOUS.delay_s(failures, self._jitter, at_least_s=retries.retry_after_s(error)))

    async def _definite(self, error: errors.ClusterError, target: Target, owner: str | None) -> outcomes.Outcome:
        if isinstance(error, errors.Conflict | errors.NotFound):
            again = outcomes.NotDone(reason="Conflict", message=str(error))
            return await self._truth(target, owner, again)
        if isinstance(error, errors.ApiError):
            if outcomes.may_be_the_fence(error) and (holder := await self._leader.confirm()) is not None:
                return outcomes.Fenced(message=f"{holder}; a write was refused: {error.message}")
            return outcomes.refusal(error)
        return await self._truth(target, owner, outcomes.NotDone(reason="ServerError", message=str(error)))

    async def _leadership_lost(self) -> outcomes.Fenced | None:
        if not self._leader.valid():
            return outcomes.Fenced(message="the lease could not be renewed in time")
        if self._leader.in_doubt and (holder := await self._leader.confirm()) is not None:
            return outcomes.Fenced(message=holder)
        return None

    # The truth

    async def _truth(self, target: Target, owner: str | None, otherwise: outcomes.NotDone) -> outcomes.Outcome:
        """Read the pod until the server answers, and say what that means for what was decided."""
        pod = await self.read(target.task)
        if not self._leader.valid():
            return outcomes.Fenced(message="leadership was lost while a write was under way")
        return judge(target, owner, pod, otherwise)

    async def read(self, task: model.TaskId) -> wire.PodView | None:
        """Read a pod, however long it takes; None if there is none."""
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


def judge(target: Target, owner: str | None, pod: wire.PodView | None, otherwise: outcomes.NotDone) -> outcomes.Outcome:
    """Say what a pod as it is means for what was decided.

    Args:
        target: What was decided.
        owner: The UID of the controller that a pod made by us would have.
        pod: The truth; None if there is no such pod.
        otherwise: The outcome when the pod is as it was before.
    """
    if target.uid is None:
        if pod is None:
            return otherwise
        if owner != (pod.metadata.controller.uid if pod.metadata.controller else None):
            return outcomes.NameTaken(pod=pod)
    elif pod is None or pod.metadata.uid != target.uid:
        return outcomes.Vanished()
    if not pod.is_terminal and pod.spec.node_name == (target.node or ""):
        return outcomes.Done(pod=pod)
    if target.uid is not None and pod.is_bindable:
        return otherwise
    return outcomes.Elsewhere(pod=pod)


def _controller_uid(metadata: dict[str, Any]) -> str | None:
    owners = metadata.get("ownerReferences", [])
    return next((owner["uid"] for owner in owners if owner.get("controller")), None)


def _result(outcome: outcomes.Outcome) -> str:
    match outcome:
        case outcomes.Done():
            return "success"
        case outcomes.Elsewhere() | outcomes.Vanished() | outcomes.NameTaken():
            return "conflict"
        case _:
            return "error"
