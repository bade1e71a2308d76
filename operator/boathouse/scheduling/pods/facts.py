"""What the scheduler and the kinds know of a pod: one value per version, computed once when an event is decoded."""

import msgspec

from boathouse.cluster import wire
from boathouse.scheduling.pods.states import Trigger
from boathouse.suspension.stages import CpuSize, Stage, SuspensionRecord, stage_of
from boathouse_policies import model
from boathouse_task.contract import SUSPENDED_LIMIT_MILLI


class PodFacts(wire.Pod, frozen=True, kw_only=True):
    """One version of a pod; its metadata and status are reduced to what is read of them."""

    node_name: str = ""
    scheduler_name: str = ""  # the scheduler that is to place it
    priority: int = 0
    priority_class: str = ""
    task_of: str | None = None  # UID of the job that it is a task of, or None
    restarts: bool = False  # whether it is a task that does not end by itself, such as a node of a Hadoop cluster
    resources: model.Resources = model.Resources()  # what it takes of its node now
    host_ports: tuple[model.HostPort, ...] = ()  # ports of its node that it takes, sorted
    claims_by_field: tuple[tuple[str, str], ...] = ()  # each claim, as namespace/name, after the field that names it
    # disks that it names itself and that count against the limits of CSI drivers, as driver/volume
    disks: tuple[str, ...] = ()
    # its hard constraints, or why they cannot be represented; None for a task, and for pods of other schedulers
    constraints: model.Constraints | str | None = None
    unsupported: str | None = None  # the first field that Boathouse cannot honour, by its path, or None
    too_many_constraints: int = 0  # how many constraints it has if they are too many to be decoded, else 0
    reserved: tuple[tuple[str, int], ...] = ()  # of a task, nodes reserved for pods that it creates, and how many
    is_gated: bool = False  # whether a scheduling gate keeps it from being bound
    is_bindable: bool = False  # whether the API server would take a binding of it
    memory_limit: str = ""
    is_resizing: bool = False  # whether its node has not given it the size that its spec requests, and can
    cpu_request_milli: int = 0  # CPU request of a task's container, by the spec
    cpu_limit_milli: int = 0  # CPU limit of a task's container, by the spec; 0 for none
    # exit code of the own container of a task, or of a pod that a pod made, if that has ended and others run on
    outlived_exit_code: int | None = None
    can_resize: bool = False  # whether a task's container runs and its status shows its resources
    resize_problem: str = ""  # why its node has not carried out a resize: Deferred, Infeasible or Error; else empty
    suspension: SuspensionRecord | None = None
    # all its labels, but for those beyond a bound; pods with equal labels share the value
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    anti_affinity: tuple[model.PodTerm, ...] = ()  # its terms of required anti-affinity
    problem: str = ""  # why it cannot be represented; its resources and constraints are not known then
    is_too_complex: bool = False  # whether the problem is only too much of what could be represented

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
        """Return the claims and disks that it mounts, as namespace/name and driver/volume, sorted."""
        if not self.claims_by_field and not self.disks:
            return ()
        return tuple(sorted({*[claim for _, claim in self.claims_by_field], *self.disks}))

    @property
    def cpu_size(self) -> CpuSize:
        """Return the CPU of a task's container, by the spec."""
        return CpuSize(self.cpu_request_milli, self.cpu_limit_milli)

    @property
    def stage(self) -> Stage:
        """Return how far the last suspension of a task is."""
        if self.suspension is None and self.cpu_limit_milli != SUSPENDED_LIMIT_MILLI:
            return Stage.NONE  # for each pod event
        return stage_of(self.cpu_size, self.suspension, is_resizing=self.is_resizing)

    @property
    def trigger(self) -> Trigger:
        """Return what this version shows, if the pod has not ended."""
        if not self.node_name:
            return Trigger.SHOWN_PENDING
        if self.metadata.deletion_timestamp is not None:
            return Trigger.SHOWN_ENDING
        return Trigger.SHOWN_RESIZING if self.is_resizing else Trigger.SHOWN_PLACED

    @property
    def charge(self) -> tuple[object, ...]:
        """Return what its state and the ledger say of it: versions with equal charges need one observation."""
        return (
            self.node_name,
            self.metadata.deletion_timestamp,
            self.is_resizing,
            self.cpu_limit_milli,
            self.suspension,
            self.resources,
            self.host_ports,
            self.claims_by_field,
            self.disks,
            self.scheduler_name,
            self.priority,
            self.priority_class,
            self.labels,
            self.anti_affinity,
            self.metadata.owner_references,
            self.problem,
        )
