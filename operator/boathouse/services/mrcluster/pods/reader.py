"""From a pod as the API shows it to a node of a cluster: which host it is, how it does, why it does not start. Pure."""

import re
from typing import Final

from boathouse.cluster import wire
from boathouse.resources.mrcluster.names import ANNOTATION_SETTINGS, LABEL_HOST, Reason
from boathouse.resources.names import LABEL_TASK_TYPE
from boathouse.scheduling.pods import facts
from boathouse.services.frame import pod_life
from boathouse.services.frame.conditions import printable
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrcluster import daemons, naming
from boathouse.services.mrcluster.pods.containers import REFRESH
from boathouse.services.mrcluster.pods.master_pod import AGENT
from boathouse.services.mrcluster.pods.node_pod import NodePod

CONTAINERS: Final = frozenset({*(daemon.container for daemon in daemons.ALL), REFRESH, AGENT})
"""The containers of all roles."""
REFUSED: Final = 78
"""With what `start.sh` ends if the NameNode must not use its volume."""
_REFUSAL: Final = re.compile(
    rf"(?P<reason>{Reason.NAME_VOLUME_EMPTY}|{Reason.FOREIGN_CLUSTER}): (?P<message>.*)", re.DOTALL
)
CRASHING: Final = "CrashLoopBackOff"
_MAX_LOG: Final = 400
_MAX_RESTARTS: Final = 1_000_000


def node_pod(pod: facts.PodFacts) -> NodePod | None:
    """Return the node of a pod; None if the pod is not a node of a cluster."""
    labels = pod.metadata.labels
    host = labels.get(LABEL_HOST, "")
    role = naming.role_of(host)
    if role is None or labels.get(LABEL_TASK_TYPE) != role:
        return None
    statuses = pod.status.container_statuses
    has_started = any(each.state.running or each.state.terminated for each in statuses)
    life, created = pod_life.life_by_phase(pod, has_started=has_started), pod.metadata.creation_timestamp
    return NodePod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        host=host,
        role=role,
        number=naming.number_of(host),
        node=pod.node_name or None,
        address=pod.status.pod_ip,
        life=life,
        is_ready=life is PodLife.RUNNING and all(each.ready for each in statuses),
        settings=pod.metadata.annotations.get(ANNOTATION_SETTINGS, ""),
        created_s=created.timestamp() if created else 0.0,
        placed_s=pod_life.placed_s(pod) if pod.node_name else None,
        deleting_since_s=pod_life.deleting_since_s(pod),
        problem=_problem(pod) if life.is_live else None,
        restarts=min(_MAX_RESTARTS, sum(each.restart_count for each in statuses)),
        resources=pod.resources,
    )


def _problem(pod: facts.PodFacts) -> Problem | None:
    """Return why the NameNode does not use its volume, or the first reason why a container does not start."""
    refusal = _refusal(pod_life.container(pod, daemons.NAME_NODE.container))
    found = (pod_life.problem(each) or _crash(each) for each in pod.status.container_statuses)
    return refusal or next(filter(None, found), None)


def _crash(status: wire.ContainerStatus) -> Problem | None:
    """Return how a container ends that ends again and again."""
    waiting, ended = status.state.waiting, status.last_state.terminated
    if waiting is None or waiting.reason != CRASHING or ended is None:
        return None
    last = printable(ended.message.strip()[-_MAX_LOG:], _MAX_LOG)
    message = f"the container {status.name} ended with exit code {ended.exit_code}" + (f": {last}" if last else "")
    return Problem(reason=CRASHING, message=message)


def _refusal(status: wire.ContainerStatus | None) -> Problem | None:
    """Return why the NameNode's volume is refused. This holds while its container starts again, until it is ready."""
    ended = (status.state.terminated or status.last_state.terminated) if status else None
    if status is None or status.ready or ended is None or ended.exit_code != REFUSED:
        return None
    match = _REFUSAL.match(ended.message)
    reason, message = (match["reason"], match["message"]) if match else (Reason.NAME_VOLUME_EMPTY, ended.message)
    return Problem(reason=reason, message=printable(message.strip(), pod_life.MAX_MESSAGE))
