"""The pods of a cluster: reviewed as a whole for each role, and each trap by name."""

import json
import pathlib

import msgspec
import pytest

from boathouse.resources import quantity
from boathouse.resources.config import EphemeralStorageConfig, HadoopDefaults
from boathouse.services.mrcluster import files
from boathouse_task import cluster_contract
from tests.builders import reviewed
from tests.builders.mrclusters import DEFAULTS, FULL, cluster, node_manifest

HOSTS = ("master", "c0", "t17")
FOLDER = pathlib.Path(__file__).parent / "golden"
IN_MEMORY = {"emptyDir": True, "medium": "Memory", "size": "256Mi"}


def containers_of(manifest):
    return {container["name"]: container for container in manifest["spec"]["containers"]}


def variables_of(container):
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def volume_of(manifest, name):
    return next(volume for volume in manifest["spec"]["volumes"] if volume["name"] == name)


def mounts_of(container):
    return {mount["mountPath"]: mount for mount in container["volumeMounts"]}


@pytest.mark.parametrize("host", HOSTS)
def test_the_pods_of_a_cluster_that_uses_every_field_are_as_reviewed(host):
    manifest = node_manifest(host, may_format=True, **FULL)
    manifest["metadata"]["annotations"] = {}  # the digest changes with every setting
    text = json.dumps(manifest).replace(files.render(cluster(**FULL)).digest[:8], "DIGEST")
    reviewed.check_manifest(FOLDER / f"{host}.yaml", json.loads(text))


@pytest.mark.parametrize("host", HOSTS)
def test_every_pod_is_restricted_and_has_no_token_of_its_account(host):
    spec = node_manifest(host)["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert (spec["securityContext"]["runAsNonRoot"], spec["schedulerName"]) == (True, "boathouse")
    assert not {"hostNetwork", "hostPID", "hostIPC", "nodeName", "initContainers"} & set(spec)
    for container in spec["containers"]:
        security = container["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert (security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == (False, True)
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert "hostPort" not in str(container.get("ports"))


@pytest.mark.parametrize("host", HOSTS)
def test_every_pod_belongs_to_its_cluster(host):
    metadata = node_manifest(host)["metadata"]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("MRCluster", cluster().uid, True)
    assert metadata["labels"]["boathouse.dev/job-uid"] == cluster().uid
    assert metadata["labels"]["boathouse.dev/host"] == host
    assert metadata["annotations"]["boathouse.dev/settings"] == files.render(cluster()).digest


@pytest.mark.parametrize(("host", "role"), [("master", "master"), ("c0", "core"), ("t17", "transient")])
@pytest.mark.parametrize("memory", ["1344Mi", "2Gi", "3000000000", "64Gi"])
def test_requests_are_what_the_cluster_says_for_the_role(host, role, memory):
    spec = node_manifest(host, **{role: {"resources": {"cpu": "1300m", "memory": memory}}})["spec"]
    requests = [container["resources"]["requests"] for container in spec["containers"]]
    assert sum(quantity.milli(request["cpu"]) for request in requests) == 1300
    assert sum(quantity.units(request["memory"]) for request in requests) == quantity.units(memory) // 1024**2 * 1024**2


def test_daemons_have_their_memory_for_themselves():
    for host in HOSTS:
        for name, container in containers_of(node_manifest(host)).items():
            resources = container["resources"]
            if name not in ("refresh", "agent"):
                assert resources["requests"]["memory"] == resources["limits"]["memory"]


def test_core_pods_of_a_cluster_are_kept_apart_and_others_are_not():
    apart = [node_manifest(host)["metadata"]["labels"].get("boathouse.dev/apart") for host in HOSTS]
    assert apart == [None, cluster().uid, None]


def test_core_nodes_and_the_master_stay_longer_on_a_node_that_does_not_respond():
    patience = [
        {toleration.get("tolerationSeconds") for toleration in node_manifest(host)["spec"]["tolerations"]}
        for host in HOSTS
    ]
    assert patience == [{300}, {300}, {60}]


@pytest.mark.parametrize("host", HOSTS)
def test_a_pod_has_the_name_that_its_daemons_register(host):
    manifest = node_manifest(host)
    name = f"{manifest['spec']['hostname']}.{manifest['spec']['subdomain']}.demo.svc"
    for container in manifest["spec"]["containers"]:
        if container["name"] != "agent":
            assert variables_of(container)["BOATHOUSE_FQDN"] == name
            assert variables_of(container)["HADOOP_USER_NAME"] == "hadoop"


@pytest.mark.parametrize("host", HOSTS)
def test_every_daemon_opens_java_lang_also_for_web_hdfs(host):
    for container in node_manifest(host)["spec"]["containers"]:
        if container["name"] != "agent":
            assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in variables_of(container)["BOATHOUSE_JAVA_OPTS"]


@pytest.mark.parametrize("host", HOSTS)
def test_every_jvm_has_few_heaps_of_glibc_unless_the_user_says_otherwise(host):
    given = [{"name": "MALLOC_ARENA_MAX", "value": "1"}]
    for fields, most in (({}, "4"), ({"env": given}, "1")):
        for name, container in containers_of(node_manifest(host, **fields)).items():
            assert name == "agent" or variables_of(container)["MALLOC_ARENA_MAX"] == most


def test_a_daemon_does_not_remember_the_address_of_a_master_that_moved():
    assert (
        "-Dsun.net.inetaddr.ttl=5"
        in variables_of(containers_of(node_manifest("c0"))["datanode"])["BOATHOUSE_JAVA_OPTS"]
    )


def test_ipv4_is_not_preferred_where_pods_have_none():
    options = [
        variables_of(
            containers_of(node_manifest("c0", defaults=HadoopDefaults(image="i", prefer_ipv4=preferred)))["datanode"]
        )["BOATHOUSE_JAVA_OPTS"]
        for preferred in (True, False)
    ]
    assert ["preferIPv4Stack" in java_options for java_options in options] == [True, False]


def test_only_a_name_node_of_a_cluster_without_id_may_format():
    formats = [
        variables_of(containers_of(node_manifest(may_format=may))["namenode"]).get("BOATHOUSE_FORMAT")
        for may in (True, False)
    ]
    assert formats == ["1", None]


def test_the_name_node_and_the_resource_manager_see_the_agents_exclude_files():
    found = containers_of(node_manifest())
    for name in ("namenode", "resourcemanager", "agent"):
        assert mounts_of(found[name])["/data/agent"]["subPath"] == "agent"
    assert variables_of(found["namenode"])["BOATHOUSE_EXCLUDE_FILE"] == "/data/agent/dfs.exclude"
    assert variables_of(found["resourcemanager"])["BOATHOUSE_EXCLUDE_FILE"] == "/data/agent/yarn.exclude.xml"


def test_only_the_agent_has_a_token_and_it_has_nothing_of_the_user():
    found = containers_of(node_manifest(**FULL))
    assert [name for name, container in found.items() if "/var/run/boathouse/token" in mounts_of(container)] == [
        "agent"
    ]
    assert "envFrom" not in found["agent"]
    assert "TZ" not in variables_of(found["agent"])
    assert found["agent"]["image"] == "boathouse-task:1"
    assert all(found[name]["envFrom"] for name in found if name != "agent")


def test_the_agent_understands_its_order():
    order = variables_of(containers_of(node_manifest())["agent"])[cluster_contract.AGENT_ENV]
    spec = msgspec.json.decode(order, type=cluster_contract.AgentSpec)
    assert (spec.cluster_uid, spec.has_compute) == (cluster().uid, True)
    assert spec.domain == "etl-0a1b2c3d-hadoop.demo.svc"
    assert spec.files_path in mounts_of(containers_of(node_manifest())["agent"])
    assert spec.refresh_path in mounts_of(containers_of(node_manifest())["agent"])


def test_a_users_variable_never_replaces_ours():
    variables = [{"name": "JAVA_HOME", "value": "/evil"}, {"name": "X", "value": "$(Y)"}]
    found = containers_of(node_manifest("c0", env=variables))["datanode"]["env"]
    assert [variable["value"] for variable in found if variable["name"] == "JAVA_HOME"] == ["/evil", "/opt/java"]


def test_a_node_offers_what_its_pod_leaves():
    core, transient = (variables_of(containers_of(node_manifest(host))["nodemanager"]) for host in ("c0", "t1"))
    assert (core["BOATHOUSE_YARN_MEMORY_MB"], core["BOATHOUSE_YARN_VCORES"]) == ("1344", "1")
    assert transient["BOATHOUSE_YARN_MEMORY_MB"] == "1664"


def test_only_transient_nodes_have_yarns_label():
    labels = [
        variables_of(containers_of(node_manifest(host))["nodemanager"]).get("BOATHOUSE_NODE_LABELS")
        for host in ("c0", "t1")
    ]
    assert labels == [None, "config"]


def test_without_compute_there_is_hdfs_alone():
    fields = {"compute": False}
    assert set(containers_of(node_manifest(**fields))) == {"namenode", "checkpoint", "refresh", "agent"}
    assert set(containers_of(node_manifest("c0", **fields))) == {"datanode"}


def test_a_transient_node_stores_nothing_that_outlives_it():
    manifest = node_manifest("t1", transient={"maximum": 1, "scratch": "20Gi"})
    assert volume_of(manifest, "local") == {"name": "local", "emptyDir": {"sizeLimit": "20Gi"}}
    assert not any("persistentVolumeClaim" in volume for volume in manifest["spec"]["volumes"])
    assert containers_of(manifest)["nodemanager"]["resources"]["limits"]["ephemeral-storage"] == "20Gi"


def test_the_scratch_of_a_core_node_has_a_size_and_the_pods_limit_has_room_for_it():
    defaults = DEFAULTS.model_copy(update={"ephemeral_storage": EphemeralStorageConfig(limit="5Gi")})
    manifest = node_manifest("c0", core={"scratch": "20Gi"}, defaults=defaults)
    assert volume_of(manifest, "local") == {"name": "local", "emptyDir": {"sizeLimit": "20Gi"}}
    assert containers_of(manifest)["datanode"]["resources"]["limits"]["ephemeral-storage"] == "20Gi"


def test_data_are_on_the_claim_of_the_host():
    for host in ("master", "c0"):
        claim = volume_of(node_manifest(host), "data")["persistentVolumeClaim"]["claimName"]
        assert claim == f"etl-0a1b2c3d-{host}"


def test_a_cluster_for_tests_keeps_data_in_memory():
    manifest = node_manifest("c0", core={"volume": IN_MEMORY}, dataPolicy="Delete")
    assert volume_of(manifest, "data") == {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}
    assert containers_of(manifest)["datanode"]["resources"]["limits"]["memory"] == f"{332 + 256}Mi"


def test_zones_are_required_in_each_term_of_the_users_affinity():
    expressions = [{"key": "gpu", "operator": "Exists"}], [{"key": "disk", "operator": "In", "values": ["ssd"]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": requirements} for requirements in expressions]}
    node = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    found = node_manifest("c0", zones=["b", "a"], podTemplate={"affinity": node})["spec"]["affinity"]["nodeAffinity"]
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}
    written = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"] for term in written] == [[*requirements, zone] for requirements in expressions]


def test_labels_of_the_user_never_replace_ours():
    labels = node_manifest(podTemplate={"metadata": {"labels": {"boathouse.dev/host": "c0", "team": "red"}}})[
        "metadata"
    ]["labels"]
    assert (labels["boathouse.dev/host"], labels["team"]) == ("master", "red")


def test_pull_secrets_of_the_image_and_of_the_agents_are_there_once():
    secrets = node_manifest(imagePullSecrets=[{"name": "tasks"}, {"name": "mine"}])["spec"]["imagePullSecrets"]
    assert secrets == [{"name": "tasks"}, {"name": "mine"}]


@pytest.mark.parametrize("host", HOSTS)
def test_pods_can_be_sent_as_json(host):
    manifest = node_manifest(host, **FULL)
    assert json.loads(json.dumps(manifest)) == manifest
