"""Let a leader reconcile MRJobs."""

import asyncio
import time
from typing import Final

from boathouse.cluster import loops
from boathouse.resources import quantity
from boathouse.scheduling import scheduler
from boathouse.services.frame.controllers import LeaderServices
from boathouse.services.mrjob import output_owners, podindex, policy_events, shares, task_metrics
from boathouse.services.mrjob.kind import MRJobKind
from boathouse.services.mrjob.placement import pod_builder
from boathouse.services.mrjob.progress import routes, task_messages
from boathouse.services.mrjob.splits import split_plans
from boathouse.telemetry import gauges
from boathouse_policies import model, run_times

TICK_S: Final = 1.0
"""How often observers receive a tick."""


def add(leader: LeaderServices) -> None:
    """Add the kind MRJob with its routes, gauges and watches."""
    settings, controllers, placing = leader.settings, leader.controllers, leader.scheduling.scheduler
    learner = run_times.Learner()
    observers = policy_events.PolicyEvents(leader.profile.observers, learner, scheduler.steady_clock())
    pods = podindex.PodIndex(controllers.mark, asyncio.get_running_loop().call_later)
    plans = split_plans.Plans(controllers.context.api, limit_bytes=settings.tenant_limits.max_plan_mebibytes * 2**20)
    messages = task_messages.TaskMessages(observers.report)
    retries = shares.Shares(settings.tenant_limits, time.monotonic)
    controller = controllers.add(
        MRJobKind(
            frame=controllers.context,
            pod_index=pods,
            plans=plans,
            scheduler=placing,
            task_messages=messages,
            bundle=leader.bundles,
            metrics=task_metrics.TaskMetrics(leader.metrics.registry),
            config=settings,
            pod_settings=_pod_settings(leader),
            shares=retries,
            learner=learner,
            policy_events=observers,
        )
    )
    owners = output_owners.Owners(
        jobs=controller.objects,
        pods=pods,
        scheduler=placing,
        cluster=leader.cluster_id,
        namespaces=frozenset(settings.watch_namespaces),
        listed=controller.resync.listed,
    )
    tasks = routes.TaskRoutes(task_messages=messages, pods=pods, plans=plans, owners=owners, on_plan=controllers.mark)
    leader.endpoint.add(tasks.find, tasks.routes())
    leader.scheduling.on_node.subscribe(
        lambda change: observers.node_changed(name := model.NodeName(change.key), placing.state.pods.nodes.get(name))
    )
    leader.scheduling.on_pod.subscribe(pods.on_pod)
    leader.scheduling.on_ended.subscribe(pods.on_ended)
    leader.saved["estimates"] = learner
    leader.limited["retries"] = lambda: retries.retries.refused
    leader.loops.append(loops.Loop("ticks", observers.tick, every_s=TICK_S))
    leader.metrics.gauges.add(
        gauges.Gauge(
            name="boathouse_mrjob_reporting_tasks",
            documentation="Running tasks that have reported",
            read=lambda: {(): float(messages.reporting)},
        )
    )


def _pod_settings(leader: LeaderServices) -> pod_builder.PodSettings:
    settings = leader.settings
    return pod_builder.PodSettings(
        progress_url=f"https://{settings.progress_service}.{settings.namespace}.svc",
        scratch_bytes=quantity.units(settings.task.scratch_size),
        image_pull_secrets=tuple(settings.task.image_pull_secrets),
        not_ready_toleration_s=settings.task.not_ready_toleration_seconds,
        cluster=leader.cluster_id,
    )
