"""The kinds we speak of: where each lives under the API server, and what its objects are decoded into."""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from boathouse.cluster import wire, written

T = TypeVar("T")
V = TypeVar("V")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[T]):
    """A kind of the API.

    Attributes:
        group: The API group; empty for the core group.
        view: What an object is decoded into: a Struct of ``wire`` or ``records``, or ``wire.Manifest``.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    view: type[T]

    @property
    def api_version(self) -> str:
        """``group/version``, as manifests spell it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, an object or its subresource.

        Args:
            namespace: None for all namespaces (only of a collection), or for a kind without namespaces.
            name: None for the collection.
            subresource: As ``status``, ``binding``, ``resize``.

        Raises:
            ValueError: A namespace for a kind that has none, or none for an object of a kind that has one.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} has no namespace, but {namespace!r} was given")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [prefix, *(("namespaces", namespace) if namespace else ()), self.plural, name, subresource]
        return "/".join(part for part in parts if part)

    def viewed_as(self, view: type[V]) -> Resource[V]:
        """Return the same kind, decoded into another shape."""
        return Resource(
            group=self.group,
            version=self.version,
            plural=self.plural,
            kind=self.kind,
            namespaced=self.namespaced,
            view=view,
        )

    def untyped(self) -> Resource[wire.Manifest]:
        """Return the same kind, decoded into plain dictionaries."""
        return self.viewed_as(wire.Manifest)


PODS = Resource(plural="pods", kind="Pod", view=wire.PodView)
NODES = Resource(plural="nodes", kind="Node", namespaced=False, view=wire.NodeView)
NAMESPACES = Resource(plural="namespaces", kind="Namespace", namespaced=False, view=wire.ObjectView)
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap", view=wire.Manifest)
SERVICES = Resource(plural="services", kind="Service", view=wire.Manifest)
SERVICE_ACCOUNTS = Resource(plural="serviceaccounts", kind="ServiceAccount", view=wire.ObjectView)
PERSISTENT_VOLUME_CLAIMS = Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", view=wire.Manifest)
PERSISTENT_VOLUMES = Resource(plural="persistentvolumes", kind="PersistentVolume", namespaced=False, view=wire.Manifest)
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass", namespaced=False, view=wire.Manifest
)
LEASES = Resource(group="coordination.k8s.io", plural="leases", kind="Lease", view=written.Lease)
EVENTS = Resource(group="events.k8s.io", plural="events", kind="Event", view=wire.Manifest)
TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", plural="tokenreviews", kind="TokenReview", namespaced=False, view=written.TokenReview
)

PODS_THAT_HOLD_RESOURCES = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods to account for, whoever scheduled them. A pod that ends leaves it: reported as Deleted."""

PODS_THAT_ENDED = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
"""Field selector of the others. Together with a label selector of our own pods: how they ended."""
