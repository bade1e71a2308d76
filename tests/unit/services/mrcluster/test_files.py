"""The configuration files of Hadoop: reviewed as a whole, and each trap by name."""

import pathlib
import xml.etree.ElementTree as ET

import hypothesis
import pytest
from hypothesis import given, strategies as st

from boathouse.resources.mrcluster import spec
from boathouse.services.mrcluster import files
from tests.builders import reviewed
from tests.builders.mrclusters import cluster

FOLDER = pathlib.Path(__file__).parent / "golden"
MASTER = "master.etl-0a1b2c3d-hadoop.demo.svc"
SITES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml", "capacity-scheduler.xml")


def settings_of(name, **fields):
    """Return the settings of a file, as Hadoop reads them."""
    found = ET.fromstring(files.render(cluster(**fields)).files[name])  # noqa: S314
    return {setting.findtext("name"): setting.findtext("value") for setting in found}


@pytest.mark.parametrize("name", SITES)
def test_the_files_of_a_cluster_are_as_reviewed(name):
    growing = cluster(transient={"maximum": 4, "resources": {"memory": "3Gi"}})
    reviewed.check(FOLDER / name, files.render(growing).files[name])


def test_every_setting_of_ours_is_closed_to_users():
    found = cluster()
    ours = {
        **files.core_site(found),
        **files.hdfs_site(found),
        **files.yarn_site(found),
        **files.mapred_site(found),
        **files.CAPACITY_SCHEDULER,
    }
    assert set(spec.closed_keys(ours)) == set(ours)


def test_every_default_can_be_changed_by_users():
    found = cluster()
    defaults = (
        files.hdfs_defaults(found),
        files.yarn_defaults(found),
        files.mapred_defaults(found),
        files.CAPACITY_DEFAULTS,
    )
    assert spec.closed_keys(*defaults) == ()


def test_a_users_setting_wins_over_a_default_and_ours_over_a_users():
    user = {"dfs.heartbeat.interval": "1", "dfs.webhdfs.enabled": "false", "dfs.x": "y"}
    found = settings_of("hdfs-site.xml", hdfs={"settings": user})
    assert (found["dfs.heartbeat.interval"], found["dfs.webhdfs.enabled"], found["dfs.x"]) == ("1", "true", "y")


def test_settings_that_are_ignored_are_named_wherever_they_were_written():
    user = {"hadoopSettings": {"yarn.nodemanager.address": "x"}, "hdfs": {"settings": {"fs.defaultFS": "file:///"}}}
    rendered = files.render(cluster(**user))
    assert rendered.overridden == ("fs.defaultFS", "yarn.nodemanager.address")
    assert "file:///</value>" not in rendered.files["hdfs-site.xml"]


def test_settings_of_the_capacity_scheduler_go_to_its_file():
    key = "yarn.scheduler.capacity.schedule-asynchronously.enable"
    found = files.render(cluster(yarn={"settings": {key: "true"}})).files
    assert key in found["capacity-scheduler.xml"]
    assert key not in found["yarn-site.xml"]


@hypothesis.settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"x[A-Za-z0-9._-]{1,20}", fullmatch=True), st.text("<>&\"' ${}é", max_size=20)))
def test_any_value_is_one_value_of_the_file(user):
    found = settings_of("core-site.xml", hadoopSettings=user)
    assert {key: found[key] or "" for key in user} == user


def test_without_compute_there_are_no_files_of_yarn():
    assert not {"yarn-site.xml", "mapred-site.xml"} & files.render(cluster(compute=False)).files.keys()


# The traps


def test_tokens_name_services_by_host_because_addresses_change():
    assert settings_of("core-site.xml")["hadoop.security.token.service.use_ip"] == "false"


def test_every_server_listens_on_all_addresses_but_is_named_by_host():
    hdfs, yarn, mapred = (settings_of(f"{name}-site.xml") for name in ("hdfs", "yarn", "mapred"))
    binds = [hdfs["dfs.namenode.rpc-bind-host"], hdfs["dfs.namenode.http-bind-host"]]
    binds += [yarn["yarn.resourcemanager.bind-host"], yarn["yarn.nodemanager.bind-host"]]
    assert {*binds, mapred["mapreduce.jobhistory.bind-host"]} == {"0.0.0.0"}
    assert hdfs["dfs.namenode.rpc-address"] == f"{MASTER}:8020"
    assert yarn["yarn.resourcemanager.hostname"] == MASTER
    assert mapred["mapreduce.jobhistory.address"] == f"{MASTER}:10020"


def test_a_node_manager_keeps_its_port_and_has_the_name_of_its_data_node():
    yarn, hdfs = settings_of("yarn-site.xml"), settings_of("hdfs-site.xml")
    assert yarn["yarn.nodemanager.address"] == f"{yarn['yarn.nodemanager.hostname']}:8041"
    assert yarn["yarn.nodemanager.hostname"] == hdfs["dfs.datanode.hostname"] == "${env.BOATHOUSE_FQDN:-localhost}"


def test_data_nodes_register_without_reverse_dns_and_are_reached_by_name():
    found = settings_of("hdfs-site.xml")
    assert found["dfs.namenode.datanode.registration.ip-hostname-check"] == "false"
    assert found["dfs.client.use.datanode.hostname"] == found["dfs.datanode.use.datanode.hostname"] == "true"


def test_containers_get_only_the_variables_of_a_list():
    whitelist = settings_of("yarn-site.xml")["yarn.nodemanager.env-whitelist"].split(",")
    assert {"JAVA_HOME", "HADOOP_USER_NAME", "PATH"} <= set(whitelist)
    assert not any(name.startswith(("BOATHOUSE", "AWS")) for name in whitelist)


def test_application_masters_and_tasks_open_java_lang():
    found = settings_of("mapred-site.xml")
    keys = ("yarn.app.mapreduce.am.admin-command-opts", "mapreduce.admin.map.child.java.opts")
    assert {found[key] for key in (*keys, "mapreduce.admin.reduce.child.java.opts")} == {files.ADD_OPENS}


def test_the_heap_of_an_application_master_fits_its_container():
    found = settings_of("mapred-site.xml", mapreduce={"settings": {"yarn.app.mapreduce.am.resource.mb": "1000"}})
    assert found["yarn.app.mapreduce.am.command-opts"] == "-Xmx750m"


def test_virtual_memory_is_not_limited_and_physical_memory_is():
    found = settings_of("yarn-site.xml")
    assert found["yarn.nodemanager.vmem-check-enabled"] == "false"
    assert found["yarn.nodemanager.pmem-check-enabled"] == "true"


def test_a_node_is_unhealthy_when_its_disk_is_90_percent_full():
    key = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
    assert settings_of("yarn-site.xml")[key] == "90"


def test_the_name_node_enters_safe_mode_below_100_mib_and_leaves_it_at_once():
    found = settings_of("hdfs-site.xml")
    assert found["dfs.namenode.resource.du.reserved"] == str(100 * 1024**2)
    assert found["dfs.namenode.safemode.extension"] == "0"


def test_clients_wait_for_a_master_that_starts_again_unless_the_spec_says_otherwise():
    spec = "dfs.client.retry.policy.spec"
    found = settings_of("hdfs-site.xml")
    assert (found["dfs.client.retry.policy.enabled"], found[spec]) == ("true", "2000,30,10000,30")
    assert settings_of("hdfs-site.xml", hdfs={"settings": {spec: "1000,5"}})[spec] == "1000,5"


def test_an_application_survives_restarts_of_several_core_nodes():
    yarn, mapred = settings_of("yarn-site.xml"), settings_of("mapred-site.xml")
    assert yarn["yarn.resourcemanager.am.max-attempts"] == mapred["mapreduce.am.max-attempts"] == "5"


def test_logs_of_containers_are_kept_for_a_week_unless_the_spec_says_otherwise():
    key = "yarn.log-aggregation.retain-seconds"
    assert settings_of("yarn-site.xml")[key] == "604800"
    assert settings_of("yarn-site.xml", yarn={"settings": {key: "-1"}})[key] == "-1"


def test_yarn_notices_a_lost_node_within_minutes():
    assert settings_of("yarn-site.xml")["yarn.nm.liveness-monitor.expiry-interval-ms"] == "180000"


def test_half_of_a_cluster_may_be_application_masters_so_that_load_is_seen():
    assert settings_of("capacity-scheduler.xml")["yarn.scheduler.capacity.maximum-am-resource-percent"] == "0.5"


def test_yarn_allocates_in_small_units_up_to_the_largest_node():
    found = settings_of("yarn-site.xml", transient={"maximum": 1, "resources": {"memory": "3Gi"}})
    assert found["yarn.scheduler.minimum-allocation-mb"] == "64"
    assert found["yarn.scheduler.maximum-allocation-mb"] == str((3072 - 307 - 128) // 64 * 64)


def test_application_masters_run_on_core_nodes_because_transient_nodes_have_a_label():
    yarn, scheduler = settings_of("yarn-site.xml"), settings_of("capacity-scheduler.xml")
    assert yarn["yarn.nodemanager.node-labels.provider"] == "${env.BOATHOUSE_NODE_LABELS:-}"
    assert yarn["yarn.nodemanager.node-labels.provider.configured-node-partition"] == "transient"
    for queue in ("root", "root.default"):
        prefix = f"{files._CAPACITY_PREFIX}{queue}.accessible-node-labels"
        assert (scheduler[prefix], scheduler[f"{prefix}.transient.capacity"]) == ("transient", "100")
    assert scheduler[f"{files._CAPACITY_PREFIX}am.allow-non-exclusive-allocation"] == "false"


def test_the_state_of_the_resource_manager_is_on_the_masters_volume():
    found = settings_of("yarn-site.xml")
    assert found["yarn.resourcemanager.recovery.enabled"] == "true"
    assert found["yarn.resourcemanager.fs.state-store.uri"] == "file:///data/rm"
    assert found["yarn.node-labels.fs-store.root-dir"].startswith("file:///data/rm/")
    assert found["yarn.node-attribute.fs-store.root-dir"].startswith("file:///data/rm/")


def test_the_files_of_a_job_have_no_more_copies_than_hdfs_allows():
    found = settings_of("mapred-site.xml", core={"count": 2})
    limit = settings_of("hdfs-site.xml", core={"count": 2})["dfs.namenode.replication.max"]
    assert found["mapreduce.client.submit.file.replication"] == limit == "2"


def test_a_formatted_file_system_is_never_formatted_again_by_hadoop():
    assert settings_of("hdfs-site.xml")["dfs.reformat.disabled"] == "true"


def test_daemons_make_their_folders_below_the_mounts_because_they_set_modes():
    hdfs = settings_of("hdfs-site.xml")
    assert hdfs["dfs.namenode.name.dir"] == "file:///data/name/dfs"
    assert hdfs["dfs.datanode.data.dir"] == "file:///data/dfs/data"


# What rolls a cluster


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "other:2"},
        {"core": {"resources": {"memory": "3Gi"}}},
        {"master": {"resources": {"cpu": "2"}}},
        {"transient": {"scratch": "20Gi"}},
        {"core": {"scratch": "20Gi"}},
        {"hdfs": {"settings": {"dfs.x": "y"}}},
        {"env": [{"name": "TZ", "value": "UTC"}]},
        {"nodeSelector": {"disk": "ssd"}},
        {"podTemplate": {"metadata": {"labels": {"team": "blue"}}}},
        {"javaHome": "/usr/lib/jvm/17"},
    ],
)
def test_a_change_of_settings_or_pods_is_another_digest(fields):
    assert files.render(cluster(**fields)).digest != files.render(cluster()).digest


@pytest.mark.parametrize(
    "fields",
    [
        {"core": {"count": 4}, "hdfs": {"replication": 3}},
        {"core": {"scratch": "10Gi"}},
        {"core": {"maximum": 9}, "resizing": {"policy": "GGDP"}},
        {"weight": 7},
        {"transient": {"minimum": 1, "maximum": 9}},
        {"zones": ["a"]},
        {"ttlSecondsAfterIdle": 60},
        {"networkPolicy": "None"},
    ],
)
def test_a_cluster_that_grows_or_gets_other_policies_is_not_rolled(fields):
    assert files.render(cluster(**fields)).digest == files.render(cluster()).digest


def test_the_same_cluster_has_the_same_files():
    assert files.render(cluster()) == files.render(cluster())


def test_hadoop_finds_a_name_for_the_user_of_the_pods():
    other = {"podTemplate": {"securityContext": {"runAsUser": 1234, "runAsGroup": 77}}}
    assert "hadoop:x:10001:10001:" in files.render(cluster()).files["passwd"]
    assert "hadoop:x:1234:77:" in files.render(cluster(**other)).files["passwd"]
    assert "hadoop:x:77:" in files.render(cluster(**other)).files["group"]
