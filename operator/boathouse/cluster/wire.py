# ruff: noqa: D101 - the names are Kubernetes' own
"""Models of Kubernetes' objects as msgspec Structs, with only the fields that the operator uses.

Field names are Kubernetes' in snake case. Quantities are strings as the server sends them (`"500m"`, `"64Mi"`). The
Structs are frozen and not tracked by the garbage collector (`gc=False`), because 10,000 pods are 500,000 objects.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct, field, structs

Manifest: TypeAlias = dict[str, Any]
"""An object as plain JSON, for kinds and fields that have no Struct here."""
Quantities: TypeAlias = dict[str, str]
"""Resource name to quantity, as in `{"cpu": "500m", "memory": "64Mi"}`."""
Sizes: TypeAlias = Mapping[str, Mapping[str, Quantities]]
"""Requests and limits of containers."""


class View(Struct, rename="camel", frozen=True, gc=False, kw_only=True):
    """A part of an object. Decoding skips unknown fields; absent fields have their default."""


class Present(View, frozen=True, kw_only=True):
    """A field of which only the presence is decoded."""


class OwnerReference(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Identity(View, frozen=True, kw_only=True):
    """Identity and resourceVersion of an object, for comparisons."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectMeta(Identity, frozen=True, kw_only=True):
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object."""
        for owner in self.owner_references:  # faster than `next`, and this runs several times for each pod event
            if owner.controller:
                return owner
        return None


class ObjectView(View, frozen=True, kw_only=True):
    """An object of any kind with only its metadata."""

    metadata: ObjectMeta = ObjectMeta()


class Condition(View, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ResourceRequirements(View, frozen=True, kw_only=True):
    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)


class ContainerPort(View, frozen=True, kw_only=True):
    """A port; `host_port` 0: no port of the node."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class RestartRule(View, frozen=True, kw_only=True):
    action: str = ""


class Container(View, frozen=True, kw_only=True):
    name: str
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    """Of an init container: with `Always` it is a sidecar."""
    restart_policy_rules: tuple[RestartRule, ...] = ()
    ports: tuple[ContainerPort, ...] = ()


MOST_CONSTRAINTS = 100


class Requirement(View, frozen=True, kw_only=True):
    """A node selector requirement: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True, kw_only=True):
    """Requirements that a node must all meet; an empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(View, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodeTerm(View, frozen=True, kw_only=True):
    """A preference with a weight of 1 to 100."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(View, frozen=True, kw_only=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNodeTerm, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class LabelSelector(View, frozen=True, kw_only=True):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class PodAffinityTerm(View, frozen=True, kw_only=True):
    """Other pods, and the label of nodes by which they are near. The API server adds `matchLabelKeys` to the selector.

    A selector that is None selects nothing, an empty one everything. Without namespaces and a selector of them, the
    pod's own is meant.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(View, frozen=True, kw_only=True):
    """Pod affinity or anti-affinity; of preferences only the presence is decoded."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[Present, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class Affinity(View, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(View, frozen=True, kw_only=True):
    """A toleration. An empty key with `Exists` tolerates every taint; an empty effect matches every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(View, frozen=True, kw_only=True):
    """A topology spread constraint; it is required if `when_unsatisfiable` is `DoNotSchedule`."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class ClaimSource(View, frozen=True, kw_only=True):
    claim_name: str


class Disk(View, frozen=True, kw_only=True):
    """A disk that a pod names itself; each kind has other fields."""

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    disk_uri: str = field(default="", name="diskURI")
    iqn: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class DiskSource(View, frozen=True, kw_only=True):
    """A disk of a cloud that a CSI driver attaches in place of the kubelet; at most one is named."""

    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None


class Volume(DiskSource, frozen=True, kw_only=True):
    """A volume; only its claim and its disk are decoded. The claim of an `ephemeral` volume is named `POD-VOLUME`."""

    name: str = ""
    iscsi: Disk | None = None
    rbd: Disk | None = None
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None


class PodSpec(View, frozen=True, kw_only=True):
    """`spec` of a pod. If it has more constraints than `MOST_CONSTRAINTS`, `too_many_constraints` is their number.

    Its node selector, affinity, tolerations and topology spread constraints are then dropped, because they may have a
    megabyte, but for the first terms of required anti-affinity, which other pods must respect.
    """

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    restart_policy: str = "Always"
    priority: int = 0
    priority_class_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[Present, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    scheduling_group: Present | None = None
    workload_ref: Present | None = None
    resource_claims: tuple[Present, ...] = ()
    volumes: tuple[Volume, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Quantities = field(default_factory=dict)
    too_many_constraints: int = field(default=0, name="-")  # not a name of a field in the API

    def __post_init__(self) -> None:
        count = _count_constraints(self)
        if count > MOST_CONSTRAINTS:
            structs.force_setattr(self, "too_many_constraints", count)
            structs.force_setattr(self, "affinity", None if self.affinity is None else _anti_affinity(self.affinity))
            structs.force_setattr(self, "node_selector", {})
            for name in ("tolerations", "topology_spread_constraints"):
                structs.force_setattr(self, name, ())


def _count_constraints(spec: PodSpec) -> int:
    """Return the number of constraints: one per ten values of an expression, and one for each other condition."""
    count = len(spec.node_selector) + len(spec.tolerations) + len(spec.volumes)
    count += len(spec.scheduling_gates) + len(spec.resource_claims)
    count += sum([1 + _count_selector(constraint.label_selector) for constraint in spec.topology_spread_constraints])
    count += sum([len(container.ports) for container in spec.containers + spec.init_containers])
    return count if spec.affinity is None else count + _count_affinity(spec.affinity)


def _count_affinity(affinity: Affinity) -> int:
    count, nodes = 0, affinity.node_affinity or NodeAffinity()
    for kind in (affinity.pod_affinity, affinity.pod_anti_affinity):
        count += 0 if kind is None else sum(map(_count_term, kind.required)) + len(kind.preferred)
    required = nodes.required.node_selector_terms if nodes.required else ()
    for term in (*required, *(preferred.preference for preferred in nodes.preferred)):
        count += 1 + _count_expressions(term.match_expressions) + _count_expressions(term.match_fields)
    return count


def _count_term(term: PodAffinityTerm) -> int:
    selectors = _count_selector(term.label_selector) + _count_selector(term.namespace_selector)
    return 1 + selectors + len(term.namespaces) // 10


def _count_selector(selector: LabelSelector | None) -> int:
    return 0 if selector is None else len(selector.match_labels) + _count_expressions(selector.match_expressions)


def _count_expressions(expressions: tuple[Requirement, ...]) -> int:
    return sum([1 + len(expression.values) // 10 for expression in expressions])


def _anti_affinity(affinity: Affinity) -> Affinity | None:
    """Return the first terms of required anti-affinity, within the limit of constraints."""
    terms: list[PodAffinityTerm] = []
    left = MOST_CONSTRAINTS
    for term in () if affinity.pod_anti_affinity is None else affinity.pod_anti_affinity.required:
        left -= _count_term(term)
        if left < 0:
            break
        terms.append(term)
    return Affinity(pod_anti_affinity=PodAffinity(required=tuple(terms))) if terms else None


class StateWaiting(View, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class StateRunning(View, frozen=True, kw_only=True):
    started_at: datetime | None = None


class StateTerminated(View, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(View, frozen=True, kw_only=True):
    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class ContainerStatus(View, frozen=True, kw_only=True):
    """`resources` are actuated, `allocated_resources` reserved; `last_state` is that before the last restart."""

    name: str
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = field(default_factory=dict)


class PodStatus(View, frozen=True, kw_only=True):
    """`status` of a pod; `reason` and `message` also contain a kubelet's rejection, such as `OutOfcpu`."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    pod_ip: str = field(default="", name="podIP")
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities = field(default_factory=dict)


class Pod(ObjectView, frozen=True, kw_only=True):
    """Metadata and status of a pod."""

    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether the pod has ended and uses no resources of its node."""
        return self.status.phase in {"Succeeded", "Failed"}

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of a type, such as `PodScheduled` or `PodResizePending`, or None."""
        return next((c for c in self.status.conditions if c.type == kind), None)


class PodView(Pod, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()

    @property
    def is_bindable(self) -> bool:
        """Whether the API server accepts a binding of the pod."""
        blocked = self.is_terminal or self.spec.node_name or self.metadata.deletion_timestamp
        return not (blocked or self.spec.scheduling_gates)


class UnreadablePod(PodView, frozen=True, kw_only=True):
    """A pod that cannot be decoded, with its identity, node and scheduler."""


class Taint(View, frozen=True, kw_only=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(View, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(View, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class DaemonEndpoint(View, frozen=True, kw_only=True):
    """A port on which a daemon of a node listens; 0 if it is not known."""

    port: int = field(default=0, name="Port")


class DaemonEndpoints(View, frozen=True, kw_only=True):
    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeStatus(View, frozen=True, kw_only=True):
    capacity: Quantities = field(default_factory=dict)
    declared_features: tuple[str, ...] = ()
    allocatable: Quantities = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: DaemonEndpoints = DaemonEndpoints()


class NodeView(ObjectView, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its Ready condition is True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def internal_ip(self) -> str:
        """Its first internal address, or empty."""
        return next((address.address for address in self.status.addresses if address.type == "InternalIP"), "")
