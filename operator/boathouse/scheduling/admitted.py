"""What admission adds to pods: larger requests, a node selector, other constraints. Pure.

Webhooks, LimitRanges and plugins of the API server change a pod when it is created, after its node was chosen. The
kubelet of that node may then reject it. So what the API server makes of the first pod of a class is compared with its
manifest, and the class is scheduled with the difference.
"""

import collections
import dataclasses
from typing import Any, Final

import msgspec

from boathouse.cluster import wire
from boathouse.scheduling.pods import requests, translate
from boathouse_policies import model

MAX_NAMESPACES: Final = 10_000
_DEFAULT_TOLERATIONS: Final = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
"""Taints that every pod tolerates for a while, by the admission plugin DefaultTolerationSeconds."""
_SORTED: Final = ("host_ports", "claims", "features")
_IN_ORDER: Final = ("tolerations", "pod_affinity", "pod_anti_affinity", "spread")
"""Constraints to which admission may add items."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What admission adds to the pods of a class."""

    # requests in addition to those of the manifest
    more: model.Resources = model.Resources()  # noqa: RUF009 - frozen
    constraints: model.Constraints = model.UNCONSTRAINED  # in addition to, or in place of, those of the manifest

    def applied(self, task_class: model.TaskClass) -> model.TaskClass:
        """Return a class with the changes."""
        own, added = task_class.constraints, self.constraints
        both: dict[str, Any] = {name: (*getattr(own, name), *getattr(added, name)) for name in _SORTED + _IN_ORDER}
        constraints = dataclasses.replace(
            own,
            node_selector=tuple(sorted((dict(own.node_selector) | dict(added.node_selector)).items())),
            affinity=own.affinity if added.affinity is None else added.affinity,
            **both | {name: tuple(sorted(set(both[name]))) for name in _SORTED},
        )
        resources = _combined(task_class.resources, self.more, sign=1)
        return dataclasses.replace(task_class, resources=resources, constraints=constraints)

    def own(self, resources: model.Resources) -> model.Resources:
        """Return the size that a manifest must have for a pod of this size."""
        return _combined(resources, self.more, sign=-1)


def changes(manifest: dict[str, Any], pod: wire.PodView) -> Changes | None:
    """Return what admission has added to the pod of a manifest; None for nothing that concerns its node."""
    specs = msgspec.convert(manifest, wire.PodView).spec, pod.spec
    views = [  # without a status, so by the spec alone
        wire.PodView(metadata=pod.metadata, spec=msgspec.structs.replace(spec, node_name="")) for spec in specs
    ]
    return _difference(
        *((translate.resources_of(requests.pod_requests(view)), translate.constraints(view)) for view in views)
    )


def changes_of_class(planned: model.TaskClass, admitted: model.TaskClass) -> Changes | None:
    """Return what admission has added to a pod of the first class, which is now of the second; None for nothing."""
    return _difference(*((task_class.resources, task_class.constraints) for task_class in (planned, admitted)))


def _difference(
    planned: tuple[model.Resources, model.Constraints], admitted: tuple[model.Resources, model.Constraints]
) -> Changes | None:
    """Return the difference. A pod that requests less than planned counts as planned."""
    before, after = planned[1], admitted[1]
    added: dict[str, Any] = {
        name: tuple(item for item in getattr(after, name) if item not in getattr(before, name))
        for name in ("node_selector", *_SORTED, *_IN_ORDER)
    }
    added["tolerations"] = tuple(item for item in added["tolerations"] if item.key not in _DEFAULT_TOLERATIONS)
    constraints = model.Constraints(affinity=None if after.affinity == before.affinity else after.affinity, **added)
    difference = Changes(more=_combined(admitted[0], planned[0], sign=-1), constraints=constraints)
    return None if difference == Changes() else difference


def _combined(base: model.Resources, delta: model.Resources, *, sign: int) -> model.Resources:
    extended, more = dict(base.extended), dict(delta.extended)
    return model.Resources.of(
        cpu_milli=max(0, base.cpu_milli + sign * delta.cpu_milli),
        memory_bytes=max(0, base.memory_bytes + sign * delta.memory_bytes),
        ephemeral_storage_bytes=max(0, base.ephemeral_storage_bytes + sign * delta.ephemeral_storage_bytes),
        extended={
            name: max(0, extended.get(name, 0) + sign * more.get(name, 0)) for name in extended.keys() | more.keys()
        },
    )


class Namespaces:
    """Namespaces whose admission is known to change pods, the last ones to be found."""

    def __init__(self) -> None:
        self._known: collections.OrderedDict[str, None] = collections.OrderedDict()

    def add(self, namespace: str) -> None:
        """Note that admission has changed a pod of a namespace."""
        self._known[namespace] = None
        self._known.move_to_end(namespace)
        if len(self._known) > MAX_NAMESPACES:
            self._known.popitem(last=False)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._known
