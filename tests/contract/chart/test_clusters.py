"""Objects of Hadoop clusters that the operator's account may write: pods, Services, claims, NetworkPolicies."""

import copy

import pytest

from boathouse.services.mrcluster import files, objects, pods
from tests.builders import mrclusters
from tests.contract.chart.builders import fenced, object_, pod, reads

pytestmark = pytest.mark.apiserver


def mrcluster(namespace="demo", *, name="etl", **spec):
    """A cluster as a user writes it."""
    return object_("MRCluster", name, namespace, api="boathouse.dev/v1alpha1", spec=spec)


@pytest.fixture(scope="module")
def etl(installed):
    """A cluster that is there, as the operator reads it."""
    installed.until(lambda: installed.creates(mrcluster()), "admitted")  # its CRD is served
    installed.apply(mrcluster())
    stored = installed.get("mrcluster/etl")
    yield mrclusters.cluster(uid=stored["metadata"]["uid"])
    installed.delete(mrcluster())


def changed(manifest, **parts):
    """A manifest with other values at dotted paths, `spec__type="NodePort"`; None removes."""
    found = copy.deepcopy(manifest)
    for path, value in parts.items():
        *parents, last = path.split("__")
        target = found
        for parent in parents:
            target = target.setdefault(parent, {})
        if value is None:
            target.pop(last)
        else:
            target[last] = value
    return found


def node_pod(cluster, host):
    """The pod of a host as the operator builds it, with what the scheduler adds."""
    manifest = pods.of(cluster, host, files.render(cluster), may_format=True)
    for field, added in fenced().items():
        manifest["metadata"].setdefault(field, {}).update(added)
    manifest["spec"]["nodeName"] = "node-0"
    return manifest


@pytest.mark.parametrize("host", ["master", "c0", "t17"])
def test_the_pods_of_all_roles_are_within_the_restricted_standard(operator, etl, host):
    assert operator.creates(node_pod(etl, host)) == "admitted"


def test_the_service_and_the_settings_of_a_cluster_are_admitted(operator, etl):
    assert operator.creates(objects.service(etl)) == "admitted"
    assert operator.creates(objects.config_map(etl, files.render(etl))) == "admitted"


# Claims


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_claims_of_a_cluster_are_admitted_with_and_without_an_owner(operator, etl, policy):
    cluster = mrclusters.cluster(uid=etl.uid, dataPolicy=policy)
    for host in ("master", "c0"):
        assert operator.creates(objects.claim(cluster, host)) == "admitted"


OTHERS = [{"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRCluster", "name": "b", "uid": "9-9"}]
SOURCE = {"kind": "PersistentVolumeClaim", "name": "secrets"}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"metadata__labels": {}}, "only claims of Hadoop clusters"),
        (
            {"metadata__labels": {"boathouse.dev/kind": "MRJob", "boathouse.dev/job-uid": "1-2"}},
            "only claims of Hadoop",
        ),
        ({"metadata__labels": {"boathouse.dev/kind": "MRCluster"}}, "only claims of Hadoop clusters"),
        ({"metadata__ownerReferences": OTHERS}, "no owner but that cluster"),
        ({"spec__accessModes": ["ReadWriteMany"]}, "only claims of the mode ReadWriteOnce"),
        ({"spec__volumeName": "kept"}, "new, empty volumes"),
        ({"spec__dataSource": SOURCE}, "new, empty volumes"),
        ({"spec__selector": {"matchLabels": {"a": "b"}}}, "new, empty volumes"),
    ],
)
def test_other_claims_are_refused(operator, etl, parts, complaint):
    assert complaint in operator.creates(changed(objects.claim(etl, "c0"), **parts))


@pytest.mark.parametrize("namespace", ["kube-system", "boathouse-system", "closed"])
def test_no_claim_is_created_where_boathouse_runs_nothing(operator, etl, namespace):
    manifest = changed(objects.claim(etl, "c0"), metadata__namespace=namespace)
    assert "creates no claims in kube-system" in operator.creates(manifest)


def test_claims_of_other_accounts_are_not_affected(alice, etl):
    assert alice.creates(changed(objects.claim(etl, "c0"), spec__accessModes=["ReadWriteMany"])) == "admitted"


def test_a_claim_is_never_deleted(installed, operator, etl):
    installed.apply(objects.claim(etl, "c0"))
    refusal = operator.deletes(f"pvc/{etl.named('c0')}")
    assert "cannot delete resource" in refusal


# NetworkPolicies


OPERATOR = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "boathouse-system"}},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "boathouse"}},
}


@pytest.fixture(scope="module")
def network(installed, etl):
    """The NetworkPolicies of the cluster; they are there."""
    found = {policy["metadata"]["name"]: policy for policy in objects.network_policies(etl)}
    installed.apply(*found.values())
    yield found
    installed.delete(*found.values())


@pytest.mark.parametrize("kind", ["Namespace", "Cluster"])
def test_network_policies_of_a_cluster_are_admitted(operator, etl, kind):
    for manifest in objects.network_policies(mrclusters.cluster(uid=etl.uid, name="b", networkPolicy=kind)):
        assert operator.creates(manifest) == "admitted"


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"metadata__ownerReferences": []}, "that an MRCluster owns"),
        ({"spec__podSelector": {}}, "for the pods of that cluster"),
        ({"spec__podSelector": {"matchLabels": {"boathouse.dev/job-uid": "1-2"}}}, "for the pods of that cluster"),
        ({"spec__policyTypes": ["Ingress", "Egress"]}, "of the type Ingress"),
        ({"spec__ingress": [{}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [{"namespaceSelector": {}}]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [{"podSelector": {}, "namespaceSelector": {}}]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [OPERATOR]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [OPERATOR], "ports": [{"port": 8020}]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [OPERATOR], "ports": [{"port": "hdfs"}]}]}, "pods of their own namespace"),
        ({"spec__ingress": [{"from": [OPERATOR], "ports": [{}]}]}, "pods of their own namespace"),
        (
            {"spec__ingress": [{"from": [OPERATOR], "ports": [{"port": 9898, "endPort": 9899}]}]},
            "pods of their own namespace",
        ),
        (
            {"spec__ingress": [{"from": [{**OPERATOR, "namespaceSelector": {}}], "ports": [{"port": 9898}]}]},
            "pods of their own namespace",
        ),
    ],
)
def test_other_network_policies_are_refused(operator, etl, parts, complaint):
    manifest = changed(objects.network_policies(etl)[0], metadata__name="another", **parts)
    assert complaint in operator.creates(manifest)


@pytest.mark.parametrize("namespace", ["kube-system", "boathouse-system", "closed"])
def test_no_network_policy_is_written_where_boathouse_runs_nothing(operator, etl, namespace):
    manifest = changed(objects.network_policies(etl)[0], metadata__namespace=namespace)
    assert "writes no NetworkPolicies in kube-system" in operator.creates(manifest)


def test_the_operator_changes_and_deletes_the_network_policies_of_a_cluster(operator, network):
    for name, manifest in network.items():
        assert operator.patches(f"networkpolicy/{name}", {"spec": manifest["spec"]}) == "admitted"
        assert operator.deletes(f"networkpolicy/{name}") == "admitted"


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        ({"spec": {"podSelector": {"matchLabels": {"boathouse.dev/job-uid": "1-2"}}}}, "for the pods of that cluster"),
        ({"metadata": {"ownerReferences": OTHERS}}, "that an MRCluster owns"),
        ({"spec": {"ingress": [{"from": [{"namespaceSelector": {}}]}]}}, "pods of their own namespace"),
    ],
)
def test_a_network_policy_stays_that_of_its_cluster(operator, network, patch, complaint):
    assert complaint in operator.patches(f"networkpolicy/{next(iter(network))}", patch)


def test_network_policies_of_others_are_neither_changed_nor_deleted(installed, operator):
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    foreign = object_("NetworkPolicy", "foreign", "demo", api="networking.k8s.io/v1", spec=spec)
    installed.apply(foreign)
    try:
        assert "that an MRCluster owns" in operator.deletes("networkpolicy/foreign")
        assert "that an MRCluster owns" in operator.patches("networkpolicy/foreign", {"spec": {"policyTypes": []}})
    finally:
        installed.delete(foreign)


# What users write


def test_nobody_else_gives_a_pod_the_labels_by_which_clusters_know_their_clients(alice):
    client = pod(meta={"labels": {"boathouse.dev/task-type": "client"}})
    assert "boathouse.dev" in alice.creates(client)


def test_a_cluster_names_only_what_its_author_may_use(as_user):
    author = as_user("hadoop-author", reads("secrets", "s3-credentials"))
    known = [{"secretRef": {"name": "s3-credentials"}}]
    unknown = [{"secretRef": {"name": "admin-password"}}]
    assert author.creates(mrcluster(name="b", envFrom=known)) == "admitted"
    assert "admin-password" in author.creates(mrcluster(name="b", envFrom=unknown))


@pytest.mark.parametrize("namespace", ["kube-system", "closed"])
def test_a_cluster_is_refused_where_boathouse_runs_nothing(alice, namespace):
    assert "runs nothing in kube-system" in alice.creates(mrcluster(namespace))
