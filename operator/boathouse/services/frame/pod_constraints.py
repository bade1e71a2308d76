"""Turn the fields of a spec about nodes and other pods into the scheduler's constraints. Pure."""

from collections.abc import Mapping

from boathouse.resources.pods import template as pod_fields
from boathouse_policies import model


def toleration(field: pod_fields.Toleration) -> model.Toleration:
    """Return a toleration as the scheduler has it."""
    return model.Toleration(
        key=field.key or "",
        operator=model.TolerationOperator(field.operator),
        value=field.value or "",
        effect=model.TaintEffect(field.effect) if field.effect else None,
    )


def node_affinity(affinity: pod_fields.Affinity | None) -> tuple[model.AffinityTerm, ...] | None:
    """Return the terms of which a node must match one; None if all nodes match."""
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return tuple(
        model.AffinityTerm(expressions=tuple(map(_expression, term.match_expressions)))
        for term in required.node_selector_terms
    )


def pod_affinity(
    affinity: pod_fields.Affinity | None, namespace: str, labels: Mapping[str, str]
) -> tuple[model.PodTerm, ...]:
    """Return the terms of pod affinity of pods with these labels."""
    return _pod_terms(None if affinity is None else affinity.pod_affinity, namespace, labels)


def pod_anti_affinity(
    affinity: pod_fields.Affinity | None, namespace: str, labels: Mapping[str, str]
) -> tuple[model.PodTerm, ...]:
    """Return the terms of pod anti-affinity of pods with these labels."""
    return _pod_terms(None if affinity is None else affinity.pod_anti_affinity, namespace, labels)


def _pod_terms(
    affinity: pod_fields.PodAffinity | None, namespace: str, labels: Mapping[str, str]
) -> tuple[model.PodTerm, ...]:
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else ()
    return tuple([_pod_term(term, namespace, labels) for term in terms])


def _pod_term(term: pod_fields.PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> model.PodTerm:
    """Return a term; the API server will add the pod's own values of some labels to the selector."""
    selector = _selector(term.label_selector)
    if selector is not None:
        keys = ((model.Operator.IN, term.match_label_keys), (model.Operator.NOT_IN, term.mismatch_label_keys))
        own = [
            model.Expression(key=key, operator=operator, values=(labels[key],))
            for operator, wanted in keys
            for key in wanted or ()
            if key in labels
        ]
        selector = model.Selector(expressions=(*selector.expressions, *own))
    namespaces = term.namespaces or ([namespace] if term.namespace_selector is None else [])
    return model.PodTerm(
        topology_key=term.topology_key,
        pods=model.PodSet(
            selector=selector,
            namespaces=tuple(sorted(set(namespaces))),
            namespace_selector=_selector(term.namespace_selector),
        ),
    )


def _selector(selector: pod_fields.LabelSelector | None) -> model.Selector | None:
    if selector is None:
        return None
    labels = sorted((selector.match_labels or {}).items())
    equal = [model.Expression(key=key, operator=model.Operator.IN, values=(value,)) for key, value in labels]
    return model.Selector(expressions=(*equal, *map(_expression, selector.match_expressions or ())))


def _expression(requirement: pod_fields.NodeRequirement | pod_fields.LabelRequirement) -> model.Expression:
    return model.Expression(
        key=requirement.key, operator=model.Operator(requirement.operator), values=tuple(requirement.values or ())
    )
