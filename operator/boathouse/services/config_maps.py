"""Write ConfigMaps in the operator's namespace that belong to the operator."""

from collections.abc import Mapping
from typing import Any, Final

from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names

CONFIG_MAPS: Final = catalogue.CONFIG_MAPS.untyped()


async def write(api: client.ApiClient, name: str, namespace: str, content: Mapping[str, Any]) -> None:
    """Replace a ConfigMap, or create it.

    Args:
        api: The API server.
        name: Name of the ConfigMap.
        namespace: The operator's namespace.
        content: Its `data` or `binaryData`.

    Raises:
        errors.ClusterError: The write failed.
    """
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.APP_MANAGED_BY: names.MANAGER, names.APP_PART_OF: "boathouse"},
        },
        **content,
    }
    try:
        await api.replace(CONFIG_MAPS, name, manifest, namespace)
    except errors.NotFound:
        await api.create(CONFIG_MAPS, manifest, namespace)
