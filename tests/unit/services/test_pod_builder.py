"""The manifests of task pods."""

import dataclasses
import json
import pathlib

import msgspec
import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.services.mrjob import model, pod_builder, submission
from boathouse_policies.model import Resources
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders import mrjobs, reviewed
from tests.builders.sparkapps import only_container

GOLDEN = pathlib.Path(__file__).parent / "golden"
SPLIT = contract.Split(url="s3://b/in/book.txt", offset_bytes=64, length_bytes=32, size_bytes=100)
FULL = {
    "queue": "default",
    "image": "wordcount:1",
    "imagePullPolicy": "Always",
    "mapper": {
        "command": ["./mapper.py", "$(id)"],
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "2Gi", "example.com/gpu": 1},
            "limits": {"cpu": "2"},
        },
    },
    "combiner": {"command": ["./reducer.py"]},
    "reducer": {"command": ["./reducer.py"]},
    "numReduceTasks": 2,
    "files": [
        {"name": "mapper.py", "configMapKeyRef": {"name": "wc", "key": "m"}},
        {"name": "stop.txt", "url": "s3://b/stop.txt"},
    ],
    "inputFormat": "KeyValueTextInputFormat",
    "keyValueSeparator": ",",
    "outputSeparator": "|",
    "lazyOutput": True,
    "nonZeroExitIsFailure": False,
    "numReduceOutputKeyFields": 2,
    "conf": {"my.name": "value"},
    "archives": [{"name": "dictionary", "url": "s3://b/d.tgz", "maxSize": "1Mi"}],
    "env": [{"name": "LANG", "value": "C"}, {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    "storage": {"s3": {"endpointURL": "http://s3:7070", "secretRef": {"name": "s3-credentials"}}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}],
}


def manifest(job, task_type, node="n1"):
    sample = ((0, 9),) if task_type is TaskType.PROBE else ()
    return mrjobs.task_manifest(job, task_type, node, splits=(SPLIT,), sample=sample)


def variables(pod):
    return {variable["name"]: variable for variable in only_container(pod)["env"]}


@pytest.mark.parametrize("task_type", TaskType)
def test_the_pods_of_a_job_that_uses_every_field_are_as_reviewed(task_type):
    reviewed.check_manifest(GOLDEN / f"{task_type}.yaml", manifest(mrjobs.job(**FULL), task_type))


def test_the_runtime_decodes_its_task_spec():
    encoded = variables(manifest(mrjobs.job(**FULL), TaskType.MAP))[contract.TASK_ENV]["value"].replace("$$", "$")
    spec = msgspec.json.decode(encoded, type=contract.TaskSpec)
    assert (spec.split, spec.maps, spec.reduces, spec.mapper) == (SPLIT, 1, 2, ["./mapper.py", "$(id)"])
    assert spec.work_url == f"s3://b/out/_temporary/boathouse-{mrjobs.UID}"
    assert spec.files[0].path == "/files/mapper.py"


def test_dollar_signs_in_commands_are_not_expanded_by_kubernetes():
    assert "$(id)" not in variables(manifest(mrjobs.job(**FULL), TaskType.MAP))[contract.TASK_ENV]["value"].replace(
        "$$(id)", ""
    )


@pytest.mark.parametrize("cpu", ["1m", "500m", "2"])
def test_every_pod_is_burstable_with_any_request(cpu):
    job = mrjobs.job(mapper={"command": ["cat"], "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}}})
    resources = only_container(manifest(job, TaskType.MAP))["resources"]
    assert resources["requests"]["memory"] == "127Mi"
    assert resources["limits"]["memory"] == "128Mi"
    assert resources["requests"]["cpu"] != resources["limits"]["cpu"]


def test_a_pod_without_a_node_is_left_to_the_scheduler():
    pod = manifest(mrjobs.job(), TaskType.SETUP, node=None)
    assert "nodeName" not in pod["spec"]
    assert pod["spec"]["schedulerName"] == "boathouse"


def test_a_size_that_the_scheduler_decided_keeps_the_pod_burstable():
    job, attempt = mrjobs.job(), mrjobs.attempt(TaskType.REDUCE)
    factory = submission.Factory(pod_builder.PodBuilder(job=job, settings=mrjobs.SETTINGS), [attempt])
    pod = factory.build(submission.task_id(job, attempt), Resources(cpu_milli=250, memory_bytes=100 << 20), None)
    resources = only_container(pod)["resources"]
    assert (resources["limits"]["memory"], resources["requests"]["memory"]) == ("101Mi", "100Mi")


@pytest.mark.parametrize("name", ["wordcount", "a" * 253, "a.c", "a" * 40])
def test_pod_names_fit_and_differ_between_jobs(name):
    job = dataclasses.replace(mrjobs.job(), name=name)
    other = dataclasses.replace(job, name=f"{name[:-1]}b")
    latest = mrjobs.attempt(TaskType.REDUCE, 12345, 255)
    assert len(pod_builder.pod_name(job, latest)) <= 63
    assert "." not in pod_builder.pod_name(job, latest)
    assert pod_builder.pod_name(job, latest) != pod_builder.pod_name(other, latest)


def test_a_pods_name_has_its_job_step_task_and_attempt():
    assert pod_builder.pod_name(mrjobs.job(), mrjobs.attempt(TaskType.MAP, 42, 3)) == "wordcount-0a1b2c3d-s0-m-00042-a3"


def test_no_secret_is_in_the_manifest():
    secrets = [
        variable
        for variable in variables(manifest(mrjobs.job(**FULL), TaskType.MAP)).values()
        if "AWS" in variable["name"]
    ]
    assert all("value" not in secret for secret in secrets)
    assert len(secrets) == 3


def test_a_session_token_of_the_users_wins_over_that_of_the_secret():
    token = {"name": "AWS_SESSION_TOKEN", "value": "mine"}
    found = manifest(mrjobs.job(**FULL | {"env": [token]}), TaskType.MAP)["spec"]["containers"][0]["env"]
    assert [variable for variable in found if variable["name"] == token["name"]] == [token]


def test_pods_can_be_sent_as_json():
    pod = manifest(mrjobs.job(**FULL), TaskType.REDUCE)
    assert json.loads(json.dumps(pod)) == pod


@pytest.mark.parametrize(
    ("requested", "request_", "limit", "folder"),
    [(None, "1Gi", "10Gi", "10Gi"), ("2Gi", "2Gi", "10Gi", "2Gi"), ("20Gi", "20Gi", "20Gi", "20Gi")],
)
def test_a_pods_ephemeral_storage_is_what_its_job_requests_or_the_default(requested, request_, limit, folder):
    requests = {"ephemeral-storage": requested} if requested else {}
    job = mrjobs.job(mapper={"command": ["cat"], "resources": {"requests": requests}})
    pod = manifest(job, TaskType.MAP)
    resources = only_container(pod)["resources"]
    assert resources["requests"]["ephemeral-storage"] == request_
    assert resources["limits"]["ephemeral-storage"] == limit
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert {volumes[name]["emptyDir"]["sizeLimit"] for name in ("work", "tmp")} == {folder}


def test_where_nodes_report_no_ephemeral_storage_pods_request_none():
    none = {"task": {"image": "i", "ephemeralStorage": {"request": "", "limit": ""}}}
    job = model.from_resource(mrjobs.mrjob(), OperatorConfig.model_validate(none))
    for task_type in TaskType:
        assert "ephemeral-storage" not in str(only_container(manifest(job, task_type))["resources"])
