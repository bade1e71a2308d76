"""What the driver's pod and the executors' pods have in common: users, environment, volumes. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse.resources import quantity
from boathouse.services.frame import manifests
from boathouse.services.hadoop import clients
from boathouse.services.sparkapp.app import SPARKAPPS
from boathouse.services.sparkapp.submission import attempt_properties as attempts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse.resources.sparkapp.program import Volume
    from boathouse.resources.sparkapp.roles import Role
    from boathouse.services.frame.manifests import Manifest
    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.submission.naming import AttemptNames

USER: Final = 185
"""That of Spark's own images."""
USERS_FILE: Final = "passwd"
APP: Final = "spark"
LOCAL_DIR: Final = "/var/data/spark-local"
_LOCAL_VOLUME: Final = "spark-local-dir-1"
_FILES_VOLUME: Final = "boathouse-files"
_STORAGE_VOLUME: Final = "boathouse-storage"


def pod(
    app: App,
    attempt: AttemptNames,
    role: Role,
    account: str,
    metadata: Manifest,
    container: Manifest,
    *,
    is_protected: bool = False,
) -> Manifest:
    """Return a pod of either role with this container and, in addition to those of the role, this metadata."""
    annotations = {**(role.annotations or {}), **metadata.get("annotations", {})}
    return manifests.pod(
        {**metadata, "annotations": annotations},
        dataclasses.replace(app.template, service_account=account),
        user_id=USER,
        containers=[container],
        volumes=_volumes(app, attempt, role),
        tolerations=(*(app.spec.tolerations or ()), *(role.tolerations or ())),
        patience_s=app.defaults.not_ready_toleration_seconds,
        node_selector={**(app.spec.node_selector or {}), **(role.node_selector or {})},
        image_pull_secrets=app.defaults.image_pull_secrets,
        is_protected=is_protected,
    )


def labels(app: App, role: Role) -> dict[str, str]:
    """Return the labels that all pods of a role have."""
    return {**app.template.labels, **(role.labels or {}), **manifests.labels(APP, app)}


def metadata(app: App, name: str, labels: Mapping[str, str]) -> Manifest:
    """Return the metadata of an object that goes with the application."""
    return {
        "name": name,
        "namespace": app.namespace,
        "labels": dict(labels),
        "ownerReferences": [manifests.owner_reference(SPARKAPPS, app)],
    }


def users(app: App) -> str:
    """Return a passwd file that knows the user of the pods: Hadoop does not start without a name for it."""
    security = app.template.pod.security_context
    uid = (security.run_as_user if security else None) or USER
    gid = (security.run_as_group if security else None) or USER
    return f"root:x:0:0:root:/root:/bin/sh\nspark:x:{uid}:{gid}:spark:/opt/spark/work-dir:/bin/sh\n"


def environment(app: App, role: Role) -> list[Manifest]:
    """Return the variables of the application and of the role, the user of Hadoop, and the keys of the storage."""
    variables = {each.name: each for each in (*(app.spec.env or ()), *(role.env or ()))}
    found = {name: manifests.as_json(each) for name, each in variables.items()}
    if app.hadoop_clusters:
        found.setdefault(clients.USER_ENV, {"name": clients.USER_ENV, "value": clients.USER})
    if app.spec.storage and app.spec.storage.s3:
        found |= {each["name"]: each for each in app.spec.storage.s3.variables(found)}
    return list(found.values())


def extended_resources(role: Role) -> dict[str, str]:
    """Return the extended resources that the field of a role requests."""
    return {name: str(quantity.units(value)) for name, value in (role.extended_resources or {}).items()}


def ephemeral_storage(app: App, role: Role) -> dict[str, dict[str, str]]:
    """Return request and limit of local files, by `requests` and `limits`; empty for none."""
    default = app.defaults.ephemeral_storage
    request = quantity.units(role.ephemeral_storage) if role.ephemeral_storage is not None else default.request_bytes
    limit = max(default.limit_bytes, request) if default.limit_bytes else 0
    return {
        "requests": {"ephemeral-storage": quantity.format_bytes(request)} if request else {},
        "limits": {"ephemeral-storage": quantity.format_bytes(limit)} if limit else {},
    }


def mounts(app: App) -> list[Manifest]:
    """Return the mounts of both roles."""
    own: list[Manifest] = [
        {"name": _LOCAL_VOLUME, "mountPath": LOCAL_DIR},
        {"name": _FILES_VOLUME, "mountPath": "/etc/passwd", "subPath": USERS_FILE, "readOnly": True},
    ]
    if app.spec.storage and app.spec.storage.volume:
        own.append({"name": _STORAGE_VOLUME, "mountPath": app.spec.storage.volume.mount_path})
    for volume in app.spec.volumes or ():
        read_only = {"readOnly": True} if volume.read_only else {}
        own.append({"name": volume.name, "mountPath": volume.mount_path, **read_only})
    return own


def files_mount() -> Manifest:
    """Return the mount of the script that ends an executor."""
    return {"name": _FILES_VOLUME, "mountPath": attempts.FILES_PATH, "readOnly": True}


def _volumes(app: App, attempt: AttemptNames, role: Role) -> list[Manifest]:
    size = ephemeral_storage(app, role)["limits"].get("ephemeral-storage")
    items = [
        {"key": USERS_FILE, "path": USERS_FILE, "mode": 0o444},
        {"key": attempts.DECOMMISSION_FILE, "path": attempts.DECOMMISSION_FILE, "mode": 0o555},
    ]
    volumes: list[Manifest] = [
        {"name": _LOCAL_VOLUME, "emptyDir": {"sizeLimit": size} if size else {}},
        {"name": _FILES_VOLUME, "configMap": {"name": attempt.config_map, "items": items}},
    ]
    if app.spec.storage and app.spec.storage.volume:
        claim = {"claimName": app.spec.storage.volume.claim_name}
        volumes.append({"name": _STORAGE_VOLUME, "persistentVolumeClaim": claim})
    return [*volumes, *({"name": each.name, **_source(each)} for each in app.spec.volumes or ())]


def _source(volume: Volume) -> Manifest:
    if volume.claim_name:
        return {"persistentVolumeClaim": {"claimName": volume.claim_name}}
    if volume.config_map_name:
        return {"configMap": {"name": volume.config_map_name}}
    if volume.secret_name:
        return {"secret": {"secretName": volume.secret_name}}
    return {"emptyDir": {"sizeLimit": str(volume.empty_dir_size)}}
