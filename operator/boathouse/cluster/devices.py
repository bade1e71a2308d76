"""What we read of dynamic resource allocation: as `wire`, only the fields we use."""

from __future__ import annotations

from boathouse.cluster import wire
from boathouse.cluster.catalogue import Resource


class DeviceClassSpec(wire.View, frozen=True, kw_only=True):
    """`spec` of a DeviceClass."""

    extended_resource_name: str = ""


class DeviceClassView(wire.View, frozen=True, kw_only=True):
    """A DeviceClass."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


DEVICE_CLASSES = Resource(
    group="resource.k8s.io", plural="deviceclasses", kind="DeviceClass", namespaced=False, view=DeviceClassView
)
