"""Which nodes reach a pod's volumes, and what has to be written before it goes there."""

import dataclasses
import datetime as dt

import msgspec
import pytest

from boathouse.cluster import views, wire
from boathouse.scheduling.pods import translate
from boathouse.scheduling.volumes import book as volume_book, rules
from boathouse_policies import model
from tests.builders import manifests


def node(name: str, **labels: str) -> model.Node:
    known = {"kubernetes.io/hostname": name, **{key.replace("__", "/"): value for key, value in labels.items()}}
    return model.Node(name=model.NodeName(name), allocatable=model.Resources(), labels=known)


def on(host: str) -> views.VolumeNodeAffinity:
    here = wire.Requirement(key="kubernetes.io/hostname", operator="In", values=(host,))
    term = wire.NodeSelectorTerm(match_expressions=(here,))
    return views.VolumeNodeAffinity(required=wire.NodeSelector(node_selector_terms=(term,)))


def claim(
    name: str, *, volume: str = "", by: str = "late", size: str = "1Gi", selected: str = "", mode="ReadWriteOnce"
):
    annotations = {views.BIND_COMPLETED: "yes"} if volume else {}
    annotations |= {views.SELECTED_NODE: selected} if selected else {}
    meta = wire.ObjectMeta(name=name, namespace="ns", uid=name, annotations=annotations)
    asked = wire.ResourceRequirements(requests={"storage": size})
    spec = views.ClaimSpec(volume_name=volume, storage_class_name=by, access_modes=(mode,), resources=asked)
    return views.ClaimView(metadata=meta, spec=spec)


def volume(name: str, *, size: str = "1Gi", host: str = "", labels=None, for_claim: str = "", driver: str = ""):
    reference = wire.Identity(namespace="ns", name=for_claim) if for_claim else None
    spec = views.VolumeSpec(
        capacity={"storage": size},
        access_modes=("ReadWriteOnce",),
        storage_class_name="late",
        node_affinity=on(host) if host else None,
        claim_ref=reference,
        csi=views.CsiSource(driver=driver, volume_handle=name) if driver else None,
    )
    meta = wire.ObjectMeta(name=name, labels=labels or {})
    return views.VolumeView(metadata=meta, spec=spec, status=views.Phase(phase="Available"))


def judge(
    *objects, provisioner: str = views.NO_PROVISIONER, taken=None, csi_nodes=None, drivers=None, capacities=None
) -> rules.Judge:
    late = views.ClassView(
        metadata=wire.ObjectMeta(name="late"), provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer"
    )
    known = rules.Storage(
        claims={one.metadata.key: one for one in objects if isinstance(one, views.ClaimView)},
        volumes={one.metadata.name: one for one in objects if isinstance(one, views.VolumeView)},
        classes={"late": late},
        csi_nodes=csi_nodes or {},
        drivers=drivers or {},
        capacities=capacities or {},
        attachments={},
    )
    return rules.Judge(known, taken or {})


def test_the_smallest_volume_at_hand_that_is_large_enough_and_reached_is_chosen():
    at_hand = (volume("small", size="1Mi"), volume("far", host="n2"), volume("large", size="9Gi"), volume("fits"))
    found = judge(claim("c"), *at_hand).bindings(["ns/c"], node("n1"))
    assert found == rules.Bindings(volumes=(("ns/c", "fits"),))


def unknown(operator: str = "Near") -> wire.NodeSelector:
    here = wire.Requirement(key="zone", operator=operator, values=("a",))
    return wire.NodeSelector(node_selector_terms=(wire.NodeSelectorTerm(match_expressions=(here,)),))


def test_a_volume_that_cannot_be_represented_fits_nothing_and_keeps_no_other_from_a_claim():
    odd = volume("odd")
    elsewhere = msgspec.structs.replace(odd.spec, node_affinity=views.VolumeNodeAffinity(required=unknown()))
    poison = (
        volume("a-size", size="much"),
        msgspec.structs.replace(odd, metadata=wire.ObjectMeta(name="b-operator"), spec=elsewhere),
        volume("good", size="9Gi"),
    )
    assert judge(claim("c"), *poison).bindings(["ns/c"], node("n1")).volumes == (("ns/c", "good"),)
    assert judge(claim("c", size="1e999999999"), *poison).bindings(["ns/c"], node("n1")) == rules.NO_VOLUME


def test_two_claims_of_a_pod_get_two_volumes_the_small_claim_the_small_one():
    asked = judge(claim("big", size="2Gi"), claim("small"), volume("v1"), volume("v2", size="3Gi"))
    found = asked.bindings(["ns/big", "ns/small"], node("n1"))
    assert dict(found.volumes) == {"ns/small": "v1", "ns/big": "v2"}


def test_a_volume_that_was_promised_to_another_claim_is_not_at_hand():
    asked = judge(claim("c"), volume("v"), taken={"v": "ns/other"})
    assert asked.bindings(["ns/c"], node("n1")) == rules.NO_VOLUME


def test_a_volume_that_is_kept_for_the_claim_is_taken_though_another_is_smaller():
    kept = volume("kept", size="9Gi", for_claim="c")
    found = judge(claim("c"), volume("free"), kept).bindings(["ns/c"], node("n1"))
    assert found == rules.Bindings(volumes=(("ns/c", "kept"),))


def test_a_volume_that_is_kept_for_the_claim_elsewhere_keeps_the_pod_away():
    kept = volume("kept", host="n2", for_claim="c")
    assert judge(claim("c"), kept, volume("zzz")).bindings(["ns/c"], node("n1")) == rules.NO_VOLUME


def test_what_is_not_at_hand_is_provisioned_where_the_class_can():
    assert judge(claim("c")).bindings(["ns/c"], node("n1")) == rules.NO_VOLUME
    found = judge(claim("c"), provisioner="example.com/d").bindings(["ns/c"], node("n1"))
    assert found == rules.Bindings(provisions=("ns/c",))


@pytest.mark.parametrize(
    ("room", "host", "expected"),
    [
        ({"capacity": "1Gi"}, "n1", rules.Bindings(provisions=("ns/c",))),
        ({"capacity": "9Gi", "maximum_volume_size": "1Mi"}, "n1", rules.NO_SPACE),
        ({"capacity": "1Mi"}, "n1", rules.NO_SPACE),
        ({"capacity": "9Gi"}, "n2", rules.NO_SPACE),
    ],
    ids=["enough", "no volume of this size", "too little", "elsewhere"],
)
def test_what_a_driver_has_room_for_is_provisioned_where_it_has_that_room(room, host, expected):
    here = wire.LabelSelector(match_labels={"kubernetes.io/hostname": "n1"})
    capacity = views.CapacityView(storage_class_name="late", node_topology=here, **room)
    tells = views.CsiDriverView(spec=views.CsiDriverSpec(storage_capacity=True))
    asked = judge(claim("c"), provisioner="example.com/d", drivers={"example.com/d": tells}, capacities={"x": capacity})
    assert asked.bindings(["ns/c"], node(host)) == expected


def test_a_claim_that_is_being_provisioned_for_a_node_keeps_its_pod_from_others():
    asked = judge(claim("c", selected="n1"), provisioner="example.com/d")
    assert asked.bindings(["ns/c"], node("n1")) == rules.Bindings(provisions=("ns/c",))
    assert asked.bindings(["ns/c"], node("n2")) == rules.NO_VOLUME


def test_a_bound_volume_is_reached_from_where_it_says():
    asked = judge(claim("c", volume="v"), volume("v", host="n1"))
    assert asked.bindings(["ns/c"], node("n1")) == rules.Bindings()
    assert asked.bindings(["ns/c"], node("n2")) == rules.UNREACHABLE


ZONE = "topology.kubernetes.io__zone"


@pytest.mark.parametrize(
    ("key", "labels", "expected"),
    [
        ("topology.kubernetes.io/zone", {ZONE: "b"}, rules.Bindings()),
        ("topology.kubernetes.io/zone", {ZONE: "c"}, rules.WRONG_ZONE),
        ("failure-domain.beta.kubernetes.io/zone", {ZONE: "b"}, rules.Bindings()),
        ("topology.kubernetes.io/zone", {}, rules.Bindings()),
    ],
    ids=["one of several", "another", "the old label", "a node without zones"],
)
def test_a_volume_of_zones_is_reached_from_them(key, labels, expected):
    asked = judge(claim("c", volume="v"), volume("v", labels={key: "a__b"}))
    assert asked.bindings(["ns/c"], node("n1", **labels)) == expected


def test_a_claim_whose_volume_is_gone_or_that_is_not_there_fits_nowhere():
    assert judge(claim("c", volume="v")).bindings(["ns/c"], node("n1")) == rules.VOLUME_GONE
    assert judge().bindings(["ns/c"], node("n1")) == rules.NO_SUCH_CLAIM


def limits(**drivers: int) -> dict[str, views.CsiNodeView]:
    """The limits of drivers on n1; underscores stand for dots."""
    known = [
        views.NodeDriver(name=name.replace("_", "."), allocatable=views.VolumeCount(count=count))
        for name, count in drivers.items()
    ]
    return {"n1": views.CsiNodeView(spec=views.CsiNodeSpec(drivers=tuple(known)))}


def test_a_volume_that_is_mounted_already_counts_once_against_the_limit():
    bound = [claim(name, volume=f"v{name}") for name in "ab"]
    asked = judge(*bound, volume("va", driver="d"), volume("vb", driver="d"), csi_nodes=limits(d=1))
    assert not asked.too_many(["ns/a"], "n1", {"ns/a"})
    assert asked.too_many(["ns/b"], "n1", {"ns/a"})
    assert not asked.too_many(["ns/b"], "another", {"ns/a"})


def of_a_kind(name: str, kind: str, source: wire.Disk, **fields) -> views.VolumeView:
    """A volume that names no CSI driver."""
    plain = volume(name, **fields)
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, **{kind: source}))


def test_a_volume_of_an_older_kind_counts_against_the_driver_that_attaches_it():
    ebs = of_a_kind("va", "aws_elastic_block_store", wire.Disk(volume_id="aws://zone/vol-1"))
    asked = judge(
        claim("a", volume="va"), claim("b", volume="vb"), ebs, volume("vb"), csi_nodes=limits(ebs_csi_aws_com=1)
    )
    assert asked.too_many(["ns/a"], "n1", {"ebs.csi.aws.com/vol-2"})
    assert not asked.too_many(["ns/a"], "n1", {"ebs.csi.aws.com/vol-1"})
    assert not asked.too_many(["ns/b"], "n1", {"ebs.csi.aws.com/vol-2"})


def test_a_claim_of_a_class_of_an_older_kind_counts_against_the_driver_that_will_attach_it():
    asked = judge(claim("a"), provisioner="kubernetes.io/gce-pd", csi_nodes=limits(pd_csi_storage_gke_io=1))
    assert asked.too_many(["ns/a"], "n1", {"pd.csi.storage.gke.io/other"})
    assert not asked.too_many(["ns/a"], "n1", {"ns/a"})


def test_disks_that_pods_name_themselves_count_against_the_limit():
    book = volume_book.VolumeBook(judge(csi_nodes=limits(disk_csi_azure_com=1))._objects)
    (first, second) = ((f"disk.csi.azure.com/{name}",) for name in ("d1", "d2"))
    book.mounts.replace(model.TaskId("ns/p"), None, (model.NodeName("n1"), first))
    assert book._refusals(first, [node("n1")]) == [None]
    assert book._refusals(second, [node("n1"), node("n2")]) == [rules.TOO_MANY, None]
    assert book.promise(model.TaskId("ns/q"), first, node("n1")).bindings == rules.Bindings()


GCE = {"gce_persistent_disk": wire.Disk(pd_name="d")}


@pytest.mark.parametrize(
    ("source", "zones", "handle"),
    [
        ({"aws_elastic_block_store": wire.Disk(volume_id="vol-1")}, [], ("ebs.csi.aws.com", "vol-1")),
        ({"cinder": wire.Disk(volume_id="x")}, [], ("cinder.csi.openstack.org", "x")),
        ({"azure_disk": wire.Disk(disk_uri="/s/d")}, [], ("disk.csi.azure.com", "/s/d")),
        (GCE, [], ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        (GCE, ["a-b-c"], ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/a-b-c/disks/d")),
        (GCE, ["a-b-c", "a-b-d"], ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/regions/a-b/disks/d")),
        ({}, [], None),
    ],
)
def test_a_disk_has_the_name_that_its_driver_gives_it(source, zones, handle):
    assert translate.attached(wire.DiskSource(**source), zones) == handle
    if not zones:
        inline = wire.PodSpec(volumes=(wire.Volume(name="v", **source),))
        assert [translate.handle_of(key) for key in translate.attached_inline(inline)] == ([handle] if handle else [])


def test_a_volume_promised_to_two_pods_by_one_claim_stays_promised_when_one_is_released():
    known = judge(claim("shared"), claim("other"), volume("v"))._objects
    book = volume_book.VolumeBook(known)
    first, second = (book.promise(task, ("ns/shared",), node("n1")) for task in ("ns/p1", "ns/p2"))
    book.release(first)
    assert not book.promise("ns/p3", ("ns/other",), node("n1"))
    book.release(second)
    assert book.promise("ns/p3", ("ns/other",), node("n1"))


class Looked(dict):
    """A table that counts how often all of it is gone through."""

    looks = 0

    def values(self):
        self.looks += 1
        return super().values()


def test_volumes_and_attachments_are_gone_through_once_however_many_nodes_and_claims_are_judged():
    tables = {"volumes": Looked(v=volume("v", driver="d")), "attachments": Looked()}
    claims = [claim(f"c{i}") for i in range(50)]
    known = dataclasses.replace(judge(*claims, provisioner="example.com/d")._objects, **tables)
    book = volume_book.VolumeBook(known)
    nodes = [node(f"n{i}") for i in range(50)]
    for asked in (tuple(one.metadata.key for one in claims), ("ns/c0",)):
        assert book._refusals(asked, nodes) == [None] * 50
    assert [table.looks for table in tables.values()] == [1, 1]


def test_a_change_of_storage_invalidates_cached_results():
    known = judge(claim("c"))._objects
    book = volume_book.VolumeBook(known)
    assert book._refusals(("ns/c",), [node("n1")]) == [rules.NO_VOLUME]
    known.volumes["v"] = volume("v")
    book.changed()
    assert book._refusals(("ns/c",), [node("n1")]) == [None]
    assert book.promise("ns/p", ("ns/c",), node("n1"))


def mounting(*, is_ephemeral: bool = False):
    """What is kept of a pod that mounts the claim `c`, or one that is created for it."""
    source = (
        {"ephemeral": wire.Present()} if is_ephemeral else {"persistent_volume_claim": wire.ClaimSource(claim_name="c")}
    )
    return manifests.pod_facts("p", volumes=(wire.Volume(name="v", **source),))


OURS = wire.OwnerReference(api_version="v1", kind="Pod", name="p", uid="uid-p", controller=True)
IMMEDIATE = views.ClassView(metadata=wire.ObjectMeta(name="late"), provisioner="d")


def changed(claim: views.ClaimView, **fields) -> views.ClaimView:
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, **fields))


@pytest.mark.parametrize(
    ("is_ephemeral", "claim", "known_class", "message"),
    [
        (False, None, None, 'does not exist in namespace "demo": create it'),
        (
            True,
            None,
            None,
            'does not exist in namespace "demo": the ephemeral volume controller has not created it yet',
        ),
        (
            True,
            manifests.claim_view("p-v"),
            None,
            "was not created for this pod: delete it, or rename the volume",
        ),
        (True, changed(manifests.claim_view("p-v", volume="v"), owner_references=(OURS,)), None, None),
        (
            False,
            changed(manifests.claim_view(volume="v"), deletion_timestamp=dt.datetime.now(dt.UTC)),
            None,
            "is being deleted",
        ),
        (
            False,
            msgspec.structs.replace(manifests.claim_view(volume="v"), status=views.Phase(phase="Lost")),
            None,
            'has lost its volume "v"',
        ),
        (False, manifests.claim_view(volume="v"), None, None),
        (
            False,
            manifests.claim_view(volume="v", is_bound=False),
            None,
            'is not bound yet to the volume "v"',
        ),
        (
            False,
            manifests.claim_view(),
            None,
            'is of the class "late", which does not exist',
        ),
        (
            False,
            manifests.claim_view(),
            IMMEDIATE,
            "is not bound yet, although its StorageClass binds immediately: check its events",
        ),
        (False, manifests.claim_view(), manifests.storage_class_view(), None),
    ],
)
def test_a_pod_whose_claim_no_node_can_mount_says_why(is_ephemeral, claim, known_class, message):
    known = dataclasses.replace(
        rules.Storage(),
        claims={} if claim is None else {claim.metadata.key: claim},
        classes={} if known_class is None else {"late": known_class},
    )
    found = volume_book.VolumeBook(known).problem(mounting(is_ephemeral=is_ephemeral))
    field, name = ("ephemeral", "p-v") if is_ephemeral else ("persistentVolumeClaim", "c")
    about = f'spec.volumes[v].{field}: the PersistentVolumeClaim "{name}" '
    assert (found and found.message) == (message and about + message)


def test_nothing_is_kept_of_a_pod_that_mounts_no_claim_any_more():
    mounts, pods = volume_book.Mounts(), [model.TaskId("ns/a"), model.TaskId("ns/b")]
    mounted = model.NodeName("n1"), ("ns/c",)
    for pod in pods:
        mounts.replace(pod, None, mounted)
    assert mounts.used_by_others(["ns/c"], pods[0])
    for pod in pods:
        mounts.replace(pod, mounted, None)
    assert (mounts._nodes, mounts._users) == ({}, {})
