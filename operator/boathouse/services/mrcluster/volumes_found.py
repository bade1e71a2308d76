"""What became of a host's claim: whether its volume can still be mounted. Pure."""

from collections.abc import Iterable

from boathouse.scheduling.volumes import rules
from boathouse.services.mrcluster.planning.observation import ClaimFacts
from boathouse_policies import model


def of(objects: rules.Storage, nodes: Iterable[model.Node], claim: str) -> ClaimFacts | None:
    """Return the facts of a claim (namespace/name); None if it does not exist.

    A volume is tied if its node affinity names nodes, as that of a local volume does.
    """
    found = objects.claims.get(claim)
    if found is None:
        return None
    volume = objects.volumes.get(found.spec.volume_name) if found.is_bound else None
    affinity = volume.spec.node_affinity if volume else None
    if volume is None or affinity is None or affinity.required is None:
        return ClaimFacts(is_bound=found.is_bound)
    return ClaimFacts(is_bound=True, is_tied=True, node_exists=any(rules.reaches(volume, node) for node in nodes))
