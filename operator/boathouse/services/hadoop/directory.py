"""List the Hadoop clusters by namespace and name, for jobs that run on them or read their HDFS."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from boathouse.cluster import catalogue, wire
from boathouse.resources import names
from boathouse.services.frame.kind import ObjectUid
from boathouse_policies.model import NodeName

MRCLUSTERS: Final = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural="mrclusters", kind="MRCluster", view=wire.Manifest
)
NAME_NODE_PORT: Final = 8020
WEB_HDFS_PORT: Final = 9870
UNKNOWN_REQUEUE_S: Final = 20.0
"""The interval at which an object is reconciled that names a cluster which is not listed: a new leader may reconcile it
before the cluster. From then on it counts as a user, before the cluster can expire."""
_LABELS: Final = 3
"""Labels of the domain of a cluster's hosts: SERVICE.NAMESPACE.svc."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster's facts that concern other objects of its namespace.

    Attributes:
        is_ready: Whether its HDFS and YARN are available.
        has_compute: Whether it runs YARN.
        domain: Suffix of its hosts' names, `SERVICE.NAMESPACE.svc`.
        master: Host of the NameNode and the ResourceManager, such as `master`.
        settings: Name of the ConfigMap with its settings.
        user_id: User of its pods, which its file of users names.
        hosts: The Kubernetes node of each host's pod that is placed.
    """

    uid: ObjectUid
    namespace: str
    name: str
    queue: str
    phase: str
    is_ready: bool
    has_compute: bool
    domain: str
    image: str
    classpath: str
    java_home: str
    settings: str
    master: str = "master"
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    user_id: int = 10001
    hosts: Mapping[str, NodeName] = dataclasses.field(default_factory=dict)

    @property
    def name_node(self) -> str:
        """Return the address of its NameNode for clients of HDFS, HOST:PORT."""
        return f"{self.master}.{self.domain}:{NAME_NODE_PORT}"

    @property
    def web_hdfs(self) -> str:
        """Return the address of its NameNode for WebHDFS, HOST:PORT."""
        return f"{self.master}.{self.domain}:{WEB_HDFS_PORT}"


def not_found(namespace: str, name: str) -> str:
    """Return the message about a cluster that does not exist."""
    return f'there is no MRCluster "{name}" in namespace {namespace}: create it, or correct the spec'


def not_reconciled(name: str) -> str:
    """Return the message about a cluster that exists and is not listed yet."""
    return f'the MRCluster "{name}" has not been reconciled yet: if this lasts, see its conditions'


class Directory:
    """All clusters that the operator reconciles."""

    def __init__(self) -> None:
        self._by_uid: dict[ObjectUid, ClusterFacts] = {}
        self._by_name: dict[tuple[str, str], ObjectUid] = {}
        self._by_domain: dict[str, ObjectUid] = {}
        self._subscribers: list[Callable[[ObjectUid], None]] = []
        self._used: dict[ObjectUid, frozenset[ObjectUid]] = {}

    def subscribe(self, on_change: Callable[[ObjectUid], None]) -> None:
        """Call a function with the UID of each cluster that is new, changed or deleted."""
        self._subscribers.append(on_change)

    def put(self, facts: ClusterFacts) -> None:
        """Add a cluster, or replace its facts. A cluster that is created again replaces the one of the same name."""
        if self._by_uid.get(facts.uid) == facts:
            return
        former = self._by_name.get((facts.namespace, facts.name), facts.uid)
        if former != facts.uid:
            self.forget(former)
        self._by_uid[facts.uid] = facts
        self._by_name[facts.namespace, facts.name] = facts.uid
        self._by_domain[facts.domain] = facts.uid
        self._publish(facts.uid)

    def forget(self, uid: ObjectUid) -> None:
        """Remove a deleted cluster; an unknown one is ignored."""
        facts = self._by_uid.pop(uid, None)
        if facts is None:
            return
        del self._by_name[facts.namespace, facts.name], self._by_domain[facts.domain]
        self._publish(uid)

    def get(self, uid: ObjectUid) -> ClusterFacts | None:
        """Return the cluster with this UID."""
        return self._by_uid.get(uid)

    def find(self, namespace: str, name: str) -> ClusterFacts | None:
        """Return the cluster with this name in a namespace."""
        uid = self._by_name.get((namespace, name))
        return None if uid is None else self._by_uid[uid]

    def node_of(self, namespace: str, fqdn: str) -> NodeName | None:
        """Return the Kubernetes node of a host of a cluster in this namespace; None if it has no placed pod.

        DataNodes register with the domain of the Kubernetes cluster, as in `c0.SERVICE.NAMESPACE.svc.cluster.local`.
        """
        host, *rest = fqdn.split(".", _LABELS + 1)
        uid = self._by_domain.get(".".join(rest[:_LABELS]))
        facts = None if uid is None else self._by_uid[uid]
        return facts.hosts.get(host) if facts is not None and facts.namespace == namespace else None

    def use(self, job: ObjectUid, clusters: Collection[ObjectUid]) -> None:
        """Note which clusters a job runs on or reads now; none once it has ended."""
        if clusters:
            self._used[job] = frozenset(clusters)
        else:
            self._used.pop(job, None)

    def users(self, uid: ObjectUid) -> int:
        """Return how many jobs use a cluster: it is not idle then."""
        return sum(uid in clusters for clusters in self._used.values())

    def is_used(self, uid: ObjectUid, job: ObjectUid) -> bool:
        """Return whether a job uses a cluster, which may be deleted by now."""
        return uid in self._used.get(job, ())

    def _publish(self, uid: ObjectUid) -> None:
        for on_change in self._subscribers:
            on_change(uid)
