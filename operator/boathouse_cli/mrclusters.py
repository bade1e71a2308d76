"""MRClusters as the commands need them. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources.mrcluster.names import ConditionType
from boathouse_cli import model, options

STATIC: Final = "Static"
_CONCERNS: Final = (
    (ConditionType.ADMITTED, "False"),
    (ConditionType.DEGRADED, "True"),
    (ConditionType.SCHEDULED, "False"),
    (ConditionType.READY, "False"),
)
"""Conditions that say what a cluster lacks, the worst first."""


class Nodes(wire.View, frozen=True, kw_only=True):
    """Counts of the nodes of a role."""

    wanted: int = 0
    ready: int = 0
    pending: int = 0
    leaving: int = 0

    @property
    def text(self) -> str:
        """The nodes that are ready, of those that shall be: `3/5`."""
        return f"{self.ready}/{self.wanted}"


class Leaving(wire.View, frozen=True, kw_only=True):
    """A node that is drained; without a deadline it leaves when its blocks are copied."""

    host: str
    since_s: model.Time | None = msgspec.field(default=None, name="since")
    deadline_s: model.Time | None = msgspec.field(default=None, name="deadline")
    reason: str = ""


class Level(wire.View, frozen=True, kw_only=True):
    """The nodes that were ready from a time on."""

    at_s: model.Time = msgspec.field(name="time")
    core: int = 0
    transient: int = 0


class Size(wire.View, frozen=True, kw_only=True):
    """The last decision about the size: why, and the nodes of the offer."""

    at_s: model.Time = msgspec.field(name="time")
    reason: str = ""
    offer: int = 0


class _Containers(wire.View, frozen=True, kw_only=True):
    running: int = 0
    pending: int = 0


class Status(model.Status, frozen=True, kw_only=True):
    """The status of an MRCluster; without a recent report there is no load, and no containers and figures of HDFS."""

    ready_s: model.Time | None = msgspec.field(default=None, name="readyTime")
    core: Nodes = Nodes()
    transient: Nodes = Nodes()
    leaving: tuple[Leaving, ...] = ()
    load_percent: int | None = None  # F: the running and pending containers, of the slots
    slots: int = 0
    containers: _Containers | None = None  # of YARN
    applications: int = 0
    hdfs: dict[str, Any] = msgspec.field(default_factory=dict)
    size: Size | None = None
    levels: tuple[Level, ...] = msgspec.field(default=(), name="sizes")  # the latest last
    addresses: dict[str, str] = msgspec.field(default_factory=dict)
    last_active_s: model.Time | None = msgspec.field(default=None, name="lastActiveTime")

    @property
    def load(self) -> str:
        """The load with its unit; empty: unknown."""
        return "" if self.load_percent is None else f"{self.load_percent}%"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRCluster(model.Job):
    """An MRCluster, with the least and most nodes by role."""

    policy: str
    weight: int
    has_compute: bool
    bounds: Mapping[str, tuple[int, int]]
    ttl_s: int | None
    status: Status


def read(raw: model.Raw) -> MRCluster:
    """Read an MRCluster."""
    spec, status = raw.get("spec") or {}, model.decoded(raw.get("status") or {}, Status)
    core, transient = spec.get("core") or {}, spec.get("transient") or {}
    least = core.get("count", 0)
    common = model.common(raw, options.MRCLUSTER, status)
    conditions = ((common["conditions"].get(kind), value) for kind, value in _CONCERNS)
    load = f", load {status.load}" if status.load else ""
    return MRCluster(
        **common,
        progress=f"core {status.core.text}, transient {status.transient.text}{load}"
        if "core" in (raw.get("status") or {})
        else "",
        concern=next((condition for condition, value in conditions if condition and condition.status == value), None),
        policy=(spec.get("resizing") or {}).get("policy") or STATIC,
        weight=spec.get("weight") or 1,
        has_compute=spec.get("compute", True),
        bounds={
            "core": (least, core.get("maximum") or least),
            "transient": (transient.get("minimum", 0), transient.get("maximum", 0)),
        },
        ttl_s=spec.get("ttlSecondsAfterIdle"),
        status=status,
    )
