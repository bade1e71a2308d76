"""Disks that a pod or a volume names itself, without a CSI driver: which pods share them, and how they are counted.

Kubelets hand disks of clouds to CSI drivers, so they count against the drivers' limits of a node, with the names of
their volumes by Kubernetes' rules of migration.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boathouse.cluster import wire

MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}
"""The CSI driver of each provisioner whose disks it attaches."""
_EBS, _GCE, _AZURE, _CINDER = MIGRATED.values()
_UNSPECIFIED = "UNSPECIFIED"
_NAME_LENGTH = 253
_HANDLE_LENGTH = 512
"""Maximum length of a driver and the name of its volume. The URI of an Azure disk with two long names has 272."""
_DIGEST_BYTES = 16


def attached(source: wire.DiskSource, zones: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return (driver, volume) of a disk that a CSI driver attaches; None without one.

    Args:
        source: What names the disk.
        zones: The zones that the volume's label names.
    """
    if source.aws_elastic_block_store is not None:
        return _EBS, source.aws_elastic_block_store.volume_id.rpartition("/")[2]
    if source.gce_persistent_disk is not None:
        return _GCE, f"projects/{_UNSPECIFIED}/{_place(zones)}/disks/{source.gce_persistent_disk.pd_name}"
    if source.azure_disk is not None:
        return _AZURE, source.azure_disk.disk_uri
    return None if source.cinder is None else (_CINDER, source.cinder.volume_id)


def _place(zones: Sequence[str]) -> str:
    if len(zones) > 1:
        return f"regions/{zones[0].rpartition('-')[0]}"
    return f"zones/{zones[0] if zones else _UNSPECIFIED}"


def attached_inline(spec: wire.PodSpec) -> Iterator[str]:
    """Yield each disk that a pod names itself and that a CSI driver attaches, as driver/volume."""
    for volume in spec.volumes:
        if (disk := attached(volume)) is not None:
            yield "/".join(disk)[:_HANDLE_LENGTH]


def handle_of(key: str) -> tuple[str, str] | None:
    """Return (driver, volume) of a disk's key; None for namespace/name of a claim, as namespaces have no dots."""
    driver, _, volume = key.partition("/")
    return (driver, volume) if "." in driver else None


def unshared(spec: wire.PodSpec) -> Iterator[model.HostPort]:
    """Yield the disks of which a node has one: its pods share them at most for reading, EBS volumes never."""
    for volume in spec.volumes:
        if (gce := volume.gce_persistent_disk) is not None:
            yield _unshared("gce", gce.pd_name, is_shared=gce.read_only)
        if (ebs := volume.aws_elastic_block_store) is not None:
            yield _unshared("ebs", ebs.volume_id, is_shared=False)
        if (iscsi := volume.iscsi) is not None:
            yield _unshared("iscsi", iscsi.iqn, is_shared=iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in rbd.monitors:
                yield _unshared("rbd", f"{monitor}/{rbd.pool}/{rbd.image}", is_shared=rbd.read_only)


def _unshared(kind: str, name: str, *, is_shared: bool) -> model.HostPort:
    return model.HostPort(port=0, protocol=_short(f"{model.DISK}{kind}/{name}"), is_shared=is_shared)


def _short(name: str) -> str:
    """Return a name, or the start of a long one and its digest: pods on nodes keep a bounded part of it only."""
    if len(name) <= _NAME_LENGTH:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return name[: _NAME_LENGTH - len(digest)] + digest
