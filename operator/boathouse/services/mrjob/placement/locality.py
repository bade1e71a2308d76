"""Return where the inputs of tasks are, and how far that is from a node. Pure."""

from collections.abc import Callable, Mapping, Sequence

from boathouse_policies import model
from boathouse_task import contract
from boathouse_task.contract import TaskType

NodeOf = Callable[[str], model.NodeName | None]
"""Returns the node of a host that a plan names; None if the host has no node now."""


def locations(task_type: TaskType, index: int, plan: contract.Plan | None, node_of: NodeOf) -> Sequence[model.NodeName]:
    """Return the nodes that store the split of a map; none for other tasks and for object stores.

    Hosts of HDFS are pods, which move, and a plan is immutable: it has the names of hosts.
    """
    if task_type is not TaskType.MAP or plan is None or not 0 <= index < len(plan.splits):
        return ()
    which = plan.splits[index].locations
    nodes = map(node_of, plan.location_sets[which]) if which >= 0 else ()
    return tuple(dict.fromkeys(node for node in nodes if node is not None))


def distance(
    node: model.NodeName, stored_on: Sequence[model.NodeName], nodes: Mapping[model.NodeName, model.Node]
) -> model.Distance:
    """Return how far a node is from the closest of some nodes."""
    if node in stored_on:
        return model.Distance.NODE
    here, there = nodes.get(node), [nodes[name] for name in stored_on if name in nodes]
    if here is None or not there:
        return model.Distance.ANYWHERE
    if here.server is not None and any(here.server == each.server for each in there):
        return model.Distance.SERVER
    is_in_rack = here.rack is not None and any(here.rack == each.rack for each in there)
    return model.Distance.RACK if is_in_rack else model.Distance.ANYWHERE
