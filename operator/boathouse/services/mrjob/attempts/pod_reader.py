"""Convert an API pod to a task pod: its attempt, its state, and the cause of its failure."""

import re
from typing import Final

from boathouse.cluster import wire
from boathouse.resources import names, pod_reasons, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.mrjob import spec
from boathouse.resources.mrjob import steps as mrjob_steps
from boathouse.resources.names import Reason
from boathouse.scheduling.pods import facts
from boathouse.services.frame.conditions import printable
from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod, AttemptState, Ending, Problem
from boathouse_task import contract
from boathouse_task.contract import TaskType

_IMAGE_PROBLEMS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_CONFIG_PROBLEMS: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
_OVER_ITS_LIMIT: Final = re.compile(r"exceeds the (total )?limit|exceed(s|ed) its local ephemeral storage limit")
_KILLED: Final = frozenset({137, 143})
_OOM_KILLED: Final = "OOMKilled"
_DIGITS: Final = re.compile("[0-9]{1,19}")
_MAX_TASKS: Final = max(spec.MAX_MAPS, mrjob_steps.MAX_REDUCES)
MAX_ATTEMPT: Final = 0xFFFF
"""The status stores attempt numbers in 16 bits."""


def task_pod(pod: facts.PodFacts) -> AttemptPod | None:
    """Return the attempt of a pod; None if its labels name no task type or numbers out of range."""
    labels = pod.metadata.labels
    try:
        task_type = TaskType(labels[mrjob_names.LABEL_TASK_TYPE])
    except (KeyError, ValueError):
        return None
    index = _number(labels.get(mrjob_names.LABEL_TASK_INDEX, ""), _MAX_TASKS - 1)
    attempt = _number(labels.get(mrjob_names.LABEL_ATTEMPT, ""), MAX_ATTEMPT - 1)
    step = _number(labels.get(mrjob_names.LABEL_STEP, "0"), mrjob_steps.MAX_STEPS - 1)
    if index is None or step is None or not attempt:
        return None
    status = _container(pod)
    state = _state(pod, status)
    ended = status.state.terminated if status else None
    result = results.read(ended.message) if ended is not None else None
    won = result if result is not None and result.succeeded else None
    if won is not None:
        state = AttemptState.SUCCEEDED
    elif state is AttemptState.SUCCEEDED:
        state = AttemptState.FAILED
    deleted = pod.metadata.deletion_timestamp
    return AttemptPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        step=step,
        task_type=task_type,
        index=index,
        attempt=attempt,
        state=state,
        placed_s=_placed_s(pod),
        node=pod.node_name or None,
        deleting_since_s=deleted.timestamp() if deleted else None,
        memory_bytes=memory_limit_bytes(pod),
        ideal_memory_bytes=ideal_memory_bytes(pod),
        started_s=_moment(status),
        problem=_problem(status) if state is AttemptState.STARTING else None,
        result=won,
        ending=_ending(pod, status, result) if state is AttemptState.FAILED else None,
    )


def _number(text: str, most: int) -> int | None:
    """Return the number from 0 to `most` that a label or annotation contains in ASCII digits, or None."""
    number = int(text) if _DIGITS.fullmatch(text) else None
    return number if number is not None and number <= most else None


def _container(pod: facts.PodFacts) -> wire.ContainerStatus | None:
    return next((each for each in pod.status.container_statuses if each.name == names.CONTAINER), None)


def _state(pod: facts.PodFacts, status: wire.ContainerStatus | None) -> AttemptState:
    match pod.status.phase:
        case "Succeeded":
            return AttemptState.SUCCEEDED
        case "Failed":
            return AttemptState.FAILED
        case _ if not pod.node_name:
            return AttemptState.UNPLACED
        case _:
            started = status is not None and (status.state.running or status.state.terminated)
            return AttemptState.RUNNING if started else AttemptState.STARTING


def _moment(status: wire.ContainerStatus | None) -> float | None:
    """Return when the container started."""
    if status is None:
        return None
    state = status.state.terminated or status.state.running
    started = state.started_at if state is not None else None
    return started.timestamp() if started is not None else None


def _placed_s(pod: facts.PodFacts) -> float:
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "True" and scheduled.last_transition_time:
        return scheduled.last_transition_time.timestamp()
    moment = pod.status.start_time or pod.metadata.creation_timestamp
    return moment.timestamp() if moment else 0.0


def _problem(status: wire.ContainerStatus | None) -> Problem | None:
    waiting = status.state.waiting if status else None
    if waiting is None:
        return None
    if waiting.reason in _IMAGE_PROBLEMS:
        message = printable(waiting.message or waiting.reason, results.MAX_MESSAGE)
        return Problem(reason=Reason.IMAGE_PULL_FAILED, message=f"{message} (check spec.image and the pull secrets)")
    if waiting.reason in _CONFIG_PROBLEMS:
        message = printable(waiting.message or waiting.reason, results.MAX_MESSAGE)
        return Problem(reason=_config_reason(waiting.message), message=message)
    return None


def _config_reason(message: str) -> Reason:
    """Return the reason of a kubelet's message such as `secret "x" not found`, `couldn't find key k in Secret ns/x`."""
    lowered = message.lower()
    for word, reason in (("secret", Reason.SECRET_NOT_FOUND), ("configmap", Reason.CONFIG_MAP_NOT_FOUND)):
        if word in lowered and ("not found" in lowered or "couldn't find key" in lowered):
            return reason
    return Reason.INVALID_POD


def _ending(pod: facts.PodFacts, status: wire.ContainerStatus | None, result: contract.TaskResult | None) -> Ending:
    """Return why the pod failed: the first of eviction or disruption, lack of memory, its result, its exit code."""
    ended = status.state.terminated if status else None
    when = ended.finished_at if ended else None
    moment = when or pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    said = result if result is not None and result.outcome != contract.UNFINISHED else None
    cause = (
        _of_the_pod(pod)
        or _out_of_memory(pod, ended, said)
        or (said and (said.reason or contract.Reason.INTERNAL_ERROR, said.message, said.user_error))
        or _of_the_container(ended)
    )
    code = ended.exit_code if ended else None
    return Ending(
        reason=cause[0],
        message=_with_tail(printable(cause[1], results.MAX_MESSAGE), result),
        user_error=cause[2],
        exit_code=result.exit_code if result is not None and result.exit_code is not None else code,
        time_s=moment.timestamp() if moment else None,
    )


def _with_tail(message: str, result: contract.TaskResult | None) -> str:
    tail = result.stderr_tail.strip() if result else ""
    return message if not tail or tail in message else f"{message}; its standard error ended with: {tail[-800:]}"


_Cause = tuple[str, str, bool]
"""Reason, message, and whether the user is to blame."""


def _of_the_pod(pod: facts.PodFacts) -> _Cause | None:
    """Return the cause if the kubelet rejected or removed the pod, or it was disrupted; else None.

    Eviction is a user error if the pod exceeded its own scratch space, but not if the node ran out of disk.
    """
    status = pod.status
    if status.reason == "Evicted" and _OVER_ITS_LIMIT.search(status.message):
        return contract.Reason.OUT_OF_DISK, f"{status.message} (raise resources.requests.ephemeral-storage)", True
    if status.reason:
        return *_closed(status.reason, status.message), False
    disruption = pod.condition("DisruptionTarget")
    if disruption is not None and disruption.status == "True":
        return *_closed(disruption.reason, disruption.message), False
    if pod.metadata.deletion_timestamp is not None:
        return Reason.POD_LOST, "the pod was deleted while it ran", False
    return None


def _closed(reason: str, message: str) -> tuple[str, str]:
    """Return a reason of the closed set, and the message, which names a reason that is not in the set."""
    closed = pod_reasons.known(reason, Reason.POD_LOST)
    return closed, message if closed == reason or not reason else f"{reason}: {message}"


def _out_of_memory(
    pod: facts.PodFacts, ended: wire.StateTerminated | None, said: contract.TaskResult | None
) -> _Cause | None:
    """Return the cause if the container or its command ran out of memory; no user error if its memory was reduced."""
    if (ended is None or ended.reason != _OOM_KILLED) and (
        said is None or said.reason != contract.Reason.OUT_OF_MEMORY
    ):
        return None
    task_type, step = (
        pod.metadata.labels[mrjob_names.LABEL_TASK_TYPE],
        pod.metadata.labels.get(mrjob_names.LABEL_STEP, "0"),
    )
    limit, ideal = memory_limit_bytes(pod), ideal_memory_bytes(pod)
    had = quantity.format_bytes(limit)
    if limit < ideal:
        asked = quantity.format_bytes(ideal)
        return (
            Reason.OOM_KILLED,
            f"out of memory with {had} instead of {asked}: the next attempt gets {asked}",
            False,
        )
    stage = {TaskType.MAP: "mapper", TaskType.REDUCE: "reducer"}.get(TaskType(task_type), str(task_type))
    where = f"{stage} of step {int(step) + 1}" if int(step) else stage
    return Reason.OOM_KILLED, f"out of memory: raise the {where}'s resources.requests.memory ({had})", True


def memory_limit_bytes(pod: facts.PodFacts) -> int:
    """Return the task container's memory limit, or 0."""
    return quantity.units(pod.memory_limit) if pod.memory_limit else 0


def ideal_memory_bytes(pod: facts.PodFacts) -> int:
    """Return the memory that the task requested if its pod started with less, else 0."""
    return _number(pod.metadata.annotations.get(names.ANNOTATION_IDEAL_MEMORY, ""), contract.MAX_AMOUNT) or 0


def _of_the_container(ended: wire.StateTerminated | None) -> _Cause:
    if ended is None:
        return Reason.POD_LOST, "the pod failed before its container ran", False
    if ended.reason in _NOT_STARTED:
        message = f"{ended.message} (the image must contain boathouse-task: build it from the task image)"
        return Reason.RUNTIME_NOT_FOUND, message, True
    if ended.exit_code in _KILLED or ended.reason == "ContainerStatusUnknown":
        return Reason.POD_LOST, f"the container was killed (exit code {ended.exit_code})", False
    if ended.exit_code == 0:
        message = "the container ended without a result: boathouse-task in the image is not Boathouse's task runtime"
        return Reason.RUNTIME_NOT_FOUND, message, True
    return Reason.TASK_FAILED, f"the container ended with exit code {ended.exit_code} and no result", True
