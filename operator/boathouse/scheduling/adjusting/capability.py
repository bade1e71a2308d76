"""Where running tasks cannot be resized: learned from answers, and forgotten when that may have changed."""

from boathouse.scheduling.pods import rows
from boathouse.scheduling.state import ClusterState, Part
from boathouse_policies import model

REFUSED_S = 600.0
"""How long a namespace is left alone in which the API server refused to shrink a task: LimitRanges are not watched."""


class Capability(Part):
    """Remembers nodes and namespaces that refused a resize.

    Args:
        state: The state of the scheduler.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self._nodes: dict[model.NodeName, model.Node | None] = {}
        self._until_s: dict[str, float] = {}

    def problem(self, row: rows.PodRow) -> str:
        """Return why a running task cannot be suspended where it is now; empty if it can be."""
        if refusal := self.node_problem(row):
            return refusal
        if self._until_s.get(row.namespace, 0.0) > self._clock():
            return "LimitRange"
        self._until_s.pop(row.namespace, None)
        return "Quota" if self._quotas.counts(row.namespace, "limits.cpu") else ""

    def node_problem(self, row: rows.PodRow) -> str:
        """Return why a node cannot resize a running task now; empty if it can."""
        pod = row.facts
        if pod is None or not pod.can_resize:
            return "NotYet"
        node = model.NodeName(pod.node_name)
        if node in self._nodes:
            if self._nodes[node] == self._pods.nodes.get(node):
                return "Infeasible"
            del self._nodes[node]
        return ""

    def never(self, node: model.NodeName) -> None:
        """Note that a node can resize no running pod, until the node changes."""
        self._nodes[node] = self._pods.nodes.get(node)

    def refused(self, namespace: str) -> None:
        """Note that the API server refused to shrink a task of a namespace."""
        self._until_s[namespace] = self._clock() + REFUSED_S
