"""What must hold after every event of a simulation, whatever the workload and the policy: pass it as `watch`."""

import math

from boathouse_policies import model
from boathouse_sim.base_world import AnyWorld
from boathouse_sim.live import LiveWorld, Pod
from boathouse_sim.live.mapreduce import MapReduceCourse

_ROUNDING_MS = 1e-3


class BrokenInvariantError(AssertionError):
    """The simulator, or the framework below it, has a fault."""


class Invariants:
    """Looks at a world after every event, and raises BrokenInvariantError.

    * Time does not run backwards.
    * No node holds more than it has, in any resource; a node may lack only the room that a growing pod waits for.
    * What the ledger adds up as it goes is what adding up anew gives.
    * A task runs once: nothing that ended starts again, but for what was lost.
    * Work is neither lost nor made: what is left of a task shrinks, and not at all while it is suspended.
    * No reducer is past its copy before the last map has ended.
    * The counters of distances add up to the tasks with input in blocks.
    """

    def __init__(self) -> None:
        self._last_ms = 0
        self._left: dict[int, tuple[float, bool, object]] = {}
        self._opened: set[model.JobId] = set()
        self._ended = 0

    def __call__(self, world: AnyWorld) -> None:
        """Look at a world after an event."""
        _require(world.clock.now_ms >= self._last_ms, "time runs backwards")
        self._last_ms = world.clock.now_ms
        _require(world.ended_jobs >= self._ended, "a job that ended runs again")
        self._ended = world.ended_jobs
        view = world.ledger.snapshot(world.clock.now_s)
        _require(bool((view.requested == world.ledger.recomputed()).all()), "the ledger's sums are wrong")
        if isinstance(world, LiveWorld):
            self._live(world, view.free())
        else:
            _require(bool((view.free() >= 0).all()), "a node is over-committed")

    def _live(self, world: LiveWorld, free: model.IntMatrix) -> None:
        growing = {pod.node for pod in world.pods.values() if pod.growing is not None}
        for i, name in enumerate(world.ledger.snapshot(0.0).layout.names):
            _require(name in growing or bool((free[:, i] >= 0).all()), f"{name} is over-committed")
        for node in world.nodes:
            taken, has = world.sizes.taken[node.name], node.allocatable
            _require(
                0 <= taken.cpu_milli <= has.cpu_milli and 0 <= taken.memory_bytes <= has.memory_bytes,
                f"{node.name} really holds {taken} of {has}",
            )
        seen: dict[int, tuple[float, bool, object]] = {}
        for pod in world.pods.values():
            _require(pod.id in world.ledger, f"{pod.id} runs and the ledger does not know it")
            self._of(pod, world, seen)
        self._left = seen
        for run in world.runs.values():
            if isinstance(run.course, MapReduceCourse):
                if run.course.gate.open:
                    self._opened.add(run.job.id)
                past = run.course.past_copy
                _require(
                    not past or run.job.id in self._opened, f"{run.job.id}: reducers are past their copy, maps are not"
                )
        _require(
            sum(world.tally.distances) == world.tally.located,
            f"distances {world.tally.distances} of {world.tally.located} tasks",
        )

    def _of(self, pod: Pod, world: LiveWorld, seen: dict[int, tuple[float, bool, object]]) -> None:
        for activity in pod.activities:
            left = world.rates.left_ms(activity)
            before, was_suspended, _ = self._left.get(id(activity), (math.inf, False, activity))
            most_over = max(1.0, 1.0 / sum(activity.stretch))  # what it does within a millisecond, the step of time
            _require(
                -most_over <= left <= activity.work_ms + _ROUNDING_MS,
                f"{pod.id} has {left} of {activity.work_ms} ms left",
            )
            _require(left <= before + _ROUNDING_MS, f"{pod.id} has more work left than before")
            still = not (was_suspended and pod.suspended) or abs(left - before) < _ROUNDING_MS
            _require(still, f"{pod.id} is suspended and goes on")
            seen[id(activity)] = (left, pod.suspended, activity)  # kept, so that no other has its id


def _require(what: bool, message: str) -> None:
    if not what:
        raise BrokenInvariantError(message)
