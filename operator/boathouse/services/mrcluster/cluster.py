"""An MRCluster as the services see it, with every default decided.

`from_resource` creates a cluster, or returns a `Refusal` with a message for the user.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import pydantic

from boathouse.resources import names, quantity, statuses
from boathouse.resources.config import HadoopDefaults, OperatorConfig
from boathouse.resources.mrcluster.nodes import MasterResources, NodeResources
from boathouse.resources.mrcluster.spec import MRClusterSpec
from boathouse.resources.mrcluster.status import MRCluster
from boathouse.services.frame import queues
from boathouse.services.frame.kind import Body, ObjectUid, Refusal
from boathouse.services.hadoop import directory

MRCLUSTERS: Final = directory.MRCLUSTERS
DEFAULT_REPLICATION: Final = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a node's pod requests, which is also its limit."""

    cpu_milli: int
    memory_bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A valid MRCluster.

    Attributes:
        replication: Copies of each block of new files.
        deleting_since_s: When it was deleted; it stays until its finalizers are gone.
    """

    uid: ObjectUid
    name: str
    namespace: str
    created_s: float
    generation: int
    spec: MRClusterSpec
    queue: str
    image: str
    master: Requests
    core: Requests
    transient: Requests
    replication: int
    defaults: HadoopDefaults
    operator_namespace: str
    deleting_since_s: float | None = None

    @property
    def priority_class(self) -> str:
        """Return the PriorityClass of its pods; empty for the default of Kubernetes."""
        return _priority_class(self.spec)

    @property
    def most_core_nodes(self) -> int:
        """Return up to how many core nodes its policy may go."""
        return self.spec.core.maximum or self.spec.core.count


def from_resource(body: Body, config: OperatorConfig, defaults: HadoopDefaults) -> Cluster | Refusal:
    """Return the cluster that a custom resource describes, or why it cannot run."""
    try:
        spec = MRCluster.model_validate({"spec": body.get("spec")}).spec  # the status is another version's too
        return _cluster(body, spec, config, defaults)
    except pydantic.ValidationError as error:
        problems = "; ".join(f"spec.{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return Refusal(reason=names.Reason.INVALID_SPEC, message=problems)
    except (ValueError, ArithmeticError) as error:  # ArithmeticError: quantities with exponents of a dozen digits
        return Refusal(reason=names.Reason.INVALID_SPEC, message=str(error))


def _cluster(body: Body, spec: MRClusterSpec, config: OperatorConfig, defaults: HadoopDefaults) -> Cluster | Refusal:
    metadata = body["metadata"]
    queue = queues.admitting(config, metadata["namespace"], asked=spec.queue, priority_class=_priority_class(spec))
    if isinstance(queue, Refusal):
        return queue
    image = spec.image or defaults.image
    if not image:
        return Refusal(
            reason=names.Reason.INVALID_SPEC, message="no image: set spec.image, or the chart's Hadoop image"
        )
    for amount in (
        spec.master.volume.size,
        spec.core.volume.size,
        spec.core.scratch,
        spec.transient.scratch,
        spec.hdfs.block_size,
    ):
        quantity.units(amount)
    return Cluster(
        uid=ObjectUid(metadata["uid"]),
        name=metadata["name"],
        namespace=metadata["namespace"],
        created_s=statuses.epoch(metadata["creationTimestamp"]) or 0.0,
        generation=metadata.get("generation", 1),
        spec=spec,
        queue=queue,
        image=image,
        master=_requests(spec.master.resources),
        core=_requests(spec.core.resources),
        transient=_requests(spec.transient.resources),
        replication=spec.hdfs.replication or _default_replication(spec, body.get("status") or {}),
        defaults=defaults,
        operator_namespace=config.namespace,
        deleting_since_s=statuses.epoch(metadata.get("deletionTimestamp")),
    )


def _default_replication(spec: MRClusterSpec, status: Mapping[str, Any]) -> int:
    """Return the replication by the first number of core nodes, so that it does not change as the cluster grows."""
    first = status.get("firstCoreNodes")
    return min(DEFAULT_REPLICATION, first if isinstance(first, int) and first > 0 else spec.core.count)


def _requests(resources: MasterResources | NodeResources) -> Requests:
    return Requests(cpu_milli=quantity.milli(resources.cpu), memory_bytes=quantity.units(resources.memory))


def _priority_class(spec: MRClusterSpec) -> str:
    return (spec.pod_template and spec.pod_template.priority_class_name) or ""
