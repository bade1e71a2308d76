"""The executors of each driver: pods that the driver created, and that its kind counts and deletes.

A driver may have ten thousand, so they are counted as they change, and applications hear of changes at most twice a
second. An executor is known by its controller, which is the driver's pod in the same namespace.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Final

from boathouse.cluster import store
from boathouse.resources.sparkapp.names import TASK_TYPE_EXECUTOR
from boathouse.scheduling.pods import facts
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_index import Later
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import observation

LABEL_ROLE: Final = "spark-role"
"""Set by Spark on all pods of an application."""
NOTIFY_AFTER_S: Final = 0.5
_Owner = tuple[str, str]
"""The namespace and the UID of the controller of a pod."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Executor:
    pod: observation.AppPod
    is_running: bool
    is_deleted: bool


@dataclasses.dataclass(slots=True)
class _Driver:
    """The executors of a driver: by name, how many of them run and how many do not, and how many failed.

    `gone` are those that ended or were deleted since they were taken last, by UID. `app` is the application of a driver
    that is followed.
    """

    pods: dict[str, _Executor] = dataclasses.field(default_factory=dict)
    gone: dict[str, observation.AppPod] = dataclasses.field(default_factory=dict)
    counts: collections.Counter[bool] = dataclasses.field(default_factory=collections.Counter)
    failed: int = 0
    app: ObjectUid | None = None


class ExecutorPods:
    """The executors that exist and have not ended, by driver."""

    def __init__(self, on_change: Callable[[str, str], None], later: Later) -> None:
        self._on_change, self._later = on_change, later
        self._drivers: dict[_Owner, _Driver] = collections.defaultdict(_Driver)
        self._of_app: dict[ObjectUid, set[_Owner]] = collections.defaultdict(set)
        self._due: set[_Owner] = set()

    def on_pod(self, change: store.Change[facts.PodFacts]) -> None:
        """Handle a watch event of a pod that uses resources."""
        pod = store.subject(change)
        owner = _owner(pod)
        if owner is None:
            return
        executor = observation.of_executor(pod)
        if isinstance(change, store.Deleted):
            self._drivers[owner].gone.setdefault(executor.uid, observation.ended(executor))
            self._put(owner, executor.name, None)
        else:
            is_running = pod.status.phase == "Running" and executor.state.is_live
            is_deleted = pod.metadata.deletion_timestamp is not None
            self._put(owner, executor.name, _Executor(executor, is_running, is_deleted))

    def on_ended(self, change: store.Change[facts.PodFacts]) -> None:
        """Count an executor that failed: each is shown as added once, unless its driver deleted it before."""
        pod = store.subject(change)
        is_shown = isinstance(change, store.Added) and pod.status.phase == "Failed"
        owner = _owner(pod) if is_shown and pod.metadata.deletion_timestamp is None else None
        if owner is None:
            return
        executor = observation.of_executor(pod)
        if executor.state is PodLife.FAILED:
            driver = self._drivers[owner]
            driver.failed += 1
            driver.gone[executor.uid] = executor
            self._notify_later(owner)

    def follow(self, namespace: str, driver_uid: str, *, app: ObjectUid, failed: int) -> None:
        """Begin with so many executors of a driver that failed before this process, unless that was said before.

        All of this is dropped with the application: its driver may be gone before it.
        """
        owner = (namespace, driver_uid)
        driver = self._drivers[owner]
        if driver.app is None:
            driver.app = app
            driver.failed += failed
            self._of_app[app].add(owner)

    def failed(self, namespace: str, driver_uid: str) -> int:
        """Return how many executors of a driver failed."""
        driver = self._drivers.get((namespace, driver_uid))
        return driver.failed if driver else 0

    def forget(self, namespace: str, driver_uid: str) -> None:
        """Drop what only matters while a driver is there."""
        owner = (namespace, driver_uid)
        driver = self._drivers.get(owner)
        if driver is None:
            return
        if driver.app is not None:
            self._of_app[driver.app].discard(owner)
            if not self._of_app[driver.app]:
                del self._of_app[driver.app]
        driver.app, driver.failed = None, 0
        self.take(namespace, driver_uid)

    def forget_app(self, app: ObjectUid) -> None:
        """Drop what is kept of all drivers of a deleted application, also of those that are gone."""
        for namespace, driver_uid in list(self._of_app.get(app, ())):
            self.forget(namespace, driver_uid)

    def count(self, namespace: str, driver_uid: str) -> tuple[int, int]:
        """Return how many executors of a driver are pending, and how many run."""
        driver = self._drivers.get((namespace, driver_uid))
        return (driver.counts[False], driver.counts[True]) if driver else (0, 0)

    def take(self, namespace: str, driver_uid: str) -> Sequence[observation.AppPod]:
        """Return the executors of a driver that exist, and once each that is gone."""
        driver = self._drivers.get((namespace, driver_uid))
        if driver is None:
            return ()
        gone, driver.gone = driver.gone, {}
        if not (driver.pods or driver.failed or driver.app):
            del self._drivers[namespace, driver_uid]
        return [*(executor.pod for executor in driver.pods.values()), *gone.values()]

    def some(self, namespace: str, driver_uid: str, most: int) -> Sequence[tuple[str, str]]:
        """Return names and UIDs of a driver's executors that are not being deleted, at most so many."""
        driver = self._drivers.get((namespace, driver_uid))
        pods = driver.pods if driver else {}
        live = ((name, executor.pod.uid) for name, executor in pods.items() if not executor.is_deleted)
        return tuple(itertools.islice(live, most))

    def _put(self, owner: _Owner, name: str, executor: _Executor | None) -> None:
        driver = self._drivers[owner]
        before = driver.pods.get(name)
        if before == executor:
            return
        if before is not None:
            del driver.pods[name]
            driver.counts[before.is_running] -= 1
        if executor is not None:
            driver.pods[name] = executor
            driver.counts[executor.is_running] += 1
        self._notify_later(owner)

    def _notify_later(self, owner: _Owner) -> None:
        if owner not in self._due:
            self._due.add(owner)
            self._later(NOTIFY_AFTER_S, lambda: self._notify(owner))

    def _notify(self, owner: _Owner) -> None:
        self._due.discard(owner)
        self._on_change(*owner)


def _owner(pod: facts.PodFacts) -> _Owner | None:
    """Return the driver that an executor belongs to; None for another pod."""
    controller = pod.metadata.controller
    if controller is None or controller.kind != "Pod" or controller.api_version != "v1":
        return None
    is_executor = pod.metadata.labels.get(LABEL_ROLE) == TASK_TYPE_EXECUTOR
    return (pod.metadata.namespace, controller.uid) if is_executor else None
