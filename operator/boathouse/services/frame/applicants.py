"""What the services know of all custom resources with pods of one image: identity, queue, image and template. Pure."""

import dataclasses
from typing import Any, Protocol

from boathouse.resources import names, pod_template, statuses
from boathouse.resources.config import OperatorConfig
from boathouse.services.frame import admission
from boathouse.services.frame.kind import Body, ObjectUid, Refusal
from boathouse_policies import model


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
    queue = admission.admitting(config, namespace, requested=spec.queue, priority_class=priority_class)
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
