# ruff: noqa: D101 - the names are Kubernetes' own
"""Models of storage, quotas and device classes, and their paths: as in `wire`, only fields that the operator uses."""

from msgspec import field

from boathouse.cluster import wire
from boathouse.cluster.catalogue import Resource

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimSpec(wire.View, frozen=True, kw_only=True):
    """`spec` of a claim; `volume_name` is set when it is bound or reserved."""

    volume_name: str = ""
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    resources: wire.ResourceRequirements = wire.ResourceRequirements()
    selector: wire.LabelSelector | None = None


class Phase(wire.View, frozen=True, kw_only=True):
    """`status` with only its phase."""

    phase: str = ""


class ClaimView(wire.ObjectView, frozen=True, kw_only=True):
    spec: ClaimSpec = ClaimSpec()
    status: Phase = Phase()

    @property
    def is_bound(self) -> bool:
        """Whether claim and volume are bound to each other."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def storage_class(self) -> str:
        """Name of its StorageClass, or empty."""
        return self.metadata.annotations.get(CLASS_ANNOTATION) or self.spec.storage_class_name


class VolumeNodeAffinity(wire.View, frozen=True, kw_only=True):
    required: wire.NodeSelector | None = None


class CsiSource(wire.View, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(wire.DiskSource, frozen=True, kw_only=True):
    """`spec` of a volume. Without a UID, its claim is that for which it is reserved."""

    capacity: wire.Quantities = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: wire.Identity | None = None
    csi: CsiSource | None = None


class VolumeView(wire.ObjectView, frozen=True, kw_only=True):
    spec: VolumeSpec = VolumeSpec()
    status: Phase = Phase()


class TopologyRequirement(wire.View, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(wire.View, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class ClassView(wire.ObjectView, frozen=True, kw_only=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()

    @property
    def waits_for_consumer(self) -> bool:
        """Whether its volumes are bound or provisioned on the node of their first pod (WaitForFirstConsumer)."""
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


class VolumeCount(wire.View, frozen=True, kw_only=True):
    """Maximum volumes of a driver on a node; None: no limit."""

    count: int | None = None


class NodeDriver(wire.View, frozen=True, kw_only=True):
    name: str = ""
    allocatable: VolumeCount | None = None


class CsiNodeSpec(wire.View, frozen=True, kw_only=True):
    """`spec` of a CSINode; the server sends null for a node without drivers."""

    drivers: tuple[NodeDriver, ...] | None = None


class CsiNodeView(wire.ObjectView, frozen=True, kw_only=True):
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(wire.View, frozen=True, kw_only=True):
    storage_capacity: bool = False


class CsiDriverView(wire.ObjectView, frozen=True, kw_only=True):
    spec: CsiDriverSpec = CsiDriverSpec()


class CapacityView(wire.ObjectView, frozen=True, kw_only=True):
    """A CSIStorageCapacity: capacity that a driver can still provision for a class, and its nodes."""

    storage_class_name: str = ""
    capacity: str = ""
    maximum_volume_size: str = ""
    node_topology: wire.LabelSelector | None = None


class AttachmentSource(wire.View, frozen=True, kw_only=True):
    persistent_volume_name: str = ""


class AttachmentSpec(wire.View, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class AttachmentView(wire.ObjectView, frozen=True, kw_only=True):
    spec: AttachmentSpec = AttachmentSpec()


_GROUP = "storage.k8s.io"
CLAIMS = Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", view=ClaimView)
VOLUMES = Resource(plural="persistentvolumes", kind="PersistentVolume", namespaced=False, view=VolumeView)
CLASSES = Resource(group=_GROUP, plural="storageclasses", kind="StorageClass", namespaced=False, view=ClassView)
CSI_NODES = Resource(group=_GROUP, plural="csinodes", kind="CSINode", namespaced=False, view=CsiNodeView)
CSI_DRIVERS = Resource(group=_GROUP, plural="csidrivers", kind="CSIDriver", namespaced=False, view=CsiDriverView)
CAPACITIES = Resource(group=_GROUP, plural="csistoragecapacities", kind="CSIStorageCapacity", view=CapacityView)
ATTACHMENTS = Resource(
    group=_GROUP, plural="volumeattachments", kind="VolumeAttachment", namespaced=False, view=AttachmentView
)


class ScopeRequirement(wire.View, frozen=True, kw_only=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(wire.View, frozen=True, kw_only=True):
    match_expressions: tuple[ScopeRequirement, ...] = ()


class QuotaSpec(wire.View, frozen=True, kw_only=True):
    hard: dict[str, str] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class QuotaStatus(wire.View, frozen=True, kw_only=True):
    """``status`` of a quota: empty until its controller has counted."""

    hard: dict[str, str] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)


class QuotaView(wire.ObjectView, frozen=True, kw_only=True):
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


QUOTAS = Resource(plural="resourcequotas", kind="ResourceQuota", view=QuotaView)


class DeviceClassSpec(wire.View, frozen=True, kw_only=True):
    extended_resource_name: str = ""


class DeviceClassView(wire.ObjectView, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


DEVICE_CLASSES = Resource(
    group="resource.k8s.io", plural="deviceclasses", kind="DeviceClass", namespaced=False, view=DeviceClassView
)
