"""What to look at after a failure, saved from a cluster into a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse_e2e import errors, install

if TYPE_CHECKING:
    from pathlib import Path

    from boathouse_e2e.spec import Cluster

LOG_LINES: Final = "500"
LAST_EVENTS: Final = 40
HADOOP: Final = ("-l", "app.kubernetes.io/name=boathouse-hadoop", "--all-containers", "--max-log-requests=100")


def save(cluster: Cluster, namespace: str, folder: Path) -> None:
    """Save jobs, pods, events, nodes and the operator's logs; what cannot be read says why in its file."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = ("logs", "-n", install.NAMESPACE, "-l", "app.kubernetes.io/name=boathouse", "--prefix", "--tail", LOG_LINES)
    for name, arguments in {
        "jobs.yaml": ("get", "boathouse", "-A", "-o", "yaml"),
        "jobs.txt": ("describe", "boathouse", "-n", namespace),
        "pods.txt": ("get", "pods", "-A", "-o", "wide"),
        "pods.yaml": ("get", "pods", "-n", namespace, "-o", "yaml"),
        "events.txt": ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"),
        "nodes.txt": ("describe", "nodes"),
        "operator-pods.yaml": ("get", "pods", "-n", install.NAMESPACE, "-o", "yaml"),
        "hadoop.log": ("logs", "-n", namespace, *HADOOP, "--prefix", "--tail", LOG_LINES),
        "operator.log": logs,
        "operator-previous.log": (*logs, "--previous"),
    }.items():
        (folder / name).write_text(_said(cluster, arguments))


def _said(cluster: Cluster, arguments: tuple[str, ...]) -> str:
    try:
        return cluster.run(*arguments)
    except errors.ClusterError as error:
        return f"{error}\n"


def glance(cluster: Cluster, namespace: str) -> str:
    """Return a namespace's pods with the reasons why they are pending, and its last events, for a failed test."""
    why = '.status.conditions[?(@.type=="PodScheduled")].message'
    columns = f"POD:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase,WAITS:{why}"
    pods = _said(cluster, ("get", "pods", "-n", namespace, "-o", f"custom-columns={columns}"))
    events = _said(cluster, ("get", "events", "-n", namespace, "--sort-by=.metadata.creationTimestamp"))
    return f"{pods}\n" + "\n".join(events.splitlines()[-LAST_EVENTS:])
