"""Nodes, as far as scheduling reads them."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.model.ids import NodeName
    from boathouse_policies.model.resources import Resources

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class TaintEffect(enum.StrEnum):
    """Kubernetes' effects. Only the first two keep a pod from a node."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node.

    Attributes:
        name: metadata.name.
        allocatable: status.allocatable without `pods`.
        max_pods: status.allocatable.pods.
        labels: metadata.labels.
        taints: spec.taints.
        unschedulable: spec.unschedulable (cordoned).
        ready: whether the condition Ready is True.
        server: The physical host of a virtual node, from a label; None where it is not known.
        rack: The rack, from a label; None where it is not known.
    """

    name: NodeName
    allocatable: Resources
    max_pods: int = 110
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    server: str | None = None
    rack: str | None = None
