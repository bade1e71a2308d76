"""Control the running tasks of a job for the scheduler."""

import dataclasses
from collections.abc import Sequence

from boathouse.services.mrjob.job.model import JobUid
from boathouse.services.mrjob.placement.seconds import SecondAttempts
from boathouse.services.mrjob.progress.task_orders import TaskOrders
from boathouse_policies import model
from boathouse_task import contract


@dataclasses.dataclass(frozen=True, slots=True)
class Control:
    """Implements `TaskControl` for the tasks of one MRJob.

    Attributes:
        uid: The job.
        orders: Orders for tasks.
        seconds: Second attempts of tasks.
    """

    uid: JobUid
    orders: TaskOrders
    seconds: SecondAttempts

    async def suspend(self, task: model.TaskId, order: contract.SuspendOrder) -> str:
        """Order a task to pause; return "" once it has paused, else the reason why it does not."""
        return await self.orders.suspend(self.uid, task.rpartition("/")[2], order)

    def speculate(self, task: model.TaskId, avoids: Sequence[model.NodeName]) -> model.TaskId | None:
        """Submit a second attempt of a task on none of these nodes; return it, or None if there may be none."""
        return self.seconds.request(self.uid, task, avoids)
