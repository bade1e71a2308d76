"""Turn the fields of a spec about nodes into the scheduler's constraints. Pure."""

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
    if affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return tuple(
        model.AffinityTerm(expressions=tuple(map(_expression, term.match_expressions)))
        for term in required.node_selector_terms
    )


def _expression(requirement: pod_fields.NodeRequirement) -> model.Expression:
    return model.Expression(
        key=requirement.key, operator=model.Operator(requirement.operator), values=tuple(requirement.values or ())
    )
