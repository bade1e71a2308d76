"""The pods that pods of jobs make, as the executors of a driver: by their controller, and by job.

Who makes a pod can write any label, and any UID as that of its owner. So account, queue and job of such a pod follow
its controller, a pod in the same namespace that a job of ours owns, and never its labels.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from boathouse.scheduling.pods.facts import PodFacts
from boathouse.scheduling.pods.rows import PodKey, PodRow
from boathouse_policies import model

_NONE: Mapping[model.TaskId, PodRow] = {}


@dataclasses.dataclass(slots=True, kw_only=True)
class Family:
    """The pods of one controller.

    Attributes:
        driver: The controller as it was last shown, if it is a pod of a job; it stays known after its end, as long as
            a pod of it is there.
        is_over: Whether it ended.
        rows: Its pods that have not ended.
    """

    driver: PodFacts | None = None
    is_over: bool = False
    rows: dict[model.TaskId, PodRow] = dataclasses.field(default_factory=dict)


class Children:
    """All pods that another pod controls."""

    def __init__(self) -> None:
        self._families: dict[PodKey, Family] = {}
        self._drivers: dict[str, dict[PodKey, Family]] = {}

    def __len__(self) -> int:
        return len(self._families)

    def join(self, row: PodRow, driver: PodFacts | None) -> None:
        """Add a pod that another pod controls.

        Args:
            row: The pod.
            driver: The controller, if it is known.
        """
        assert row.parent is not None
        family = self._families.setdefault(row.parent, Family())
        family.rows[row.id] = row
        if family.driver is None and driver is not None:
            self.adopt(driver)

    def leave(self, row: PodRow) -> None:
        """Remove a pod that ended, as a pod of another and as the controller of others."""
        own, family = self._of(row.key), self._of(row.parent)
        if own is not None and row.key is not None:
            own.is_over = True
            self._drop_empty(row.key, own)
        if family is not None and row.parent is not None:
            family.rows.pop(row.id, None)
            self._drop_empty(row.parent, family)

    def _drop_empty(self, key: PodKey, family: Family) -> None:
        if family.rows or (family.driver is not None and not family.is_over):
            return
        del self._families[key]
        job = None if family.driver is None else family.driver.task_of
        if job is not None:
            del self._drivers[job][key]
            if not self._drivers[job]:
                del self._drivers[job]

    def adopt(self, driver: PodFacts) -> Iterable[PodRow]:
        """Take a pod of a job for the controller that its pods name; return those of which that is news."""
        key = (driver.metadata.namespace, driver.metadata.uid)
        family = self._families.get(key)
        if family is None or family.driver is not None or driver.task_of is None:
            return ()
        family.driver = driver
        self._drivers.setdefault(driver.task_of, {})[key] = family
        return list(family.rows.values())

    def driver(self, key: PodKey | None) -> PodFacts | None:
        """Return a controller that is a pod of a job."""
        family = self._of(key)
        return None if family is None else family.driver

    def of(self, key: PodKey | None) -> Mapping[model.TaskId, PodRow]:
        """Return the pods of a controller."""
        family = self._of(key)
        return _NONE if family is None else family.rows

    def _of(self, key: PodKey | None) -> Family | None:
        return None if key is None else self._families.get(key)

    def of_job(self, job: model.JobId) -> Iterator[PodRow]:
        """Yield the pods of all pods of a job, those of ended ones included."""
        for family in list(self._drivers.get(job, {}).values()):
            yield from list(family.rows.values())
