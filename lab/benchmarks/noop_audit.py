"""Evaluate the audit log for noop_job.py: writes by author, and the times of each task's states."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt  # noqa: TC003 - msgspec reads it
import functools
import statistics
from typing import TYPE_CHECKING, Any

import msgspec

from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import lab
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = "the operator"
WRITES = ("create", "update", "patch", "delete", "deletecollection")
FIRST_ERROR = 300
STATES = ("waits", "asked", "created", "running", "ended", "counted")
STRETCHES = {
    "waiting for its turn": ("waits", "asked"),
    "creation, with its node": ("asked", "created"),
    "to Running (KWOK)": ("created", "running"),
    "to its end (modelled kubelet)": ("running", "ended"),
    "to the status that counts it": ("ended", "counted"),
}
"""The stretches of a task, each from one state to the next."""


class _User(msgspec.Struct):
    username: str


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class Event(msgspec.Struct, rename="camel"):
    """One audited request."""

    stage: str
    verb: str
    user: _User
    request_received_timestamp: dt.datetime
    stage_timestamp: dt.datetime
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    user_agent: str = ""
    request_object: dict[str, Any] | None = None

    @property
    def is_write(self) -> bool:
        """Whether it changed something that is kept."""
        code = self.response_status.code if self.response_status else 0
        return self.verb in WRITES and self.stage == "ResponseComplete" and code < FIRST_ERROR

    @property
    def what(self) -> str:
        """`create pods`."""
        assert self.object_ref is not None
        part = f"/{self.object_ref.subresource}" if self.object_ref.subresource else ""
        return f"{self.verb} {self.object_ref.resource}{part}"

    @property
    def who(self) -> str:
        """The account; administrators by their program."""
        if self.user.username == lab.ACCOUNT:
            return OPERATOR
        if self.user_agent.startswith("kwok"):
            return "KWOK"
        name = self.user.username.removeprefix("system:serviceaccount:kube-system:")
        return "benchmark, kubelets" if name == "kubernetes-admin" else name


_decoder = msgspec.json.Decoder(Event)


def read(log: Path, begin: int, end: int) -> list[Event]:
    """Return the writes between two places of an audit log; Leases aside: they cost the same without jobs."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read(end - begin).splitlines(keepends=True)
    events = [_decoder.decode(line) for line in lines if line.endswith(b"\n") and line.startswith(b"{")]
    return [e for e in events if e.is_write and e.object_ref is not None and e.object_ref.resource not in _NOT_KEPT]


_NOT_KEPT = frozenset({"leases", "tokenreviews", "subjectaccessreviews", "serviceaccounts"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of many values, in milliseconds."""

    median: float
    p90: float
    mean: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Return their spread."""
        cuts = statistics.quantiles(values, n=10) if len(values) > 1 else values * 9
        return cls(median=statistics.median(values), p90=cuts[8], mean=statistics.mean(values))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What was measured.

    Attributes:
        used_s: The operator's CPU seconds, and the seconds of its parts.
        audit: Writes while the job ran.
        cleaning: Writes after its deletion.
    """

    tasks: int
    elapsed_s: float
    rss_mib: float
    used_s: dict[str, float]
    audit: list[Event]
    cleaning: list[Event]

    @property
    def writes(self) -> collections.Counter[tuple[str, str]]:
        """How many writes, by who and what."""
        return collections.Counter((event.who, event.what) for event in self.audit)

    @property
    def cleaning_writes(self) -> collections.Counter[tuple[str, str]]:
        """The same, after the job's deletion."""
        return collections.Counter((event.who, event.what) for event in self.cleaning)

    @functools.cached_property
    def maps(self) -> dict[int, dict[str, float]]:
        """Of each map, when it came into each state: seconds since the job's first map could be placed."""
        return _maps(self.audit)

    @property
    def stretches(self) -> dict[str, Spread]:
        """How long maps were in each state."""
        whole = [times_s for times_s in self.maps.values() if len(times_s) == len(STATES)]
        return {
            name: Spread.of([1000 * (times_s[after] - times_s[before]) for times_s in whole])
            for name, (before, after) in STRETCHES.items()
        }


def _maps(audit: list[Event]) -> dict[int, dict[str, float]]:
    """Return the states of maps by index, read off the requests in the order of their answers."""
    found: dict[int, dict[str, float]] = {}
    indexes: dict[str, int] = {}
    zero: dt.datetime | None = None
    for event in sorted(audit, key=lambda event: event.stage_timestamp):
        body, at = event.request_object or {}, event.stage_timestamp
        status, name = body.get("status") or {}, event.object_ref.name if event.object_ref else ""
        if zero is None:
            planned = event.what == "patch mrjobs/status" and status.get("plan")
            zero = at if planned else None
        elif event.what == "patch mrjobs/status":
            _count(found, status, (at - zero).total_seconds())
        elif event.what == "create pods":
            labels = body["metadata"]["labels"]
            if labels.get(mrjob_names.LABEL_TASK_TYPE) == TaskType.MAP:
                index = indexes[body["metadata"]["name"]] = int(labels[mrjob_names.LABEL_TASK_INDEX])
                asked_s = (event.request_received_timestamp - zero).total_seconds()
                found[index] = {"waits": 0.0, "asked": asked_s, "created": (at - zero).total_seconds()}
        elif event.what == "patch pods/status" and name in indexes and status.get("phase") in _PHASES:
            found[indexes[name]].setdefault(_PHASES[status["phase"]], (at - zero).total_seconds())
    return found


_PHASES = {"Running": "running", "Succeeded": "ended"}


def _count(found: dict[int, dict[str, float]], status: dict[str, Any], now_s: float) -> None:
    """Count the maps in a status."""
    for index in contract.decode_bitmap(status.get("succeededMaps") or "", max(found, default=-1) + 1):
        if index in found:
            found[index].setdefault("counted", now_s)
