"""Reports of running tasks, and orders for tasks by long poll: those of a job for all its tasks, and for a single one.

Reports are hints, and only in memory, because tasks send them again.

The orders of a job and their version are derived from the job's state. The version grows with the number of finished
maps, also across leaders. An order for a single task exists only while its sender waits for the acknowledgement.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping

import msgspec

from boathouse.services.mrjob import results
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import JobUid
from boathouse.suspension.stages import ACKNOWLEDGED_WITHIN_S, ORDERED_WITHIN_S, Reason
from boathouse_task import contract

COALESCE_S = 1.0  # maps that finish within this time are sent to a waiting reduce in one response
_REFUSALS = frozenset(contract.SuspendRefusal)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Request of a task for its orders."""

    uid: JobUid
    pod: str
    since: int = 0  # version of its job's orders that it has
    carried_out: str | None = None  # the last order to this task alone, or ""; None if its runtime takes none


@dataclasses.dataclass(slots=True, eq=False)
class _PodOrder:
    """An order to one task, `taken` once a poll was answered with it; the answer is why it is refused, or ""."""

    order: contract.SuspendOrder
    taken: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    answer: asyncio.Future[str] = dataclasses.field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, answer: str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)
        self.taken.set()


@dataclasses.dataclass(slots=True)
class _Entry:
    """Orders of a job, which is over once it was deleted, and the last reports of its running tasks by pod."""

    namespace: str
    orders: contract.Orders = contract.Orders(version=0, maps_total=0)  # noqa: RUF009 - frozen
    wants_plan: bool = True
    is_complete: bool = False
    is_over: bool = False
    pod_orders: dict[str, _PodOrder] = dataclasses.field(default_factory=dict)
    polls: dict[str, list[asyncio.Event]] = dataclasses.field(default_factory=dict)
    reports: dict[str, contract.TaskReport] = dataclasses.field(default_factory=dict)

    def wake(self, *pods: str) -> None:
        for pod in pods or self.polls:
            for poll in self.polls.get(pod, ()):
                poll.set()

    async def wait(self, pod: str, until: Callable[[], bool], at_most_s: float) -> None:
        """Wait until a condition holds, which is checked when the pod's polls are woken, or the time is over."""
        woken = asyncio.Event()
        self.polls.setdefault(pod, []).append(woken)
        try:
            async with asyncio.timeout(at_most_s):
                while not until():
                    woken.clear()
                    await woken.wait()
        except TimeoutError:
            pass
        finally:
            self.polls[pod].remove(woken)
            if not self.polls[pod]:
                del self.polls[pod]

    @property
    def is_urgent(self) -> bool:
        """Whether its orders are sent at once."""
        return self.is_over or self.is_complete or self.orders.cancel

    def own_order(self, poll: Poll) -> _PodOrder | None:
        """Return the order to the task alone, if the task takes such orders and has not received it."""
        given = self.pod_orders.get(poll.pod)
        return given if given and poll.carried_out is not None and given.order.id != poll.carried_out else None

    def has_news(self, poll: Poll) -> bool:
        """Return whether the task has not received all its orders."""
        return self.is_over or self.orders.version != poll.since or self.own_order(poll) is not None

    def take(self, poll: Poll) -> contract.Orders:
        """Return the orders for a poll, and note that its task gets its own one."""
        if (given := self.own_order(poll)) is None:
            return self.orders
        given.taken.set()
        return msgspec.structs.replace(self.orders, suspend=given.order)


class TaskOrders:
    """Orders for the tasks of unfinished jobs, and the tasks' last reports."""

    def __init__(self, on_report: Callable[[JobUid, str, contract.TaskReport], None] = lambda *_: None) -> None:
        self._on_report = on_report
        self._jobs: dict[JobUid, _Entry] = {}

    @property
    def reporting(self) -> int:
        """Return the number of running tasks that have reported."""
        return sum(len(entry.reports) for entry in self._jobs.values())

    def update(self, uid: JobUid, namespace: str, state: JobState, live: Collection[str] = ()) -> None:
        """Derive the orders of a job from its state, and drop orders to and reports of pods that are not live."""
        entry, orders = self._jobs.setdefault(uid, _Entry(namespace)), _orders(state)
        entry.wants_plan = state.plan is None
        entry.is_complete = contract.TaskType.MAP in state.stages and state.stages[contract.TaskType.MAP].done
        entry.reports = {pod: report for pod, report in entry.reports.items() if pod in live}
        for pod, order in entry.pod_orders.items():
            if pod not in live:
                order.end(Reason.TASK_ENDED)
        if entry.orders != orders:
            entry.orders = orders
            entry.wake()

    def forget(self, uid: JobUid) -> None:
        """Drop the orders of a deleted job; tasks that wait for them get the last ones."""
        if (entry := self._jobs.pop(uid, None)) is not None:
            entry.is_over = True
            for order in entry.pod_orders.values():
                order.end(Reason.TASK_ENDED)
            entry.wake()

    def knows(self, uid: JobUid, namespace: str) -> bool:
        """Return whether the job exists in the namespace."""
        return uid in self._jobs and self._jobs[uid].namespace == namespace

    def wants_plan(self, uid: JobUid) -> bool:
        """Return whether the job has no accepted plan yet."""
        return uid in self._jobs and self._jobs[uid].wants_plan

    def report(self, uid: JobUid, pod: str, report: contract.TaskReport) -> None:
        """Store a task's last report, unless the job was deleted."""
        if (entry := self._jobs.get(uid)) is not None:
            entry.reports[pod] = results.report(report)
            self._on_report(uid, pod, entry.reports[pod])

    def reports(self, uid: JobUid) -> Mapping[str, contract.TaskReport]:
        """Return the last reports of a job's tasks, by pod."""
        return self._jobs[uid].reports if uid in self._jobs else {}

    def orders_since(self, poll: Poll) -> contract.Orders | None:
        """Return a task's orders if they have news for it, else None."""
        entry = self._jobs.get(poll.uid)
        return entry.take(poll) if entry is not None and entry.has_news(poll) else None

    async def orders(self, poll: Poll, wait_s: float) -> contract.Orders:
        """Return a task's orders once they have news for it, or after `wait_s`."""
        entry = self._jobs[poll.uid]
        if not entry.has_news(poll):
            await entry.wait(poll.pod, lambda: entry.has_news(poll), wait_s)
            if entry.orders.version != poll.since:
                await entry.wait(poll.pod, lambda: entry.is_urgent or bool(entry.own_order(poll)), COALESCE_S)
        return entry.take(poll)

    async def suspend(self, uid: JobUid, pod: str, order: contract.SuspendOrder) -> str:
        """Order a task to pause; return "" once it has paused, else the reason why it does not."""
        entry = self._jobs.get(uid)
        if entry is None:
            return Reason.TASK_ENDED
        if pod in entry.pod_orders:
            return Reason.BUSY
        given = entry.pod_orders[pod] = _PodOrder(order)
        entry.wake(pod)
        try:
            async with asyncio.timeout(ORDERED_WITHIN_S):
                await given.taken.wait()
            async with asyncio.timeout(ACKNOWLEDGED_WITHIN_S):
                return await given.answer
        except TimeoutError:
            return Reason.NOT_ACKNOWLEDGED if given.taken.is_set() else Reason.NOT_POLLING
        finally:
            del entry.pod_orders[pod]

    def acknowledge(self, uid: JobUid, pod: str, acknowledgement: contract.Acknowledgement) -> None:
        """Answer the sender of an order to a task; other acknowledgements are ignored."""
        entry = self._jobs.get(uid)
        given = entry.pod_orders.get(pod) if entry is not None else None
        if given is not None and given.order.id == acknowledgement.id:
            refused = acknowledgement.refused
            given.end(refused if not refused or refused in _REFUSALS else contract.SuspendRefusal.BUSY)


def _orders(state: JobState) -> contract.Orders:
    cancel = state.phase == "Failed"
    maps = state.stages.get(contract.TaskType.MAP)
    if maps is None:
        return contract.Orders(version=1 + cancel, maps_total=0, cancel=cancel)
    return contract.Orders(
        version=(1 + maps.succeeded) * 2 + 1 + cancel,
        maps_total=maps.total,
        maps_done=contract.encode_bitmap((index for index, winner in enumerate(maps.winner) if winner), maps.total),
        winners={index: winner for index, winner in enumerate(maps.winner) if winner > 1},
        cancel=cancel,
    )
