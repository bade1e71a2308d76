"""Ensure a single owner of an output: an exclusive mark next to the work folders names the job that may write it.

The mark of generation N is `OUTPUT/_temporary/owner-0000N`; its content names the job. The newest generation owns.

Setup acquires: it creates generation 1, or generation N + 1 after the leader has confirmed for EVERY mark of another
job that the job has ended and that none of its pods runs. Creation is exclusive, so one job gets a generation. After
each creation all marks are read again, because marks may have been removed and created since the last reading: a job
that then finds the mark of an active job removes the marks that it has just created, and fails.

The new owner then deletes the former owner's work folder. This stops a commit task of the former owner that still runs
although its pod was deleted (a partitioned node, a forced deletion): it moves parts out of that folder, and missing
files cannot be moved. Only requests that are in flight at that moment remain.

The commit requires that the newest mark is its own job's, before it promotes and before it creates `_SUCCESS`. Marks
are removed by the commit after `_SUCCESS` exists, or with the work folder of a job that failed.

A job of an older operator has no mark. Its commit creates generation 1 if there is no mark at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from boathouse_task.contract import OwnerState, Reason, TaskSpec, decoded
from boathouse_task.environment import OWNER
from boathouse_task.errors import TaskError
from boathouse_task.locations import Location
from boathouse_task.task import Task

_MAX_GENERATIONS = 1000
"""Maximum number of marks. Each is an unfinished takeover; more indicate a store that loses created objects."""
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,62}")


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a mark."""

    job_uid: str
    namespace: str
    name: str
    cluster: str = ""
    """Identity of the cluster; empty for a job outside of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A mark in the storage."""

    generation: int
    location: Location
    mark: Mark | None
    """Content; None if it is invalid."""

    def is_of(self, job_uid: str) -> bool:
        """Return whether the mark is this job's."""
        return self.mark is not None and self.mark.job_uid == job_uid


def claims(task: Task) -> list[Claim]:
    """Return all marks, the newest generation last."""
    existing_claims = []
    for file in task.storage.children(task.layout.temporary):
        name = file.location.path.rpartition("/")[2]
        number = name.removeprefix(OWNER)
        if not name.startswith(OWNER) or not number.isdecimal():
            continue
        content = task.storage.read_if_exists(file.location)
        if content is not None:  # not removed since the listing
            existing_claims.append(Claim(generation=int(number), location=file.location, mark=_decode(content)))
    return sorted(existing_claims, key=lambda claim: claim.generation)


def acquire(task: Task) -> None:
    """Make the job the output's owner. Afterwards no former owner can promote files.

    Raises TaskError: OutputExists if another job owns the output, ProgressUnavailable if that is not known yet, or the
    storage's reasons.
    """
    confirmed: set[str] = set()
    created: list[Location] = []
    try:
        while not _is_owner(task, existing_claims := claims(task), confirmed):
            generation = existing_claims[-1].generation + 1 if existing_claims else 1
            if generation > _MAX_GENERATIONS:
                raise _refusal(task, existing_claims[-1], f"there are {len(existing_claims)} marks")
            if task.storage.create(task.layout.owner(generation), msgspec.json.encode(_own(task.spec))):
                created.append(task.layout.owner(generation))
    except TaskError as error:
        if error.reason is Reason.OUTPUT_EXISTS:  # not those of another attempt, which may have become the owner
            task.storage.delete(created)
        raise
    for former in sorted(confirmed):
        task.storage.remove_folder(task.layout.work_of(former))  # so that nothing in it can be promoted


def adopt(task: Task, existing_claims: Sequence[Claim]) -> None:
    """As `require`, but create a mark if none exists, as after the setup of an older runtime."""
    if not existing_claims:
        task.storage.create(task.layout.owner(1), msgspec.json.encode(_own(task.spec)))
    require(task)


def require(task: Task) -> None:
    """Require that the newest mark is the job's. Raises TaskError: OutputExists."""
    existing_claims = claims(task)
    if not existing_claims:
        problem = f"the output {task.layout.output.url} has lost its ownership mark: something else removed it"
        raise TaskError(Reason.OUTPUT_EXISTS, problem)
    if not existing_claims[-1].is_of(task.spec.job_uid):
        raise _refusal(task, existing_claims[-1], "")


def release(task: Task) -> None:
    """Remove the job's marks and older ones, its own newest last."""
    existing_claims = claims(task)
    own = max((claim.generation for claim in existing_claims if claim.is_of(task.spec.job_uid)), default=0)
    for claim in existing_claims:
        if claim.generation <= own:
            task.storage.delete([claim.location])
    task.storage.remove_empty_folders(task.layout.temporary)


def _is_owner(task: Task, existing_claims: Sequence[Claim], confirmed: set[str]) -> bool:
    """Return whether the newest mark is the job's and all others are of jobs that have ended."""
    for claim in existing_claims:
        if not claim.is_of(task.spec.job_uid) and (claim.mark is None or claim.mark.job_uid not in confirmed):
            confirmed.add(_confirm(task, claim))
    return bool(existing_claims) and existing_claims[-1].is_of(task.spec.job_uid)


def _confirm(task: Task, claim: Claim) -> str:
    """Return the UID of the mark's job if it has ended. Raises TaskError: OutputExists, or ProgressUnavailable."""
    mark = claim.mark
    if mark is None:
        raise _refusal(task, claim, "its owner is unknown")
    if task.client is None:
        raise _refusal(task, claim, "a run outside of a cluster cannot determine whether that job has ended")
    match task.client.owner(job_uid=mark.job_uid, namespace=mark.namespace, cluster=mark.cluster):
        case OwnerState.ENDED:
            return mark.job_uid
        case OwnerState.OUTSIDE:
            raise _refusal(task, claim, "it is of another cluster or of a namespace that this operator does not watch")
        case _:
            raise _refusal(task, claim, "")


def _refusal(task: Task, claim: Claim, doubt: str) -> TaskError:
    """Return the error that names the output's owner, whose name is shown only in its own namespace."""
    mark = claim.mark
    here = mark is not None and (mark.namespace, mark.cluster) == (task.spec.namespace, task.spec.cluster)
    owner = f"job {mark.namespace}/{mark.name}" if mark is not None and here else "another job"
    what = f"the output {task.layout.output.url} belongs to {owner} (mark {claim.location.url})"
    reason, way = (f"{doubt}; ", "delete the mark when") if doubt else ("", "wait until")
    advice = f"{reason}set another output, or {way} that job has ended"
    return TaskError(Reason.OUTPUT_EXISTS, f"{what}: {advice}")


def _own(spec: TaskSpec) -> Mark:
    return Mark(job_uid=spec.job_uid, namespace=spec.namespace, name=spec.job_name, cluster=spec.cluster)


def _decode(content: bytes) -> Mark | None:
    """Return the mark; None for invalid content, and for a UID that could be a path out of the folder."""
    mark = decoded(content, Mark)
    return mark if mark is not None and _UID.fullmatch(mark.job_uid) else None
