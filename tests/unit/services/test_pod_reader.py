"""Attempts of tasks as they are read from pods, and whose fault a failure is."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import attempt_pods
from boathouse_task import contract
from tests.builders.observed_pods import observed_pod, terminated, waiting

OWNER = {"apiVersion": names.API_VERSION, "kind": "MRJob", "uid": "j", "controller": True}
LABELS = {
    "boathouse.dev/job-uid": "j",
    "boathouse.dev/task-type": "map",
    "boathouse.dev/task-index": "7",
    "boathouse.dev/attempt": "2",
}


def read_attempt(phase="Running", state=None, *, labels=LABELS, limit="256Mi", annotations=None, **status):
    """Return the attempt of a pod with this status, whose container is in this state."""
    metadata = {"name": "p", "uid": "u", "ownerReferences": [OWNER], "labels": labels}
    metadata |= {"annotations": annotations or {}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    container = {"name": "task", "resources": {"limits": {"memory": limit}}}
    statuses = [{"name": "task", "state": state}] if state else []
    manifest = {
        "metadata": metadata,
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": phase, "containerStatuses": statuses} | status,
    }
    return attempt_pods.task_pod(observed_pod(manifest))


def read_ended_attempt(exit_code, message="", reason="Error", phase="Failed", **status):
    return read_attempt(phase, terminated(exit_code, message, reason), **status)


def result(**values):
    return msgspec.json.encode(contract.TaskResult(**values)).decode()


def blame(pod):
    """Return the reason of a failure, and whether it is the user's."""
    return (pod.ending.reason, pod.ending.user_error)


def test_the_labels_say_which_attempt_it_is():
    pod = read_attempt(state={"running": {}})
    assert (pod.task_name, pod.attempt, pod.state, pod.node) == ("m-00007", 2, PodLife.RUNNING, "n1")


def test_a_pod_without_labels_of_boathouse_is_no_attempt():
    assert attempt_pods.task_pod(facts.PodFacts(metadata=wire.ObjectMeta(name="p"))) is None


def test_a_result_of_success_is_a_success_even_before_the_phase_says_so():
    pod = read_ended_attempt(0, result(outcome="succeeded", winner_attempt=2), reason="Completed", phase="Running")
    assert (pod.state, pod.result.winner_attempt) == (PodLife.SUCCEEDED, 2)


def test_the_runtimes_own_result_is_taken_with_the_last_output_of_the_command():
    pod = read_ended_attempt(
        10,
        result(outcome="failed", reason="UserCommandFailed", message="exit 1", user_error=True, stderr_tail="boom\n"),
    )
    assert blame(pod) == ("UserCommandFailed", True)
    assert pod.ending.message.endswith("boom")
    assert pod.ending.exit_code == 10


@pytest.mark.parametrize(
    "reason", ["OutOfcpu", "OutOfmemory", "OutOfpods", "NodeLost", "Evicted", "Preempting", "Shutdown"]
)
def test_what_the_kubelet_refuses_or_removes_is_the_infrastructures_fault(reason):
    assert blame(read_attempt("Failed", reason=reason, message="m")) == (reason, False)


def test_a_pod_evicted_for_its_own_scratch_space_is_the_users_fault_though_the_runtime_says_terminated():
    message = 'Usage of EmptyDir volume "work" exceeds the limit "1Gi".'
    state = terminated(143, result(outcome="failed", reason="Terminated"))
    pod = read_attempt("Failed", state, reason="Evicted", message=message)
    assert blame(pod) == ("OutOfDisk", True)


def test_a_disruption_is_the_infrastructures_fault():
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    assert blame(read_ended_attempt(143, conditions=[condition])) == ("DeletionByTaintManager", False)


@pytest.mark.parametrize(
    ("exit_code", "container_reason", "expected"),
    [
        (137, "OOMKilled", ("OOMKilled", True)),
        (137, "Error", ("PodLost", False)),
        (143, "Error", ("PodLost", False)),
        (128, "StartError", ("RuntimeNotFound", True)),
        (0, "Completed", ("RuntimeNotFound", True)),
        (3, "Error", ("TaskFailed", True)),
    ],
)
def test_a_container_that_left_no_result_is_judged_by_how_it_ended(exit_code, container_reason, expected):
    assert blame(read_ended_attempt(exit_code, "not json", container_reason)) == expected


def test_a_pod_that_succeeded_without_a_result_has_failed():
    pod = read_ended_attempt(0, "", "Completed", phase="Succeeded")
    assert pod.state is PodLife.FAILED


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("ImagePullBackOff", "Back-off pulling image", "ImagePullFailed"),
        ("ErrImagePull", "no such host", "ImagePullFailed"),
        ("CreateContainerConfigError", 'secret "s3" not found', "SecretNotFound"),
        ("CreateContainerConfigError", "couldn't find key AWS_ACCESS_KEY_ID in Secret demo/s3", "SecretNotFound"),
        ("CreateContainerConfigError", 'configmap "wc" not found', "ConfigMapNotFound"),
        ("CreateContainerConfigError", "container has runAsNonRoot", "InvalidPod"),
    ],
)
def test_a_pod_that_cannot_start_says_what_is_missing(reason, message, expected):
    pod = read_attempt("Pending", waiting(reason, message))
    assert (pod.state, pod.problem.reason) == (PodLife.STARTING, expected)
    assert message in pod.problem.message


def test_a_pod_that_is_being_created_has_no_problem():
    assert read_attempt("Pending", waiting("ContainerCreating")).problem is None


def test_a_pods_start_is_timed_from_its_placement():
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:05:00Z"}
    assert read_attempt("Pending", conditions=[scheduled]).placed_s - read_attempt("Pending").placed_s == 300


# --- whose fault it is


def read_out_of_memory(labels=LABELS, **annotations):
    message = result(outcome="unfinished", stderr_tail="reading the whole file")
    return read_attempt("Failed", terminated(137, message, "OOMKilled"), labels=labels, annotations=annotations)


def test_out_of_memory_names_the_field_to_raise_and_its_value():
    pod = read_out_of_memory()
    assert blame(pod) == ("OOMKilled", True)
    assert "raise the mapper's resources.requests.memory (256Mi)" in pod.ending.message


def test_out_of_memory_in_a_later_step_names_the_step():
    pod = read_out_of_memory(LABELS | {"boathouse.dev/step": "1", "boathouse.dev/task-type": "reduce"})
    assert "the reducer of step 2's resources.requests.memory" in pod.ending.message


def test_out_of_memory_with_less_than_was_requested_is_not_the_users_fault():
    pod = read_out_of_memory(**{"boathouse.dev/ideal-memory": str(512 << 20)})
    assert blame(pod) == ("OOMKilled", False)
    assert "256Mi instead of 512Mi" in pod.ending.message


def test_the_last_output_of_a_killed_task_is_kept():
    assert read_out_of_memory().ending.message.endswith("ended with: reading the whole file")


def test_a_command_that_fails_because_its_node_shuts_down_is_not_the_jobs_fault():
    message = result(outcome="failed", reason="UserCommandFailed", user_error=True, message="exited with status 1")
    pod = read_attempt("Failed", terminated(10, message), reason="Terminated", message="imminent node shutdown")
    assert blame(pod) == ("Terminated", False)


def test_the_commands_own_exit_code_is_kept():
    message = result(outcome="failed", reason="UserCommandFailed", user_error=True, message="m", exit_code=42)
    assert read_ended_attempt(10, message).ending.exit_code == 42


@pytest.mark.parametrize(
    "label",
    [
        {"task-index": "40000"},
        {"task-index": "²"},
        {"task-index": "٣"},
        {"task-index": "-1"},
        {"task-index": "9" * 5000},
        {"attempt": "0"},
        {"attempt": "65535"},
        {"attempt": "1_0"},
        {"step": "32"},
        {"step": " 1"},
        {"task-type": "evil"},
    ],
    ids=lambda label: f"{next(iter(label))} {next(iter(label.values()))[:8]}",
)
def test_a_pod_whose_labels_name_no_possible_task_is_no_attempt(label):
    labels = LABELS | {f"boathouse.dev/{name}": value for name, value in label.items()}
    assert attempt_pods.task_pod(facts.PodFacts(metadata=wire.ObjectMeta(name="p", labels=labels))) is None


@pytest.mark.parametrize("text", ["²", "9" * 5000, "-1", str(2**63)], ids=lambda text: text[:8])
def test_an_annotation_that_is_no_amount_of_memory_is_ignored(text):
    meta = wire.ObjectMeta(name="p", annotations={"boathouse.dev/ideal-memory": text})
    assert attempt_pods.ideal_memory_bytes(facts.PodFacts(metadata=meta)) == 0


def test_reasons_of_pods_come_from_a_closed_set_and_the_message_keeps_the_others():
    refused = read_attempt("Failed", reason="OutOfexample.com/anything", message="no room")
    strange = read_attempt("Failed", reason="Hacked", message="m")
    disrupted = read_ended_attempt(
        143, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "x" * 100}]
    )
    assert [blame(pod)[0] for pod in (refused, strange, disrupted)] == ["OutOfResource", "PodLost", "PodLost"]
    assert strange.ending.message == "Hacked: m"


def test_a_message_of_the_kubelet_is_cut():
    pod = read_attempt("Pending", waiting("ErrImagePull", "x" * 100_000))
    assert len(pod.problem.message) < 2000
