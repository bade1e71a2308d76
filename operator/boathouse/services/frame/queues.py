"""Find the queue of an object, and whether it accepts the object. Pure."""

from boathouse.resources import names
from boathouse.resources.config import OperatorConfig, QueueConfig
from boathouse.services.frame.kind import Refusal


def admitting(config: OperatorConfig, namespace: str, *, asked: str | None, priority_class: str) -> str | Refusal:
    """Return the name of the queue that an object belongs to, or why no queue accepts it.

    Args:
        config: The queues.
        namespace: That of the object.
        asked: The queue that the object names; None for the default of its namespace.
        priority_class: The PriorityClass of its pods; empty for none.
    """
    queue = config.queue_for(namespace, asked)
    known = sorted(each.name for each in config.queues)
    if queue not in known:
        return Refusal(
            reason=names.Reason.QUEUE_NOT_FOUND,
            message=f'the queue "{queue}" does not exist: set spec.queue to one of {", ".join(known)}, or add it to '
            "the chart",
        )
    return _not_accepted(config.queue(queue), namespace, priority_class) or queue


def _not_accepted(queue: QueueConfig, namespace: str, priority_class: str) -> Refusal | None:
    if not queue.accepts_namespace(namespace):
        message = (
            f'the queue "{queue.name}" does not accept the namespace {namespace}: set spec.queue to another, '
            "or have the namespace added to the queue in the chart"
        )
    elif not queue.accepts_priority_class(priority_class):
        message = (
            f'the queue "{queue.name}" does not accept the PriorityClass {priority_class}: set spec.queue to another, '
            f"or spec.podTemplate.priorityClassName to one of {', '.join(queue.priority_classes)}"
        )
    else:
        return None
    return Refusal(reason=names.Reason.QUEUE_NOT_ALLOWED, message=message)
