"""Hadoop clusters as other kinds see them: a directory, settings of clients, and applications by their tags.

A cluster's agent asks its ResourceManager for a tag when the operator orders it, and reports what it found. Only that
shows whether a client whose pod was lost has submitted its application. So an answer about a tag counts only if the
agent asked after the tag was followed, and a job sees when the agent asked at the earliest.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from boathouse.cluster import catalogue, server_time, wire
from boathouse.resources import names
from boathouse.resources.pod_environment import S3, S3_KEYS, S3_TOKEN
from boathouse.services.frame.kind import ObjectUid
from boathouse_policies.model import NodeName
from boathouse_task.cluster_contract import MOST_KILLS, MOST_TAGS, ApplicationFigures

MRCLUSTERS: Final = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural="mrclusters", kind="MRCluster", view=wire.Manifest
)
NAME_NODE_PORT: Final = 8020
WEB_HDFS_PORT: Final = 9870
UNKNOWN_REQUEUE_S: Final = 20.0
"""The interval at which an object is reconciled that names a cluster which is not listed: a new leader may reconcile it
before the cluster. From then on it counts as a user, before the cluster can expire."""
_LABELS: Final = 3  # labels of the domain of a cluster's hosts: SERVICE.NAMESPACE.svc
USER_ENV: Final = "HADOOP_USER_NAME"
USER: Final = "hadoop"  # the user of all daemons and jobs of a cluster, and HDFS's superuser
ARENAS: Final = ("MALLOC_ARENA_MAX", "4")
"""Variable of all JVMs, as in Hadoop's own scripts. By default glibc keeps up to eight arenas for each core of the
node, for which the limits of containers have no room. NodeManagers pass the variable on to their containers."""
NAMESERVICES: Final = "dfs.nameservices"
_NAME_NODE: Final = "nn"
_FAILOVER_PROVIDER: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_S3_PACKAGE: Final = "org.apache.hadoop.fs.s3a"
_S3_ANONYMOUS: Final = f"{_S3_PACKAGE}.AnonymousAWSCredentialsProvider"
_S3_KEYS: Final = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token")
S3_PROVIDER: Final = f"{_S3_PACKAGE}.TemporaryAWSCredentialsProvider,{_S3_PACKAGE}.SimpleAWSCredentialsProvider"
"""Classes that find the keys in `secret_settings`: the first if there is a token, else the second."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster's facts that concern other objects of its namespace."""

    uid: ObjectUid
    namespace: str
    name: str
    queue: str
    phase: str
    is_ready: bool  # its HDFS and YARN are available
    has_compute: bool
    domain: str  # suffix of its hosts' names, `SERVICE.NAMESPACE.svc`
    image: str
    classpath: str
    java_home: str
    settings: str  # name of the ConfigMap with its settings
    master: str = "master"
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    user_id: int = 10001
    hosts: Mapping[str, NodeName] = dataclasses.field(default_factory=dict)  # of the hosts whose pods are placed

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
        self._by_name: dict[tuple[str, str], ClusterFacts] = {}
        self._by_domain: dict[str, ClusterFacts] = {}
        self._subscribers: list[Callable[[ObjectUid], None]] = []
        self._used: dict[ObjectUid, frozenset[ObjectUid]] = {}

    def subscribe(self, on_change: Callable[[ObjectUid], None]) -> None:
        """Call a function with the UID of each cluster that is new, changed or deleted."""
        self._subscribers.append(on_change)

    def put(self, facts: ClusterFacts) -> None:
        """Add a cluster, or replace its facts. A cluster that is created again replaces the one of the same name."""
        if self._by_uid.get(facts.uid) == facts:
            return
        former = self._by_name.get((facts.namespace, facts.name), facts)
        if former.uid != facts.uid:
            self.forget(former.uid)
        self._by_uid[facts.uid] = self._by_name[facts.namespace, facts.name] = self._by_domain[facts.domain] = facts
        self._publish(facts.uid)

    def forget(self, uid: ObjectUid) -> None:
        """Remove a deleted cluster; an unknown one is ignored."""
        if (facts := self._by_uid.pop(uid, None)) is not None:
            del self._by_name[facts.namespace, facts.name], self._by_domain[facts.domain]
            self._publish(uid)

    def get(self, uid: ObjectUid) -> ClusterFacts | None:
        """Return the cluster with this UID."""
        return self._by_uid.get(uid)

    def find(self, namespace: str, name: str) -> ClusterFacts | None:
        """Return the cluster with this name in a namespace."""
        return self._by_name.get((namespace, name))

    def find_all(self, namespace: str, names: Iterable[str]) -> list[ClusterFacts]:
        """Return the clusters with these names in a namespace, as far as they are listed."""
        return [cluster for name in names if (cluster := self.find(namespace, name)) is not None]

    def unlisted(self, namespace: str, names: Iterable[str]) -> list[str]:
        """Return the names of those that do not exist, or that a new leader has not reconciled yet."""
        return [name for name in names if self.find(namespace, name) is None]

    def node_of(self, namespace: str, fqdn: str) -> NodeName | None:
        """Return the Kubernetes node of a host of a cluster in this namespace; None if it has no placed pod.

        DataNodes register with the domain of the Kubernetes cluster, as in `c0.SERVICE.NAMESPACE.svc.cluster.local`.
        """
        host, *rest = fqdn.split(".", _LABELS + 1)
        facts = self._by_domain.get(".".join(rest[:_LABELS]))
        return facts.hosts.get(host) if facts is not None and facts.namespace == namespace else None

    def use(self, job: ObjectUid, clusters: Collection[ObjectUid]) -> None:
        """Note which clusters a job runs on or reads now; none once it has ended."""
        self._used.pop(job, None)
        if clusters:
            self._used[job] = frozenset(clusters)

    def users(self, uid: ObjectUid) -> int:
        """Return how many jobs use a cluster: it is not idle then."""
        return sum(uid in clusters for clusters in self._used.values())

    def is_used(self, uid: ObjectUid, job: ObjectUid) -> bool:
        """Return whether a job uses a cluster, which may be deleted by now."""
        return uid in self._used.get(job, ())

    def _publish(self, uid: ObjectUid) -> None:
        for on_change in self._subscribers:
            on_change(uid)


def name_services(clusters: Iterable[ClusterFacts], given: str = "") -> dict[str, str]:
    """Return the settings by which hdfs://NAME/ is the HDFS of each of these clusters, beside the `given` nameservices.

    A nameservice needs no address in the URL. It has one NameNode, whose provider repeats requests.
    """
    names, settings = dict.fromkeys(filter(None, map(str.strip, given.split(",")))), dict[str, str]()
    for cluster in clusters:
        names[cluster.name] = None
        settings |= {
            f"dfs.ha.namenodes.{cluster.name}": _NAME_NODE,
            f"dfs.namenode.rpc-address.{cluster.name}.{_NAME_NODE}": cluster.name_node,
            f"dfs.client.failover.proxy.provider.{cluster.name}": _FAILOVER_PROVIDER,
        }
    common = {NAMESERVICES: ",".join(names), "dfs.client.use.datanode.hostname": "true"}
    return common | settings if settings else {}


def s3_settings(s3: S3, provider: str) -> dict[str, str]:
    """Return the settings by which s3a:// and s3:// URLs reach the storage, unsigned without a Secret.

    The provider is the class that finds the keys, or several that S3A tries in turn.
    """
    settings = {
        "fs.s3.impl": f"{_S3_PACKAGE}.S3AFileSystem",
        "fs.s3a.aws.credentials.provider": provider if s3.secret_ref else _S3_ANONYMOUS,
        "fs.s3a.endpoint.region": s3.region,
    }
    if s3.endpoint_url:
        settings |= {
            "fs.s3a.endpoint": s3.endpoint_url,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "true" if s3.endpoint_url.startswith("https://") else "false",
        }
    return settings


def s3_secret_settings(s3: S3) -> dict[str, str]:
    """Return the variables with the keys by the settings that get their values where only the client reads them."""
    return dict(zip(_S3_KEYS, (*S3_KEYS, S3_TOKEN), strict=True)) if s3.secret_ref else {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TagView:
    """The applications of a tag that the ResourceManager knows: first those that run, then the newest.

    It may not have recovered all applications yet if it started a moment before.
    """

    began_s: float  # before the agent asked for them: what had been submitted by then is among them
    rm_started_s: float  # at the latest
    applications: Sequence[ApplicationFigures] = ()

    @property
    def running(self) -> Sequence[ApplicationFigures]:
        """Return those that have not ended."""
        return [application for application in self.applications if not application.has_ended]


@dataclasses.dataclass(slots=True)
class _Tag:
    """A tag that a job follows."""

    cluster: ObjectUid
    job: ObjectUid
    since_s: float
    view: TagView | None = None


@dataclasses.dataclass(slots=True)
class _Cluster:
    """Tags to ask for and applications to kill, the next first; the values are None."""

    tags: dict[str, None] = dataclasses.field(default_factory=dict)
    kills: dict[str, None] = dataclasses.field(default_factory=dict)


class Applications:
    """What the clusters' ResourceManagers say of the tags that jobs follow; `mark` gets the jobs of what changed."""

    def __init__(
        self, mark: Callable[[ObjectUid], None], now: Callable[[], float] = server_time.SERVER_TIME.now_s
    ) -> None:
        self._mark, self._now = mark, now
        self._tags: dict[str, _Tag] = {}
        self._clusters: dict[ObjectUid, _Cluster] = {}

    # For jobs

    def follow(self, cluster_uid: ObjectUid, tag: str, job_uid: ObjectUid) -> None:
        """Ask for the applications of a tag until it is dropped; ValueError if it has capitals, as YARN's have none."""
        if tag != tag.lower():
            raise ValueError(f"the tag {tag!r} is not in lower case")
        former = self._tags.get(tag)
        if former is not None and (former.cluster, former.job) == (cluster_uid, job_uid):
            return
        self.drop(tag)
        self._tags[tag] = _Tag(cluster=cluster_uid, job=job_uid, since_s=self._now())
        self._clusters.setdefault(cluster_uid, _Cluster()).tags[tag] = None

    def drop(self, tag: str) -> None:
        """Stop asking for a tag, and killing its applications; an unknown tag is ignored."""
        if (dropped := self._tags.pop(tag, None)) is not None:
            self._end_kills(dropped.cluster, dropped.view)
            del self._clusters[dropped.cluster].tags[tag]
            if not self._clusters[dropped.cluster].tags:
                del self._clusters[dropped.cluster]

    def view(self, tag: str) -> TagView | None:
        """Return the applications of a tag; None until the agent has answered."""
        followed = self._tags.get(tag)
        return followed.view if followed else None

    def request_kill(self, cluster_uid: ObjectUid, application_id: str) -> None:
        """Have an application killed: the order is repeated until the application ends or its tag is dropped."""
        if cluster_uid in self._clusters:
            self._clusters[cluster_uid].kills[application_id] = None

    # For agents

    def orders(self, cluster_uid: ObjectUid) -> tuple[Sequence[str], Sequence[str]]:
        """Return the tags that the agent shall ask for next, and the applications that it shall kill."""
        cluster = self._clusters.get(cluster_uid, _Cluster())
        return _next(cluster.tags, MOST_TAGS), _next(cluster.kills, MOST_KILLS)

    def answered(
        self,
        cluster_uid: ObjectUid,
        *,
        began_s: float,
        rm_started_s: float,
        found: Mapping[str, Sequence[ApplicationFigures]],
    ) -> None:
        """Take the applications that an agent has found, by the tags that it got an answer about.

        The agent began to ask at `began_s` or later, and the ResourceManager started at `rm_started_s` at the latest.
        """
        for tag, applications in found.items():
            followed = self._tags.get(tag)
            if followed is None or followed.cluster != cluster_uid or began_s < followed.since_s:
                continue
            view = TagView(began_s=began_s, rm_started_s=rm_started_s, applications=tuple(applications))
            before, followed.view = followed.view, view
            self._end_kills(cluster_uid, before, {application.id for application in view.running})
            if before is None or before.applications != view.applications:
                self._mark(followed.job)

    def _end_kills(self, cluster_uid: ObjectUid, view: TagView | None, running: Collection[str] = ()) -> None:
        """Do not kill those applications of a former view that do not run any more."""
        for application in view.applications if view else ():
            if application.id not in running:
                self._clusters[cluster_uid].kills.pop(application.id, None)

    def forget(self, cluster_uid: ObjectUid) -> None:
        """Drop all tags of a deleted cluster."""
        for tag in self._clusters.pop(cluster_uid, _Cluster()).tags:
            self._mark(self._tags.pop(tag).job)


def _next(waiting: dict[str, None], most: int) -> Sequence[str]:
    """Return the first entries, and move them to the end."""
    chosen = list(itertools.islice(waiting, most))
    for entry in chosen:
        waiting[entry] = waiting.pop(entry)
    return chosen
