"""Report the nodes that the profile reserves for drivers and executors, as events of their jobs."""

from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import framework, model


class ReservedNodes(Part):
    """Publishes an event for each node that is newly reserved.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._known: set[tuple[model.NodeName, model.ClassId]] = set()

    def report(self) -> None:
        """Report what was reserved when the last cycle began, once for each node and owner."""
        found = {(one.node, one.task_class): one for one in self._state.profile.reserve.reservations()}
        for key in found.keys() - self._known:
            self._report(found[key])
        self._known = set(found)

    def _report(self, reserved: framework.ReservedNode) -> None:
        for job in self._jobs.gangs:
            entry = self._jobs.entry(job)
            if (
                entry is not None
                and entry.factory is not None
                and any(one.id == reserved.task_class for one in entry.classes)
            ):
                note = f"{reserved.node} is reserved for its pods; predicted wait {reserved.wait_s:.0f} s"
                self._conditions.note_job(entry.job, entry.factory.resource, "Reserved", note)
