"""Draining: reserve released room task by task for one gang that has been pending for `PATIENCE_S`.

Every profile uses each node as soon as something fits, so a stream of small tasks would keep a large gang pending. Only
one gang at a time has such reservations, because two could deadlock: the one with the highest priority, then the
longest pending time. It must fit in addition to pods of no Boathouse job. Its reservations end after `DRAIN_S`, and
after `gathering.ABOVE_PART_S` above the fair part of its namespace. Then it has none for as long, while others wait.

A profile whose reserve reserves nodes for gangs replaces draining: the two would wait for each other's reservations.
"""

import dataclasses
import math
from collections.abc import Collection

from boathouse.scheduling import gang_judge, gang_room, gangs, jobs
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import ClusterState, Part
from boathouse.scheduling.tenants import fitting
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_policies.framework import gathering

log = logs.get(__name__)

PATIENCE_S = 30.0
DRAIN_S = gathering.GATHER_S
RETRY_S = 5.0
WHOLE_EVERY_S = 1.0


@dataclasses.dataclass(slots=True, kw_only=True)
class _Drain:
    """The gang for which nodes are drained of other tasks.

    Attributes:
        job: Its job.
        since_s: Since when.
        until_s: When it gives up, if others wait.
        is_above: Whether its namespace holds more than its fair part with it.
        at_change: The room changes that were seen at the last attempt.
        whole_from_s: When to look for a place for the whole gang again.
    """

    job: model.JobId
    since_s: float
    until_s: float
    is_above: bool = False
    at_change: int = -1
    whole_from_s: float = -math.inf


class Draining(Part):
    """Starts gangs that could not start for long.

    Args:
        state: The state of the scheduler.
        room: Reserves room.
        judge: Says whether a gang is in line.
    """

    def __init__(self, state: ClusterState, room: gang_room.GangRoom, judge: gang_judge.GangJudge) -> None:
        super().__init__(state)
        self._room, self._judge = room, judge
        self._waiting: dict[model.JobId, float] = {}  # gangs that have not begun, and since when
        self._drain: _Drain | None = None
        self._drain_from_s = -math.inf

    @property
    def waiting(self) -> Collection[model.JobId]:
        """Return the gangs that have not begun."""
        return self._waiting.keys()

    def next_s(self) -> float:
        """Return when `decide` may have something to do though nothing happened; infinity for never."""
        if self._state.profile.reserve.reserves_for_gangs:
            return math.inf
        if self._drain is not None:
            next_s = max(self._drain.whole_from_s, self._clock() + WHOLE_EVERY_S)
            return min(self._drain.until_s, next_s) if self._drain.until_s > self._clock() else next_s
        if not self._waiting:
            return math.inf
        return max(min(self._waiting.values()) + PATIENCE_S, self._clock() + RETRY_S)

    def add(self, job: model.JobId) -> None:
        """Note that a gang has not begun."""
        self._waiting.setdefault(job, self._clock())

    def remove(self, job: model.JobId) -> None:
        """Note that a gang does not wait any more: it has begun, or is over."""
        self._waiting.pop(job, None)
        if self._drain is not None and self._drain.job == job:
            self._stop_draining()

    def decide(self) -> list[rows.Operation]:
        """Reserve released room for the draining gang; return the write of its driver if it can start."""
        if self._state.profile.reserve.reserves_for_gangs:
            return []
        if self._drain is not None:
            self._end_if_due(self._drain)
        if self._drain is None:
            self._begin_draining()
        if self._drain is None or (
            self._drain.at_change == self._pods.room_changes and self._clock() < self._drain.whole_from_s
        ):
            return []
        entry = self._jobs.entry(self._drain.job)
        if entry is None or entry.gang is None or entry.trouble is not None:
            self._stop_draining()
            return []
        operations = self._accumulate(entry, entry.gang)
        if self._drain is not None:
            self._drain.at_change = self._pods.room_changes
        return operations

    def _end_if_due(self, drain: _Drain) -> None:
        """Stop if it has lasted for long enough, and others wait; then do not begin for as long."""
        now_s, entry = self._clock(), self._jobs.entry(drain.job)
        if entry is not None and now_s >= drain.whole_from_s:
            view = self._ledger.snapshot(now_s)
            is_above = gathering.is_above_part(self._queue, view, entry.job, ())
            if is_above and not drain.is_above:
                drain.until_s = min(drain.until_s, now_s + gathering.ABOVE_PART_S)
            elif not is_above:
                drain.until_s = drain.since_s + DRAIN_S
            drain.is_above = is_above
        if now_s >= drain.until_s and gathering.others_wait(self._queue, drain.job):
            log.warning("the room reserved for a pending gang is released", job=drain.job)
            rest_s = max(now_s - drain.since_s, gathering.ABOVE_PART_S)
            self._waiting[drain.job] = now_s + rest_s - PATIENCE_S
            self._stop_draining()

    def _begin_draining(self) -> None:
        """Choose the gang of the highest priority that has waited for longest, and could start once others ended."""
        now_s = self._clock()
        if now_s < self._drain_from_s:
            return
        due = [job for job, since_s in self._waiting.items() if since_s + PATIENCE_S <= now_s]
        entries = [one for job in due if (one := self._jobs.entry(job)) is not None and self._may_drain(one)]
        if not entries:
            return
        self._drain_from_s = now_s + RETRY_S
        spaces = fitting.without(fitting.empty(self._pods.nodes.values()), self._pods.held_by_others())
        entries.sort(key=lambda one: (-one.job.priority, self._waiting[one.job.id], one.job.id))
        fit = (one for one in entries if one.gang and fitting.never_fits(one.gang, spaces) is None)
        entry = next(fit, None)
        if entry is not None:
            log.info("room is reserved for a gang as it comes free", job=entry.job.name)
            entry.is_draining, self._drain = True, _Drain(job=entry.job.id, since_s=now_s, until_s=now_s + DRAIN_S)
            self._jobs.mark_job(entry.job.id)

    def _may_drain(self, entry: jobs.Entry) -> bool:
        driver = None if entry.gang is None else self._pods.get(entry.gang.driver)
        is_pending = driver is not None and driver.state is PodState.PLANNED and not driver.has_ended
        is_out = entry.trouble is not None or entry.is_aside or bool(entry.excess)
        return is_pending and not is_out and self._jobs.hold_of_job(entry.job.id) is None

    def _stop_draining(self) -> None:
        if self._drain is None:
            return
        entry, self._drain = self._jobs.entry(self._drain.job), None
        if entry is None or not entry.is_draining:
            return
        entry.is_draining = False
        self._jobs.mark_job(entry.job.id)
        found = None if entry.gang is None else gangs.members(entry.gang, self._pods, self._clock())
        if found is not None and not found.has_begun:
            self._room.release([*found.expected, *([found.driver] if found.driver is not None else ())])

    def _place_whole(self, entry: jobs.Entry, gang: gangs.Gang, todo: list[rows.PodRow]) -> None:
        """Release all reservations, and reserve the driver's place if all executors fit too."""
        if self._drain is None or self._clock() < self._drain.whole_from_s:
            return
        self._drain.whole_from_s = self._clock() + WHOLE_EVERY_S
        self._room.release(todo)
        whole = fitting.fit(gang, self._room.free(), fitting.is_allowed)
        if whole.driver is not None and whole.beside >= len(todo) - 1:
            self._room.reserve_at(entry, todo[0], gang.leader, whole.driver)

    def _accumulate(self, entry: jobs.Entry, gang: gangs.Gang) -> list[rows.Operation]:
        """Reserve room for what of a gang has none; start the driver once all of it has."""
        found = gangs.members(gang, self._pods, self._clock())
        driver = found.driver
        if driver is None or driver.state is not PodState.PLANNED or not self._may_drain(entry):
            self._stop_draining()
            return []
        todo = [driver, *found.expected[: found.needed]]
        if not self._judge.may_begin(entry.job.id):
            self._stop_draining()
            return []
        self._place_whole(entry, gang, todo)
        self._room.place(entry, [row for row in todo if row.reserved is None])
        if any(row.reserved is None for row in todo) or driver.reserved is None:
            return []
        place, driver_task = driver.reserved, driver.task
        assert driver_task is not None
        self._pods.unreserve(driver)
        operation = self._pods.decide(driver, dataclasses.replace(place, task=driver_task))
        self._jobs.touch(entry.job.id)
        if not isinstance(operation, rows.Operation):
            self._stop_draining()
            return []
        entry.is_draining, self._drain = False, None
        self._waiting.pop(entry.job.id, None)
        return [operation]
