"""Return where the inputs of tasks are, and how far that is from a node. Pure."""

from collections.abc import Mapping, Sequence

from boathouse_policies import model
from boathouse_task import contract
from boathouse_task.contract import TaskType


def locations(task_type: TaskType, index: int, plan: contract.Plan | None) -> Sequence[model.NodeName]:
    """Return the nodes that store the split of a map; none for other tasks and for object stores."""
    if task_type is not TaskType.MAP or plan is None or not 0 <= index < len(plan.splits):
        return ()
    which = plan.splits[index].locations
    return tuple(map(model.NodeName, plan.location_sets[which])) if which >= 0 else ()


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
