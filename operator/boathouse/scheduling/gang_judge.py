"""Whether a gang is in line: it could start at all, and the quotas of its namespace have room for it."""

import dataclasses
from collections.abc import Iterator, Mapping

from boathouse.scheduling import gangs, jobs, pod_conditions
from boathouse.scheduling.pods import holders
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse.scheduling.tenants import fitting
from boathouse_policies import model


class GangJudge(Part):
    """Judges gangs that have not begun."""

    def may_begin(self, job: model.JobId) -> bool:
        """Say, as its driver is to be created, whether a gang is in line: others may have begun in the same cycle."""
        entry = self._jobs.entry(job)
        if entry is None or entry.gang is None:
            return True
        entry.trouble = self.trouble(entry, entry.gang)
        self._jobs.touch(job)
        return entry.trouble is None

    def trouble(self, entry: jobs.Entry, gang: gangs.Gang) -> pod_conditions.PendingReason | None:
        """Say why a gang is out of the line; None if it is in it."""
        least = self._least(gang)
        why = fitting.above_limit(least, self._queue.queues.get(entry.job.queue))
        why = why or fitting.never_fits(least, fitting.empty(self._pods.nodes.values()))
        if why is not None:
            extended = dict([*gang.leader.resources.extended, *gang.executor.resources.extended])
            hint = next(filter(None, map(self._devices.hint, extended)), "")
            return pod_conditions.PendingReason(reason=str(model.Code.NEVER_FITS), message=why + (hint and f".{hint}"))
        return self._quotas.check(
            entry.namespace,
            fitting.amounts(gang),
            priority_class=entry.job.priority_class,
            promised=self._promised(entry),
        )

    def _least(self, gang: gangs.Gang) -> gangs.Gang:
        """Return a gang with the least sizes that the profile may choose."""
        leader, executor = (
            dataclasses.replace(one, resources=self._state.profile.sizer.least(one))
            for one in (gang.leader, gang.executor)
        )
        return dataclasses.replace(gang, leader=leader, executor=executor)

    def _promised(self, but: jobs.Entry) -> Iterator[Mapping[str, int]]:
        """Yield what other drivers of a namespace may still create of their minimum."""
        for entry, gang in self._jobs.gangs_in(but.namespace):
            found = gangs.members(gang, self._pods, self._clock())
            if entry is but or found.driver is None or not found.has_begun:
                continue
            missing = max(0, len(gang.expected) - found.children)
            yield {name: missing * amount for name, amount in holders.amounts(gang.executor.resources).items()}
            if found.driver.state is PodState.CREATING:
                yield holders.amounts(gang.leader.resources)
