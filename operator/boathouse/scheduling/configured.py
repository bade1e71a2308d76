"""Convert what is configured to the values of the policies and of the scheduler."""

from boathouse.cluster import wire
from boathouse.resources import config, names, quantity
from boathouse.scheduling import options
from boathouse.scheduling.pods import ownership
from boathouse_policies import model


def queues(settings: config.OperatorConfig) -> list[model.Queue]:
    """Return the queues, with their limits in base units: millicores, bytes, counts."""
    return [_queue(one) for one in settings.queues]


def _queue(queue_config: config.QueueConfig) -> model.Queue:
    limits = {
        name: quantity.milli(value) if name == "cpu" else quantity.units(value)
        for name, value in queue_config.limits.items()
    }
    return model.Queue(
        name=model.QueueName(queue_config.name),
        weight=queue_config.weight,
        limits=tuple(sorted(limits.items())),
        namespaces=frozenset(queue_config.namespaces),
        priority_classes=frozenset(queue_config.priority_classes),
    )


def autoscaling(settings: config.OperatorConfig) -> options.Autoscaling:
    """Return whether nodes can come, and the limits of what asks for them."""
    given = settings.autoscaling
    return options.Autoscaling(
        enabled=given.enabled,
        max_placeholders_per_job=given.max_placeholders_per_application,
        max_placeholders=given.max_placeholders,
    )


def queue_of(settings: config.OperatorConfig) -> ownership.QueueOf:
    """Return a function that returns a foreign pod's queue: that of its label, its namespace's, or the default."""

    def of(pod: wire.Pod) -> model.QueueName:
        return model.QueueName(settings.queue_for(pod.metadata.namespace, pod.metadata.labels.get(names.LABEL_QUEUE)))

    return of
