"""A task pod for the planner, read from the API's pod: its attempt, its state, its result or failure."""

import dataclasses
import re
from typing import Any, Final

from boathouse.cluster import wire
from boathouse.resources import quantity
from boathouse.resources.mrjob import names as mrjob_names, spec, steps as mrjob_steps
from boathouse.resources.names import ANNOTATION_IDEAL_MEMORY, CONTAINER, Reason
from boathouse.scheduling.pods import facts
from boathouse.services.frame import pod_life
from boathouse.services.frame.pod_events import LENT_MILLI
from boathouse.services.frame.status_codec import printable
from boathouse.services.mrjob import results
from boathouse.services.mrjob.job_state import MAX_ATTEMPT
from boathouse.suspension.stages import SuspensionRecord
from boathouse_policies import model as policy
from boathouse_task import contract

_DIGITS: Final = re.compile("[0-9]{1,19}")
_MAX_TASKS: Final = max(spec.MAX_MAPS, mrjob_steps.MAX_REDUCES)
_STAGES: Final = {contract.TaskType.MAP.value: "mapper", contract.TaskType.REDUCE.value: "reducer"}
Task = tuple[int, contract.TaskType, int]  # step, type and index of a task
_Cause = tuple[str, str, bool]  # reason, message, and whether the user is to blame


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended without success."""

    reason: str
    message: str
    user_error: bool
    exit_code: int | None = None
    time_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobPod:
    """A pod of a job: an attempt of a task, or the client of an attempt on a Hadoop cluster."""

    name: str
    uid: str
    attempt: int
    state: pod_life.PodLife
    placed_s: float
    node: str | None = None
    deleting_since_s: float | None = None
    problem: pod_life.Problem | None = None
    ending: Ending | None = None

    @property
    def is_active(self) -> bool:
        """Whether the pod has neither ended nor been deleted."""
        return self.state.is_live and self.deleting_since_s is None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPod(JobPod):
    """One attempt of one task, with the resources that it takes of its node now."""

    task_type: contract.TaskType
    index: int
    step: int = 0
    result: contract.TaskResult | None = None
    memory_bytes: int = 0
    ideal_memory_bytes: int = 0  # what the task requested, if the pod started with less
    started_s: float | None = None
    resources: policy.Resources = policy.Resources()  # noqa: RUF009 - frozen
    suspension: SuspensionRecord | None = None
    is_suspended: bool = False  # it has the CPU of a suspended task

    @property
    def is_owed_cpu(self) -> bool:
        """Whether its suspension is over, but its CPU request is still that of a suspended task."""
        former_milli = 0 if self.suspension is None or self.is_suspended else self.suspension.cpu_request_milli
        return 0 < self.resources.cpu_milli <= LENT_MILLI < former_milli

    @property
    def task(self) -> Task:
        """The task of the attempt."""
        return self.step, self.task_type, self.index

    @property
    def task_name(self) -> str:
        """Name of the task, such as `m-00042`."""
        return contract.task_name(self.task_type, self.index)


def task_pod(pod: facts.PodFacts) -> AttemptPod | None:
    """Return the attempt of a pod; None if its labels name no task type or numbers out of range."""
    labels = pod.metadata.labels
    try:
        task_type = contract.TaskType(labels[mrjob_names.LABEL_TASK_TYPE])
    except (KeyError, ValueError):
        return None
    index = number(labels.get(mrjob_names.LABEL_TASK_INDEX, ""), _MAX_TASKS - 1)
    attempt = number(labels.get(mrjob_names.LABEL_ATTEMPT, ""), MAX_ATTEMPT - 1)
    step = number(labels.get(mrjob_names.LABEL_STEP, "0"), mrjob_steps.MAX_STEPS - 1)
    if index is None or step is None or not attempt:
        return None
    status = pod_life.container(pod, CONTAINER)
    state = pod_life.life(pod, status)
    ended = status.state.terminated if status else None
    result = results.read(ended.message) if ended is not None else None
    won = result if result is not None and result.succeeded else None
    if won is not None:
        state = pod_life.PodLife.SUCCEEDED
    elif state is pod_life.PodLife.SUCCEEDED:
        state = pod_life.PodLife.FAILED
    return AttemptPod(
        **common(pod),
        step=step,
        task_type=task_type,
        index=index,
        attempt=attempt,
        state=state,
        memory_bytes=memory_limit_bytes(pod),
        ideal_memory_bytes=ideal_memory_bytes(pod),
        started_s=pod_life.started_s(pod, status),
        resources=pod.resources,
        suspension=pod.suspension,
        is_suspended=pod.stage.is_shrunk,
        problem=pod_life.problem(status) if state is pod_life.PodLife.STARTING else None,
        result=won,
        ending=_ending(pod, status, result) if state is pod_life.PodLife.FAILED else None,
    )


def common(pod: facts.PodFacts) -> dict[str, Any]:
    """Return the fields of a `JobPod` that do not depend on what its containers do."""
    return {
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "placed_s": pod_life.placed_s(pod),
        "node": pod.node_name or None,
        "deleting_since_s": pod_life.deleting_since_s(pod),
    }


def number(text: str, most: int) -> int | None:
    """Return the number from 0 to `most` that a label or annotation contains in ASCII digits, or None."""
    return int(text) if _DIGITS.fullmatch(text) and int(text) <= most else None


def _ending(pod: facts.PodFacts, status: wire.ContainerStatus | None, result: contract.TaskResult | None) -> Ending:
    """Return why the pod failed: the first of eviction or disruption, lack of memory, its result, its exit code."""
    ended = status.state.terminated if status else None
    said = result if result is not None and result.outcome != contract.UNFINISHED else None
    disruption = pod_life.disruption(pod)
    cause: _Cause | None = None
    if pod_life.is_over_its_limit(pod):  # it exceeded its own scratch space; else the node ran out of disk
        message = f"{pod.status.message} (raise resources.requests.ephemeral-storage)"
        cause = contract.Reason.OUT_OF_DISK, message, True
    elif disruption is not None:
        cause = disruption.reason, disruption.message, False
    reason, message, is_user_error = (
        cause
        or _out_of_memory(pod, ended, said)
        or (said and (said.reason or contract.Reason.INTERNAL_ERROR, said.message, said.user_error))
        or _of_the_container(ended)
    )
    message, tail = printable(message, results.MAX_MESSAGE), result.stderr_tail.strip() if result else ""
    if tail and tail not in message:
        message = f"{message}; its standard error ended with: {tail[-800:]}"
    code, time_s = ended.exit_code if ended else None, pod_life.ended_s(pod, status)
    code = result.exit_code if result is not None and result.exit_code is not None else code
    return Ending(reason=reason, message=message, user_error=is_user_error, exit_code=code, time_s=time_s)


def _out_of_memory(
    pod: facts.PodFacts, ended: wire.StateTerminated | None, result: contract.TaskResult | None
) -> _Cause | None:
    """Return the cause if the container or its command ran out of memory; no user error if its memory was reduced."""
    if (ended is None or ended.reason != pod_life.OOM_KILLED) and (
        result is None or result.reason != contract.Reason.OUT_OF_MEMORY
    ):
        return None
    limit, ideal = memory_limit_bytes(pod), ideal_memory_bytes(pod)
    had, wanted = quantity.format_bytes(limit), quantity.format_bytes(ideal)
    if limit < ideal:
        return Reason.OOM_KILLED, f"out of memory with {had} instead of {wanted}: the next attempt gets {wanted}", False
    task_type = pod.metadata.labels[mrjob_names.LABEL_TASK_TYPE]
    step, stage = int(pod.metadata.labels.get(mrjob_names.LABEL_STEP, "0")), _STAGES.get(task_type, task_type)
    where = f"{stage} of step {step + 1}" if step else stage
    return Reason.OOM_KILLED, f"out of memory: raise the {where}'s resources.requests.memory ({had})", True


def memory_limit_bytes(pod: facts.PodFacts) -> int:
    """Return the task container's memory limit, or 0."""
    return quantity.units(pod.memory_limit) if pod.memory_limit else 0


def ideal_memory_bytes(pod: facts.PodFacts) -> int:
    """Return the memory that the task requested if its pod started with less, else 0."""
    return number(pod.metadata.annotations.get(ANNOTATION_IDEAL_MEMORY, ""), contract.MAX_AMOUNT) or 0


def _of_the_container(ended: wire.StateTerminated | None) -> _Cause:
    if ended is None:
        return Reason.POD_LOST, "the pod failed before its container ran", False
    if pod_life.has_not_started(ended):
        message = f"{ended.message} (the image must contain boathouse-task: build it from the task image)"
        return Reason.RUNTIME_NOT_FOUND, message, True
    if pod_life.was_killed(ended):
        return Reason.POD_LOST, f"the container was killed (exit code {ended.exit_code})", False
    if ended.exit_code == 0:
        message = "the container ended without a result: boathouse-task in the image is not Boathouse's task runtime"
        return Reason.RUNTIME_NOT_FOUND, message, True
    return Reason.TASK_FAILED, f"the container ended with exit code {ended.exit_code} and no result", True
