"""Whether a gang is in line: it could start at all, and the quotas of its namespace have room for it."""

from collections.abc import Iterator, Mapping

from boathouse.scheduling import gangs, jobs
from boathouse.scheduling.pods import holders, translate
from boathouse.scheduling.pods.pending import PendingReason
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_policies.framework import judging

log = logs.get(__name__)


class GangJudge(Part):
    """Judges gangs that have not begun."""

    def may_begin(self, job: model.JobId) -> bool:
        """Say, as its driver is to be created, whether a gang is in line: others may have begun in the same cycle."""
        entry = self._jobs.entry(job)
        if entry is None or entry.gang is None:
            return True
        entry.pending_reason = self.pending_reason(entry, entry.gang)
        self._jobs.touch(job)
        return entry.pending_reason is None

    def pending_reason(self, entry: jobs.Entry, gang: judging.Gang) -> PendingReason | None:
        """Return why a gang is not in the queue; None if it is."""
        least = gang.least(self._state.profile.sizer)
        why = judging.above_limit(least, self._queue.queues.get(entry.job.queue), self._state.axis)
        why = why or judging.never_fits(least, self._ledger.snapshot(self._clock()))
        if why is not None:
            extended = dict([*gang.leader.resources.extended, *gang.executor.resources.extended])
            hint = next(filter(None, map(self._devices.hint, extended)), "")
            return PendingReason(reason=str(model.Code.NEVER_FITS), message=why + (hint and f".{hint}"))
        return self._quotas.check(
            entry.namespace,
            self._amounts(entry, gang),
            priority_class=entry.job.priority_class,
            promised=self._promised(entry),
        )

    def _promised(self, but: jobs.Entry) -> Iterator[Mapping[str, int]]:
        """Yield what other drivers of a namespace may still create of their minimum."""
        for entry, gang in self._jobs.gangs_in(but.namespace):
            found = gangs.members(gang, self._pods, self._clock())
            if entry is but or found.driver is None or not found.has_begun:
                continue
            missing = max(0, len(gang.expected) - found.requested)
            of_driver, of_executor = self._limits(entry, gang)
            executor = {**holders.amounts(gang.executor.resources), **of_executor}
            yield {name: missing * amount for name, amount in executor.items()}
            if found.driver.state is PodState.CREATING:
                yield {**holders.amounts(gang.leader.resources), **of_driver}

    def _amounts(self, entry: jobs.Entry, gang: judging.Gang) -> Mapping[str, int]:
        """Return all that a gang requests, and its limits as far as a quota counts them."""
        of_driver, of_executor = self._limits(entry, gang)
        total, minimum = holders.amounts(gang.leader.resources), len(gang.expected)
        for name, amount in holders.amounts(gang.executor.resources).items():
            total[name] = total.get(name, 0) + minimum * amount
        limits = {line: of_driver[line] + minimum * of_executor[line] for line in of_driver if line in of_executor}
        return {**total, **limits}

    def _limits(self, entry: jobs.Entry, gang: judging.Gang) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the limits of the driver's pod and of an executor's by line, if a quota counts any."""
        is_counted = any(self._quotas.counts(entry.namespace, line) for line in translate.LIMITS)
        if not is_counted or not isinstance(entry.factory, jobs.ExpectingFactory):
            return {}, {}
        if entry.limits is None:
            try:
                driver = entry.factory.build(gang.driver, gang.leader.resources, None)
                found = [translate.manifest_limits(one) for one in (driver, entry.factory.build_expected(None))]
                entry.limits = found[0], found[1]
            except Exception as error:  # noqa: BLE001 - one job's pods must not stop all others
                log.warning("the limits of an application are not known", job=entry.job.name, error=str(error))
                entry.limits = {}, {}
        return entry.limits
