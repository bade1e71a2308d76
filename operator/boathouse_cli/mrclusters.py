"""MRClusters as the commands need them. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse.resources.mrcluster.names import ConditionType
from boathouse_cli import model, options

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND: Final = options.MRCLUSTER
STATIC: Final = "Static"
_CONCERNS: Final = (
    (ConditionType.ADMITTED, "False"),
    (ConditionType.DEGRADED, "True"),
    (ConditionType.SCHEDULED, "False"),
    (ConditionType.READY, "False"),
)
"""Conditions that say what a cluster lacks, the worst first."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Counts of the nodes of a role."""

    wanted: int = 0
    ready: int = 0
    pending: int = 0
    leaving: int = 0

    @property
    def text(self) -> str:
        """The nodes that are ready, of those that shall be: `3/5`."""
        return f"{self.ready}/{self.wanted}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A node that is drained; without a deadline it leaves when its blocks are copied."""

    host: str
    since_s: float | None
    deadline_s: float | None
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The nodes that were ready from a time on."""

    at_s: float
    core: int
    transient: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRCluster(model.Job):
    """An MRCluster.

    Attributes:
        policy: Of `spec.resizing`.
        bounds: Least and most nodes by role.
        reason: Why it is pending or degraded.
        ready_s: When it became ready for the first time.
        load_percent: None without a recent report of its ResourceManager.
        tasks: Running and pending containers of YARN; None as above.
        hdfs: Figures of the NameNode, as the status has them; empty as above.
        size: Why it has its nodes: when it was decided, the reason, and the nodes of the offer.
        levels: Changes of its size, the latest last.
        addresses: In the cluster of Kubernetes, by service.
    """

    policy: str
    weight: int
    has_compute: bool
    bounds: Mapping[str, tuple[int, int]]
    reason: str
    ready_s: float | None
    core: Nodes
    transient: Nodes
    leaving: tuple[Leaving, ...]
    load_percent: int | None
    slots: int | None
    tasks: tuple[int, int] | None
    applications: int | None
    hdfs: Mapping[str, int]
    size: tuple[float, str, int] | None
    levels: tuple[Level, ...]
    addresses: Mapping[str, str]
    ttl_s: int | None
    last_active_s: float | None

    @property
    def used_bytes(self) -> int | None:
        """Bytes in HDFS with all replicas; None without a recent report."""
        return self.hdfs.get("usedBytes")

    @property
    def load(self) -> str:
        """F, the running and pending containers of the slots, in percent; empty: unknown."""
        return "" if self.load_percent is None else f"{self.load_percent}%"


def read(raw: model.Raw) -> MRCluster:
    """Read an MRCluster."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    core, transient = _nodes(status, "core"), _nodes(status, "transient")
    containers = status.get("containers")
    common = model.common(raw, KIND)
    load = status.get("loadPercent")
    words = (f"core {core.text}", f"transient {transient.text}", "" if load is None else f"load {load}%")
    return MRCluster(
        **common,
        progress=", ".join(filter(None, words)) if status.get("core") else "",
        concern=_concern(common["conditions"]),
        policy=_part(spec, "resizing").get("policy") or STATIC,
        weight=spec.get("weight") or 1,
        has_compute=spec.get("compute", True),
        bounds={"core": _core_bounds(spec), "transient": _transient_bounds(spec)},
        reason=status.get("reason") or "",
        ready_s=model.epoch_or_none(status.get("readyTime")),
        core=core,
        transient=transient,
        leaving=tuple(map(_leaving, status.get("leaving") or ())),
        load_percent=load,
        slots=status.get("slots"),
        tasks=(containers.get("running", 0), containers.get("pending", 0)) if containers else None,
        applications=status.get("applications"),
        hdfs=status.get("hdfs") or {},
        size=_size(status.get("size")),
        levels=tuple(map(_level, status.get("sizes") or ())),
        addresses={name: address for name, address in _part(status, "addresses").items() if address},
        ttl_s=spec.get("ttlSecondsAfterIdle"),
        last_active_s=model.epoch_or_none(status.get("lastActiveTime")),
    )


def _part(raw: model.Raw, name: str) -> model.Raw:
    found: model.Raw = raw.get(name) or {}
    return found


def _concern(conditions: Mapping[str, model.Condition]) -> model.Condition | None:
    found = ((conditions.get(kind), status) for kind, status in _CONCERNS)
    return next(
        (condition for condition, status in found if condition is not None and condition.status == status), None
    )


def _nodes(status: model.Raw, role: str) -> Nodes:
    counts = _part(status, role)
    return Nodes(**{field.name: counts.get(field.name, 0) for field in dataclasses.fields(Nodes)})


def _core_bounds(spec: model.Raw) -> tuple[int, int]:
    core = _part(spec, "core")
    count = core.get("count", 0)
    return count, core.get("maximum") or count


def _transient_bounds(spec: model.Raw) -> tuple[int, int]:
    transient = _part(spec, "transient")
    return transient.get("minimum", 0), transient.get("maximum", 0)


def _leaving(raw: model.Raw) -> Leaving:
    return Leaving(
        host=raw["host"],
        since_s=model.epoch_or_none(raw.get("since")),
        deadline_s=model.epoch_or_none(raw.get("deadline")),
        reason=raw.get("reason") or "",
    )


def _size(raw: model.Raw | None) -> tuple[float, str, int] | None:
    return (model.epoch_s(raw["time"]), raw.get("reason") or "", raw.get("offer", 0)) if raw else None


def _level(raw: model.Raw) -> Level:
    return Level(at_s=model.epoch_s(raw["time"]), core=raw.get("core", 0), transient=raw.get("transient", 0))
