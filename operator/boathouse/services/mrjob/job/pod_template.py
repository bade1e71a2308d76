"""What a job wants of its pods beside what they need: put into manifests and the scheduler's constraints. Pure."""

from typing import Any

from boathouse.resources.mrjob import pod_template as mrjob_template
from boathouse_policies import model


def priority_class(spec: mrjob_template.TemplateFields) -> str:
    """Return the PriorityClass of the pods; empty for the cluster's default."""
    return (spec.pod_template and spec.pod_template.priority_class_name) or ""


def metadata(spec: mrjob_template.TemplateFields) -> mrjob_template.Metadata:
    """Return the labels and annotations that a job wants its pods to have."""
    return (spec.pod_template and spec.pod_template.metadata) or mrjob_template.Metadata()


def apply(spec: dict[str, Any], template: mrjob_template.TemplateFields) -> dict[str, Any]:
    """Return the spec of a pod with the fields of the template."""
    pod = template.pod_template or mrjob_template.PodTemplate()
    if template.image_pull_secrets:
        known = spec.get("imagePullSecrets", [])
        ours = [{"name": each.name} for each in template.image_pull_secrets]
        spec["imagePullSecrets"] = [*known, *(each for each in ours if each not in known)]
    if template.service_account_name:
        spec["serviceAccountName"] = template.service_account_name
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
    return spec


def node_affinity(spec: mrjob_template.TemplateFields) -> tuple[model.AffinityTerm, ...] | None:
    """The terms of which a node must meet one; None for every node."""
    if spec.pod_template is None or spec.pod_template.affinity is None:
        return None
    required = spec.pod_template.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return tuple(
        model.AffinityTerm(expressions=tuple(map(_expression, term.match_expressions)))
        for term in required.node_selector_terms
    )


def _expression(requirement: mrjob_template.NodeRequirement) -> model.Expression:
    return model.Expression(
        key=requirement.key, operator=model.Operator(requirement.operator), values=tuple(requirement.values or ())
    )
