"""The minimum of an application whose driver requests its executors some time after it has started.

Until then the executors are expected: the cycle reserves their room with the driver's, and the core decides which
executor takes which place (`framework.gang_minimum`), as in the operator.
"""

import dataclasses
from collections.abc import Collection, Sequence

from boathouse_policies import model
from boathouse_policies.framework import gang_minimum
from boathouse_sim.base_world import tasks_of
from boathouse_sim.live.course import LiveRun
from boathouse_sim.live.world import LiveWorld

_RESERVED = "reserved:"


class Minimum:
    """Places that are reserved for the expected executors of an application, and what it is short of."""

    def __init__(
        self, world: LiveWorld, run: LiveRun, leader: model.TaskClass, executor: model.TaskClass, count: int
    ) -> None:
        self._world, self._run = world, run
        ids = [model.TaskId(f"{executor.id}#{i}") for i in range(count)]
        self._expected = {
            task: model.Task(id=task, task_class=executor.id, index=i, expected=True) for i, task in enumerate(ids)
        }
        driver = tasks_of(leader, [0])[0].id
        self._gang = gang_minimum.Gang(driver=driver, expected=tuple(ids), leader=leader, executor=executor)
        self._places: dict[model.TaskId, model.Create] = {}
        self.requested: Sequence[model.Task] = ()  # the executors that the driver has requested, all at once
        # What goes before all others: executors, expected ones too, without a place
        self.short: Sequence[model.Task] = ()

    def expected(self, running: Collection[model.TaskId]) -> list[model.Task]:
        """Return the expected executors that start together with the driver."""
        return list(self._expected.values())[: gang_minimum.short_of(self._gang, self._executors(running))]

    def reserve(self, decision: model.Reservation) -> None:
        """Reserve room for an expected executor where a cycle placed it."""
        task = decision.task
        if task is None or task.id in self._places:
            return
        size = decision.resources or decision.task_class.resources
        reserved = dataclasses.replace(task, id=model.TaskId(_RESERVED + task.id))
        self._places[task.id] = place = model.Create(
            task=reserved, task_class=decision.task_class, job=decision.job, node=decision.node, resources=size
        )
        chosen = dataclasses.replace(self._gang.executor, resources=size)
        self._gang = dataclasses.replace(self._gang, executor=chosen)  # the driver requests what was chosen
        self._world.ledger.assume(place)
        self._world.reserved_milli += size.cpu_milli
        self.short = [other for other in self.short if other.id != task.id]

    def settle(self, running: Collection[model.TaskId]) -> list[model.Create]:
        """Return the executors that get places now, and note what the application is then short of."""
        places = [gang_minimum.Place(task, place.node) for task, place in self._places.items()]
        nodes = {node.name: node for node in self._world.nodes}
        found = gang_minimum.seat(self._gang, self._executors(running), places, nodes, self._world.clock.now_s)
        by_id = {task.id: task for task in self.requested}
        for task in (*found.released, *(task for seat in found.seats for task in seat.expected)):
            self._release(task)
        free = [task for task in self._expected.values() if task.id not in self._places]
        self.short = [by_id[task] for task in found.short] + free[: found.missing]
        executor, job = self._gang.executor, self._run.job
        return [
            model.Create(
                task=by_id[seat.executor], task_class=executor, job=job, node=seat.node, resources=executor.resources
            )
            for seat in found.seats
        ]

    def node_lost(self, node: model.NodeName) -> bool:
        """Forget the places on a node that is away; return whether there were any."""
        lost = [task for task, place in self._places.items() if place.node == node]
        for task in lost:
            self._release(task)
        return bool(lost)

    def release(self) -> None:
        """Release all places, for the driver is gone."""
        for task in list(self._places):
            self._release(task)
        self.requested = self.short = ()

    def short_class(self) -> model.TaskClass:
        """Return the class of what goes before all others."""
        return gang_minimum.together([self._gang.executor], self.short, self._gang, is_short=True)[0]

    def _executors(self, running: Collection[model.TaskId]) -> list[gang_minimum.Executor]:
        size, wanted = self._gang.executor.resources, self._gang.executor.constraints
        return [
            gang_minimum.Executor(id=task, resources=size, constraints=wanted, is_placed=task in running)
            for task in {**dict.fromkeys(running), **dict.fromkeys(task.id for task in self.requested)}
        ]

    def _release(self, task: model.TaskId) -> None:
        place = self._places.pop(task)
        self._world.reserved_milli -= place.resources.cpu_milli
        self._world.note_freed(self._world.ledger.gone(place.task.id))
