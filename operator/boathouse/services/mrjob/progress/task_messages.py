"""Orders for tasks and reports of tasks, by job. Both are only in memory, because they can be sent again.

Orders and their version are derived from the job's state. The version grows with the number of finished maps, also
across leaders.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping

from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.contract import TaskType


@dataclasses.dataclass(slots=True)
class _Entry:
    """Messages of a job.

    Attributes:
        changed: Set when the orders change, and then replaced.
        is_complete: Whether all maps are done.
        reports: Last report by running pod.
    """

    namespace: str
    orders: contract.Orders = dataclasses.field(default_factory=lambda: contract.Orders(version=0, maps_total=0))
    wants_plan: bool = True
    is_complete: bool = False
    changed: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    reports: dict[str, contract.TaskReport] = dataclasses.field(default_factory=dict)


COALESCE_S = 1.0
"""Maps that finish within this time are sent to a waiting reduce in one response."""
OnReport = Callable[[JobUid, str, contract.TaskReport], None]


class TaskMessages:
    """Orders and reports of unfinished jobs.

    Args:
        on_report: Called with each report.
    """

    def __init__(self, on_report: OnReport = lambda _uid, _pod, _report: None) -> None:
        self._on_report = on_report
        self._jobs: dict[JobUid, _Entry] = {}

    @property
    def reporting(self) -> int:
        """Number of running tasks that have reported."""
        return sum(len(entry.reports) for entry in self._jobs.values())

    def update(self, uid: JobUid, namespace: str, state: JobState, live: Collection[str] = ()) -> None:
        """Derive the orders of a job from its state, and drop reports of pods that are not live."""
        entry, orders = self._jobs.setdefault(uid, _Entry(namespace)), _orders(state)
        entry.wants_plan = state.plan is None
        entry.is_complete = TaskType.MAP in state.stages and state.stages[TaskType.MAP].done
        entry.reports = {pod: report for pod, report in entry.reports.items() if pod in live}
        if entry.orders != orders:
            entry.orders = orders
            entry.changed.set()
            entry.changed = asyncio.Event()

    def forget(self, uid: JobUid) -> None:
        """Drop the messages of a deleted job; tasks that wait for its orders get the last ones."""
        entry = self._jobs.pop(uid, None)
        if entry is not None:
            entry.changed.set()

    def knows(self, uid: JobUid, namespace: str) -> bool:
        """Return whether the job exists in the namespace."""
        entry = self._jobs.get(uid)
        return entry is not None and entry.namespace == namespace

    def wants_plan(self, uid: JobUid) -> bool:
        """Return whether the job has no accepted plan yet."""
        entry = self._jobs.get(uid)
        return entry is not None and entry.wants_plan

    def orders_since(self, uid: JobUid, since: int) -> contract.Orders | None:
        """Return the job's orders if their version differs from `since`, else None."""
        entry = self._jobs.get(uid)
        return entry.orders if entry is not None and entry.orders.version != since else None

    async def orders(self, uid: JobUid, since: int, wait_s: float) -> contract.Orders:
        """Return the job's orders once their version differs from `since`, or after `wait_s`."""
        entry = self._jobs[uid]
        if entry.orders.version == since:
            try:
                async with asyncio.timeout(wait_s):
                    await entry.changed.wait()
                if not (entry.orders.cancel or entry.is_complete):
                    await asyncio.sleep(COALESCE_S)
            except TimeoutError:
                pass
        return entry.orders

    def report(self, uid: JobUid, pod: str, report: contract.TaskReport) -> None:
        """Store a task's last report, unless the job was deleted."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.reports[pod] = results.report(report)
            self._on_report(uid, pod, entry.reports[pod])

    def reports(self, uid: JobUid) -> Mapping[str, contract.TaskReport]:
        """Return the last reports of a job's tasks, by pod."""
        entry = self._jobs.get(uid)
        return entry.reports if entry else {}


def _orders(state: JobState) -> contract.Orders:
    cancel = state.phase == "Failed"
    maps = state.stages.get(TaskType.MAP)
    if maps is None:
        return contract.Orders(version=1 + cancel, maps_total=0, cancel=cancel)
    return contract.Orders(
        version=(1 + maps.succeeded) * 2 + 1 + cancel,
        maps_total=maps.total,
        maps_done=contract.encode_bitmap((index for index, winner in enumerate(maps.winner) if winner), maps.total),
        winners={index: winner for index, winner in enumerate(maps.winner) if winner > 1},
        cancel=cancel,
    )
