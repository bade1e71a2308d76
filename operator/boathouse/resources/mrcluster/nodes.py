"""The nodes of a cluster, their volumes and their number, by the policies and constants of Koala's MapReduce runner."""

from typing import Annotated, Final, Literal

from pydantic import Field
from pydantic.config import JsonDict

from boathouse.resources.base import Cpu, Model, Quantity, amount, checked, holds, optional, rule, whole

MAX_CORE, MAX_TRANSIENT = 200, 500
MasterMemory = Annotated[int | str, amount("1Gi", "the master runs four JVMs")]
NodeMemory = Annotated[int | str, amount("768Mi", "a node runs its daemons and at least one container")]
VolumeSize = Annotated[int | str, amount("16Mi", "Hadoop stops below a few MiB of free space")]
Scratch = Annotated[Quantity, Field(description="Size limit of the emptyDir for files of running containers.")]


class Volume(Model):
    """The volume of a node's data."""

    model_config = checked(
        rule(
            "self.emptyDir || !has(self.medium) || self.medium == ''", "medium is for a volume with emptyDir: remove it"
        ),
        rule(
            "!self.emptyDir || !has(self.storageClassName)",
            "a volume with emptyDir has no storageClassName: remove one of the two",
        ),
    )
    size: VolumeSize = Field(default="10Gi", description="Of the claim, or the size limit of the emptyDir.")
    storage_class_name: Annotated[str, Field(max_length=253)] | None = optional(
        "Of the claim. Absent: the default StorageClass."
    )
    empty_dir: bool = Field(
        default=False,
        description="For tests: an emptyDir in the place of a claim. The data live as long as the pod. Needs "
        "dataPolicy: Delete.",
    )
    medium: Literal["", "Memory"] = Field(default="", description="Of the emptyDir.")


def _immutable(field: str) -> JsonDict:
    return holds("self == oldSelf", f"spec.{field} is immutable: delete and recreate the cluster")


class MasterResources(Model):
    """Requests and limits of the master's pod."""

    cpu: Cpu = Field(
        default="500m", description="CPU request of the pod. Each of its containers may use as much at the same time."
    )
    memory: MasterMemory = Field(
        default="2Gi",
        description="Memory request of the pod. The heaps of the daemons follow from it. With YARN at least 1344Mi.",
    )


class NodeResources(Model):
    """Requests and limits of the pod of a node."""

    cpu: Cpu = Field(default="1", description="YARN offers as many virtual cores, rounded up.")
    memory: NodeMemory = Field(default="2Gi", description="YARN offers what the daemons leave.")


class Master(Model):
    """The master: NameNode, ResourceManager and JobHistoryServer."""

    model_config = checked(
        rule(
            "!isQuantity(string(self.volume.size)) || "
            "quantity(string(self.volume.size)).compareTo(quantity('256Mi')) >= 0",
            "master.volume.size is less than 256Mi: the NameNode stays in safe mode below 100 MiB of free space",
        )
    )
    resources: MasterResources = whole(MasterResources)
    volume: Volume = whole(
        Volume,
        "Holds the NameNode's image, the ResourceManager's state and the names of nodes that leave. The "
        "job history is in HDFS.",
        _immutable("master.volume"),
    )


class Core(Model):
    """The core nodes: DataNode and NodeManager, each on a node of its own."""

    model_config = checked(
        rule("!has(self.maximum) || self.count <= self.maximum", "core.count is more than core.maximum: lower it")
    )
    count: int = Field(
        default=3,
        ge=1,
        le=MAX_CORE,
        description="May be raised, and lowered again down to the count that the cluster started with.",
    )
    maximum: int | None = optional("Up to which the policy GGDP adds core nodes. Absent: count.", ge=1, le=MAX_CORE)
    resources: NodeResources = whole(NodeResources)
    volume: Volume = whole(Volume, "Holds the blocks of the DataNode.", _immutable("core.volume"))
    scratch: Scratch = "10Gi"


class Transient(Model):
    """The transient nodes: NodeManagers without HDFS, which come and go with the load."""

    model_config = checked(
        rule("self.minimum <= self.maximum", "transient.minimum is more than transient.maximum: lower it")
    )
    minimum: int = Field(
        default=0,
        ge=0,
        le=MAX_TRANSIENT,
        description="Transient nodes that the cluster has at any load. With the policies Static and GGDP: the number.",
    )
    maximum: int = Field(
        default=0,
        ge=0,
        le=MAX_TRANSIENT,
        description="Up to which GSP and GGP add transient nodes; more than the minimum there.",
    )
    resources: NodeResources = whole(NodeResources)
    scratch: Scratch = "10Gi"


Policy = Literal["Static", "GSP", "GGP", "GGDP"]
GSP_PERIOD_S, GREEDY_PERIOD_S = 30, 120
_STEP: Final = "(self.growBy > self.shrinkBy ? self.growBy : self.shrinkBy)"


class Resizing(Model):
    """The policy that changes the number of nodes. F is (running + pending containers) / slots."""

    model_config = checked(
        rule(
            f"self.shrinkBelowPercent * (1 + {_STEP}) <= self.growAbovePercent",
            "resizing: growAbovePercent is less than shrinkBelowPercent * (1 + the larger of growBy and shrinkBy), "
            "so a cluster of one node would grow and shrink in turn: raise growAbovePercent",
        )
    )
    policy: Policy = Field(
        default="Static",
        description="Static: transient.minimum nodes. GSP: grows and shrinks by F. GGP: accepts "
        "every offer of nodes, and gives them back when it has no application. GGDP: as GGP, with core nodes.",
    )
    grow_above_percent: int = Field(default=150, ge=1, le=100_000, description="GSP accepts offers while F is above.")
    shrink_below_percent: int = Field(
        default=25, ge=1, le=100_000, description="GSP gives nodes back while F is below."
    )
    grow_by: int = Field(default=5, ge=1, le=50, description="The most nodes that GSP accepts of an offer.")
    shrink_by: int = Field(default=2, ge=1, le=50, description="The most nodes that GSP gives back at a time.")
    offer_nodes: int = Field(default=2, ge=1, le=50, description="The size of an offer to GGP and GGDP.")
    period_seconds: int | None = optional(
        f"Between two offers. Absent: {GSP_PERIOD_S} with GSP, {GREEDY_PERIOD_S} with GGP and GGDP.", ge=5, le=3600
    )
    drain_timeout_seconds: int = Field(
        default=300,
        ge=0,
        le=86400,
        description="How long the containers of a transient node that leaves may run on. Core nodes have no timeout: "
        "they leave when their blocks are copied.",
    )

    @property
    def period_s(self) -> int:
        """Return the seconds between two offers to the cluster."""
        return self.period_seconds or (GSP_PERIOD_S if self.policy == "GSP" else GREEDY_PERIOD_S)
