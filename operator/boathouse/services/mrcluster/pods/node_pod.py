"""A pod of a cluster as the planner sees it."""

import dataclasses

from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePod:
    """The pod of a host of a cluster.

    Attributes:
        host: Its hostname, such as `c0`.
        number: The number in the host's name; 0 for the master.
        node: The Kubernetes node; None before it has one.
        address: Its IP address; empty for none.
        is_ready: Whether all of its containers are ready.
        settings: Digest of the settings that it was created with.
        created_s: When it was created.
        placed_s: When it got its node.
        deleting_since_s: When its deletion was requested; it may linger on a node that does not respond.
        node_gone: Whether its node's object does not exist any more.
        problem: Why it does not start. NAME_VOLUME_EMPTY or FOREIGN_CLUSTER: the NameNode refused its volume.
        restarts: Restarts of its containers.
        resources: What it takes of its node.
    """

    name: str
    uid: str
    host: str
    role: Role
    number: int = 0
    node: str | None = None
    address: str = ""
    life: PodLife = PodLife.RUNNING
    is_ready: bool = False
    settings: str = ""
    created_s: float = 0.0
    placed_s: float | None = None
    deleting_since_s: float | None = None
    node_gone: bool = False
    problem: Problem | None = None
    restarts: int = 0
    resources: model.Resources = dataclasses.field(default_factory=model.Resources)

    @property
    def is_over(self) -> bool:
        """Return whether it serves no more: it has ended, its node is gone, or its deletion was requested."""
        return not self.life.is_live or self.node_gone or self.deleting_since_s is not None
