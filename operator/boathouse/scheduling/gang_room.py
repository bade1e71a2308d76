"""Room for tasks of gangs, apart from the cycle: on a given node, or where a cycle for them alone finds it."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from boathouse.scheduling import cycle, jobs
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import framework, model
from boathouse_policies.framework import eligibility


class GangRoom(Part):
    """Reserves room, and takes reservations back.

    Args:
        state: The state of the scheduler.
        profile: Returns the profile with the filters of the moment.
    """

    def __init__(self, state: ClusterState, profile: Callable[[], framework.Profile]) -> None:
        super().__init__(state)
        self._profile = profile

    def reserve(self, decision: model.Reservation) -> None:
        """Count an expected task where a plan placed it."""
        row = None if decision.task is None else self._pods.get(decision.task.id)
        if row is None or row.state is not PodState.PLANNED or row.reserved is not None or decision.task is None:
            return
        self._pods.reserve(
            row,
            model.Create(
                task=decision.task,
                task_class=decision.task_class,
                job=decision.job,
                node=decision.node,
                resources=decision.resources or decision.task_class.resources,
            ),
        )

    def reserve_at(
        self, entry: jobs.Entry, row: rows.PodRow, task_class: model.TaskClass, node: model.NodeName
    ) -> None:
        """Count a task on a node."""
        assert row.task is not None
        one, size = dataclasses.replace(task_class, gang_min=0), task_class.resources
        self._pods.reserve(row, model.Create(task=row.task, task_class=one, job=entry.job, node=node, resources=size))

    def has_room(self, task_class: model.TaskClass, name: model.NodeName, size: Sequence[int]) -> bool:
        """Say whether a task of a class fits on a node, and may be bound to it."""
        node, free = self._pods.nodes.get(name), self._ledger.free(name)
        if node is None or free is None or eligibility.refusal(task_class.constraints, node) is not None:
            return False
        return all(left >= amount for left, amount in zip(free, size, strict=False) if amount)

    def place(self, entry: jobs.Entry, todo: list[rows.PodRow]) -> list[rows.Operation]:
        """Run a cycle for some tasks of a job alone; reserve room for those without a pod, and bind the others."""
        tasks = []
        for row in todo:
            assert row.task is not None
            is_new = row.pending_uid is None
            tasks.append(dataclasses.replace(row.task, pod_uid=row.pending_uid, expected=is_new))
        if not tasks:
            return []
        wanted, by_task = {task.task_class for task in tasks}, {row.id: row for row in todo}
        classes = [dataclasses.replace(one, gang_min=0) for one in entry.classes if one.id in wanted]
        queue = framework.SchedulingQueue(self._state.axis, self._queue.queues.values())
        try:
            queue.submit(entry.job, classes, tasks)
            plan = cycle.run(queue, self._plain_profile(), self._ledger.snapshot(self._clock()), self._diagnoses.wants)
        except Exception as error:  # noqa: BLE001 - one job must not keep the others from being scheduled
            self._state.set_job_aside(entry, error)
            return []
        self._diagnoses.update(plan)
        operations = []
        for decision in plan.decisions:
            if isinstance(decision, model.Bind):
                operation = self._pods.decide(by_task[decision.task.id], decision)
                operations += [operation] if isinstance(operation, rows.Operation) else []
            elif isinstance(decision, model.Reservation):
                self.reserve(decision)
        return operations

    def _plain_profile(self) -> framework.Profile:
        """Return the filters and the score of the profile alone: there is one job, and its tasks are of full size.

        Filters and scores are also told of the cycle, for their state is that of an earlier one. Reserves and orders
        are not: this cycle has none of the reservations and jobs that they remember.
        """
        profile = self._profile()
        asked: tuple[object, ...] = (*profile.filters, profile.score, *profile.scores.values())
        hooks = tuple(one for one in profile.hooks if any(one is question for question in asked))
        return framework.Profile(
            name=profile.name, filters=profile.filters, score=profile.score, scores=profile.scores, hooks=hooks
        )

    def release(self, expected: Iterable[rows.PodRow]) -> None:
        """Take reservations back."""
        for row in expected:
            self._pods.unreserve(row)
