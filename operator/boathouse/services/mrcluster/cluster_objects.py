"""Create what the pods of a cluster need: the Service, the settings, claims and NetworkPolicies.

An object of another owner that has a name of the cluster's, or a write that the API server refuses, holds the pods that
need the object, and no others.
"""

from collections.abc import Awaitable, Collection
from typing import Final

from boathouse.cluster import catalogue, errors, wire
from boathouse.resources.mrcluster.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.frame.writes import Writes
from boathouse.services.mrcluster import claims, objects
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.settings.files import Rendered

_CONFIG_MAP: Final = "config-map"
_NETWORK_POLICY: Final = "network-policy"


async def ensure_settings(cluster: Cluster, rendered: Rendered, writes: Writes) -> Problem | None:
    """Create the ConfigMap of settings; returns why pods with them must not be created yet, or None."""
    config_map = objects.config_map(cluster, rendered)
    return await _checked(writes.ensure(catalogue.CONFIG_MAPS, config_map, _CONFIG_MAP))


async def ensure_claim(cluster: Cluster, host: str, writes: Writes) -> Problem | None:
    """Create the claim of a host; returns why its pod must not be created yet, or None."""
    claim = claims.build(cluster, host)
    return await _checked(writes.ensure(catalogue.PERSISTENT_VOLUME_CLAIMS, claim, "claim"))


async def apply_network(cluster: Cluster, writes: Writes) -> Problem | None:
    """Make the NetworkPolicies those of the spec, and create the Service; returns why they are not, or None."""
    for policy in objects.network_policies(cluster):
        problem = await _checked(writes.apply(catalogue.NETWORK_POLICIES, policy, _NETWORK_POLICY))
        if problem is not None:
            return problem
    for policy in objects.removed_policies(cluster):
        await writes.remove(catalogue.NETWORK_POLICIES, policy, _NETWORK_POLICY)
    return await _checked(writes.ensure(catalogue.SERVICES, objects.service(cluster), "service"))


async def remove_settings(cluster: Cluster, digests: Collection[str], writes: Writes) -> None:
    """Delete the ConfigMaps of settings that no pod has any more."""
    for digest in sorted(digests):
        config_map = {"metadata": objects.metadata(cluster, Names(cluster).config_map(digest))}
        await writes.remove(catalogue.CONFIG_MAPS, config_map, _CONFIG_MAP)


async def _checked(write: Awaitable[wire.Manifest | None]) -> Problem | None:
    try:
        found = await write
    except (errors.Forbidden, errors.Invalid) as error:  # a quota, a policy
        return Problem(reason=Reason.WRITE_REFUSED, message=error.message)
    return None if found is None else _taken(found)


def _taken(found: wire.Manifest) -> Problem:
    kind, name = found.get("kind", "object"), found["metadata"]["name"]
    message = f'there is a {kind} "{name}" that does not belong to this cluster: delete it'
    return Problem(reason=Reason.NAME_TAKEN, message=message)
