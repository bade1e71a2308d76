"""Make the pods by which pending gangs show themselves to a cluster autoscaler, and delete them again.

A gang that waits for nodes, or for their room, shows itself whole or not at all: part of it would buy nodes on which it
cannot start. What it waits for otherwise (a quota, the limit of its queue, a refusal) no node would cure. Once it has
begun, the placeholders of executors that the driver has not created remain, so that nobody removes the empty nodes.

Every round compares the placeholders that exist with those that are wanted. Their names follow from the gang, so what a
crash leaves half done is completed, and what nobody wants any more is deleted, whoever created it.
"""

import asyncio
import contextlib
import copy
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Protocol, runtime_checkable

from boathouse import failpoints, fair
from boathouse.cluster import catalogue, errors, store, wire
from boathouse.resources import names
from boathouse.scheduling import gangs, jobs, pod_conditions, reasons, reservations
from boathouse.scheduling.pods import facts, rows
from boathouse.scheduling.pods.states import PendingReason
from boathouse.scheduling.state import ClusterState, Part
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_policies.framework import gang_minimum

log = logs.get(__name__)

ROUND_S: Final = 1.0  # maximum time between two rounds
PAUSE_S: Final = 0.05  # minimum time between two rounds
PER_ROUND: Final = 100  # maximum number of writes in a round
AT_ONCE: Final = 8  # maximum number of writes in flight
RETRY_S: Final = 15.0  # a placeholder that no watch shows, or of a job of which one was refused, is created again
FORGET_S: Final = reservations.RESTORE_S  # a new leader keeps placeholders of jobs that were not submitted yet


@runtime_checkable
class ShowingFactory(jobs.PodFactory, Protocol):
    """Builds the placeholders of a driver's job."""

    def build_placeholder(self, *, is_driver: bool) -> dict[str, Any]:
        """Return the manifest of a placeholder of the driver or of one of its executors, without a name."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The pods by which a gang shows itself."""

    entry: jobs.Entry
    gang: gang_minimum.Gang
    placeholders: Mapping[model.TaskId, bool]  # names of its placeholders, and whether they stand for the driver
    creates: bool = False  # whether those are created that are missing
    with_driver: bool = False  # whether its driver's pod is created without a node


class ShownGangs(Part):
    """Decides which gangs show themselves, from what is known now."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._judge, self._known = reservations.GangJudge(state), state.placeholders
        self._since_s: dict[model.JobId, float] = {}

    def decide(self) -> dict[model.JobId, Shown]:
        """Return the gangs that show themselves; all others have no placeholders."""
        wanted: dict[model.JobId, Shown] = {}
        waiting: list[tuple[jobs.Entry, gang_minimum.Gang]] = []
        for entry, gang in self._jobs.all_gangs():
            job = entry.job.id
            if not isinstance(entry.factory, ShowingFactory) or (entry.has_begun and not self._known.of(job)):
                continue
            members, entry.hidden = gangs.members(gang, self._pods), ""
            if members.has_begun:
                wanted[job] = self._begun(entry, gang, members)
                continue
            is_visible = self._is_visible(entry, gang, members)
            if is_visible is None or not self._is_due(job, is_visible=is_visible):
                wanted[job] = self._as_is(entry, gang)
            elif is_visible:
                waiting.append((entry, gang))
        self._since_s = {job: since_s for job, since_s in self._since_s.items() if job in self._jobs.gangs}
        left = self._options.autoscaling.max_placeholders - sum(len(shown.placeholders) for shown in wanted.values())
        # namespaces take turns, each with its job of the highest priority that waits the longest
        waiting.sort(key=lambda pair: pair[0].precedence)
        for _, (entry, gang) in fair.in_turns(waiting, lambda pair: pair[0].namespace):
            whole = self._whole(entry, gang)
            entry.hidden = self._hidden(len(whole.placeholders), left)
            if not entry.hidden:
                wanted[entry.job.id], left = whole, left - len(whole.placeholders)
        return wanted

    def _hidden(self, count: int, left: int) -> str:
        limits = self._options.autoscaling
        if count > limits.max_placeholders_per_application:
            return (
                f"no nodes are requested for it, because it would need {count} placeholders, more than the limit "
                f"{limits.max_placeholders_per_application} of an application"
            )
        return "no nodes are requested for it yet, because of the limit of all placeholders" if count > left else ""

    def _is_visible(self, entry: jobs.Entry, gang: gang_minimum.Gang, members: gangs.Members) -> bool | None:
        """Return whether a gang that has not begun is to show itself; None if it was not judged yet."""
        if not self._options.autoscaling.enabled or entry.job.id in self._jobs.aside:
            return False
        if entry.excess or members.driver is None:
            return False
        if self._jobs.backoff_of(members.driver) is not None:
            return False
        if entry.pending_reason is not None:
            return entry.lacks_nodes
        code = self._diagnoses.code_of(gang.leader.id)
        return None if code is None else code in reasons.CURED_BY_NODES

    def _is_due(self, job: model.JobId, *, is_visible: bool) -> bool:
        """Return whether that holds: a gang waits for a moment before it shows itself."""
        if not is_visible:
            self._since_s.pop(job, None)
            return True
        return self._clock() >= self._since_s.setdefault(job, self._clock()) + self._options.pending_ahead_delay_s

    def _as_is(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> Shown:
        placeholders = self._known.of(entry.job.id)
        whole = self._whole(entry, gang).placeholders if placeholders else {}
        return Shown(entry=entry, gang=gang, placeholders={name: whole[name] for name in whole if name in placeholders})

    def _whole(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> Shown:
        """Return all pods by which a gang shows itself.

        The pod of a driver names the memory of its executors. While that is still to be chosen, the driver has a
        placeholder too.
        """
        placeholders = {gangs.of_executor(task): False for task in gang.expected}
        is_sized_late = gang.least(self._state.profile.sizer).executor.resources != gang.executor.resources
        if is_sized_late:
            placeholders[gangs.of_driver(gang)] = True
        return Shown(entry=entry, gang=gang, placeholders=placeholders, creates=True, with_driver=not is_sized_late)

    def _begun(self, entry: jobs.Entry, gang: gang_minimum.Gang, members: gangs.Members) -> Shown:
        """Return the placeholders that stay of a gang that has begun: none if the quota has no room for both."""
        self._since_s.pop(entry.job.id, None)
        uncreated = gang_minimum.uncreated(gang, members.executors)
        placeholders = self._known.of(entry.job.id)
        if placeholders and not self._judge.has_room_for_executors(entry, gang, uncreated):
            uncreated = 0
        staying = map(gangs.of_executor, gang.expected[:uncreated])
        return Shown(entry=entry, gang=gang, placeholders={name: False for name in staying if name in placeholders})


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """A write of a placeholder."""

    namespace: str  # its namespace: namespaces take turns
    job: model.JobId  # the job; of one whose pods are refused, no others are created at once
    run: Callable[[], Awaitable[object]]
    creates: bool = False


class Showing(Part):
    """Shows pending gangs."""

    def __init__(self, state: ClusterState, start: Callable[[rows.Operation], None]) -> None:
        super().__init__(state)
        self._start, self._known, self._gangs = start, state.placeholders, ShownGangs(state)
        self._tried: dict[str, float] = {}  # when by task, and by job when one of its pods was refused
        self._began_s, self._wake = state.clock(), asyncio.Event()

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Let a round begin when a driver has created an executor, or an autoscaler would count both for a while."""
        controller = change.new.metadata.controller if isinstance(change, store.Added) and self._known else None
        if controller is not None and controller.kind == "Pod":
            self._wake.set()

    async def round(self) -> None:
        """Wait until a round is due, and do it."""
        await asyncio.sleep(PAUSE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S):
                await self._wake.wait()
        self._wake.clear()
        await self.show()

    async def show(self) -> None:
        """Do a round: create the drivers and placeholders that are missing, and delete those that nobody wants."""
        now_s, wanted = self._clock(), self._gangs.decide()
        self._tried = {name: tried_s for name, tried_s in self._tried.items() if now_s < tried_s + RETRY_S}
        for shown in wanted.values():
            if shown.with_driver:
                self._create_driver(shown)
        self._set_driver_conditions()
        turns = asyncio.Semaphore(AT_ONCE)
        writes = [*self._deletions(wanted), *self._conditions_of(wanted), *self._creations(wanted)]
        first = fair.in_turns(writes, lambda write: write.namespace)[:PER_ROUND]
        await asyncio.gather(*(self._write(turns, write) for _, write in first))

    def _create_driver(self, shown: Shown) -> None:
        """Create a driver without a node; after a failure not at once."""
        row = self._pods.get(shown.gang.driver)
        if row is None or row.task is None or (row.failures and row.id in self._tried):
            return
        if (operation := self._pods.decide_ahead(row.task, shown.gang.leader)) is not None:
            self._tried[row.id] = self._clock()
            self._start(operation)

    def _set_driver_conditions(self) -> None:
        """Set the conditions of drivers without a node: no cycle looks at a gang that is not in the queue."""
        for row in [self._pods.get(gang.driver) for entry, gang in self._jobs.all_gangs() if not entry.has_begun]:
            if row is None or row.pending_uid is None or not row.is_undecided:
                continue
            if (why := self._diagnoses.of_pod(row)) is not None:
                self._conditions.set_pending(row, why)

    def _deletions(self, wanted: dict[model.JobId, Shown]) -> Iterator[Write]:
        """Yield the deletions of placeholders, the last ones first."""
        is_settled = self._clock() >= self._began_s + FORGET_S
        for job, placeholders in list(self._known.items()):
            stays = wanted[job].placeholders if job in wanted else {}
            is_known = is_settled or self._jobs.entry(job) is not None
            for name, pod in reversed(list(placeholders.items())) if is_known else ():
                meta = pod.metadata
                delete = functools.partial(self._api.delete, catalogue.PODS, meta.name, meta.namespace, uid=meta.uid)
                if name not in stays and meta.deletion_timestamp is None:
                    yield Write(meta.namespace, job, functools.partial(delete, grace_period_s=0))

    def _conditions_of(self, wanted: dict[model.JobId, Shown]) -> Iterator[Write]:
        """Yield the writes of the condition by which an autoscaler knows that a placeholder needs a node."""
        for job, shown in wanted.items():
            placeholders = self._known.of(job)
            whose = f"{shown.entry.job.name}, whose driver and minimum of {len(shown.gang.expected)} executors"
            why = PendingReason(str(model.Code.UNSCHEDULABLE), f"stands for a pod of {whose} need nodes")
            for pod in map(placeholders.get, shown.placeholders):
                if pod is not None and pod.metadata.deletion_timestamp is None and not _has_reason(pod, why):
                    write = functools.partial(pod_conditions.write_condition, self._api, pod, why)
                    yield Write(pod.metadata.namespace, job, write)

    def _creations(self, wanted: dict[model.JobId, Shown]) -> Iterator[Write]:
        for job, shown in wanted.items():
            placeholders = self._known.of(job)
            missing = [name for name in shown.placeholders if name not in placeholders and name not in self._tried]
            if not shown.creates or job in self._tried:
                continue
            kinds = {shown.placeholders[name] for name in missing}
            built = {is_driver: _built(shown, is_driver=is_driver) for is_driver in kinds}
            for name in missing:
                if (manifest := built[shown.placeholders[name]]) is not None:
                    create = functools.partial(self._create, name, manifest)
                    yield Write(name.partition("/")[0], job, create, creates=True)

    async def _create(self, name: model.TaskId, manifest: dict[str, Any]) -> None:
        self._tried[name] = self._clock()
        made = copy.deepcopy(manifest)
        namespace, _, made["metadata"]["name"] = name.partition("/")
        made["metadata"] = self._writer.fenced(made["metadata"])
        with failpoints.around("scheduler.create"):
            await self._api.create_pod(namespace, made)

    async def _write(self, turns: asyncio.Semaphore, write: Write) -> None:
        async with turns:
            if not self._leader.valid() or (write.creates and write.job in self._tried):
                return
            try:
                await write.run()
            except (errors.NotFound, errors.Conflict, errors.AlreadyExists):
                return  # the next round sees what is there
            except errors.ClusterError as error:
                if write.creates:
                    self._tried[write.job] = self._clock()
                log.warning("a placeholder was not written", job=write.job, error=str(error))


def _built(shown: Shown, *, is_driver: bool) -> dict[str, Any] | None:
    assert isinstance(shown.entry.factory, ShowingFactory)
    try:
        manifest = shown.entry.factory.build_placeholder(is_driver=is_driver)
    except Exception as error:  # noqa: BLE001 - one job's pods must not stop all others
        log.warning("a placeholder could not be built", job=shown.entry.job.name, error=str(error))
        return None
    manifest["metadata"]["labels"][names.LABEL_TASK_TYPE] = names.TASK_TYPE_PLACEHOLDER
    return manifest


def _has_reason(pod: wire.Pod, why: PendingReason) -> bool:
    condition = pod.condition(pod_conditions.POD_SCHEDULED)
    return condition is not None and (condition.status, condition.reason) == ("False", why.reason)
