"""The pods of clients, as they are made and as they are read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.hadoop import client_pod, observation
from boathouse.services.mrjob.hadoop.client_pod import ClientBuilder
from boathouse_policies import model
from boathouse_task import cluster_contract, contract
from boathouse_task.cluster_contract import ClientSpec
from tests.builders import mrjobs
from tests.builders.observed_pods import observed_pod, terminated, waiting
from tests.builders.simulated_hadoop_job import CLUSTER

NODE = model.NodeName("n1")


def client_manifest(**spec: Any) -> dict[str, Any]:
    job = mrjobs.cluster_job(**spec)
    builder = ClientBuilder(
        job=job,
        attempt=2,
        cluster=CLUSTER,
        clusters=(CLUSTER,),
        settings=mrjobs.SETTINGS,
        image="task:dev",
        image_pull_policy="Always",
        hdfs={},
    )
    return builder.build(builder.task_id, client_pod.RESOURCES, NODE)


def variables_of(container: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


def client_spec(manifest: dict[str, Any]) -> ClientSpec:
    text = variables_of(manifest["spec"]["initContainers"][0])[cluster_contract.CLIENT_ENV]
    return msgspec.json.decode(text.replace("$$", "$"), type=ClientSpec)


def read_client(phase: str = "Running", state: dict[str, Any] | None = None, **status: Any) -> observation.ClientPod:
    """Return the client of a pod that the operator created, with this status."""
    manifest = client_manifest()
    manifest["metadata"] |= {"uid": "p", "creationTimestamp": "2026-01-01T00:00:00Z"}
    statuses = [{"name": "task", "state": state}] if state else []
    manifest["status"] = {"phase": phase, "containerStatuses": statuses} | status
    found = observation.read_client(observed_pod(manifest))
    assert found is not None
    return found


def read_ended_client(exit_code: int, message: str = "", reason: str = "Error") -> observation.ClientPod:
    return read_client(state=terminated(exit_code, message, reason))


def test_the_cluster_s_image_submits_and_the_task_image_runs_beside_it() -> None:
    spec = client_manifest()["spec"]
    (runtime,), (submitter,) = spec["initContainers"], spec["containers"]
    assert (runtime["image"], runtime["restartPolicy"], runtime["command"]) == (
        "task:dev",
        "Always",
        ["boathouse-task", "client"],
    )
    assert submitter["image"] == CLUSTER.image
    assert submitter["command"][:3] == ["sh", "/etc/hadoop/client.sh", "org.apache.hadoop.streaming.HadoopStreaming"]
    assert submitter["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_a_client_without_memory_ends_and_it_has_no_privileges() -> None:
    (submitter,) = client_manifest()["spec"]["containers"]
    assert "-XX:+ExitOnOutOfMemoryError" in variables_of(submitter)["BOATHOUSE_JAVA_OPTS"].split()
    assert submitter["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_only_the_task_image_has_the_token() -> None:
    spec = client_manifest()["spec"]
    mounts = [
        {mount["name"] for mount in part["volumeMounts"]} for part in (*spec["initContainers"], *spec["containers"])
    ]
    assert ["token" in mount_names for mount_names in mounts] == [True, False]


def test_the_scheduler_counts_what_the_pod_requests() -> None:
    facts = observed_pod(client_manifest())
    assert facts.resources == client_pod.RESOURCES


def test_the_client_spec_has_the_tag_and_the_scripts_of_the_attempt() -> None:
    found = client_spec(client_manifest(mapper={"command": ["m.py", "$(id)"]}, env=[{"name": "A", "value": "b"}]))
    assert found.settings["mapreduce.job.tags"] == f"{mrjobs.UID}-2"
    assert found.scripts["boathouse-mapper"] == ["m.py", "$(id)"]
    assert (found.attempt, found.exported) == (2, ["A"])


def test_the_pod_names_the_keys_of_the_storage_and_has_no_value_of_them() -> None:
    manifest = client_manifest(storage={"s3": {"secretRef": {"name": "keys"}}})
    keys = {"fs.s3a.access.key": "AWS_ACCESS_KEY_ID", "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY"}
    variables = keys | {"fs.s3a.session.token": "AWS_SESSION_TOKEN"}
    assert client_spec(manifest).secret_settings == variables
    (runtime,), (submitter,) = manifest["spec"]["initContainers"], manifest["spec"]["containers"]
    sources = {variable["name"]: variable.get("valueFrom") for variable in runtime["env"]}
    for name in variables.values():
        optional = {"optional": True} if name == "AWS_SESSION_TOKEN" else {}
        assert sources[name] == {"secretKeyRef": {"name": "keys", "key": name, **optional}}
        assert name not in variables_of(submitter)


PROGRAM: dict[str, Any] = {"jar": {"url": "local:///opt/j.jar"}}
SECRETS: list[dict[str, Any]] = [
    {"storage": {"s3": {"secretRef": {"name": "keys"}}}},
    {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}}]},
    {"envFrom": [{"secretRef": {"name": "keys"}}]},
]


@pytest.mark.parametrize("spec", SECRETS, ids=lambda spec: next(iter(spec)))
def test_the_status_has_no_output_of_a_program_with_secrets(spec: dict[str, Any]) -> None:
    assert client_manifest(**PROGRAM, **spec)["spec"]["containers"][0]["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize("spec", [{}, {"env": [{"name": "A", "value": "b"}]}], ids=["no variables", "plain variables"])
def test_the_status_has_the_last_lines_of_a_program_without_secrets(spec: dict[str, Any]) -> None:
    policy = client_manifest(**PROGRAM, **spec)["spec"]["containers"][0]["terminationMessagePolicy"]
    assert policy == "FallbackToLogsOnError"


@pytest.mark.parametrize("storage", [None, {"s3": {}}], ids=["no storage", "no secret"])
def test_a_job_without_a_secret_has_no_keys(storage: dict[str, Any] | None) -> None:
    assert client_spec(client_manifest(storage=storage)).secret_settings == {}


def test_arguments_are_not_expanded_by_kubernetes() -> None:
    jar = {"url": "local:///opt/j.jar", "arguments": ["$(HOME)"]}
    assert client_manifest(jar=jar)["spec"]["containers"][0]["command"][-1] == "$$(HOME)"


def test_variables_of_boathouse_come_last_so_that_they_win() -> None:
    (submitter,) = client_manifest(env=[{"name": "JAVA_HOME", "value": "/x"}])["spec"]["containers"]
    assert [variable["name"] for variable in submitter["env"]].count("JAVA_HOME") == 2
    assert variables_of(submitter)["JAVA_HOME"] == CLUSTER.java_home


def test_the_user_may_let_the_client_have_more_heaps_of_glibc() -> None:
    assert variables_of(client_manifest()["spec"]["containers"][0])["MALLOC_ARENA_MAX"] == "4"
    (submitter,) = client_manifest(env=[{"name": "MALLOC_ARENA_MAX", "value": "8"}])["spec"]["containers"]
    assert variables_of(submitter)["MALLOC_ARENA_MAX"] == "8"


def test_a_pod_that_was_built_is_read() -> None:
    found = read_client(state={"running": {}})
    assert (found.attempt, found.state, found.node) == (2, PodLife.RUNNING, "n1")
    assert found.settings == CLUSTER.settings


def test_a_pod_of_another_type_is_no_client() -> None:
    manifest = client_manifest()
    manifest["metadata"]["labels"]["boathouse.dev/task-type"] = "map"
    assert observation.read_client(observed_pod(manifest)) is None


def test_a_client_has_ended_when_its_first_container_has() -> None:
    assert (read_ended_client(0).state, read_ended_client(0).ending) == (PodLife.SUCCEEDED, None)
    assert read_ended_client(1).state is PodLife.FAILED


@pytest.mark.parametrize(
    ("pod", "reason", "user_error"),
    [
        (read_ended_client(1, "Exception in thread main"), "TaskFailed", True),
        (read_ended_client(137), "PodLost", False),
        (read_ended_client(137, reason="OOMKilled"), "OOMKilled", True),
        (read_ended_client(128, "no sh", reason="StartError"), "RuntimeNotFound", True),
        (read_client("Failed", reason="Evicted", message="the node was low on memory"), "Evicted", False),
    ],
    ids=["program", "killed", "memory", "no shell", "evicted"],
)
def test_a_failure_is_the_users_or_the_infrastructures(
    pod: observation.ClientPod, reason: str, user_error: bool
) -> None:
    assert pod.ending is not None
    assert (pod.ending.reason, pod.ending.user_error) == (reason, user_error)


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("CreateContainerConfigError", 'secret "keys" not found', "SecretNotFound"),
        ("ImagePullBackOff", "no such image", "ImagePullFailed"),
    ],
)
@pytest.mark.parametrize("part", ["initContainerStatuses", "containerStatuses"])
def test_a_client_says_why_one_of_its_containers_does_not_start(
    part: str, reason: str, message: str, expected: str
) -> None:
    name = {"initContainerStatuses": "runtime", "containerStatuses": "task"}[part]
    found = read_client("Pending", **{part: [{"name": name, "state": waiting(reason, message)}]})
    assert found.problem is not None
    assert (found.state, found.problem.reason) == (PodLife.STARTING, expected)


def test_a_client_that_is_prepared_has_no_problem() -> None:
    runtime = [{"name": "runtime", "state": {"running": {}}}]
    assert read_client("Pending", waiting("PodInitializing"), initContainerStatuses=runtime).problem is None


def test_an_error_of_the_task_image_is_the_ending() -> None:
    result = contract.TaskResult(outcome="failed", reason="FileNotFound", message="no such file", user_error=True)
    ending = read_ended_client(1, msgspec.json.encode(result).decode()).ending
    assert ending is not None
    assert (ending.reason, ending.message) == ("FileNotFound", "no such file")
