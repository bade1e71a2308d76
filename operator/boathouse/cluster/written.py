"""Models of objects that the operator writes: leases, events, bindings, token reviews. Absent fields are not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from boathouse.cluster import wire

if TYPE_CHECKING:
    from datetime import datetime


def micro_time(moment: datetime) -> str:
    """Return a `metav1.MicroTime`, which must have exactly six decimals of the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class WrittenObject(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """A part of a written object; fields with their default value are omitted."""


class WrittenMeta(WrittenObject, frozen=True, kw_only=True):
    """`metav1.ObjectMeta` of a written object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


# ---- coordination.k8s.io/v1 ----


class LeaseSpec(WrittenObject, frozen=True, kw_only=True):
    """`spec` of a Lease. `renew_time` is only informational; the operator does not read it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Lease"):
    """`coordination.k8s.io/v1` Lease."""

    api_version: str
    metadata: WrittenMeta
    spec: LeaseSpec = LeaseSpec()


# ---- pods/binding ----


class BindingTarget(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Node"):
    """The node of a binding."""

    api_version: str
    name: str


class Binding(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Binding"):
    """Body of POST pods/binding; its annotations are merged into the pod's."""

    api_version: str
    metadata: WrittenMeta
    target: BindingTarget


# ---- events.k8s.io/v1 ----


class ObjectReference(WrittenObject, frozen=True, kw_only=True):
    """Object of an event."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSeries(WrittenObject, frozen=True, kw_only=True):
    """Number of repetitions of an event, and time of the last one."""

    count: int
    last_observed_time: str


class Event(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Event"):
    """`events.k8s.io/v1`: `note` <= 1,024 bytes; `reason`, `action` CamelCase; `type` Normal or Warning."""

    api_version: str
    metadata: WrittenMeta
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    series: EventSeries | None = None


# ---- authentication.k8s.io/v1 ----


class UserInfo(wire.View, frozen=True, kw_only=True):
    """User of a token; `extra` has the pod of a projected token."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def pod_name(self) -> str:
        """Name of the pod that the token was projected into, or empty."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-name", ())), "")

    @property
    def pod_uid(self) -> str:
        """UID of the pod that the token was projected into, or empty."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-uid", ())), "")


class TokenReviewStatus(wire.View, frozen=True, kw_only=True):
    """Result of a token review; `audiences` are the requested ones that the token has."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(wire.View, frozen=True, kw_only=True):
    """Response of an `authentication.k8s.io/v1` TokenReview."""

    status: TokenReviewStatus = TokenReviewStatus()


class TokenRequestStatus(wire.View, frozen=True, kw_only=True):
    """The token that was created."""

    token: str = ""


class TokenRequest(wire.View, frozen=True, kw_only=True):
    """Response of an `authentication.k8s.io/v1` TokenRequest."""

    status: TokenRequestStatus = TokenRequestStatus()
