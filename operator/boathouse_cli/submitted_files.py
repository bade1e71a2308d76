"""ConfigMaps with the files of a submission: its object owns them, so they go with it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from boathouse_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_cli import model
    from boathouse_cli.conversion.carried import Carried
    from boathouse_cli.gateway import Gateway


def create_with_files(
    gateway: Gateway, plural: str, manifest: dict[str, Any], carried: Carried, name: str
) -> model.Raw:
    """Create an object that begins when the ConfigMap of its files is there, which it owns.

    If this process ends halfway, a suspended object is left, and no ConfigMap that nobody owns.

    Args:
        gateway: Has the namespace.
        plural: Of the object's kind.
        manifest: Of the object.
        carried: Its files.
        name: From which the ConfigMap's name is made.

    Raises:
        CommandError: The cluster refuses one of them; then neither is left.
    """
    if not carried.files:
        return gateway.create_job(plural, manifest)
    made = gateway.create_job(plural, {**manifest, "spec": {**manifest["spec"], "suspend": True}})
    config_map = carried.manifest(name)
    config_map["metadata"]["ownerReferences"] = [_owner(made)]
    try:
        gateway.create_config_map(config_map)
        gateway.patch_job(plural, made["metadata"]["name"], {"spec": {"suspend": False}})
    except CommandError:
        with contextlib.suppress(CommandError):
            gateway.delete_job(plural, made["metadata"]["name"])
        raise
    return made


def share(gateway: Gateway, former: model.Raw, made: model.Raw) -> None:
    """Let an object own the ConfigMaps of a former one, with whose files it runs, as well."""
    for name in dict.fromkeys(_named(former["spec"])):
        config_map = gateway.config_map(name)
        owners = config_map["metadata"].get("ownerReferences") or []
        if any(each["uid"] == former["metadata"]["uid"] for each in owners):
            gateway.patch_config_map(name, {"metadata": {"ownerReferences": [*owners, _owner(made)]}})


def _named(spec: model.Raw) -> Iterator[str]:
    """Yield the names of ConfigMaps that files and volumes of a spec name."""
    for volume in spec.get("volumes") or ():
        if name := volume.get("configMapName"):
            yield name
    for file in spec.get("files") or ():
        if reference := file.get("configMapKeyRef"):
            yield reference["name"]


def _owner(raw: model.Raw) -> dict[str, str]:
    metadata = raw["metadata"]
    return {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "name": metadata["name"], "uid": metadata["uid"]}
