"""Register the kind MRJob with a leader."""

import asyncio
from typing import Final

from boathouse.cluster import retries
from boathouse.resources.mrjob import names
from boathouse.resources.names import CONTAINER
from boathouse.services.frame.controllers import KindEntry, LeaderServices
from boathouse.services.mrjob import routes
from boathouse.services.mrjob.hadoop import observation
from boathouse.services.mrjob.kind import MRJobKind
from boathouse.telemetry import metrics
from boathouse_policies import model

TICK_S: Final = 1.0  # interval of ticks to observers


def add(leader: LeaderServices) -> None:
    """Add the kind MRJob with its routes, gauges and watches."""
    settings, controllers, placing = leader.settings, leader.controllers, leader.scheduling.scheduler
    kind = MRJobKind(leader, asyncio.get_running_loop().call_later)
    compared, pods, observers = controllers.add(kind), kind.pods, kind.policy_events
    owners = routes.Owners(
        jobs=compared.objects,
        pods=pods,
        scheduler=placing,
        cluster=leader.cluster_id,
        namespaces=frozenset(settings.watch_namespaces),
        listed=lambda: compared.listed,
    )
    tasks = routes.TaskRoutes(kind, owners, controllers.mark)
    leader.endpoint.add(tasks.find, tasks.routes())
    leader.endpoint.add(kind.hadoop.find, [routes.leave_route(kind.hadoop)])
    leader.scheduling.nodes.subscribe(
        lambda change: observers.node_changed(name := model.NodeName(change.key), placing.state.pods.nodes.get(name))
    )
    for index in (pods, kind.hadoop.clients):
        leader.scheduling.pods.subscribe(index.on_pod)
        leader.scheduling.ended.subscribe(index.on_ended)
    leader.saved["estimates"] = kind.learner
    leader.limited["retries"] = lambda: kind.retries.refused
    controllers.loops.append(retries.Loop("ticks", observers.tick, every_s=TICK_S))
    leader.metrics.gauges.add(
        metrics.Gauge(
            name="boathouse_mrjob_reporting_tasks",
            documentation="Running tasks that have reported",
            read=lambda: {(): float(kind.orders.reporting)},
        )
    )


MRJOBS: Final = KindEntry(
    pod_labels=names.POD_LABELS, pod_containers=frozenset({CONTAINER, observation.RUNTIME}), add=add
)
