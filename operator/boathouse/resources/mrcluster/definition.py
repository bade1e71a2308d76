"""MRCluster as a CustomResourceDefinition."""

from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.mrcluster import names
from boathouse.resources.mrcluster.status import MRCluster


def _count(name: str, path: str, description: str, *, priority: int = 0) -> PrinterColumn:
    return PrinterColumn(name=name, type="integer", json_path=path, description=description, priority=priority)


MRCLUSTER = CustomResource(
    kind=names.KIND,
    plural=names.PLURAL,
    short_names=("mrc",),
    model=MRCluster,
    columns=(
        PrinterColumn(name="Phase", json_path=".status.phase", description="Phase of the cluster."),
        _count("Core", ".status.core.ready", "Core nodes that are ready."),
        _count("Transient", ".status.transient.ready", "Transient nodes that are ready."),
        _count("Load%", ".status.loadPercent", "Running and pending containers, of the slots."),
        PrinterColumn(name="Queue", json_path=".status.queue", description="Queue of the cluster."),
        PrinterColumn(name="Policy", json_path=".spec.resizing.policy", description="Resizing policy.", priority=1),
        PrinterColumn(name="Version", json_path=".spec.version", description="Version of Hadoop.", priority=1),
        _count("Used", ".status.hdfs.usedBytes", "Bytes used in HDFS.", priority=1),
        PrinterColumn(
            name="Reason", json_path=".status.reason", description="Why it is pending or degraded.", priority=1
        ),
        AGE,
    ),
)
