"""Whether a gang is in line: it could start at all, and the quotas of its namespace have room for it."""

from collections.abc import Iterator, Mapping

from boathouse.scheduling import gangs, jobs
from boathouse.scheduling.pods import placeholders, translate
from boathouse.scheduling.pods.pending import PendingReason
from boathouse.scheduling.pods.states import PodState
from boathouse.scheduling.state import Part
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_policies.framework import gang_minimum

log = logs.get(__name__)


class GangJudge(Part):
    """Judges gangs that have not begun."""

    def may_begin(self, job: model.JobId) -> bool:
        """Say, as its driver is to be created, whether a gang is in line: others may have begun in the same cycle."""
        entry = self._jobs.entry(job)
        if entry is None or entry.gang is None:
            return True
        self.judge(entry, entry.gang)
        self._jobs.touch(job)
        return entry.pending_reason is None

    def judge(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> None:
        """Note why a gang is not in the queue, and whether only for lack of nodes; None if it is."""
        least = gang.least(self._state.profile.sizer)
        above = gang_minimum.above_limit(least, self._queue.queues.get(entry.job.queue), self._state.axis)
        why = above or gang_minimum.never_fits(least, self._ledger.snapshot(self._clock()))
        of_quota = self._of_quota(entry, gang)
        if why is None:
            entry.pending_reason, entry.lacks_nodes = of_quota, False
            return
        extended = dict([*gang.leader.resources.extended, *gang.executor.resources.extended])
        hint = next(filter(None, map(self._devices.hint, extended)), "")
        entry.pending_reason = PendingReason(reason=str(model.Code.NEVER_FITS), message=why + (hint and f".{hint}"))
        entry.lacks_nodes = above is None and of_quota is None and not hint

    def has_room_for_executors(self, entry: jobs.Entry, gang: gang_minimum.Gang, executors: int) -> bool:
        """Say whether the quotas have room for so many executors beside all pods that exist, placeholders included."""
        wanted = gang_minimum.promised(gang, self._limits(entry, gang), executors, with_driver=False)
        why = self._quotas.check(
            entry.namespace, wanted, priority_class=entry.job.priority_class, promised=self._promised(entry)
        )
        return why is None

    def _of_quota(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> PendingReason | None:
        return self._quotas.check(
            entry.namespace,
            gang_minimum.of_quota(gang, self._limits(entry, gang)),
            priority_class=entry.job.priority_class,
            promised=self._promised(entry),
            held=self._held(entry, gang),
        )

    def _held(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> Mapping[str, int]:
        """Return what a gang that has not begun takes of the quotas already, by the pods that show it."""
        known, limits = self._state.placeholders.of(entry.job.id), self._limits(entry, gang)
        driver = self._pods.get(gang.driver)
        has_driver = driver is not None and driver.is_submitted and driver.pending_uid is not None
        has_driver = has_driver or placeholders.of_driver(gang) in known
        executors = sum(placeholders.of_executor(task) in known for task in gang.expected)
        return gang_minimum.promised(gang, limits, executors, with_driver=has_driver)

    def _promised(self, but: jobs.Entry) -> Iterator[Mapping[str, int]]:
        """Yield what other drivers of a namespace may still create of their minimum."""
        for entry, gang in self._jobs.gangs_in(but.namespace):
            found = gangs.members(gang, self._pods)
            if entry is not but and found.driver is not None and found.has_begun:
                is_creating = found.driver.state is PodState.CREATING
                missing = gang_minimum.uncreated(gang, found.executors)
                missing = max(0, missing - len(self._state.placeholders.of(entry.job.id)))  # these are counted as used
                yield gang_minimum.promised(gang, self._limits(entry, gang), missing, with_driver=is_creating)

    def _limits(self, entry: jobs.Entry, gang: gang_minimum.Gang) -> gang_minimum.Limits:
        """Return the limits of the gang's pods, if a quota of their namespace counts any."""
        is_counted = any(self._quotas.counts(entry.namespace, line) for line in translate.LIMITS)
        if not is_counted or not isinstance(entry.factory, jobs.ExpectingFactory):
            return gang_minimum.Limits()
        if entry.limits is None:
            try:
                driver = entry.factory.build(gang.driver, gang.leader.resources, None)
                found = [translate.manifest_limits(one) for one in (driver, entry.factory.build_expected(None))]
                entry.limits = gang_minimum.Limits(driver=found[0], executor=found[1])
            except Exception as error:  # noqa: BLE001 - one job's pods must not stop all others
                log.warning("the limits of an application are not known", job=entry.job.name, error=str(error))
                entry.limits = gang_minimum.Limits()
        return entry.limits
