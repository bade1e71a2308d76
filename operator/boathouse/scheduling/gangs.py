"""A gang: a driver, and the minimum of its executors, which start only together. Pure.

An expected executor has no pod and gets none from Boathouse: the driver creates its executors. Until it does, room is
reserved for those that are expected. How many follows from the pods that exist: the minimum, less the executors that
have a node or are about to get a place that is reserved. So a crash of the operator changes nothing.
"""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from boathouse.scheduling.pods import holders, rows, table
from boathouse.scheduling.pods.states import RUNNING, PodState
from boathouse_policies import model
from boathouse_policies.framework import judging

_ON_A_NODE = RUNNING | {PodState.BINDING, PodState.BOUND}
_BEGUN = _ON_A_NODE | {PodState.CREATING}
_BACKOFF_S = (0.0, 1.0, 2.0, 4.0, 8.0, 10.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The rows of a gang now.

    Attributes:
        driver: The driver; None after its end, and while a pod of another owner has its name.
        expected: The expected tasks.
        placed: For how many expected ones those stand that have a node, or are being bound to one (`stands_for`).
        requested: The same, with the pending ones that a node may be written for.
        takers: Pending executors that may take the place of an expected one, in the order of their names.
        others: Pending executors that are larger than expected, or have other constraints: admission made them so.
        retry_s: When another one may: its bind failed; None for none.
    """

    driver: rows.PodRow | None
    expected: Sequence[rows.PodRow]
    placed: int
    requested: int
    takers: Sequence[rows.PodRow]
    others: Sequence[rows.PodRow] = ()
    retry_s: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the driver has a node, or is being created on one."""
        row = self.driver
        return row is not None and row.state in _BEGUN and not row.is_undecided

    @property
    def needed(self) -> int:
        """Return how many executors are short of the minimum."""
        return max(0, len(self.expected) - self.placed)


def members(gang: judging.Gang, pods: table.PodTable, now_s: float) -> Members:
    """Return the rows of a gang."""
    driver = pods.get(gang.driver)
    if driver is not None and (driver.has_ended or not driver.is_submitted):
        driver = None
    executors = pods.children.of(driver.key).values() if driver is not None else ()
    placed = sum(stands_for(row, gang.executor) for row in executors if row.state in _ON_A_NODE)
    takers, others, retry_s, pending = list[rows.PodRow](), list[rows.PodRow](), None, list[rows.PodRow]()
    if placed < len(gang.expected):
        pending = [row for row in executors if row.state is PodState.PENDING and row.task and row.may_be_placed]
    for row in sorted(pending, key=lambda row: (len(row.id), row.id)):
        due_s = row.since_s + _BACKOFF_S[min(row.failures, len(_BACKOFF_S) - 1)]
        if due_s <= now_s:
            (takers if replaces(row, gang.executor) else others).append(row)
        else:
            retry_s = due_s if retry_s is None else min(retry_s, due_s)
    return Members(
        driver=driver,
        expected=[one for task in gang.expected if (one := pods.get(task)) is not None],
        placed=placed,
        requested=placed + sum(stands_for(row, gang.executor) for row in pending),
        takers=takers,
        others=others,
        retry_s=retry_s,
    )


def stands_for(row: rows.PodRow, executor: model.TaskClass) -> int:
    """Return for how many expected executors one stands: for as many as it is as large as.

    Else a driver whose minimum is of small executors could have large ones placed before all that waits.
    """
    if row.facts is None or executor.resources.covers(row.facts.resources):
        return 1
    expected = holders.amounts(executor.resources)
    return max(
        -(-amount // max(1, expected.get(name, 0))) for name, amount in holders.amounts(row.facts.resources).items()
    )


def replaces(row: rows.PodRow, executor: model.TaskClass) -> bool:
    """Say whether a pod can take the place of an expected one: it needs no more room, and may go to the same nodes."""
    pod, wanted = row.facts, executor.constraints
    if pod is None or not isinstance(pod.constraints, model.Constraints):
        return False
    found = pod.constraints
    return (
        executor.resources.covers(pod.resources)
        and not found.host_ports
        and (found.node_selector, found.affinity, found.claims)
        == (wanted.node_selector, wanted.affinity, wanted.claims)
        and set(wanted.tolerations) <= set(found.tolerations)
    )


def together(
    classes: Sequence[model.TaskClass],
    tasks: Iterable[model.Task],
    gang: judging.Gang | None,
    *,
    is_short: bool = False,
) -> Sequence[model.TaskClass]:
    """Return the classes of a job such that a cycle places the tasks of a gang that has not begun all or none.

    Args:
        classes: The classes.
        tasks: The tasks of the job that wait in line.
        gang: Its gang; None for none.
        is_short: Whether they are what a gang that has begun lacks.
    """
    if not any(one.gang_min for one in classes) and not is_short:
        return classes
    counts = collections.Counter(task.task_class for task in tasks)
    is_gang = gang is not None and counts[gang.executor.id] > 0 and not is_short
    return [
        dataclasses.replace(one, gang_min=counts[one.id] * is_gang, is_short=is_short)
        for one in classes
        if counts[one.id]
    ]
