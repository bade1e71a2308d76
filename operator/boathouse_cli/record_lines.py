"""The lines of a recording, and what of a cluster's objects they keep. Pure.

What tenants write is bounded here: a line keeps numbers, names that the API server has checked, and a hash of the
program; never commands, arguments or other labels. What cannot be read raises one of `UNREADABLE`.

Times are seconds since the epoch (UTC).
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling.pods import requests
from boathouse.services.mrjob import results
from boathouse_cli import kinds, model, mrjobs

FORMAT: Final = "boathouse-recording/1"
ZONE: Final = "topology.kubernetes.io/zone"
COUNTERS: Final = ("cpu_s", "read_bytes", "written_bytes", "spilled_bytes")
"""Signals of a task at its end that policies learn from, beside its input."""
DELETED: Final = "Deleted"
"""Phase of a job that was deleted before it had ended."""
_LONGEST: Final = 253
"""Characters of a name."""
_MOST: Final = float(1 << 53)
_MOST_MILLI: Final = 10**9
_MOST_BYTES: Final = 1 << 50
_MOST_TASKS: Final = 10**7
_LATEST_S: Final = 253402300800.0  # the year 10000


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of the operator's configuration; limits are `cpu_milli`, `memory_bytes` and `pods`."""

    name: str
    weight: float = 1.0
    limits: dict[str, int] = {}


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line"):
    """A line."""


class Begin(_Line, frozen=True, kw_only=True, tag="begin"):
    """The recording begins, or goes on after a stop."""

    at_s: float
    format: str = FORMAT
    namespace: str = ""  # the only one that is recorded; empty for all
    profile: str = ""  # of the operator; empty where its configuration may not be read
    queues: tuple[Queue, ...] = ()
    unread: tuple[str, ...] = ()  # what the user may not read


class Mark(_Line, frozen=True, kw_only=True, tag="mark"):
    """The recording has seen all until now; `aside` counts what was set aside since the last mark, by reason."""

    at_s: float
    aside: dict[str, int] = {}


class Node(_Line, frozen=True, kw_only=True, tag="node"):
    """A node from now on; one that is gone, cordoned or not ready is not usable."""

    at_s: float
    name: str
    cpu_milli: int = 0
    memory_bytes: int = 0
    rack: str = ""
    zone: str = ""
    usable: bool = False


class Job(_Line, frozen=True, kw_only=True, tag="job"):
    """A job; a later line of the same `uid` replaces it."""

    uid: str
    kind: str  # `mrjob` or `sparkapp`
    namespace: str
    name: str
    created_s: float
    queue: str = ""
    program: str = ""  # hash of what it runs
    phase: str = ""
    ended_s: float | None = None
    maps: int = 0  # as of reduces, also where that is not known
    reduces: int = 0
    on_cluster: bool = False  # its tasks run inside an MRCluster
    is_remote: bool = False  # it reads an object store, and no disks of nodes


class Pod(_Line, frozen=True, kw_only=True, tag="pod"):
    """A pod that has a node, of any scheduler; a later line of the same `uid` replaces it."""

    uid: str
    namespace: str
    node: str
    cpu_milli: int
    memory_bytes: int
    placed_s: float
    owner: str = ""  # UID of its controller: a job, or the driver of an executor
    type: str = ""  # map, reduce, driver, executor and so on; empty for a pod of no job
    step: int = 0
    index: int = 0
    ideal_bytes: int = 0  # the memory that it was meant to have, if it got less
    ended_s: float | None = None
    succeeded: bool = False
    end_is_known: bool = True  # False for one that went while nobody looked: it ended at the latest then
    input_bytes: float = 0.0  # what it reported to have read
    counters: dict[str, float] = {}  # its signals (`COUNTERS`)


UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What an object raises that is none of its kind, or has a number or a text that no honest one has."""

Line: TypeAlias = Begin | Mark | Node | Job | Pod


def node(raw: model.Raw, *, now_s: float, is_gone: bool = False) -> Node:
    """Return the line of a node."""
    view = msgspec.convert(raw, wire.NodeView)
    name = _text(view.metadata.name)
    if is_gone:
        return Node(at_s=now_s, name=name)
    allocatable = view.status.allocatable
    return Node(
        at_s=now_s,
        name=name,
        cpu_milli=_whole(requests.nano(allocatable.get("cpu", "0")) // requests.NANO_PER_MILLI, _MOST_MILLI),
        memory_bytes=_whole(requests.nano(allocatable.get("memory", "0")) // requests.NANO, _MOST_BYTES),
        rack=_text(view.metadata.labels.get(names.LABEL_RACK, "")),
        zone=_text(view.metadata.labels.get(ZONE, "")),
        usable=view.is_ready and not view.spec.unschedulable,
    )


def job(kind: kinds.Kind, raw: model.Raw, *, now_s: float, is_gone: bool = False) -> Job:
    """Return the line of a job."""
    found, spec = kind.read(raw), raw.get("spec") or {}
    mrjob = found if isinstance(found, mrjobs.MRJob) else None
    ended_s, phase = found.completed_s, _text(found.phase)
    if ended_s is None and (is_gone or found.finished):
        ended_s = now_s
    return Job(
        uid=_text(found.uid),
        kind=kind.name,
        namespace=_text(found.namespace),
        name=_text(found.name),
        created_s=_time(found.created_s),
        queue=_text(found.queue),
        program=_program(kind, spec),
        phase=phase if found.finished or not is_gone else DELETED,
        ended_s=None if ended_s is None else max(_time(ended_s), found.created_s),
        maps=_whole(mrjob.maps.total, _MOST_TASKS) if mrjob else 0,
        reduces=_whole(mrjob.reduces.total, _MOST_TASKS) if mrjob else 0,
        on_cluster=bool(mrjob and mrjob.cluster),
        is_remote=any(url.startswith("s3") for url in spec.get("input") or ()),
    )


def pod(raw: model.Raw, *, now_s: float, is_gone: bool = False) -> Pod | None:
    """Return the line of a pod; None for one without a node."""
    view = msgspec.convert(raw, wire.PodView)
    if not view.spec.node_name:
        return None
    amounts, owner, labels = requests.pod_requests(view), view.metadata.controller, view.metadata.labels
    placed_s = model.placed_s(view)
    placed_s = _stamp(view.metadata.creation_timestamp) if placed_s is None else _time(placed_s)
    ended_s = _ended_s(view, now_s) if view.is_terminal or is_gone else None
    containers = (status.state for status in view.status.container_statuses if status.name == names.CONTAINER)
    result = model.result(next(containers, wire.ContainerState()))
    counters = {} if result is None else results.flat_counters(result, has_local_input=True)
    is_ours = names.LABEL_JOB_UID in labels or model.SPARK_ROLE in labels
    return Pod(
        uid=_text(view.metadata.uid),
        namespace=_text(view.metadata.namespace),
        node=_text(view.spec.node_name),
        cpu_milli=_whole(requests.milli(amounts.get("cpu", 0)), _MOST_MILLI),
        memory_bytes=_whole(requests.ones(amounts.get("memory", 0)), _MOST_BYTES),
        placed_s=placed_s,
        owner=_text(owner.uid) if owner is not None else "",
        type=_text(labels.get(model.SPARK_ROLE) or labels.get(names.LABEL_TASK_TYPE, "")) if is_ours else "",
        step=_number(labels.get(mrjob_names.LABEL_STEP, "0")),
        index=_number(labels.get(mrjob_names.LABEL_TASK_INDEX, "0")),
        ideal_bytes=_number(view.metadata.annotations.get(names.ANNOTATION_IDEAL_MEMORY, "0"), _MOST_BYTES),
        ended_s=None if ended_s is None else max(ended_s, placed_s),
        succeeded=view.status.phase == "Succeeded",
        input_bytes=_amount(results.input_bytes(counters)),
        counters={name: _amount(counters[name]) for name in COUNTERS if counters.get(name)},
    )


def _ended_s(view: wire.PodView, now_s: float) -> float:
    """Return when the last container ended; for a pod that left no such time, now."""
    ends = [status.state.terminated.finished_at for status in view.status.container_statuses if status.state.terminated]
    return max((_stamp(end) for end in ends if end is not None), default=now_s)


def _program(kind: kinds.Kind, spec: Mapping[str, Any]) -> str:
    """Return a hash of the commands: jobs of one program are alike."""
    if kind is kinds.SPARKAPP:
        parts: list[Any] = [spec.get(field) for field in ("type", "mainApplicationFile", "mainClass")]
    else:
        steps = spec.get("steps") or [spec]
        stages = [step.get(stage) or {} for step in steps for stage in ("mapper", "combiner", "reducer")]
        parts = [spec.get("image"), [stage.get("command") for stage in stages]]
    return hashlib.blake2b(json.dumps(parts).encode(errors="replace"), digest_size=8).hexdigest()


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError("a name is no text of the usual length")
    value.encode()  # raises for half of a surrogate pair, which no file can hold
    return value


def _whole(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"an amount is no whole number up to {most}")
    return value


def _number(text: str, most: int = _MOST_TASKS) -> int:
    """Return the number in a label or annotation; 0 for other text."""
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else 0


def _amount(value: float) -> float:
    return min(max(value, 0.0), _MOST) if value == value else 0.0  # noqa: PLR0124 - not a number


def _stamp(value: dt.datetime | None) -> float:
    if value is None:
        raise ValueError("a time is missing")
    return _time(value.timestamp())


def _time(value_s: float) -> float:
    if not 0 <= value_s <= _LATEST_S:
        raise ValueError("a time is out of range")
    return float(value_s)
