"""Let a leader reconcile MRClusters."""

import asyncio
from typing import Final

from boathouse.resources.mrcluster.names import POD_LABELS
from boathouse.services.frame.controllers import KindEntry, LeaderServices
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster import pods
from boathouse.services.mrcluster.agent import AgentRoutes
from boathouse.services.mrcluster.kind import MRClusterKind


def add(leader: LeaderServices) -> None:
    """Add the kind MRCluster with its routes and watches."""
    kind = MRClusterKind(leader, asyncio.get_running_loop().call_later)
    leader.controllers.add(kind)
    leader.controllers.loops.append(kind.network.loop)
    scheduling = leader.scheduling

    def namespace_of(uid: ObjectUid) -> str | None:
        facts = leader.clusters.get(uid)
        return facts.namespace if facts is not None else None

    agents = AgentRoutes(
        pods=kind.pods,
        namespace_of=namespace_of,
        reports=kind.reports,
        orders=kind.orders,
        applications=leader.applications,
        now=leader.controllers.context.now,
    )
    leader.endpoint.add(agents.find, agents.routes())
    scheduling.scheduler.adjuster.scaler = kind.scaling.take
    scheduling.nodes.subscribe(kind.pods.on_node)
    scheduling.pods.subscribe(kind.pods.on_pod)
    scheduling.ended.subscribe(kind.pods.on_ended)


MRCLUSTERS: Final = KindEntry(pod_labels=POD_LABELS, pod_containers=pods.CONTAINERS, scales=True, add=add)
