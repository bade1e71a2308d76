"""Let a leader reconcile SparkApps."""

import asyncio
from typing import Final

from boathouse.cluster import store, wire
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE
from boathouse.services.frame.controllers import KindEntry, LeaderServices
from boathouse.services.sparkapp.kind import SparkAppKind
from boathouse.services.sparkapp.pods.executor_pods import LABEL_ROLE
from boathouse.services.sparkapp.submission import driver_pod


def add(leader: LeaderServices) -> None:
    """Add the kind SparkApp with its watches."""
    kind = SparkAppKind(leader, asyncio.get_running_loop().call_later)
    leader.controllers.add(kind)
    scheduling = leader.scheduling

    def node_changed(change: store.Change[wire.NodeView]) -> None:
        if isinstance(change, store.Deleted):
            kind.node_lost(change.key)

    scheduling.on_node.subscribe(node_changed)
    scheduling.on_pod.subscribe(kind.drivers.on_pod)
    scheduling.on_pod.subscribe(kind.executors.on_pod)
    scheduling.on_ended.subscribe(kind.drivers.on_ended)
    leader.controllers.loops.append(kind.reports)


SPARKAPPS: Final = KindEntry(
    pod_labels=frozenset({LABEL_TASK_TYPE, LABEL_ATTEMPT, LABEL_ROLE}),
    pod_containers=frozenset({driver_pod.CONTAINER}),
    add=add,
)
