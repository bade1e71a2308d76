"""What we read of ResourceQuotas: as `wire`, only the fields we use."""

from __future__ import annotations

from msgspec import field

from boathouse.cluster import wire
from boathouse.cluster.catalogue import Resource


class ScopeRequirement(wire.View, frozen=True, kw_only=True):
    """``v1.ScopedResourceSelectorRequirement``."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(wire.View, frozen=True, kw_only=True):
    """``v1.ScopeSelector``."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class QuotaSpec(wire.View, frozen=True, kw_only=True):
    """``spec`` of a quota."""

    hard: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class QuotaStatus(wire.View, frozen=True, kw_only=True):
    """``status`` of a quota: empty until its controller has counted."""

    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class QuotaView(wire.View, frozen=True, kw_only=True):
    """A ResourceQuota."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


QUOTAS = Resource(plural="resourcequotas", kind="ResourceQuota", view=QuotaView)
