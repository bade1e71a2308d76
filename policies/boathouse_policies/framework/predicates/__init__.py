"""What a node must satisfy: Kubernetes' predicates as filters, in the order in which kube-scheduler names failures."""

from boathouse_policies.framework.predicates.allowed import Allowed
from boathouse_policies.framework.predicates.ports import FreePorts
from boathouse_policies.framework.predicates.room import Room

PREDICATES = (Allowed(), FreePorts(), Room())

__all__ = ["PREDICATES", "Allowed", "FreePorts", "Room"]
