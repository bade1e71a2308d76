"""Plan what a job's status says of its predicted size, and where its probe is. Pure.

A probe runs once. Its phase is in the status before its pod is created, so a new leader knows of it.

    (none) -> Pending -> Running -> Succeeded
    Pending, Running -> Failed, Withdrawn
"""

from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources import names
from boathouse.resources.mrjob.status import Prediction, ProbePhase
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import conditions
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.model import Job
from boathouse.services.mrjob.planning.observation import SizeView
from boathouse_policies import fspy, model as policy
from boathouse_task.contract import TaskType

UNDER_WAY: Final = frozenset({"Pending", "Running"})
_WITHDRAWN: Final = {"probe": "Withdrawn"}
_CONDITION: Final = names.ConditionType.SIZE_PREDICTED
_GIB: Final = 1 << 30
_WORK: Final = (TaskType.MAP, TaskType.REDUCE, TaskType.UBER)
_ORIGINS: Final = {
    "Stated": "by the run times of earlier jobs of the program",
    "Probe": "by a probe, which ran the job's commands once more on a sample of the input",
    "Program": "by a probe of an earlier job of the program",
    "History": "by earlier run times",
}
_PROBING: Final = "a probe runs the job's commands once more on a sample of the input, and writes no output"
_PROBES: Final[Mapping[ProbePhase, tuple[str, str]]] = {
    "Pending": (names.Reason.PROBING, _PROBING),
    "Running": (names.Reason.PROBING, _PROBING),
    "Succeeded": (names.Reason.LEARNING, "probed; sizes are predicted once enough probed jobs have ended"),
    "Failed": (names.Reason.PROBE_FAILED, "the probe failed ({reason}): the job is scheduled as one of unknown size"),
    "Withdrawn": (
        names.Reason.PROBE_WITHDRAWN,
        "the job ended, its probe was not wanted any more, or it was suspended",
    ),
}
"""Reason and message of the condition `SizePredicted` without a prediction, by the phase of the probe."""


def predicted(state: JobState, job: Job, view: SizeView | None, used_byte_s: float, now_s: float) -> JobState:
    """Return the state with the condition `SizePredicted`, the predicted and used size, and the probe's phase.

    Without a view, the profile does not order jobs by size any more: a probe that is under way is withdrawn.
    """
    former = state.prediction or Prediction()
    if view is None:
        is_withdrawn = former.probe in UNDER_WAY
        return _with_prediction(state, former.model_copy(update=_WITHDRAWN), now_s) if is_withdrawn else state
    changes = _size(former, view.prediction, state) if view.prediction is not None else {}
    if used_byte_s:
        changes["used_memory_seconds"] = round((former.used_memory_seconds or 0.0) + used_byte_s / _GIB, 6)
    changes["probe"], changes["reason"] = _probe(former, state, job, view, now_s)
    if changes["probe"] == "Succeeded" and view.probe is not None and state.plan is not None:
        changes["sampled_fraction"] = _sampled(view.probe, state.plan.bytes)
    prediction = former.model_copy(update=changes)
    if state.phase == "Succeeded" and prediction.memory_seconds and prediction.used_memory_seconds:
        error = round(prediction.memory_seconds / prediction.used_memory_seconds - 1, 3)
        prediction = prediction.model_copy(update={"error": error})
    return state if prediction == Prediction() else _with_prediction(state, prediction, now_s)


def _size(former: Prediction, predicted_size: fspy.Prediction, state: JobState) -> dict[str, Any]:
    """Return the size as it was first predicted. Run times of tasks of the job itself predict nothing."""
    ended = any(state.stages[stage].succeeded for stage in _WORK if stage in state.stages)
    if former.source is not None or (ended and predicted_size.source is fspy.Source.STATED):
        return {}

    def per_task(stage: TaskType) -> float | None:
        seconds = predicted_size.seconds.get(policy.Stage(stage.value), 0.0) / max(1, state.total(stage))
        return round(seconds, 3) if stage in state.stages else None

    return {
        "source": predicted_size.source.value,
        "map_seconds": per_task(TaskType.MAP),
        "reduce_seconds": per_task(TaskType.REDUCE) or None,
        "memory_seconds": round(predicted_size.byte_seconds / _GIB, 3),
    }


def _probe(
    former: Prediction, state: JobState, job: Job, view: SizeView, now_s: float
) -> tuple[ProbePhase | None, str | None]:
    is_over = state.finished or job.deleting_since_s is not None or job.spec.suspend or not view.may_probe
    if former.probe is None:
        return ("Pending" if view.wants_probe and not is_over else None), None
    if former.probe not in UNDER_WAY:
        return former.probe, former.reason
    pod = view.probe
    if pod is not None and pod.state is PodLife.SUCCEEDED:
        return "Succeeded", None
    if is_over:
        return "Withdrawn", None
    is_running, since_s, failure = pod is not None and pod.state is PodLife.RUNNING, state.since_s(_CONDITION), ""
    if pod is not None and pod.ending is not None:
        failure = pod.ending.reason
    elif former.probe == "Running" and pod is None:
        failure = names.Reason.POD_LOST
    elif since_s is not None and now_s > since_s + view.patience_s * (2 if is_running else 1):
        failure = names.Reason.PROBE_TIMEOUT
    if failure:
        return "Failed", str(failure)
    return ("Running" if is_running else former.probe), None


def _sampled(probe: AttemptPod, input_bytes: int) -> float | None:
    counters = probe.result.counters.get("Boathouse", {}) if probe.result is not None else {}
    return round(min(1.0, max(0, counters.get("Sampled bytes", 0)) / input_bytes), 6) if input_bytes else None


def _with_prediction(state: JobState, prediction: Prediction, now_s: float) -> JobState:
    changes: list[conditions.Condition] = []
    if prediction.source is not None:
        message = f"{prediction.memory_seconds:.1f} GiB·s of memory {_ORIGINS[prediction.source]}"
        changes.append((_CONDITION, True, prediction.source, message))
    elif prediction.probe is not None:
        reason, message = _PROBES[prediction.probe]
        changes.append((_CONDITION, False, reason, message.format(reason=prediction.reason)))
    return conditions.with_conditions(state, now_s, *changes, prediction=prediction)
