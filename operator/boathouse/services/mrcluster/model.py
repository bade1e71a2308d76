"""An MRCluster as the services see it: its spec with every default decided, the names of its hosts, its status. Pure.

`from_resource` creates a cluster, or returns a `Refusal` with a message for the user.

A host is the short name of a node, and the `hostname` of its pod: `master`, `c0`, `t17`. Numbers of transient nodes
are never used twice; a core node keeps its number, because its claim has it.

A `ClusterState` is all that survives when pods vanish: the ID of the HDFS, the first number of core nodes, which nodes
exist or shall exist, and which of them leave.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources import quantity
from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.nodes import MasterResources, NodeResources
from boathouse.resources.mrcluster.spec import MRClusterSpec
from boathouse.services import hadoop
from boathouse.services.frame import status_codec
from boathouse.services.frame.admission import Applicant, applicant
from boathouse.services.frame.kind import Body, Refusal, refusing
from boathouse.services.frame.manifests import derived_name

MRCLUSTERS: Final = hadoop.MRCLUSTERS
MASTER: Final = "master"
_LETTERS: Final = {Role.CORE: "c", Role.TRANSIENT: "t"}
_ROLES: Final = {letter: role for role, letter in _LETTERS.items()}
_NUMBERED: Final = re.compile(r"(?P<letter>[ct])(?P<number>0|[1-9][0-9]{0,9})")
TERMINAL: Final = frozenset({"Expired"})
URGENT_FIELDS: Final = ("clusterID", "nextTransient", "wantedCore", "wantedTransient", "leaving", "core", "transient")
"""Written at once: orders, submissions and deletions rest on the written status."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a node's pod requests, which is also its limit."""

    cpu_milli: int
    memory_bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Applicant):
    """A valid MRCluster."""

    spec: MRClusterSpec
    requests: Mapping[Role, Requests]
    replication: int
    config: OperatorConfig

    @property
    def most_core_nodes(self) -> int:
        """Return up to how many core nodes its policy may go."""
        return self.spec.core.maximum or self.spec.core.count

    def named(self, part: str) -> str:
        """Return the name of an object: of the pod or claim of a host, or of the NetworkPolicy for some senders."""
        return derived_name(self.name, self.uid, part)

    def config_map(self, digest: str) -> str:
        """Return the name of the ConfigMap with the settings of a digest."""
        return self.named(f"conf-{digest[:8]}")

    def claim_key(self, host: str) -> str:
        """Return namespace and name of a claim, `NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.named(host)}"

    def host(self, pod: str) -> str | None:
        """Return the host of a pod's name; None for a pod of another kind."""
        host = pod.rpartition("-")[2]
        return host if role_of(host) is not None and self.named(host) == pod else None

    @property
    def service(self) -> str:
        """Return the name of the headless Service, which is the subdomain of all hosts."""
        return self.named("hadoop")

    @property
    def domain(self) -> str:
        """Return the domain of all hosts."""
        return f"{self.service}.{self.namespace}.svc"

    def fqdn(self, host: str) -> str:
        """Return the name by which all pods resolve a host; their search path completes it."""
        return f"{host}.{self.domain}"


@refusing
def from_resource(body: Body, config: OperatorConfig) -> Cluster | Refusal:
    """Return the cluster that a custom resource describes, or why it cannot run."""
    spec = wire.MRCluster.model_validate({"spec": body.get("spec")}).spec  # the status is another version's too
    fields = applicant(body, spec, config, config.hadoop.image, "Hadoop")
    if isinstance(fields, Refusal):
        return fields
    sizes = (spec.master.volume.size, spec.core.volume.size, spec.core.scratch, spec.transient.scratch)
    for amount in (*sizes, spec.hdfs.block_size):
        quantity.units(amount)
    first = (body.get("status") or {}).get("firstCoreNodes")  # so that the replication does not change as it grows
    return Cluster(
        **fields,
        requests={
            Role.MASTER: _requests(spec.master.resources),
            Role.CORE: _requests(spec.core.resources),
            Role.TRANSIENT: _requests(spec.transient.resources),
        },
        replication=spec.hdfs.replication or min(3, first if isinstance(first, int) and first > 0 else spec.core.count),
        config=config,
    )


def _requests(resources: MasterResources | NodeResources) -> Requests:
    return Requests(cpu_milli=quantity.milli(resources.cpu), memory_bytes=quantity.units(resources.memory))


def host_of(role: Role, number: int) -> str:
    """Return the short name of a node; raise a KeyError for the role of clients, which has no hosts."""
    return MASTER if role is Role.MASTER else f"{_LETTERS[role]}{number}"


def role_of(host: str) -> Role | None:
    """Return the role of a host; None for a name that no host has."""
    if host == MASTER:
        return Role.MASTER
    match = _NUMBERED.fullmatch(host)
    return _ROLES[match["letter"]] if match else None


def known_role(host: str) -> Role:
    """Return the role of a host; raise a ValueError if no host has this name."""
    role = role_of(host)
    if role is None:
        raise ValueError(f'"{host}" is not the name of a host: it is {MASTER}, c0 or t0')
    return role


def number_of(host: str) -> int:
    """Return the number of a core or transient node; 0 for the master."""
    return 0 if known_role(host) is Role.MASTER else int(host[1:])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState(wire.MRClusterStatus):
    """A cluster's status.

    `first_core_nodes` is 0 until the first pod is submitted, `replication` 0 before the first plan. `next_transient` is
    more than all numbers that were ever used. The figures from `load_percent` on are None without a recent report.
    """

    @property
    def is_finished(self) -> bool:
        """Return whether the cluster has expired."""
        return self.phase in TERMINAL

    @property
    def leaving_hosts(self) -> frozenset[str]:
        """Return the hosts that are drained."""
        return frozenset(node.host for node in self.leaving)

    def numbers(self, role: Role) -> tuple[int, ...]:
        """Return the numbers of `hosts`."""
        return self.wanted_core if role is Role.CORE else self.wanted_transient

    def hosts(self, role: Role) -> tuple[str, ...]:
        """Return all core or transient nodes that exist or shall exist, those that leave included."""
        return tuple(host_of(role, number) for number in self.numbers(role))

    def staying(self, role: Role) -> tuple[str, ...]:
        """Return the hosts of a role that do not leave."""
        gone = self.leaving_hosts
        return tuple(host for host in self.hosts(role) if host not in gone)

    def wanted(self, role: Role) -> int:
        """Return how many nodes of a role the cluster shall have."""
        counts = self.core if role is Role.CORE else self.transient
        return counts.wanted if counts else len(self.staying(role))

    @property
    def wanted_hosts(self) -> tuple[str, ...]:
        """Return all hosts that exist or shall exist, once the cluster has begun: master, core, transient."""
        if not self.wanted_core:
            return ()
        return (MASTER, *self.hosts(Role.CORE), *self.hosts(Role.TRANSIENT))


_CODEC: Final = status_codec.StatusCodec(ClusterState)


def from_status(status: Mapping[str, Any] | None) -> ClusterState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    read = _CODEC.read(status)
    leaving = tuple(node for node in read.leaving if role_of(node.host) in (Role.CORE, Role.TRANSIENT))
    left = (number_of(node.host) for node in leaving if role_of(node.host) is Role.TRANSIENT)
    used = (number + 1 for number in (*read.wanted_transient, *left))  # whatever the counter says
    return dataclasses.replace(read, leaving=leaving, next_transient=max((read.next_transient, *used)))


def to_status(state: ClusterState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    size, printable = state.size, status_codec.printable
    if size is not None:
        size = dataclasses.replace(size, reason=printable(size.reason, wire.MAX_SIZE_REASON))
    short = tuple(
        condition.model_copy(update={"message": printable(condition.message, wire.MAX_MESSAGE)})
        for condition in state.conditions
    )
    return _CODEC.write(dataclasses.replace(state, conditions=short, size=size, sizes=state.sizes[-wire.MAX_SIZES :]))


def without_free_parts(state: ClusterState) -> ClusterState:
    """Return the state without what only informs people or comes from the cluster's image."""
    return dataclasses.replace(without_figures(state), size=None, sizes=())


def without_figures(state: ClusterState) -> ClusterState:
    """Return the state without the figures of the cluster's image, as when its last report is old."""
    return dataclasses.replace(state, load_percent=None, slots=None, containers=None, applications=None, hdfs=None)
