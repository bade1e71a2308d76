"""Small objects that we write as well as read: leases, events, bindings, token reviews. Absent fields are not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from boathouse.cluster import wire

if TYPE_CHECKING:
    from datetime import datetime


def micro_time(moment: datetime) -> str:
    """Return a ``metav1.MicroTime``: the API server wants exactly six digits of the second, zeros included."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class WrittenObject(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """A part of an object that we write; fields that have their default are left out."""


class WrittenMeta(WrittenObject, frozen=True, kw_only=True):
    """``metav1.ObjectMeta`` of an object we write."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


# ---- coordination.k8s.io/v1 ----


class LeaseSpec(WrittenObject, frozen=True, kw_only=True):
    """``renew_time`` is written for people: nobody here judges by it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Lease"):
    """``coordination.k8s.io/v1`` Lease."""

    api_version: str
    metadata: WrittenMeta
    spec: LeaseSpec = LeaseSpec()


# ---- pods/binding ----


class BindingTarget(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Node"):
    """The node of a binding."""

    api_version: str
    name: str


class Binding(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Binding"):
    """The body of POST pods/binding; its annotations are merged into the pod's."""

    api_version: str
    metadata: WrittenMeta
    target: BindingTarget


# ---- events.k8s.io/v1 ----


class ObjectReference(WrittenObject, frozen=True, kw_only=True):
    """What an event is about."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSeries(WrittenObject, frozen=True, kw_only=True):
    """How often, and when last, an event happened again."""

    count: int
    last_observed_time: str


class Event(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Event"):
    """``events.k8s.io/v1``: ``note`` <= 1,024 bytes; ``reason``, ``action`` CamelCase; ``type`` Normal or Warning."""

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
    """Who a token belongs to; ``extra`` names the pod of a projected token."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def pod_name(self) -> str:
        """The pod that the token was projected into, or empty."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-name", ())), "")

    @property
    def pod_uid(self) -> str:
        """That pod's UID, or empty."""
        return next(iter(self.extra.get("authentication.kubernetes.io/pod-uid", ())), "")


class TokenReviewStatus(wire.View, frozen=True, kw_only=True):
    """The verdict over a token; ``audiences`` are those of ours that it is meant for."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(wire.View, frozen=True, kw_only=True):
    """The answer of ``authentication.k8s.io/v1`` TokenReview."""

    status: TokenReviewStatus = TokenReviewStatus()
