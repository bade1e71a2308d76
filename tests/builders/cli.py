"""Objects of the API server as the commands of `boathouse` get them: jobs, clusters, and pods in all states."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import TYPE_CHECKING

from rich import console

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_task import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typer.testing import Result

    from boathouse_cli.timeline import Activity, Timeline

START_S = 1_800_000_000.0
APP_UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
CLUSTER_UID = "5f6a7b8c-1d2e-3f40-a1b2-c3d4e5f60718"


def time(offset_s: float) -> str:
    """A time of Kubernetes, `offset_s` after the job's creation: cut to its second."""
    return dt.datetime.fromtimestamp(int(START_S + offset_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict:
    """A condition of a job or a cluster."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time(1)}


def mrjob(name: str = "wordcount", **status: object) -> dict:
    """An MRJob."""
    return _resource("MRJob", name, "u-1", {"output": "s3://books/out"}, status)


def sparkapp(name: str = "pi", **status: object) -> dict:
    """A SparkApp."""
    spec = {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"}
    return _resource("SparkApp", name, APP_UID, spec, status)


def mrcluster(name: str = "etl", **status: object) -> dict:
    """An MRCluster."""
    spec = {
        "core": {"count": 3},
        "transient": {"minimum": 0, "maximum": 8},
        "resizing": {"policy": "GSP"},
        "weight": 2,
    }
    return _resource("MRCluster", name, CLUSTER_UID, spec, status)


def _resource(kind: str, name: str, uid: str, spec: dict, status: dict) -> dict:
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": "demo", "uid": uid, "creationTimestamp": time(0)},
        "spec": spec,
        "status": {"conditions": [], **status},
    }


def task_pod(
    task_type: str = "map", index: int = 0, *, node: str | None = "node-0", created_s: float = 0, attempt: int = 1
) -> dict:
    """A pod of an MRJob that has not started; without a node it is pending."""
    task = contract.task_name(contract.TaskType(task_type), index)
    labels = {
        mrjob_names.LABEL_TASK_TYPE: task_type,
        mrjob_names.LABEL_TASK_INDEX: str(index),
        mrjob_names.LABEL_ATTEMPT: str(attempt),
        names.LABEL_QUEUE: "default",
    }
    return _pod(f"wc-s0-{task}-a{attempt}", labels, node, created_s)


def driver_pod(*, attempt: int = 1, node: str | None = "node-0", created_s: float = 0, owner: str = APP_UID) -> dict:
    """The pod of a driver that has not started."""
    labels = {mrjob_names.LABEL_TASK_TYPE: "driver", mrjob_names.LABEL_ATTEMPT: str(attempt)}
    return _pod(f"pi-0a1b2c3d-a{attempt}-driver", _spark("driver", attempt) | labels, node, created_s, owner)


def executor_pod(number: int = 1, *, attempt: int = 1, node: str | None = "node-1", created_s: float = 5) -> dict:
    """The pod of an executor that has not started."""
    labels = _spark("executor", attempt) | {"spark-exec-id": str(number)}
    name, owner = f"pi-0a1b2c3d-a{attempt}-exec-{number}", f"uid-of-pi-0a1b2c3d-a{attempt}-driver"
    return _pod(name, labels, node, created_s, owner)


def _spark(role: str, attempt: int) -> dict[str, str]:
    return {"spark-role": role, "spark-app-selector": f"spark-{APP_UID.replace('-', '')}-{attempt}"}


def host_pod(host: str = "c0", *, node: str | None = "node-0", created_s: float = 2) -> dict:
    """The pod of a host of an MRCluster; it runs if it has a node."""
    role = {"m": "master", "c": "core", "t": "transient"}[host[0]]
    daemons = {"master": ["namenode", "resourcemanager"], "core": ["datanode"], "transient": ["nodemanager"]}[role]
    labels = {"boathouse.dev/task-type": role, "boathouse.dev/host": host, names.LABEL_JOB_UID: CLUSTER_UID}
    pod = _pod(f"etl-{host}", labels, node, created_s)
    pod["spec"]["containers"] = [{"name": daemon} for daemon in daemons]
    return running_pod(pod, since_s=created_s + 4) if node else pod


def _pod(name: str, labels: Mapping[str, str], node: str | None, created_s: float, owner: str = "") -> dict:
    metadata = {
        "name": name,
        "namespace": "demo",
        "uid": f"uid-of-{name}",
        "labels": dict(labels),
        "creationTimestamp": time(created_s),
        "ownerReferences": [{"uid": owner}] if owner else [],
    }
    spec = {"schedulerName": names.SCHEDULER_NAME} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def bound_pod(pod: dict, *, at_s: float) -> dict:
    """The pod with the time at which it got its node."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": time(at_s)}
    return pod | {"status": pod["status"] | {"conditions": [scheduled]}}


def running_pod(pod: dict, *, since_s: float) -> dict:
    """The pod with a running container."""
    return _with_state(pod, "Running", {"running": {"startedAt": time(since_s)}})


def terminated_pod(pod: dict, *, start_s: float, end_s: float, exit_code: int = 0, message: str = "") -> dict:
    """The pod after its container has ended."""
    ended = {
        "startedAt": time(start_s),
        "finishedAt": time(end_s),
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "message": message,
    }
    return _with_state(pod, "Failed" if exit_code else "Succeeded", {"terminated": ended})


def ended_task_pod(pod: dict, *phases: tuple[str, float, float], reason: str = "") -> dict:
    """The pod of a task with these phases: name, start and end in seconds after the job's creation."""
    timings = [[name, round((START_S + start) * 1000), round((START_S + end) * 1000)] for name, start, end in phases]
    outcome = "failed" if reason else "succeeded"
    message = json.dumps({"outcome": outcome, "reason": reason, "message": "it broke", "timings": timings})
    start_s, end_s = phases[0][1], phases[-1][2]
    return terminated_pod(pod, start_s=start_s, end_s=end_s, exit_code=10 if reason else 0, message=message)


def _with_state(pod: dict, phase: str, state: dict) -> dict:
    role, containers = pod["metadata"]["labels"].get("spark-role"), pod["spec"].get("containers", ())
    container = f"spark-kubernetes-{role}" if role else names.CONTAINER
    if containers:
        container = containers[0]["name"]
    return pod | {"status": {"phase": phase, "containerStatuses": [{"name": container, "state": state}]}}


def printed(drawn: object, width: int = 200) -> str:
    """What a terminal shows of a table or a text."""
    out = io.StringIO()
    console.Console(file=out, width=width).print(drawn)
    return out.getvalue()


def wall_seconds(line: Timeline) -> dict[Activity, float]:
    """The seconds of each activity along the critical path."""
    from boathouse_cli.timeline import seconds_by_activity

    found = seconds_by_activity(line.critical_path)
    return {activity: round(seconds, 3) for activity, seconds in found.items() if seconds}


def all_keys(value):
    """All keys of nested mappings that the API would have to know."""
    if isinstance(value, dict):
        return {key for key, _ in value.items()} | set().union(*map(all_keys, value.values()))
    return set().union(*map(all_keys, value)) if isinstance(value, list) else set()


def said(result: Result) -> str:
    """What a command printed, and the error it ended with."""
    return f"{result.stdout}{result.stderr}{result.exception or ''}"
