"""The CRD of MRClusters on a real API server: what it accepts, and what it says to what is wrong."""

from __future__ import annotations

import contextlib
import json

import pytest

from boathouse.cluster import errors
from boathouse.resources import names
from boathouse.services.mrcluster.model import MRCLUSTERS
from tests.builders.crds import field_rows

pytestmark = pytest.mark.usefixtures("crds")

ACCEPTED = (
    {},
    {"core": {"count": 1}, "hdfs": {"replication": 1}},
    {"core": {"count": 3, "maximum": 3}, "hdfs": {"replication": 3, "blockSize": 1048576}},
    {"resizing": {"policy": "GSP"}, "transient": {"maximum": 1}},
    {"resizing": {"policy": "GGP"}, "transient": {"minimum": 2, "maximum": 500}},
    {"resizing": {"policy": "GGDP"}, "core": {"count": 2, "maximum": 200}},
    {"resizing": {"growBy": 9, "shrinkBelowPercent": 10, "growAbovePercent": 100}},
    {"compute": False, "hdfs": {"settings": {"dfs.heartbeat.interval": "1"}}},
    {"dataPolicy": "Delete", "core": {"volume": {"emptyDir": True, "medium": "Memory", "size": "64Mi"}}},
    {"classpath": "/opt/a.jar:/opt/hadoop/lib/*:/etc/more", "javaHome": "/usr/lib/jvm/java-17+1", "version": "3.3.6"},
    {"zones": ["a", "b"], "weight": 1000, "ttlSecondsAfterIdle": 60, "networkPolicy": "Cluster"},
    {"env": [{"name": "TZ", "value": "UTC"}], "hadoopSettings": {"fs.s3a.endpoint": "https://s3.example.com/ü?a=${b}"}},
    {"hadoopSettings": {"fs.defaultFS": "ignored"}},
)
LARGE = {part: {"settings": {f"k{n}": "x" * 4096 for n in range(6)}} for part in ("hdfs", "yarn", "mapreduce")}
FIXED = (
    ("queue", "one", "two"),
    ("version", "3.4.2", "3.4.3"),
    ("compute", True, False),
    ("dataPolicy", "Retain", "Delete"),
    ("master", {"volume": {"size": "1Gi"}}, {"volume": {"size": "2Gi"}}),
    ("core", {"volume": {"size": "1Gi"}}, {"volume": {"size": "2Gi"}}),
)


def cluster(name="etl", **spec):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": names.API_VERSION, "kind": "MRCluster", "metadata": metadata, "spec": spec}


@pytest.fixture
async def stored(api):
    """Create clusters that are deleted at the end."""
    async with contextlib.AsyncExitStack() as ends:

        async def create(name, **spec):
            made = await api.create(MRCLUSTERS, cluster(name, **spec), "default")
            ends.push_async_callback(api.delete, MRCLUSTERS, name, "default", uid=made["metadata"]["uid"])
            return made

        yield create


@pytest.mark.parametrize(("field", "wrong", "answer"), field_rows("MRCluster"))
async def test_a_wrong_value_gets_what_the_page_says(api, field, wrong, answer):
    assert answer in await refused(api, **json.loads(wrong)), field


@pytest.mark.parametrize("spec", ACCEPTED, ids=json.dumps)
async def test_what_is_just_within_the_rules_is_accepted(api, spec):
    await api.create(MRCLUSTERS, cluster(**spec), "default", dry_run=True)


async def test_settings_have_a_bound_in_all(api):
    assert "settings may have 65536 bytes in total" in await refused(api, **LARGE)


@pytest.mark.parametrize("name", ["x" * 41, "1st", "a.b"])
async def test_a_name_that_is_no_part_of_a_host_name_is_refused(api, name):
    assert "metadata.name of a cluster has at most 40" in await refused(api, name)


@pytest.mark.parametrize(("field", "before", "after"), FIXED, ids=[field for field, _, _ in FIXED])
async def test_what_the_data_rest_on_is_immutable(api, stored, field, before, after):
    await stored("fixed", **{field: before})
    with pytest.raises(errors.Invalid, match=rf"spec\.{field}\S* is immutable: delete and recreate the cluster"):
        await api.patch(MRCLUSTERS, "fixed", {"spec": {field: after}}, "default")


async def test_the_cluster_never_has_fewer_core_nodes_than_at_first(api, stored):
    await stored("core", core={"count": 3})
    await api.patch_status(MRCLUSTERS, "core", {"firstCoreNodes": 3}, "default")
    await api.patch(MRCLUSTERS, "core", {"spec": {"core": {"count": 5}}}, "default")
    await api.patch(MRCLUSTERS, "core", {"spec": {"core": {"count": 3}}}, "default")
    with pytest.raises(errors.Invalid, match=r"spec\.core\.count is less than the number of core nodes"):
        await api.patch(MRCLUSTERS, "core", {"spec": {"core": {"count": 2}}}, "default")


async def test_other_fields_may_change(api, stored):
    await stored("open")
    changes = {"image": "hadoop:2", "weight": 2, "core": {"resources": {"memory": "4Gi"}}, "zones": ["a"]}
    await api.patch(MRCLUSTERS, "open", {"spec": changes}, "default")


async def test_defaults_are_filled_in(api):
    made = await api.create(MRCLUSTERS, cluster(core={"count": 2}), "default", dry_run=True)
    assert made["spec"]["core"]["resources"] == {"cpu": "1", "memory": "2Gi"}
    assert made["spec"]["resizing"]["growAbovePercent"] == 150
    assert made["spec"]["hdfs"] == {"blockSize": "128Mi"}
    assert "image" not in made["spec"]


async def refused(api, name="etl", **spec):
    with pytest.raises(errors.Invalid) as error:
        await api.create(MRCLUSTERS, cluster(name, **spec), "default", dry_run=True)
    return error.value.message
