"""The CRD on a real API server: what it fills in, and what it says to what is wrong."""

from __future__ import annotations

import copy

import pytest

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names, status
from boathouse.services.mrjob.model import MRJOBS

pytestmark = pytest.mark.usefixtures("crds")

CRDS = catalogue.Resource(
    group="apiextensions.k8s.io",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    view=dict,
)
GOOD = {
    "input": ["s3://bucket/in"],
    "output": "s3://bucket/out",
    "mapper": {"command": ["cat"]},
    "reducer": {"command": ["cat"]},
    "storage": {"s3": {"endpointURL": "http://s3:7070", "secretRef": {"name": "s3"}}},
}
REQUESTS = {"resources": {"requests": {}}}


def job(**spec):
    merged = copy.deepcopy(GOOD) | spec
    return {
        "apiVersion": names.API_VERSION,
        "kind": mrjob_names.KIND,
        "metadata": {"generateName": "job-"},
        "spec": {key: value for key, value in merged.items() if value is not None},
    }


def mapper(**resources):
    return {"mapper": {"command": ["cat"], "resources": resources}}


async def test_the_crd_is_structural_and_its_rules_are_cheap_enough(api):
    found = await api.get(CRDS, status.MRJOB.name)
    bad = [condition for condition in found["status"]["conditions"] if condition["type"] == "NonStructuralSchema"]
    assert bad == []
    assert found["status"]["acceptedNames"]["shortNames"] == ["mrj"]


async def test_what_the_user_leaves_out_is_filled_in(api, namespace):
    created = await api.create(MRJOBS, job(mapper={"command": ["cat"]}), namespace)
    spec = created["spec"]
    assert spec["mapper"]["resources"] == {"requests": {"cpu": "1", "memory": "512Mi"}}
    assert spec["mapper"]["maxAttempts"] == 4
    assert (spec["splitMaxSize"], spec["imagePullPolicy"]) == ("64Mi", "IfNotPresent")
    assert (spec["inputFormat"], spec["maxRecordBytes"]) == ("TextInputFormat", "16Mi")
    assert spec["storage"]["s3"]["region"] == "us-east-1"


async def test_every_field_that_is_right_is_taken(api, namespace):
    full = job(
        queue="default",
        numReduceTasks=3,
        combiner={"command": ["cat"]},
        partitioner={"type": "KeyFieldBasedPartitioner", "options": "-k1,2"},
        splitMaxSize=1048576,
        files=[
            {"name": "a.py", "configMapKeyRef": {"name": "c", "key": "a"}},
            {"name": "b", "url": "s3://bucket/b"},
        ],
        env=[
            {"name": "LANG", "value": "C"},
            {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "batch", "operator": "Exists"}],
        **mapper(requests={"cpu": 2, "memory": "1Gi", "example.com/gpu": 1}, limits={"cpu": "4"}),
    )
    created = await api.create(MRJOBS, full, namespace)
    assert created["spec"]["files"] == full["spec"]["files"]
    assert created["spec"]["mapper"]["resources"]["requests"]["cpu"] == 2


WRONG = {
    "no input": ({"input": []}, "spec.input"),
    "an input without a scheme": ({"input": ["/data/in"]}, "s3://BUCKET/PATH"),
    "an output of an unknown scheme": ({"output": "gs://b/out"}, '"gs://b/out" has no scheme that tasks can read'),
    "mixed schemes": ({"output": "file:///out"}, "input and output must have the same scheme"),
    "an output in a cluster's HDFS": ({"output": "hdfs://etl/out"}, "input and output must have the same scheme"),
    "the output as an input": ({"output": "s3://bucket/in"}, "choose an output URL that does not exist yet"),
    "s3 without storage": ({"storage": None}, "s3:// URLs need spec.storage.s3"),
    "an endpoint without a scheme": ({"storage": {"s3": {"endpointURL": "s3:7070"}}}, "must begin with http"),
    "reduces without a reducer": (
        {"reducer": None, "numReduceTasks": 2},
        "numReduceTasks requests reduces, but there is no reducer",
    ),
    "a combiner in a map-only job": (
        {"numReduceTasks": 0, "combiner": {"command": ["cat"]}},
        "a combiner needs reduces",
    ),
    "too many reduces": ({"numReduceTasks": 10_001}, "10000"),
    "an empty command": ({"mapper": {"command": []}}, "spec.mapper.command"),
    "no attempts": ({"mapper": {"command": ["cat"], "maxAttempts": 0}}, "greater than or equal to 1"),
    "a quantity that is none": (mapper(requests={"memory": "1GB"}), '"1GB" is not a quantity'),
    "too little memory": (mapper(requests={"memory": "1Mi"}), 'memory "1Mi" is less than 64Mi: the task runtime'),
    "no cpu": (mapper(requests={"cpu": "0"}), 'cpu "0" is less than 1m'),
    "a negative resource": (mapper(requests={"example.com/gpu": -1}), '"-1" is less than 0'),
    "a misspelt resource": (mapper(requests={"mem": "1Gi"}), "requests may hold cpu, memory, ephemeral-storage"),
    "a memory limit": (mapper(limits={"memory": "1Gi"}), "limits may hold cpu only"),
    "a limit below its request": (mapper(requests={"cpu": "2"}, limits={"cpu": "1"}), "limits.cpu is less than"),
    "tiny splits": ({"splitMaxSize": "1"}, '"1" is less than 1Ki: smaller splits'),
    "options of another partitioner": ({"partitioner": {"options": "-k1"}}, "options are for type KeyFieldBased"),
    "options that are none": ({"partitioner": {"type": "KeyFieldBasedPartitioner", "options": "1"}}, "write -k1,2"),
    "a file from nowhere": ({"files": [{"name": "a"}]}, "file a: set exactly one of configMapKeyRef and url"),
    "a file from two places": (
        {"files": [{"name": "a", "url": "s3://b/a", "configMapKeyRef": {"name": "c", "key": "k"}}]},
        "file a: set exactly one of",
    ),
    "a file in a folder": ({"files": [{"name": "x/y", "url": "s3://b/a"}]}, "should match"),
    "two files of one name": ({"files": [{"name": "a", "url": "s3://b/a"}] * 2}, "Duplicate value"),
    "two values of a variable": (
        {"env": [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        "env A: set value or valueFrom, not both",
    ),
    "a value from nowhere": ({"env": [{"name": "A", "valueFrom": {}}]}, "set exactly one of secretKeyRef"),
    "our own variables": ({"env": [{"name": "BOATHOUSE_TASK", "value": "x"}]}, "belong to the task runtime"),
}


@pytest.mark.parametrize(("spec", "message"), WRONG.values(), ids=WRONG.keys())
async def test_what_is_wrong_is_refused_with_what_to_do(api, spec, message):
    with pytest.raises(errors.Invalid) as refused:
        await api.create(MRJOBS, job(**spec), "default", dry_run=True)
    assert message in refused.value.message


async def test_a_spec_is_immutable_after_creation(api, namespace):
    created = await api.create(MRJOBS, job(), namespace)
    with pytest.raises(errors.Invalid, match=r"spec\.numReduceTasks is immutable: delete and recreate the job"):
        await api.patch(MRJOBS, created["metadata"]["name"], {"spec": {"numReduceTasks": 5}}, namespace)


async def test_labels_may_change_and_the_status_is_written_apart(api, namespace):
    name = (await api.create(MRJOBS, job(), namespace))["metadata"]["name"]
    await api.patch(MRJOBS, name, {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Map"}}, namespace)
    patched = await api.patch_status(MRJOBS, name, {"phase": "Setup", "reason": None}, namespace)
    assert patched["status"] == {"phase": "Setup"}
