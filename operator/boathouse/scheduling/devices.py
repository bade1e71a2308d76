"""Extended resources that DeviceClasses offer by dynamic resource allocation, which Boathouse does not support.

kube-scheduler gives such a pod devices if its node has none of the resource in `status.allocatable`. Boathouse only
places pods on nodes that have it there. So a pod that fits no node gets a reason that names the DeviceClass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse.cluster import views
    from boathouse_policies import model

_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""What precedes the name of each DeviceClass in the resource that it always offers."""


class Devices:
    """The DeviceClasses of the cluster.

    Args:
        axis: Gets a row for each resource, so that diagnoses name it.
    """

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._offered: dict[str, frozenset[str]] = {}

    def set(self, device_class: views.DeviceClassView) -> None:
        """Add or replace a DeviceClass."""
        name, resource = device_class.metadata.name, device_class.spec.extended_resource_name
        self._offered[name] = frozenset({_IMPLICIT + name, *([resource] if resource else [])})
        for each in sorted(self._offered[name]):
            self._axis.row(each)

    def remove(self, name: str) -> None:
        """Remove a DeviceClass."""
        self._offered.pop(name, None)

    def hint(self, resource: str | None) -> str:
        """Return which DeviceClass offers a resource, and what to do; empty if none does."""
        name = next(self._offering(resource), None)
        if name is None:
            return ""
        return (
            f" DeviceClass {name} offers {resource} by dynamic resource allocation, which Boathouse does not support: "
            "request a resource that nodes have in status.allocatable, or name another scheduler in "
            "spec.schedulerName."
        )

    def _offering(self, resource: str | None) -> Iterator[str]:
        return (name for name, offered in sorted(self._offered.items()) if resource in offered)
