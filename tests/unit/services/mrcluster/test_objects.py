"""Service, ConfigMap, NetworkPolicies and claims."""

import pytest

from boathouse.services.mrcluster import daemons, files, objects, pods
from tests.builders.mrclusters import UID, cluster

SELF = {"matchLabels": {"boathouse.dev/job-uid": UID}}


def owners_of(manifest):
    return [owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())]


def policies_of(**fields):
    return {policy["metadata"]["name"]: policy["spec"] for policy in objects.network_policies(cluster(**fields))}


def test_hosts_have_names_before_their_pods_are_ready():
    spec = objects.service(cluster())["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    assert spec["selector"] == {"boathouse.dev/job-uid": UID}
    assert all(len(port["name"]) <= 15 for port in spec["ports"])


def test_the_config_map_cannot_be_changed_and_is_named_by_its_digest():
    rendered = files.render(cluster())
    manifest = objects.config_map(cluster(), rendered)
    assert manifest["immutable"] is True
    assert manifest["metadata"]["name"].endswith(f"-conf-{rendered.digest[:8]}")
    assert manifest["data"] == rendered.files


def test_pods_mount_the_config_map_of_their_digest():
    found = cluster()
    rendered = files.render(found)
    volumes = pods.of(found, "c0", rendered)["spec"]["volumes"]
    (name,) = [volume["configMap"]["name"] for volume in volumes if "configMap" in volume]
    assert name == objects.config_map(found, rendered)["metadata"]["name"]


def test_the_largest_settings_fit_a_config_map():
    settings = {f"dfs.{number}": "é" * 400 for number in range(80)}
    data = files.render(cluster(hdfs={"settings": settings})).files
    assert sum(len(key.encode()) + len(text.encode()) for key, text in data.items()) < 2**20 // 4


def test_every_object_is_deleted_with_the_cluster():
    found = cluster()
    created = [objects.service(found), objects.config_map(found, files.render(found)), *objects.network_policies(found)]
    assert [owners_of(manifest) for manifest in created] == [[UID]] * 4


def test_a_cluster_reaches_itself_on_all_ports():
    spec = policies_of()["etl-0a1b2c3d-cluster"]
    assert (spec["podSelector"], spec["policyTypes"]) == (SELF, ["Ingress"])
    assert spec["ingress"] == [{"from": [{"podSelector": SELF}]}]


def test_only_pods_of_its_namespace_reach_a_cluster_and_only_the_ports_of_clients():
    rule, _ = policies_of()["etl-0a1b2c3d-clients"]["ingress"]
    assert rule["from"] == [{"podSelector": {}}]
    opened = {port["port"] for port in rule["ports"]}
    assert {8020, 9870, 9866, 8032, 8088, 10020, 19888} <= opened
    assert (
        not {
            daemons.CANARY_PORT,
            daemons.CONTROL_PORT,
            daemons.NODE_MANAGER_PORT,
            daemons.RESOURCE_MANAGER_ADMIN_PORT,
            daemons.SHUFFLE_PORT,
        }
        & opened
    )


def test_the_operator_alone_reaches_the_control_port():
    _, rule = policies_of()["etl-0a1b2c3d-clients"]["ingress"]
    assert rule["ports"] == [{"port": daemons.CONTROL_PORT, "protocol": "TCP"}]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "boathouse-system"}}
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "operator"


def test_clients_reach_the_application_masters_of_their_jobs():
    rule, _ = policies_of()["etl-0a1b2c3d-clients"]["ingress"]
    first, last = daemons.APPLICATION_MASTER_PORTS
    assert {"port": first, "endPort": last, "protocol": "TCP"} in rule["ports"]
    assert f"{first}-{last}" in files.render(cluster()).files["mapred-site.xml"]


def test_a_closed_cluster_is_reached_by_pods_of_jobs_alone():
    rule, _ = policies_of(networkPolicy="Cluster")["etl-0a1b2c3d-clients"]["ingress"]
    (sender,) = rule["from"]
    (expression,) = sender["podSelector"]["matchExpressions"]
    assert expression["key"] == "boathouse.dev/task-type"
    assert {"client", "setup", "map", "reduce"} <= set(expression["values"])
    assert not {"master", "core", "transient"} & set(expression["values"])


def test_a_cluster_may_have_no_network_policy():
    assert policies_of(networkPolicy="None") == {}


def test_a_claim_that_is_retained_is_not_owned_and_names_its_cluster():
    manifest = objects.claim(cluster(), "c0")
    assert owners_of(manifest) == []
    assert manifest["metadata"]["labels"]["boathouse.dev/job-uid"] == UID
    assert owners_of(objects.claim(cluster(dataPolicy="Delete"), "c0")) == [UID]


def test_a_claim_is_as_the_spec_says():
    volume = {"size": "5Gi", "storageClassName": "fast"}
    manifest = objects.claim(cluster(master={"volume": volume}), "master")
    assert (manifest["apiVersion"], manifest["kind"]) == ("v1", "PersistentVolumeClaim")
    spec = manifest["spec"]
    assert spec["accessModes"] == ["ReadWriteOnce"]
    assert spec["resources"] == {"requests": {"storage": "5Gi"}}
    assert spec["storageClassName"] == "fast"
    assert "storageClassName" not in objects.claim(cluster(), "c0")["spec"]


def test_hosts_without_data_or_with_an_empty_dir_have_no_claim():
    found = cluster(core={"volume": {"emptyDir": True}}, dataPolicy="Delete")
    assert [objects.has_claim(found, host) for host in ("master", "c0", "t1")] == [True, False, False]
    with pytest.raises(ValueError, match="has no claim"):
        objects.claim(found, "c0")
