"""Explain what the policies decided about a job or pod, from its status, conditions and annotations. Pure."""

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from boathouse.cluster import wire
from boathouse.resources import names, quantity
from boathouse.suspension import stages as records
from boathouse_cli import model
from boathouse_task import contract

Row = tuple[str, str]
"""A subject, and details."""

_LONGEST: Final = 512
"""Characters of the figures on a pod."""
_MOST: Final = 2**63
_GIB: Final = 1024**3
_PROBE: Final = "Probe"
_SOURCES: Final = {
    "Stated": "from run times of earlier jobs of the program",
    _PROBE: "from a probe",
    "Program": "from earlier jobs of the program",
    "History": "from the mean of earlier jobs",
}
_CONDITIONS: Final = (
    (names.ConditionType.REDUCERS_SUSPENDED, "suspended"),
    (names.ConditionType.SIGNALS_AVAILABLE, "signals"),
    (names.ConditionType.POLICIES_ACTIVE, "policies"),
)
"""Types of conditions that have a message when there is something to explain, and the subject of their row."""
GROUPS: Final = (
    "pending for long",
    "probe, within the share of probes",
    "unknown size, holds less than its fair share",
    "known size, used up",
    "by size",
    "unknown size",
    "probe, beyond the share of probes",
)
"""Groups of the order by size, the first to go first."""


MODELS: Final = ("the exponential model", "the additive model", "nobody slows it down")
"""What can predict slowdowns, in the order of ILA's `Learner.models`."""
PREDICTORS: Final = ("the fuzzy model", "the lengths of the phases of earlier reduces", "the mean of earlier reduces")
"""What can predict a reduce's remaining time, in the order of iKayak's `Predictor`."""

SIZES: Final = ("two linear models", "its mean time per byte of input")
"""What can predict the size of a probed program's jobs, in the order of FSPY's `Predictor.standing`."""


def _name(names: Sequence[str], value: float, other: str = "number") -> str:
    return names[int(value)] if 0 <= value < len(names) else f"{other} {value:g}"


_FIGURES: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "slowdown": ("placed", "predicted slowdown {:.2f}".format),
    "threshold": ("placed", "threshold {:.2f}".format),
    "slowdownModel": ("placed", lambda value: f"best of the program so far: {_name(MODELS, value)}"),
    "slowdownError": ("placed", "with a mean error of {:.0%}".format),
    "remainingPredictor": ("remaining time", lambda value: f"predicted by {_name(PREDICTORS, value)}"),
    "remainingError": ("remaining time", "with a mean error of {:.0%} on the program".format),
    "waitedSeconds": ("placed", lambda value: f"waited {model.duration(value)} for other neighbours"),
    "escapedSeconds": ("placed", lambda value: f"which would have cost {model.duration(value)}"),
    "reservedForSeconds": ("placed", lambda value: f"reserved for {model.duration(value)}"),
    "predictedWaitSeconds": ("placed", lambda value: f"predicted wait {model.duration(value)}"),
    "idealBytes": ("size", lambda value: f"ideal memory {model.size(value)}"),
    "seconds": ("size", lambda value: f"predicted run time {model.duration(value)}"),
    "idealSeconds": ("size", lambda value: f"{model.duration(value)} with the ideal memory"),
    "diskShare": ("size", "{:.0%} of the node's disk budget".format),
    "cpuShare": ("size", "{:.0%} of the requested CPU".format),
    "gainSeconds": ("size", "gain {:.1f} s of job time".format),
    "costSeconds": ("size", "cost {:.1f} s".format),
    "lentMilli": ("size", lambda value: f"{quantity.format_milli(round(value))} CPU from suspended reducers"),
    "group": ("order", lambda value: _name(GROUPS, value, "group")),
    "assumedMemorySeconds": ("order", lambda value: f"unknown, taken as {value / _GIB:.1f} GiB·s"),
    "virtualMemorySeconds": ("order", lambda value: f"virtual size {value / _GIB:.1f} GiB·s"),
    "sizeModel": ("order", lambda value: f"sizes of the program predicted best by {_name(SIZES, value)}"),
    "sizeError": ("order", "with a mean error of {:.0%}".format),
}
"""Figures of the policies: the subject of their row, and their text."""


def of_pod(raw: model.Raw, *, now_s: float) -> list[Row]:
    """Return why a pod is on its node, why it has its size, how long it ran, and its last suspension."""
    pod = model.task_pod(raw)
    annotations = pod.annotations
    figures = _numbers(annotations.get(names.ANNOTATION_FIGURES, ""))
    rows: dict[str, list[str]] = {}
    for name in (*_FIGURES, *sorted(figures.keys() - _FIGURES.keys())):  # those of later versions last
        if name in figures:
            subject, render = _FIGURES.get(name, ("figures", f"{name} {{:g}}".format))
            rows.setdefault(subject, []).append(render(figures[name]))
    if "size" in rows and (ran_s := _ran_s(pod)):
        rows["size"].append(f"ran {model.duration(ran_s)}")
    if decision := annotations.get(names.ANNOTATION_DECISION):
        rows["size"] = [decision, *rows.get("size", ())]
    found = [(subject, "; ".join(texts)) for subject, texts in rows.items()]
    if record := records.parse(annotations.get(names.ANNOTATION_SUSPENSION, "")):
        found.append(("suspension", _suspension(raw, record, now_s)))
    return found


def of_mrjob(prediction: model.Raw, conditions: Mapping[str, wire.Condition]) -> Iterator[Row]:
    """Yield the predicted size of a job, and what its conditions say of suspended reducers and missing signals."""
    if size := "; ".join(_size(prediction)):
        yield "size", size
    if (probe := prediction.get("probe")) and probe != "None":
        yield "probe", ": ".join(filter(None, (probe, prediction.get("reason"))))
    for kind, subject in _CONDITIONS:
        if kind in conditions and (message := conditions[kind].message):
            yield subject, message


def of_tasks(pods: Sequence[model.TaskPod]) -> list[Row]:
    """Return what decisions about maps that have ended were to save, and how long these ran."""
    less, waited = [], []
    for pod in pods:
        ran_s, figures = _ran_s(pod), _numbers(pod.annotations.get(names.ANNOTATION_FIGURES, ""))
        if ran_s and {"seconds", "idealSeconds"} <= figures.keys():
            less.append((figures["seconds"], figures["idealSeconds"], ran_s))
        if ran_s and {"waitedSeconds", "escapedSeconds"} <= figures.keys():
            waited.append((figures["waitedSeconds"], figures["escapedSeconds"], ran_s))
    texts = (
        ("less memory", less, "{} with less memory, mean run time: predicted {}, {} with the ideal, realised {}"),
        ("refused", waited, "{} that waited for other neighbours, mean: waited {} to save {}, then ran {}"),
    )
    rows = []
    for subject, found, text in texts:
        means = (f"{statistics.fmean(values):.1f} s" for values in zip(*found, strict=True))
        rows += [(subject, text.format(f"{len(found)} map{'s' * (len(found) != 1)}", *means))] if found else []
    return rows


def _ran_s(pod: model.TaskPod) -> float:
    """Return how long a map that succeeded ran; 0 for other pods."""
    if pod.result is None or not pod.result.succeeded or pod.task_type != contract.TaskType.MAP:
        return 0.0
    return sum(max(0, timing.end_ms - timing.start_ms) for timing in pod.result.timings) / 1000


def of_driver(pods: Sequence[model.TaskPod]) -> list[Row]:
    """Return what was reserved and chosen for the executors of an application's last driver."""
    drivers = [pod for pod in pods if pod.task_type == model.DRIVER]
    if not drivers:
        return []
    annotations = max(drivers, key=lambda pod: pod.attempt).annotations
    rows = []
    if nodes := _numbers(annotations.get(names.ANNOTATION_RESERVED, "")):
        places = ", ".join(f"{count:.0f} on {node}" for node, count in sorted(nodes.items()))
        rows.append(("reservation", f"executors that had room reserved when the driver was placed: {places}"))
    if names.ANNOTATION_EXECUTOR_MEMORY in annotations:
        rows.append(("executor memory", annotations.get(names.ANNOTATION_DECISION, "")))
    return rows


def _size(prediction: model.Raw) -> Iterator[str]:
    numbers, source = _numbers_in(prediction), prediction.get("source") or ""
    if "memorySeconds" in numbers:
        sample = f" of {numbers['sampledFraction']:.1%} of the input" if "sampledFraction" in numbers else ""
        origin = [f"{_SOURCES[source]}{sample if source == _PROBE else ''}"] if source in _SOURCES else []
        yield ", ".join([f"predicted {numbers['memorySeconds']:.1f} GiB·s of memory", *origin])
    for key, task in (("mapSeconds", "map"), ("reduceSeconds", "reduce")):
        if numbers.get(key):
            yield f"{numbers[key]:.1f} s a {task}"
    if "usedMemorySeconds" in numbers:
        error = f" (error {numbers['error']:+.0%})" if "error" in numbers else ""
        yield f"used {numbers['usedMemorySeconds']:.1f} GiB·s{error}"


def _suspension(raw: model.Raw, record: records.SuspensionRecord, now_s: float) -> str:
    cpu = quantity.format_milli(record.cpu_request_milli)
    why = f"{record.reason}, decided by {record.by}; it requested {cpu} CPU{'; ' * bool(record.why)}{record.why}"
    since = model.ago(now_s - record.since_s)
    containers = raw.get("spec", {}).get("containers") or ()
    task: model.Raw = next((container for container in containers if container.get("name") == names.CONTAINER), {})
    requested = ((task.get("resources") or {}).get("requests") or {}).get("cpu")
    if requested is None or quantity.milli(requested) != contract.SUSPENDED_REQUEST_MILLI:
        return f"was suspended {since} ago: {why}"
    return f"suspended {since} ago, for {model.duration(record.until_s - now_s)} more at most: {why}"


def _numbers(written: str) -> dict[str, float]:
    """Return the finite numbers of a JSON object by key; nothing if the text is no such object."""
    try:
        found = json.loads(written, parse_constant=lambda _: None) if 0 < len(written) <= _LONGEST else {}
    except (ValueError, RecursionError):
        return {}
    return _numbers_in(found) if isinstance(found, dict) else {}


def _numbers_in(values: model.Raw) -> dict[str, float]:
    return {key: float(value) for key, value in values.items() if isinstance(value, int | float) and abs(value) < _MOST}
