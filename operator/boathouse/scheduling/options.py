"""Options of the scheduler, and what of them the configuration file says."""

import dataclasses

from boathouse.cluster import wire
from boathouse.resources import config, names, quantity
from boathouse.scheduling.pods import ownership
from boathouse_policies import model, profiles


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the scheduler."""

    scheduler_name: str = names.SCHEDULER_NAME  # the `spec.schedulerName` of the pods that it schedules
    namespaces: frozenset[str] = frozenset()  # namespaces with jobs; empty for all. Pods of all namespaces are counted
    pending_ahead: int = 5  # number of pods to create without a node for a class that is pending for lack of nodes
    pending_ahead_delay_s: float = 1.0  # how long a class must be pending before that
    # whether nodes can come, and how pods ask for them
    autoscaling: config.AutoscalingConfig = dataclasses.field(default_factory=config.AutoscalingConfig)
    workers: int = 32
    coalesce_s: float = 0.01  # minimum time between two cycles, so that concurrent events are decided together
    idle_s: float = 5.0
    pod_labels: frozenset[str] = frozenset()  # labels and annotations that kinds read, in addition to those of all pods
    pod_containers: frozenset[str] = frozenset({names.CONTAINER})  # containers of tasks whose statuses kinds read
    stall_s: float = 60.0  # time without a round of the loop after which the process is unhealthy
    # limits of a namespace: of its status writes, and of the shapes of its pending pods
    tenant_limits: config.TenantLimits = dataclasses.field(default_factory=config.TenantLimits)
    # what may be done to pods beside placing them
    switches: profiles.Switches = profiles.Switches()  # noqa: RUF009 - frozen


def queues(settings: config.OperatorConfig) -> list[model.Queue]:
    """Return the queues, with their limits in base units: millicores, bytes, counts."""
    return [
        model.Queue(
            name=model.QueueName(queue.name),
            weight=queue.weight,
            limits=tuple(
                (name, quantity.milli(value) if name == "cpu" else quantity.units(value))
                for name, value in sorted(queue.limits.items())
            ),
            namespaces=frozenset(queue.namespaces),
            priority_classes=frozenset(queue.priority_classes),
        )
        for queue in settings.queues
    ]


def queue_of(settings: config.OperatorConfig) -> ownership.QueueOf:
    """Return a function that returns a foreign pod's queue: that of its label, its namespace's, or the default."""

    def of(pod: wire.Pod) -> model.QueueName:
        return model.QueueName(settings.queue_for(pod.metadata.namespace, pod.metadata.labels.get(names.LABEL_QUEUE)))

    return of
