"""The names of a cluster's hosts and objects. Pure.

A host is the short name of a node, and the `hostname` of its pod: `master`, `c0`, `t17`. Numbers of transient nodes
are never used twice; a core node keeps its number, because its claim has it.
"""

import dataclasses
import re
from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.manifests import derived_name
from boathouse.services.mrcluster.cluster import Cluster

MASTER: Final = "master"
_DIGEST: Final = 8
_LETTERS: Final = {Role.CORE: "c", Role.TRANSIENT: "t"}
_ROLES: Final = {letter: role for role, letter in _LETTERS.items()}
_NUMBERED: Final = re.compile(r"(?P<letter>[ct])(?P<number>0|[1-9][0-9]{0,9})")


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """The names of the objects of a cluster."""

    cluster: Cluster

    @property
    def service(self) -> str:
        """Return the name of the headless Service, which is the subdomain of all hosts."""
        return self._derived("hadoop")

    def pod(self, host: str) -> str:
        """Return the name of a host's pod."""
        return self._derived(host)

    def host(self, pod: str) -> str | None:
        """Return the host of a pod's name; None for a pod of another kind."""
        host = pod.rpartition("-")[2]
        return host if role_of(host) is not None and self.pod(host) == pod else None

    def claim(self, host: str) -> str:
        """Return the name of the PersistentVolumeClaim of the master or of a core node."""
        return self._derived(host)

    def config_map(self, digest: str) -> str:
        """Return the name of the ConfigMap with the settings of a digest."""
        return self._derived(f"conf-{digest[:_DIGEST]}")

    def network_policy(self, part: str) -> str:
        """Return the name of a NetworkPolicy, for the part `cluster` or `clients` of the senders."""
        return self._derived(part)

    def fqdn(self, host: str) -> str:
        """Return the name by which all pods resolve a host; their search path completes it."""
        return f"{host}.{self.service}.{self.cluster.namespace}.svc"

    def _derived(self, suffix: str) -> str:
        return derived_name(self.cluster.name, self.cluster.uid, suffix)


def host_of(role: Role, number: int) -> str:
    """Return the short name of a node.

    Raises:
        KeyError: The role has no hosts: it is that of clients.
    """
    return MASTER if role is Role.MASTER else f"{_LETTERS[role]}{number}"


def role_of(host: str) -> Role | None:
    """Return the role of a host; None for a name that no host has."""
    if host == MASTER:
        return Role.MASTER
    match = _NUMBERED.fullmatch(host)
    return _ROLES[match["letter"]] if match else None


def number_of(host: str) -> int:
    """Return the number of a core or transient node; 0 for the master.

    Raises:
        ValueError: No host has this name.
    """
    if role_of(host) is None:
        raise ValueError(f'"{host}" is not the name of a host: it is {MASTER}, c0 or t0')
    return 0 if host == MASTER else int(host[1:])
