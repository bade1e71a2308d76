"""The placeholder pods that exist: each stands for a pod of a pending gang, so that a cluster autoscaler sees it.

A placeholder names this scheduler, which never binds it: it is no task. Its owner is the object of the gang.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from boathouse.cluster import store
from boathouse.resources import names
from boathouse.scheduling.pods.facts import PodFacts
from boathouse_policies import model
from boathouse_policies.framework import gang_minimum

_NONE: Mapping[model.TaskId, PodFacts] = MappingProxyType({})


class PlaceholderPods:
    """Placeholders by job."""

    def __init__(self) -> None:
        self._by_job: dict[model.JobId, dict[model.TaskId, PodFacts]] = {}

    def on_pod(self, change: store.Change[PodFacts]) -> None:
        """Handle a watch event of a pod that has not ended."""
        pod = change.old if isinstance(change, store.Deleted) else change.new
        if pod.task_of is None or pod.metadata.labels.get(names.LABEL_TASK_TYPE) != names.TASK_TYPE_PLACEHOLDER:
            return
        job = model.JobId(pod.task_of)
        if not isinstance(change, store.Deleted):
            self._by_job.setdefault(job, {})[pod.id] = pod
        elif (found := self._by_job.get(job)) is not None:
            found.pop(pod.id, None)
            if not found:
                del self._by_job[job]

    def of(self, job: model.JobId) -> Mapping[model.TaskId, PodFacts]:
        """Return the placeholders of a job by `namespace/name`."""
        return self._by_job.get(job, _NONE)

    def __len__(self) -> int:
        """Return the number of jobs that have placeholders."""
        return len(self._by_job)

    def __iter__(self) -> Iterator[tuple[model.JobId, Mapping[model.TaskId, PodFacts]]]:
        """Yield the jobs that have placeholders, with these."""
        return iter(list(self._by_job.items()))


def of_executor(expected: model.TaskId) -> model.TaskId:
    """Return the name of the placeholder of an expected executor, whose own name no pod can have."""
    prefix, _, number = expected.rpartition("#")
    return model.TaskId(f"{prefix}-placeholder-{number}")


def of_driver(gang: gang_minimum.Gang) -> model.TaskId:
    """Return the name of the placeholder of a driver."""
    return model.TaskId(f"{gang.expected[0].rpartition('#')[0]}-placeholder-driver")
