"""Let a leader reconcile SparkApps."""

import asyncio
from typing import Final

from boathouse.cluster import boundary, catalogue, informer, store
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, TASK_TYPE_EXECUTOR
from boathouse.scheduling.pods import facts
from boathouse.services.frame.controllers import KindEntry, LeaderServices
from boathouse.services.sparkapp import pods
from boathouse.services.sparkapp.executor_pods import LABEL_ROLE
from boathouse.services.sparkapp.kind import SparkAppKind


def add(leader: LeaderServices) -> None:
    """Add the kind SparkApp with its watches."""
    kind = SparkAppKind(leader, asyncio.get_running_loop().call_later)
    leader.controllers.add(kind)
    scheduling = leader.scheduling

    scheduling.nodes.subscribe(kind.drivers.on_node)
    scheduling.pods.subscribe(kind.drivers.on_pod)
    scheduling.pods.subscribe(kind.executors.on_pod)
    scheduling.ended.subscribe(kind.drivers.on_ended)
    leader.saved["spark-estimates"] = kind.learner
    leader.controllers.loops += [kind.reports, _ended_executors(leader, kind)]


def _ended_executors(leader: LeaderServices, kind: SparkAppKind) -> informer.Informer[facts.PodFacts]:
    """Return the watch of executors that ended: Boathouse's other watch of ended pods shows only its own."""
    context = leader.controllers.context

    def changed(change: store.Change[facts.PodFacts]) -> None:
        if watch.synced.is_set():  # those of the first list ended before this process
            context.aside.run(
                catalogue.PODS,
                store.subject(change).metadata,
                boundary.Reason.HANDLING,
                kind.executors.on_ended,
                change,
            )

    watch = informer.Informer(
        context.api,
        catalogue.PODS,
        on_change=changed,
        namespaces=sorted(leader.settings.watch_namespaces),
        labels=f"{LABEL_ROLE}={TASK_TYPE_EXECUTOR}",
        fields=catalogue.PODS_THAT_ENDED,
        transform=leader.scheduling.scheduler.transform_pod,
        aside=context.aside,
    )
    return watch


SPARKAPPS: Final = KindEntry(
    pod_labels=frozenset({LABEL_TASK_TYPE, LABEL_ATTEMPT, LABEL_ROLE}),
    pod_containers=frozenset({pods.DRIVER_CONTAINER, pods.EXECUTOR_CONTAINER}),
    add=add,
)
