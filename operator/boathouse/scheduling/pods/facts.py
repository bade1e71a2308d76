"""What the scheduler and the kinds know of a pod: one value per version, computed once when an event is decoded."""

from boathouse.cluster import wire
from boathouse_policies import model


class PodFacts(wire.Pod, frozen=True, kw_only=True):
    """One version of a pod; its metadata and status are reduced to what is read of them.

    Attributes:
        node_name: Its node; empty for none.
        scheduler_name: The scheduler that is to place it.
        priority: Its priority.
        priority_class: Name of its PriorityClass.
        task_of: UID of the job that it is a task of, or None.
        resources: What it takes of its node now.
        host_ports: Ports of its node that it takes, sorted.
        claims_by_field: Each claim that it mounts, as namespace/name, after the field that names it.
        constraints: Its hard constraints, or why they cannot be represented; None for a pod that this scheduler does
            not place, or that is a task.
        unsupported: The first field that Boathouse cannot honour, by its path, or None.
        too_many_constraints: How many constraints it has if they are too many to be decoded, else 0.
        reserved: Of a task, the nodes where room was reserved for the pods that it creates, and for how many.
        is_gated: Whether a scheduling gate keeps it from being bound.
        is_bindable: Whether the API server would take a binding of it.
        memory_limit: Memory limit of a task's container; empty for none.
        problem: Why the pod cannot be represented; empty if it can. Its resources and constraints are not known then.
        is_too_complex: Whether the problem is only too much of what could be represented.
    """

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class: str = ""
    task_of: str | None = None
    resources: model.Resources = model.Resources()
    host_ports: tuple[model.HostPort, ...] = ()
    claims_by_field: tuple[tuple[str, str], ...] = ()
    constraints: model.Constraints | str | None = None
    unsupported: str | None = None
    too_many_constraints: int = 0
    reserved: tuple[tuple[str, int], ...] = ()
    is_gated: bool = False
    is_bindable: bool = False
    memory_limit: str = ""
    problem: str = ""
    is_too_complex: bool = False

    @property
    def id(self) -> model.TaskId:
        """Return the scheduler's name of it: `namespace/name`."""
        return model.TaskId(self.metadata.key)

    @property
    def revision(self) -> int:
        """Return its resourceVersion."""
        return int(self.metadata.resource_version or 0)

    @property
    def claims(self) -> tuple[str, ...]:
        """Return the claims that it mounts, as namespace/name, sorted."""
        return tuple(sorted({claim for _, claim in self.claims_by_field})) if self.claims_by_field else ()

    @property
    def charge(self) -> tuple[object, ...]:
        """Return what the ledger counts of it: versions with equal charges on one node need one observation."""
        return (
            self.node_name,
            self.resources,
            self.host_ports,
            self.claims_by_field,
            self.scheduler_name,
            self.priority,
            self.priority_class,
            self.metadata.labels,
            self.metadata.owner_references,
            self.problem,
        )
