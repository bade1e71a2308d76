"""Objects of storage in the API: what is watched, and the claims that are bound before a pod itself.

An available volume gets its claim (`spec.claimRef`), a claim to provision gets its node (annotation selected-node).
Both writes have the resourceVersion of the decision as a precondition, so that of two writers the first wins. The
volume controller and the provisioner complete the binding.
"""

from typing import Any

from boathouse.cluster import boundary, catalogue, client, election, errors, informer, retries, views
from boathouse.scheduling import outcomes, transforms
from boathouse.scheduling.pods import translate
from boathouse.scheduling.volumes import book, rules
from boathouse_policies import model


def watches(api: client.ApiClient, aside: boundary.Boundary) -> tuple[rules.Storage, dict[str, informer.Informer[Any]]]:
    """Return the objects of storage, and the seven watches that keep them current, by plural.

    They are cluster-wide: pods of all schedulers and namespaces count against the volume limits of nodes.
    """
    resources: dict[str, catalogue.Resource[Any]] = {
        "claims": views.CLAIMS,
        "volumes": views.VOLUMES,
        "classes": views.CLASSES,
        "csi_nodes": views.CSI_NODES,
        "drivers": views.CSI_DRIVERS,
        "capacities": views.CAPACITIES,
        "attachments": views.ATTACHMENTS,
    }
    made: dict[str, informer.Informer[Any]] = {
        field: informer.Informer(api, resource, transform=transforms.claim if field == "claims" else None, aside=aside)
        for field, resource in resources.items()
    }
    objects = rules.Storage(**{field: watch.objects for field, watch in made.items()})
    return objects, {resource.plural: made[field] for field, resource in resources.items()}


FAILED = "VolumeBindingFailed"
PROVISIONING_FAILED = "VolumeProvisioningFailed"
TIMED_OUT = "VolumeBindingTimedOut"


class VolumeWriter:
    """Binds pods' volumes."""

    def __init__(self, api: client.ApiClient, leader: election.LeaderElection, book: book.VolumeBook) -> None:
        self._api, self._leader, self._book = api, leader, book

    async def prepare(self, promise: book.Promise) -> book.Revisions | outcomes.NotDone | outcomes.Fenced | None:
        """Write the bindings of a reservation; return None if all its claims are bound."""
        if self.is_bound(promise):
            return None
        revisions: book.Revisions = {}
        try:
            for key, volume in (*promise.bindings.volumes, *((key, None) for key in promise.bindings.provisions)):
                if not self._leader.valid():
                    return outcomes.Fenced(message="the lease could not be renewed in time")
                if volume is None:
                    revisions["claim", key] = await self._select(key, promise.node)
                else:
                    revisions["volume", volume] = await self._give(volume, key)
        except errors.ClusterError as error:
            return outcomes.NotDone(reason=FAILED, message=f"the pod's volumes were not bound: {error}")
        return revisions

    async def _give(self, name: str, key: str) -> int:
        """Reserve a volume for its claim, unless it is."""
        volume, claim = self._book.storage.volumes.get(name), self._book.storage.claims.get(key)
        if volume is None or claim is None:
            raise errors.ConnectionLost(f"the volume {name} or the claim {key} was deleted")
        if (reference := volume.spec.claim_ref) is not None and reference.uid == claim.metadata.uid:
            return 0
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
        if reference is None:  # else somebody else reserved it for the claim, and may keep it so after its deletion
            metadata["annotations"] = {views.BOUND_BY_CONTROLLER: "yes"}
        whom = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": claim.metadata.uid}
        whom |= {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
        patch = {"metadata": metadata, "spec": {"claimRef": whom}}
        made = await retries.retrying(lambda: self._api.patch(views.VOLUMES, name, patch), idempotent=True)
        return int(made.metadata.resource_version)

    async def _select(self, key: str, node: model.NodeName) -> int:
        """Request the provisioning of a claim's volume for a node, unless it was requested."""
        if (claim := self._book.storage.claims.get(key)) is None:
            raise errors.ConnectionLost(f"the claim {key} was deleted")
        if claim.metadata.annotations.get(views.SELECTED_NODE) == node:
            return 0
        namespace, _, name = key.partition("/")
        metadata = {"resourceVersion": claim.metadata.resource_version, "annotations": {views.SELECTED_NODE: node}}
        made = await retries.retrying(
            lambda: self._api.patch(views.CLAIMS, name, {"metadata": metadata}, namespace), idempotent=True
        )
        return int(made.metadata.resource_version)

    def is_bound(self, promise: book.Promise) -> bool:
        """Return whether all claims are bound."""
        claims = (self._book.storage.claims.get(key) for key in promise.claims if translate.handle_of(key) is None)
        return all(claim is not None and claim.is_bound for claim in claims)

    def failure(self, promise: book.Promise, revisions: book.Revisions) -> outcomes.NotDone | None:
        """Return the error since the write, as far as the watches show it, or None."""
        for key in promise.bindings.provisions:
            if (claim := self._book.storage.claims.get(key)) is None:
                return outcomes.NotDone(reason=FAILED, message=f"the claim {key} was deleted")
            if int(claim.metadata.resource_version) < revisions.get(("claim", key), 0) or claim.is_bound:
                continue
            if claim.metadata.annotations.get(views.SELECTED_NODE) != promise.node:
                return outcomes.NotDone(
                    PROVISIONING_FAILED,
                    f"no volume could be provisioned for the claim {key} on {promise.node}: check the claim's events",
                )
        for key, name in promise.bindings.volumes:
            volume = self._book.storage.volumes.get(name)
            if volume is None or (
                int(volume.metadata.resource_version) >= revisions.get(("volume", name), 0)
                and (volume.spec.claim_ref is None or not volume.spec.claim_ref.uid)
            ):
                return outcomes.NotDone(FAILED, f"the volume {name} was bound to another claim before {key}")
        return None
