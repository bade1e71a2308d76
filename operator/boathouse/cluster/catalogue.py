# ruff: noqa: D101 - the names are Kubernetes' own
"""Kinds that the operator uses: their paths and the models of their objects, lists, watch events and errors."""

import dataclasses
from typing import Any, Generic, TypeVar, cast

from msgspec import DecodeError, field

from boathouse.cluster import wire, written

T = TypeVar("T")
V = TypeVar("V")
MALFORMED = (DecodeError, UnicodeDecodeError, RecursionError)


class ListMeta(wire.View, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_token: str = field(default="", name="continue")
    """Token of the next page; empty on the last one."""


class Page(wire.View, Generic[T], frozen=True, kw_only=True):
    """A page of a LIST. All pages of one LIST have the same `resource_version`."""

    items: tuple[T, ...] = ()
    metadata: ListMeta = ListMeta()


class WatchEvent(wire.View, Generic[T], frozen=True, kw_only=True):
    type: str
    object: T


class StatusDetails(wire.View, frozen=True, kw_only=True):
    retry_after_seconds: int = 0


class Status(wire.View, frozen=True, kw_only=True):
    """`metav1.Status`, the body of every error."""

    kind: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Identified(wire.View, frozen=True, kw_only=True):
    """An object of any kind, decoded only for its identity."""

    metadata: wire.Identity = wire.Identity()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[T]):
    """A kind of the API, with the model of its objects. The core group is empty."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    view: type[T]

    @property
    def api_version(self) -> str:
        """`group/version`, as in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of an object, of its subresource, or without a name of the collection."""
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} has no namespace, but {namespace!r} was given")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"namespaces/{namespace}" if namespace else None
        return "/".join(filter(None, (prefix, scope, self.plural, name, subresource)))

    def viewed_as(self, view: type[V]) -> "Resource[V]":
        """Return this kind with another model."""
        return dataclasses.replace(cast("Resource[Any]", self), view=view)

    def untyped(self) -> "Resource[wire.Manifest]":
        """Return this kind with plain dictionaries as its model."""
        return self.viewed_as(wire.Manifest)


PODS = Resource(plural="pods", kind="Pod", view=wire.PodView)
NODES = Resource(plural="nodes", kind="Node", namespaced=False, view=wire.NodeView)
NAMESPACES = Resource(plural="namespaces", kind="Namespace", namespaced=False, view=wire.ObjectView)
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap", view=wire.Manifest)
SERVICES = Resource(plural="services", kind="Service", view=wire.Manifest)
SERVICE_ACCOUNTS = Resource(plural="serviceaccounts", kind="ServiceAccount", view=wire.ObjectView)
PERSISTENT_VOLUME_CLAIMS = Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", view=wire.Manifest)
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass", namespaced=False, view=wire.Manifest
)
NETWORK_POLICIES = Resource(
    group="networking.k8s.io", plural="networkpolicies", kind="NetworkPolicy", view=wire.Manifest
)
LEASES = Resource(group="coordination.k8s.io", plural="leases", kind="Lease", view=written.Lease)
EVENTS = Resource(group="events.k8s.io", plural="events", kind="Event", view=wire.Manifest)
TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", plural="tokenreviews", kind="TokenReview", namespaced=False, view=written.TokenReview
)

PODS_THAT_HOLD_RESOURCES = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of pods that use resources, of all schedulers. A pod that ends leaves it, reported as Deleted."""
PODS_THAT_ENDED = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
"""Field selector of pods that ended, used with a label selector of Boathouse's pods."""
