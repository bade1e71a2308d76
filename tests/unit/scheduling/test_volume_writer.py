"""Claims and volumes are bound before a pod: what is written, and what ends the wait."""

import dataclasses

import pytest
from msgspec import structs

from boathouse.cluster import errors, views
from boathouse.scheduling import outcomes
from boathouse.scheduling.volumes import book as volume_book, rules
from boathouse.scheduling.volumes.objects import FAILED, PROVISIONING_FAILED, VolumeWriter
from tests.builders import manifests

N1 = "n1"


class PatchServer:
    """Answers patches, and leads as long as it should."""

    def __init__(self, *answers: object) -> None:
        self.patches: list[tuple[str, str, dict, tuple]] = []
        self.answers, self.leads = list(answers), True

    def valid(self) -> bool:
        return self.leads

    async def patch(self, resource, name, patch, *namespace):
        self.patches.append((resource.plural, name, patch, namespace))
        answer = self.answers.pop(0) if self.answers else 7
        if isinstance(answer, Exception):
            raise answer
        return manifests.claim_view(revision=answer)


def promise(*, volume: str = "", provision: bool = False) -> volume_book.Promise:
    bindings = rules.Bindings(
        volumes=((("demo/c", volume),) if volume else ()), provisions=(("demo/c",) if provision else ())
    )
    return volume_book.Promise(node=N1, claims=("demo/c",), bindings=bindings)


def writing(server: PatchServer, *objects) -> VolumeWriter:
    known = dataclasses.replace(
        rules.Storage(),
        claims={one.metadata.key: one for one in objects if isinstance(one, views.ClaimView)},
        volumes={one.metadata.name: one for one in objects if isinstance(one, views.VolumeView)},
    )
    return VolumeWriter(server, server, volume_book.VolumeBook(known))


async def test_claims_that_are_bound_need_no_write():
    server = PatchServer()
    assert await writing(server, manifests.claim_view(volume="v")).prepare(promise(volume="v")) is None
    assert server.patches == []


@pytest.mark.parametrize("fields", [{"volume": "v"}, {"provision": True}])
async def test_a_former_leader_writes_nothing(fields):
    server = PatchServer()
    server.leads = False
    found = await writing(server, manifests.claim_view(), manifests.volume_view()).prepare(promise(**fields))
    assert found == outcomes.Fenced(message="the lease could not be renewed in time")
    assert server.patches == []


async def test_a_volume_is_given_to_its_claim():
    server = PatchServer(9)
    volume = manifests.volume_view()
    volume = structs.replace(volume, metadata=structs.replace(volume.metadata, resource_version="4"))
    assert await writing(server, manifests.claim_view(), volume).prepare(promise(volume="v")) == {("volume", "v"): 9}
    ((plural, name, patch, namespace),) = server.patches
    assert (plural, name, namespace) == ("persistentvolumes", "v", ())
    assert patch == {
        "metadata": {"resourceVersion": "4", "annotations": {views.BOUND_BY_CONTROLLER: "yes"}},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "uid": "c",
                "namespace": "demo",
                "name": "c",
            }
        },
    }


async def test_a_volume_that_another_reserved_for_the_claim_is_not_marked_as_ours():
    server = PatchServer()
    await writing(server, manifests.claim_view(), manifests.volume_view(claim="c")).prepare(promise(volume="v"))
    assert "annotations" not in server.patches[0][2]["metadata"]


async def test_a_volume_that_its_claim_has_is_not_written_again():
    server = PatchServer()
    volume = manifests.volume_view(claim="c")
    reference = structs.replace(volume.spec.claim_ref, uid="c")
    volume = structs.replace(volume, spec=structs.replace(volume.spec, claim_ref=reference))
    found = await writing(server, manifests.claim_view(), volume).prepare(promise(volume="v"))
    assert (found, server.patches) == ({("volume", "v"): 0}, [])


async def test_a_claim_is_provisioned_for_the_node():
    server = PatchServer(9)
    found = await writing(server, manifests.claim_view(revision=3)).prepare(promise(provision=True))
    assert found == {("claim", "demo/c"): 9}
    patch = {"metadata": {"resourceVersion": "3", "annotations": {views.SELECTED_NODE: N1}}}
    assert server.patches == [("persistentvolumeclaims", "c", patch, ("demo",))]


async def test_a_claim_that_is_provisioned_for_the_node_already_is_not_written_again():
    server = PatchServer()
    found = await writing(server, manifests.claim_view(node=N1)).prepare(promise(provision=True))
    assert (found, server.patches) == ({("claim", "demo/c"): 0}, [])


@pytest.mark.parametrize("fields", [{"volume": "v"}, {"provision": True}])
async def test_a_claim_that_was_deleted_is_an_outcome(fields):
    found = await writing(PatchServer()).prepare(promise(**fields))
    assert isinstance(found, outcomes.NotDone)
    assert (found.reason, "deleted" in found.message) == (FAILED, True)


async def test_a_refused_write_is_an_outcome():
    refused = PatchServer(errors.Conflict(409, "Conflict", "changed"))
    found = await writing(refused, manifests.claim_view()).prepare(promise(provision=True))
    assert isinstance(found, outcomes.NotDone)
    assert found.message.startswith("the pod's volumes were not bound: ")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (manifests.claim_view(node=N1, revision=9), None),
        (manifests.claim_view(revision=8), None),  # older than the write
        (manifests.claim_view(revision=9), PROVISIONING_FAILED),
        (manifests.claim_view(node="n2", revision=9), PROVISIONING_FAILED),
        (manifests.claim_view(volume="v", revision=9), None),
        (None, FAILED),
    ],
)
def test_a_claim_that_is_not_provisioned_for_the_node_any_more_fails(claim, reason):
    known = [] if claim is None else [claim]
    found = writing(PatchServer(), *known).failure(promise(provision=True), {("claim", "demo/c"): 9})
    assert (found and found.reason) == reason


@pytest.mark.parametrize(
    ("revision", "uid", "has_failed"), [("9", "c", False), ("9", "", True), ("8", "", False), (None, "", True)]
)
def test_a_volume_that_is_not_given_to_the_claim_any_more_fails(revision, uid, has_failed):
    volume = manifests.volume_view(claim="c")
    spec = structs.replace(volume.spec, claim_ref=structs.replace(volume.spec.claim_ref, uid=uid))
    volume = structs.replace(
        volume, spec=spec, metadata=structs.replace(volume.metadata, resource_version=revision or "")
    )
    known = [] if revision is None else [volume]
    found = writing(PatchServer(), *known).failure(promise(volume="v"), {("volume", "v"): 9})
    assert (found is not None) is has_failed
