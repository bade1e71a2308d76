"""Memory of pods: divided among containers so that each heap fits, whatever the sizes are."""

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import daemons, sizes
from tests.builders.mrclusters import cluster

MIB = sizes.MIB
HELPERS_MIB = sizes.REFRESH_MIB + sizes.AGENT_MIB
ROLES = st.sampled_from([Role.MASTER, Role.CORE, Role.TRANSIENT])


@settings(max_examples=50)
@given(ROLES, st.integers(0, 2**44), st.booleans(), st.integers(0, 2**32))
def test_the_daemons_of_every_size_fit_their_containers_and_these_the_pod(role, limit_bytes, compute, volume_bytes):
    try:
        found = sizes.heaps_of_pod(role, limit_bytes, compute=compute, in_memory_bytes=volume_bytes)
    except ValueError:  # less than the daemons need
        return
    volume_mib = -(-volume_bytes // MIB) if role is Role.CORE else 0
    helpers_mib = HELPERS_MIB if role is Role.MASTER else 0
    assert sum(daemon_size.limit_mib for daemon_size in found.daemons.values()) + helpers_mib == limit_bytes // MIB
    for daemon, size in found.daemons.items():
        inside_mib = found.yarn_mb if daemon is daemons.NODE_MANAGER else 0
        inside_mib += volume_mib if daemon is daemons.DATA_NODE else 0
        assert size.heap_mib >= 192
        assert size.limit_mib - size.heap_mib - inside_mib >= 128


@settings(max_examples=50)
@given(st.integers(1344 * MIB, 2**44))
def test_every_master_of_enough_memory_is_possible(limit_bytes):
    assert len(sizes.heaps_of_pod(Role.MASTER, limit_bytes).daemons) == 4


@settings(max_examples=50)
@given(st.integers(768 * MIB, 2**44), st.sampled_from([Role.CORE, Role.TRANSIENT]))
def test_every_node_that_the_crd_allows_offers_memory_in_units_of_yarn(limit_bytes, role):
    found = sizes.heaps_of_pod(role, limit_bytes)
    assert found.yarn_mb >= sizes.UNIT_MB
    assert found.yarn_mb % sizes.UNIT_MB == 0


def test_name_node_and_checkpoint_get_what_the_others_leave():
    found = sizes.heaps_of_pod(Role.MASTER, 16 * 1024 * MIB).daemons
    assert found[daemons.NAME_NODE].heap_mib == found[daemons.CHECKPOINT].heap_mib > 4096
    assert found[daemons.RESOURCE_MANAGER] == sizes.Memory(limit_mib=1024 + 128, heap_mib=1024)


def test_a_node_offers_its_limit_without_the_heaps():
    found = sizes.heaps_of_pod(Role.CORE, 2048 * MIB)
    assert found.daemons[daemons.DATA_NODE] == sizes.Memory(limit_mib=332, heap_mib=204)
    assert found.yarn_mb == (2048 - 2 * 332) // 64 * 64


def test_without_compute_a_data_node_has_all_memory():
    found = sizes.heaps_of_pod(Role.CORE, 1024 * MIB, compute=False)
    assert found.daemons == {daemons.DATA_NODE: sizes.Memory(limit_mib=1024, heap_mib=1024 - 128)}


def test_a_volume_in_memory_counts_for_its_data_node():
    volume = {"emptyDir": True, "medium": "Memory", "size": "64Mi"}
    found = sizes.heaps(cluster(core={"volume": volume}, dataPolicy="Delete"), Role.CORE)
    assert found.daemons[daemons.DATA_NODE] == sizes.Memory(limit_mib=332 + 64, heap_mib=204)


def test_sizes_of_tasks_fit_small_nodes():
    found = sizes.of(cluster(core={"resources": {"memory": "1Gi"}}))
    assert found == sizes.Sizes(core_mb=384, transient_mb=1664, am_mb=384, map_mb=384)


def test_the_largest_node_may_be_transient():
    found = sizes.of(cluster(transient={"maximum": 1, "resources": {"memory": "8Gi"}}))
    assert found.transient_mb > found.core_mb


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"master": {"resources": {"memory": "1Gi"}}}, "set 1344Mi"),
        ({"core": {"resources": {"memory": "512Mi"}}}, "core.resources.memory leaves no memory"),
        ({"core": {"count": 1, "resources": {"memory": "1Gi"}}}, "beside an ApplicationMaster of 384"),
        ({"mapreduce": {"settings": {sizes.AM_MEMORY: "4096"}}}, "an ApplicationMaster requests 4096"),
        ({"mapreduce": {"settings": {sizes.MAP_MEMORY: "4096"}}}, "no node has 4096 MiB for a map"),
        ({"mapreduce": {"settings": {sizes.MAP_MEMORY: "${many}"}}}, "not a number of MiB"),
        ({"mapreduce": {"settings": {sizes.AM_MEMORY: "0"}}}, "not a number of MiB"),
    ],
)
def test_a_cluster_without_memory_for_a_job_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        sizes.check(cluster(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"core": {"resources": {"memory": "1Gi"}}},
        {"core": {"count": 1, "resources": {"memory": "1Gi"}}, "transient": {"maximum": 1}},
        {"core": {"resources": {"memory": "768Mi"}}, "compute": False, "master": {"resources": {"memory": "1Gi"}}},
    ],
)
def test_a_cluster_with_memory_for_a_job_is_accepted(fields):
    sizes.check(cluster(**fields))
