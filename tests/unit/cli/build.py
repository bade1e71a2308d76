"""Builders: API objects as the commands get them, with only what a test cares about said."""

import datetime as dt
import json

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_task import contract

START_S = 1_800_000_000.0


def at(offset_s: float) -> str:
    """A Kubernetes time, `offset_s` after the job's creation: cut to its second."""
    return dt.datetime.fromtimestamp(int(START_S + offset_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(1)}


def job(name: str = "wordcount", *, conditions: list[dict] | None = None, **status: object) -> dict:
    return {
        "metadata": {"name": name, "namespace": "demo", "uid": "u-1", "creationTimestamp": at(0)},
        "spec": {"output": "s3://books/out"},
        "status": {"conditions": conditions or []} | status,
    }


def pod(
    task_type: str = "map", index: int = 0, *, node: str | None = "node-0", created_s: float = 0, attempt: int = 1
) -> dict:
    task = contract.task_name(contract.TaskType(task_type), index)
    labels = {
        mrjob_names.LABEL_TASK_TYPE: task_type,
        mrjob_names.LABEL_TASK_INDEX: str(index),
        mrjob_names.LABEL_ATTEMPT: str(attempt),
        names.LABEL_QUEUE: "default",
    }
    return {
        "metadata": {
            "name": f"wc-s0-{task}-a{attempt}",
            "namespace": "demo",
            "uid": f"pod-{task}-{attempt}",
            "labels": labels,
            "creationTimestamp": at(created_s),
        },
        "spec": {"schedulerName": names.SCHEDULER_NAME} | ({"nodeName": node} if node else {}),
        "status": {"phase": "Pending"},
    }


def running(raw: dict, *, since_s: float) -> dict:
    return _with_state(raw, "Running", {"running": {"startedAt": at(since_s)}})


def ended(raw: dict, *phases: tuple[str, float, float], reason: str = "") -> dict:
    """A pod whose task went through these phases (name, start, end in seconds after the job's creation)."""
    timings = [[name, round((START_S + start) * 1000), round((START_S + end) * 1000)] for name, start, end in phases]
    outcome = "failed" if reason else "succeeded"
    message = json.dumps({"outcome": outcome, "reason": reason, "message": "it broke", "timings": timings})
    times = {"startedAt": at(phases[0][1]), "finishedAt": at(phases[-1][2]), "exitCode": 10 if reason else 0}
    return _with_state(raw, "Failed" if reason else "Succeeded", {"terminated": {"message": message} | times})


def placed(raw: dict, *, at_s: float) -> dict:
    """A pod that got its node later than it was created."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(at_s)}
    return raw | {"status": raw["status"] | {"conditions": [scheduled]}}


def killed(raw: dict, *, start_s: float, end_s: float) -> dict:
    times = {"startedAt": at(start_s), "finishedAt": at(end_s), "exitCode": 137, "reason": "Error"}
    return _with_state(raw, "Failed", {"terminated": times})


def _with_state(raw: dict, phase: str, state: dict) -> dict:
    return raw | {"status": {"phase": phase, "containerStatuses": [{"name": names.CONTAINER, "state": state}]}}


APP_UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"


def app(name: str = "pi", *, conditions: list[dict] | None = None, **status: object) -> dict:
    return {
        "kind": "SparkApp",
        "metadata": {"name": name, "namespace": "demo", "uid": APP_UID, "creationTimestamp": at(0)},
        "spec": {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"},
        "status": {"conditions": conditions or []} | status,
    }


def driver(*, attempt: int = 1, node: str | None = "node-0", created_s: float = 0, owner: str = APP_UID) -> dict:
    labels = {mrjob_names.LABEL_TASK_TYPE: "driver", mrjob_names.LABEL_ATTEMPT: str(attempt)}
    return _spark_pod("driver", f"pi-0a1b2c3d-a{attempt}-driver", attempt, labels, node, created_s, owner)


def executor(number: int = 1, *, attempt: int = 1, node: str | None = "node-1", created_s: float = 5) -> dict:
    name, owner = f"pi-0a1b2c3d-a{attempt}-exec-{number}", f"uid-of-pi-0a1b2c3d-a{attempt}-driver"
    return _spark_pod("executor", name, attempt, {"spark-exec-id": str(number)}, node, created_s, owner)


def spark_running(raw: dict, *, since_s: float) -> dict:
    return _in_spark(running(raw, since_s=since_s))


def spark_ended(raw: dict, *, start_s: float, end_s: float, exit_code: int = 0) -> dict:
    times = {"startedAt": at(start_s), "finishedAt": at(end_s), "exitCode": exit_code}
    return _in_spark(_with_state(raw, "Failed" if exit_code else "Succeeded", {"terminated": times}))


def _spark_pod(
    role: str, name: str, attempt: int, labels: dict, node: str | None, created_s: float, owner: str
) -> dict:
    known = {"spark-role": role, "spark-app-selector": f"spark-{APP_UID.replace('-', '')}-{attempt}"}
    return {
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": f"uid-of-{name}",
            "labels": {**known, **labels},
            "creationTimestamp": at(created_s),
            "ownerReferences": [{"uid": owner}],
        },
        "spec": {"schedulerName": names.SCHEDULER_NAME} | ({"nodeName": node} if node else {}),
        "status": {"phase": "Pending"},
    }


CLUSTER_UID = "5f6a7b8c-1d2e-3f40-a1b2-c3d4e5f60718"


def cluster(name: str = "etl", *, conditions: list[dict] | None = None, **status: object) -> dict:
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MRCluster",
        "metadata": {"name": name, "namespace": "demo", "uid": CLUSTER_UID, "creationTimestamp": at(0)},
        "spec": {
            "core": {"count": 3},
            "transient": {"minimum": 0, "maximum": 8},
            "resizing": {"policy": "GSP"},
            "weight": 2,
        },
        "status": {"conditions": conditions or []} | status,
    }


def cluster_pod(host: str = "c0", *, node: str | None = "node-0", created_s: float = 2) -> dict:
    role = {"m": "master", "c": "core", "t": "transient"}[host[0]]
    container = {"master": "namenode", "core": "datanode", "transient": "nodemanager"}[role]
    labels = {"boathouse.dev/task-type": role, "boathouse.dev/host": host, names.LABEL_JOB_UID: CLUSTER_UID}
    containers = ["namenode", "resourcemanager"] if role == "master" else [container]
    running = {"name": container, "state": {"running": {"startedAt": at(created_s + 4)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"etl-{host}",
            "namespace": "demo",
            "uid": f"uid-of-{host}",
            "labels": labels,
            "creationTimestamp": at(created_s),
        },
        "spec": {"schedulerName": names.SCHEDULER_NAME, "containers": [{"name": each} for each in containers]}
        | ({"nodeName": node} if node else {}),
        "status": {"phase": "Running" if node else "Pending", "containerStatuses": [running] if node else []},
    }


def _in_spark(raw: dict) -> dict:
    role = raw["metadata"]["labels"]["spark-role"]
    statuses = [{**each, "name": f"spark-kubernetes-{role}"} for each in raw["status"]["containerStatuses"]]
    return raw | {"status": raw["status"] | {"containerStatuses": statuses}}
