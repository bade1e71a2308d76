"""Which pending gangs show themselves to a cluster autoscaler, and by which pods.

A gang that waits for nodes, or for their room, shows itself whole or not at all: part of it would buy nodes on which it
cannot start. What it waits for otherwise (a quota, the limit of its queue, a refusal) no node would cure. Once it has
begun, the placeholders of executors that the driver has not created remain, so that nobody removes the empty nodes.
"""

import collections
import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from boathouse.scheduling import gang_judge, gangs, jobs, reasons
from boathouse.scheduling.pods import placeholders
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model
from boathouse_policies.framework import gang_minimum


@runtime_checkable
class ShowingFactory(jobs.PodFactory, Protocol):
    """Builds the placeholders of a driver's job."""

    def build_placeholder(self, *, is_driver: bool) -> dict[str, Any]:
        """Return the manifest of a placeholder of the driver or of one of its executors, without a name."""
        ...


class Wish(enum.Enum):
    """Whether a gang that has not begun is to show itself."""

    SHOWN = enum.auto()
    HIDDEN = enum.auto()
    UNKNOWN = enum.auto()  # it was not judged yet


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The pods by which a gang shows itself.

    Attributes:
        entry: Its job.
        gang: The gang.
        placeholders: Names of its placeholders, and whether they stand for the driver.
        creates: Whether those are created that are missing.
        with_driver: Whether its driver's pod is created without a node.
    """

    entry: jobs.Entry
    gang: gang_minimum.Gang
    placeholders: Mapping[model.TaskId, bool]
    creates: bool = False
    with_driver: bool = False


class ShownGangs(Part):
    """Decides which gangs show themselves, from what is known now.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._judge = gang_judge.GangJudge(state)
        self._known = state.placeholders
        self._since_s: dict[model.JobId, float] = {}

    def decide(self) -> dict[model.JobId, Shown]:
        """Return the gangs that show themselves; all others have no placeholders."""
        found: dict[model.JobId, Shown] = {}
        waiting: list[jobs.Entry] = []
        for job in self._jobs.gangs:
            entry = self._jobs.entry(job)
            if entry is None or entry.gang is None or not isinstance(entry.factory, ShowingFactory):
                continue
            if entry.has_begun and not self._known.of(job):
                continue
            members, entry.hidden = gangs.members(entry.gang, self._pods), ""
            if members.has_begun:
                found[job] = self._begun(entry, entry.gang, members)
            elif (wish := self._wish(entry, members)) is Wish.UNKNOWN or not self._is_due(job, wish):
                found[job] = self._as_is(entry, entry.gang)
            elif wish is Wish.SHOWN:
                waiting.append(entry)
        self._since_s = {job: since_s for job, since_s in self._since_s.items() if job in self._jobs.gangs}
        left = self._options.autoscaling.max_placeholders - sum(len(one.placeholders) for one in found.values())
        for entry in in_turns(waiting):
            count = 0 if entry.gang is None else len(entry.gang.expected) + self._is_sized_late(entry.gang)
            entry.hidden = self._hidden(count, left)
            if not entry.hidden:
                found[entry.job.id], left = self._whole(entry), left - count
        return found

    def _hidden(self, count: int, left: int) -> str:
        """Return why a gang with so many placeholders does not show itself; empty if it does."""
        limits = self._options.autoscaling
        if count > limits.max_placeholders_per_job:
            return (
                f"no nodes are requested for it, because it would need {count} placeholders, more than the limit "
                f"{limits.max_placeholders_per_job} of an application"
            )
        return "no nodes are requested for it yet, because of the limit of all placeholders" if count > left else ""

    def _wish(self, entry: jobs.Entry, members: gangs.Members) -> Wish:
        if not self._options.autoscaling.enabled or entry.is_aside or entry.excess or members.driver is None:
            return Wish.HIDDEN
        if self._jobs.hold_of(members.driver) is not None:
            return Wish.HIDDEN
        if entry.pending_reason is not None:
            return Wish.SHOWN if entry.lacks_nodes else Wish.HIDDEN
        code = None if entry.gang is None else self._diagnoses.code_of(entry.gang.leader.id)
        if code is None:
            return Wish.UNKNOWN
        return Wish.SHOWN if code in reasons.CURED_BY_NODES else Wish.HIDDEN

    def _is_due(self, job: model.JobId, wish: Wish) -> bool:
        """Return whether a wish holds: a gang waits for a moment before it shows itself."""
        if wish is Wish.HIDDEN:
            self._since_s.pop(job, None)
            return True
        since_s = self._since_s.setdefault(job, self._clock())
        return self._clock() >= since_s + self._options.pending_ahead_delay_s

    def _as_is(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> Shown:
        known = self._known.of(entry.job.id)
        whole = self._whole(entry).placeholders if known else {}
        return Shown(entry=entry, gang=gang, placeholders={name: whole[name] for name in whole if name in known})

    def _whole(self, entry: jobs.Entry) -> Shown:
        """Return all pods by which a gang shows itself."""
        gang = entry.gang
        assert gang is not None
        is_sized_late = self._is_sized_late(gang)
        found = {placeholders.of_executor(task): False for task in gang.expected}
        if is_sized_late:
            found[placeholders.of_driver(gang)] = True
        return Shown(entry=entry, gang=gang, placeholders=found, creates=True, with_driver=not is_sized_late)

    def _is_sized_late(self, gang: gang_minimum.Gang) -> bool:
        """Return whether the memory of the executors is still to be chosen: then the driver has a placeholder too.

        The pod of a driver names that memory, so it is created when that is known.
        """
        return gang.least(self._state.profile.sizer).executor.resources != gang.executor.resources

    def _begun(self, entry: jobs.Entry, gang: gang_minimum.Gang, members: gangs.Members) -> Shown:
        """Return the placeholders that stay of a gang that has begun: none if the quota has no room for both."""
        self._since_s.pop(entry.job.id, None)
        uncreated = gang_minimum.uncreated(gang, members.executors)
        known = self._known.of(entry.job.id)
        if known and not self._judge.has_room_for_executors(entry, gang, uncreated):
            uncreated = 0
        staying = map(placeholders.of_executor, gang.expected[:uncreated])
        return Shown(entry=entry, gang=gang, placeholders={name: False for name in staying if name in known})


def in_turns(entries: list[jobs.Entry]) -> Iterator[jobs.Entry]:
    """Yield jobs such that namespaces take turns, each with its job of the highest priority that waits the longest."""
    turns: collections.Counter[str] = collections.Counter()
    ranked: list[tuple[int, int, jobs.Entry]] = []
    for entry in sorted(entries, key=lambda one: (-one.job.priority, one.job.submitted_s, one.job.id)):
        ranked.append((turns[entry.namespace], len(ranked), entry))
        turns[entry.namespace] += 1
    return (entry for _, _, entry in sorted(ranked, key=lambda one: one[:2]))
