"""What tasks are told and what they reported, by job; in memory only, because everything in it can be told again.

Orders are derived from the job's state, and so is their version: it grows with the maps that are done, whichever
process is asked.
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
    """The messages of a job.

    Attributes:
        changed: Set when the orders change; the next orders have another one.
        is_complete: Whether all maps are done.
        reports: By pod, of those that run.
    """

    namespace: str
    orders: contract.Orders = dataclasses.field(default_factory=lambda: contract.Orders(version=0, maps_total=0))
    wants_plan: bool = True
    is_complete: bool = False
    changed: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    reports: dict[str, contract.TaskReport] = dataclasses.field(default_factory=dict)


COALESCE_S = 1.0
"""Maps that are done within so long are told together: a reduce that waits is not told of each by itself."""
OnReport = Callable[[JobUid, str, contract.TaskReport], None]


class TaskMessages:
    """Orders and reports of the jobs that are not finished.

    Args:
        on_report: Called with each report.
    """

    def __init__(self, on_report: OnReport = lambda _uid, _pod, _report: None) -> None:
        self._on_report = on_report
        self._jobs: dict[JobUid, _Entry] = {}

    @property
    def reporting(self) -> int:
        """The number of running tasks that have reported."""
        return sum(len(entry.reports) for entry in self._jobs.values())

    def update(self, uid: JobUid, namespace: str, state: JobState, live: Collection[str] = ()) -> None:
        """Set the orders of a job to what its state says, and drop the reports of all but the live pods."""
        entry, orders = self._jobs.setdefault(uid, _Entry(namespace)), _orders(state)
        entry.wants_plan = state.plan is None
        entry.is_complete = TaskType.MAP in state.stages and state.stages[TaskType.MAP].done
        entry.reports = {pod: report for pod, report in entry.reports.items() if pod in live}
        if entry.orders != orders:
            entry.orders = orders
            entry.changed.set()
            entry.changed = asyncio.Event()

    def forget(self, uid: JobUid) -> None:
        """The job is gone; whoever waits for its orders is answered with the last ones."""
        entry = self._jobs.pop(uid, None)
        if entry is not None:
            entry.changed.set()

    def knows(self, uid: JobUid, namespace: str) -> bool:
        """Whether the job exists there."""
        entry = self._jobs.get(uid)
        return entry is not None and entry.namespace == namespace

    def wants_plan(self, uid: JobUid) -> bool:
        """Whether the job's setup is still to be accepted."""
        entry = self._jobs.get(uid)
        return entry is not None and entry.wants_plan

    def orders_since(self, uid: JobUid, since: int) -> contract.Orders | None:
        """Return the job's orders if they are not those of version `since`, else None."""
        entry = self._jobs.get(uid)
        return entry.orders if entry is not None and entry.orders.version != since else None

    async def orders(self, uid: JobUid, since: int, wait_s: float) -> contract.Orders:
        """The job's orders: at once when they are not those of version `since`, else when they change or time is up."""
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
        """Remember a task's last report; that of a job which is gone is of no use."""
        entry = self._jobs.get(uid)
        if entry is not None:
            entry.reports[pod] = results.report(report)
            self._on_report(uid, pod, entry.reports[pod])

    def reports(self, uid: JobUid) -> Mapping[str, contract.TaskReport]:
        """The last reports of a job's tasks, by pod."""
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
