"""Pods of gangs: members as the pod table shows them, and the placeholders of gangs that are pending."""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence

from boathouse.cluster import store
from boathouse.resources import names
from boathouse.scheduling.pods import indexes, rows, table
from boathouse.scheduling.pods.facts import PodFacts
from boathouse.scheduling.pods.states import RUNNING, PodState
from boathouse_policies import model
from boathouse_policies.framework import gang_minimum


class PlaceholderPods(dict[model.JobId, dict[model.TaskId, PodFacts]]):
    """Placeholders by job and `namespace/name`; jobs without any are left out."""

    def on_pod(self, change: store.Change[PodFacts]) -> None:
        """Handle a watch event of a pod that has not ended."""
        pod = store.subject(change)
        if pod.task_of is None or pod.metadata.labels.get(names.LABEL_TASK_TYPE) != names.TASK_TYPE_PLACEHOLDER:
            return
        job = model.JobId(pod.task_of)
        if not isinstance(change, store.Deleted):
            self.setdefault(job, {})[pod.id] = pod
        else:
            indexes.discard(self, job, pod.id)

    def of(self, job: model.JobId) -> Mapping[model.TaskId, PodFacts]:
        """Return the placeholders of a job."""
        return self.get(job, {})


def of_executor(expected: model.TaskId) -> model.TaskId:
    """Return the name of the placeholder of an expected executor, whose own name no pod can have."""
    prefix, _, number = expected.rpartition("#")
    return model.TaskId(f"{prefix}-placeholder-{number}")


def of_driver(gang: gang_minimum.Gang) -> model.TaskId:
    """Return the name of the placeholder of a driver."""
    return model.TaskId(f"{gang.expected[0].rpartition('#')[0]}-placeholder-driver")


_ON_A_NODE = RUNNING | {PodState.BINDING, PodState.BOUND}
_BEGUN = _ON_A_NODE | {PodState.CREATING}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The rows of a gang now."""

    driver: rows.PodRow | None  # the driver; None after its end, and while a pod of another owner has its name
    expected: Sequence[rows.PodRow]
    executors: Sequence[gang_minimum.Executor]  # the executors that have a node, are being bound to one, or may be

    @property
    def has_begun(self) -> bool:
        """Whether the driver has a node, or is being created on one."""
        row = self.driver
        return row is not None and row.state in _BEGUN and not row.is_undecided


def members(
    gang: gang_minimum.Gang, pods: table.PodTable, is_held: Callable[[rows.PodRow], bool] = lambda _: False
) -> Members:
    """Return the rows of a gang. `is_held` says of a pending executor that no bind of it is tried now."""
    if (driver := pods.get(gang.driver)) is not None and (driver.has_ended or not driver.is_submitted):
        driver = None
    children = pods.children.of(driver.key).values() if driver is not None else ()
    return Members(
        driver=driver,
        expected=list(filter(None, map(pods.get, gang.expected))),
        executors=[
            executor(row, is_held=_may_bind(row) and is_held(row))
            for row in children
            if row.state in _ON_A_NODE or _may_bind(row)
        ],
    )


def executor(row: rows.PodRow, *, is_held: bool = False) -> gang_minimum.Executor:
    """Return an executor as the core sees it."""
    pod = row.facts
    return gang_minimum.Executor(
        id=row.id,
        resources=None if pod is None else pod.resources,
        constraints=pod.constraints if pod is not None and isinstance(pod.constraints, model.Constraints) else None,
        is_placed=row.state in _ON_A_NODE,
        since_s=row.since_s,
        failures=row.failures,
        is_held=is_held,
    )


def reserved(gang: gang_minimum.Gang, pods: table.PodTable) -> list[tuple[rows.PodRow, model.Create]]:
    """Return the expected tasks that have a reservation, with that."""
    return [(row, row.reserved) for row in filter(None, map(pods.get, gang.expected)) if row.reserved is not None]


def former_places(gang: gang_minimum.Gang, pods: table.PodTable) -> tuple[model.NodeName, ...]:
    """Return where room was reserved for executors that are not there, as the driver's pod says: a node for each."""
    if (driver := pods.get(gang.driver)) is None or driver.facts is None:
        return ()
    nodes = collections.Counter(dict(driver.facts.reserved))
    for row in pods.children.of(driver.key).values() if nodes else ():
        account = pods.ledger.account(row.id)
        nodes -= collections.Counter([] if account is None or account.node is None else [str(account.node)])
    return tuple(map(model.NodeName, nodes.elements()))


def _may_bind(row: rows.PodRow) -> bool:
    return row.state is PodState.PENDING and row.task is not None and row.may_be_placed
