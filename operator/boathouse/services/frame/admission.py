"""Admit the unfinished objects of a namespace: the first ones by creation, within limits, and in which queue.

A suspended object has no pods and does not count in number: queueing systems create many, and resume them in their own
order. Its spec counts in size as any other. Each change costs a binary search in the list of the namespace.
"""

import bisect
import dataclasses
from collections.abc import Sequence
from typing import Any, Final, Protocol

from boathouse.resources import names, pod_template, statuses
from boathouse.resources.config import OperatorConfig, QueueConfig
from boathouse.services.frame.kind import Body, ObjectUid, Refusal, is_suspended, namespace_of
from boathouse_policies import model

_Place = tuple[str, str]
"""Creation time (RFC 3339, so that texts order as times do) and UID."""
_LIMIT_BYTES: Final = 32 * 2**20


@dataclasses.dataclass(frozen=True, slots=True)
class _Weight:
    number: int
    size_bytes: int


@dataclasses.dataclass(slots=True)
class _Queue:
    """The unfinished objects of a namespace by creation; the first `cut` are admitted, and their weights are summed."""

    places: list[_Place] = dataclasses.field(default_factory=list)
    cut: int = 0
    number: int = 0
    size_bytes: int = 0

    def take(self, weight: _Weight, sign: int = 1) -> None:
        """Move the cut by an object of this weight."""
        self.cut += sign
        self.number += sign * weight.number
        self.size_bytes += sign * weight.size_bytes


class Admission:
    """The unfinished objects of each namespace, in the order of their creation."""

    def __init__(self, limit: int, limit_bytes: int = _LIMIT_BYTES) -> None:
        self.limit, self.limit_bytes = limit, limit_bytes
        self._queues: dict[str, _Queue] = {}
        self._known: dict[_Place, tuple[str, _Weight]] = {}

    def put(self, key: str, body: Body, size_bytes: int = 0) -> Sequence[str]:
        """Update an unfinished object; returns the keys of objects that are admitted because this one counts less."""
        place, weight = _place(body), _Weight(0 if is_suspended(body) else 1, size_bytes)
        former = self._known.get(place)
        if former is not None and former[1] == weight:
            return ()
        admitted = [*self.remove(key, body)] if former is not None else []
        queue = self._queues.setdefault(namespace_of(key), _Queue())
        index = bisect.bisect_left(queue.places, place)
        queue.places.insert(index, place)
        self._known[place] = key, weight
        if index < queue.cut:
            queue.take(weight)
            while queue.number > self.limit or queue.size_bytes > self.limit_bytes:
                queue.take(self._known[queue.places[queue.cut - 1]][1], -1)
        return [other for other in (*admitted, *self._extend(queue)) if other != key]

    def remove(self, key: str, body: Body) -> Sequence[str]:
        """Remove an object that has ended or was deleted; returns the keys of the objects admitted in its place."""
        place = _place(body)
        removed = self._known.pop(place, None)
        if removed is None:
            return ()
        queue = self._queues[namespace_of(key)]
        index = bisect.bisect_left(queue.places, place)
        del queue.places[index]
        if index < queue.cut:
            queue.take(removed[1], -1)
        if not queue.places:
            del self._queues[namespace_of(key)]
        return self._extend(queue)

    def admits(self, key: str, body: Body) -> bool:
        """Return whether an unfinished object may run: it has started, or is among the first of its namespace."""
        if (body.get("status") or {}).get("startTime"):
            return True
        queue = self._queues.get(namespace_of(key))
        return queue is not None and bisect.bisect_left(queue.places, _place(body)) < queue.cut

    def _extend(self, queue: _Queue) -> list[str]:
        admitted = []
        while queue.cut < len(queue.places):
            key, weight = self._known[queue.places[queue.cut]]
            if queue.number + weight.number > self.limit or queue.size_bytes + weight.size_bytes > self.limit_bytes:
                break
            queue.take(weight)
            admitted.append(key)
        return admitted


def _place(body: Body) -> _Place:
    metadata = body["metadata"]
    return str(metadata.get("creationTimestamp") or ""), metadata["uid"]


class Spec(Protocol):
    """A spec that selects a queue and an image."""

    queue: str | None
    image: str | None
    pod_template: pod_template.PodTemplate | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """A valid custom resource."""

    uid: ObjectUid
    name: str
    namespace: str
    generation: int
    created_s: float
    queue: str
    image: str
    spec: Spec

    @property
    def key(self) -> str:
        """Return namespace and name, `NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"

    @property
    def template(self) -> pod_template.PodTemplate:
        """Return the optional fields of the spec for its pods."""
        return self.spec.pod_template or pod_template.PodTemplate()

    @property
    def priority_class(self) -> str:
        """Return the PriorityClass of its pods; empty for the default of Kubernetes."""
        return self.template.priority_class_name or ""

    def job(self, priority: int, *, kind: str = "", weight: float = 1.0) -> model.Job:
        """Return the resource as the scheduler knows it."""
        return model.Job(
            id=model.JobId(self.uid),
            queue=model.QueueName(self.queue),
            submitted_s=self.created_s,
            name=self.key,
            namespace=model.NamespaceName(self.namespace),
            priority=priority,
            priority_class=self.priority_class,
            kind=kind,
            weight=weight,
        )


def applicant(body: Body, spec: Spec, config: OperatorConfig, image: str, of: str) -> dict[str, Any] | Refusal:
    """Return the fields of `Applicant`, or why there is no queue or image; `image` is the chart's, for `of`."""
    metadata, template = body["metadata"], spec.pod_template or pod_template.PodTemplate()
    namespace, priority_class = metadata["namespace"], template.priority_class_name or ""
    queue = admitting(config, namespace, requested=spec.queue, priority_class=priority_class)
    if isinstance(queue, Refusal):
        return queue
    if not (spec.image or image):
        message = f"no image: set spec.image, or the chart's {of} image"
        return Refusal(reason=names.Reason.INVALID_SPEC, message=message)
    return {
        "uid": ObjectUid(metadata["uid"]),
        "name": metadata["name"],
        "namespace": namespace,
        "generation": metadata.get("generation", 1),
        "created_s": statuses.epoch(metadata["creationTimestamp"]) or 0.0,
        "queue": queue,
        "image": spec.image or image,
        "spec": spec,
    }


def admitting(config: OperatorConfig, namespace: str, *, requested: str | None, priority_class: str) -> str | Refusal:
    """Return the name of the queue that an object belongs to, or why no queue accepts it."""
    name = config.queue_for(namespace, requested)
    queues = {queue.name: queue for queue in config.queues}
    if (queue := queues.get(name)) is None:
        known = ", ".join(sorted(queues))
        message = f'the queue "{name}" does not exist: set spec.queue to one of {known}, or add it to the chart'
        return Refusal(reason=names.Reason.QUEUE_NOT_FOUND, message=message)
    return _not_accepted(queue, namespace, priority_class) or name


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
