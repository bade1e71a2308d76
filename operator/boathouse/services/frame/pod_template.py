"""Put the fields of a spec for its pods into manifests. Pure."""

import dataclasses
from typing import Any

from boathouse.resources.pods import template as pod_fields


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Every field of a job that is for its pods as they are."""

    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    env_from: tuple[pod_fields.EnvFrom, ...] = ()
    pod: pod_fields.PodTemplate = dataclasses.field(default_factory=pod_fields.PodTemplate)

    @property
    def priority_class(self) -> str:
        """The PriorityClass of the pods; empty for the cluster's default."""
        return self.pod.priority_class_name or ""


def of(spec: pod_fields.TemplateFields) -> Template:
    """The template that a spec describes."""
    return Template(
        image_pull_secrets=tuple(each.name for each in spec.image_pull_secrets or ()),
        service_account=spec.service_account_name or "",
        env_from=tuple(spec.env_from or ()),
        pod=spec.pod_template or pod_fields.PodTemplate(),
    )


def apply(manifest: dict[str, Any], template: Template) -> dict[str, Any]:
    """The manifest with the template's fields; ours win."""
    metadata, spec, pod = manifest["metadata"], manifest["spec"], template.pod
    if pod.metadata is not None:
        metadata["labels"] = {**(pod.metadata.labels or {}), **metadata["labels"]}
        metadata["annotations"] = {**(pod.metadata.annotations or {}), **metadata["annotations"]}
    if template.image_pull_secrets:
        known = spec.get("imagePullSecrets", [])
        ours = [{"name": name} for name in template.image_pull_secrets if {"name": name} not in known]
        spec["imagePullSecrets"] = [*known, *ours]
    if template.service_account:
        spec["serviceAccountName"] = template.service_account
    if template.env_from:
        sources = [each.model_dump(by_alias=True, exclude_none=True) for each in template.env_from]
        for container in spec["containers"]:
            container["envFrom"] = sources
    if pod.affinity is not None:
        spec["affinity"] = pod.affinity.model_dump(by_alias=True, exclude_none=True)
    if pod.priority_class_name:
        spec["priorityClassName"] = pod.priority_class_name
    if pod.security_context is not None:
        spec["securityContext"] |= pod.security_context.model_dump(by_alias=True, exclude_none=True)
    return manifest
