"""Where running tasks cannot be resized: learned from answers, and forgotten when that may have changed."""

from boathouse.scheduling.pods import rows
from boathouse.scheduling.state import ClusterState, Part
from boathouse.suspension import timeouts
from boathouse.suspension.reasons import Reason
from boathouse_policies import model


class Capability(Part):
    """Remembers nodes and namespaces that refused a resize.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._nodes: dict[model.NodeName, model.Node | None] = {}
        self._until_s: dict[str, float] = {}

    def problem(self, row: rows.PodRow) -> Reason | None:
        """Return why a running task cannot be suspended where it is now; None if it can be."""
        if refusal := self.node_problem(row):
            return refusal
        if self._until_s.get(row.namespace, 0.0) > self._clock():
            return Reason.LIMIT_RANGE
        self._until_s.pop(row.namespace, None)
        return Reason.QUOTA if self._quotas.counts(row.namespace, "limits.cpu") else None

    def node_problem(self, row: rows.PodRow) -> Reason | None:
        """Return why a node cannot resize a running task now; None if it can."""
        pod = row.facts
        if pod is None or not pod.can_resize:
            return Reason.NOT_YET
        node = model.NodeName(pod.node_name)
        if node in self._nodes:
            if self._nodes[node] == self._pods.nodes.get(node):
                return Reason.INFEASIBLE
            del self._nodes[node]
        return None

    def never(self, node: model.NodeName) -> None:
        """Note that a node can resize no running pod, until the node changes."""
        self._nodes[node] = self._pods.nodes.get(node)

    def refused(self, namespace: str) -> None:
        """Note that the API server refused to shrink a task of a namespace."""
        self._until_s[namespace] = self._clock() + timeouts.LIMIT_RANGE_S
