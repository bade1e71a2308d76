"""Addresses, ports and names of a local cluster, all derived from its slot: so that several run side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SLOTS = 32
_FIRST_NETWORK = 192
_FIRST_PORT = 21000
_PORTS_PER_SLOT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The addresses of slot k lie in 10.(192+k).0.0/16, its ports in 21000+10k to 21009+10k.

    Attributes:
        slot: 0 to 31.
        folder: the cluster's state folder.
        nodes: the number of real nodes that are processes of this machine.
        docker: whether a Docker daemon of its own runs the cluster's nodes.
    """

    slot: int
    folder: Path
    nodes: int
    docker: bool = False

    @property
    def isolated(self) -> bool:
        """Whether the cluster lives in namespaces of its own."""
        return self.nodes > 0 or self.docker

    def _address(self, third: int, fourth: int) -> str:
        return f"10.{_FIRST_NETWORK + self.slot}.{third}.{fourth}"

    @property
    def network(self) -> str:
        """All addresses of the cluster, in CIDR notation."""
        return self._address(0, 0) + "/16"

    @property
    def pod_network(self) -> str:
        """The addresses of all pods of real nodes."""
        return self._address(0, 0) + "/17" if self.nodes <= 128 else self.network  # noqa: PLR2004 # half of 256 nodes

    @property
    def service_network(self) -> str:
        """The addresses of services."""
        return self._address(224, 0) + "/20"

    @property
    def kwok_network(self) -> str:
        """The addresses of fake pods; KWOK gives each once."""
        return f"10.{_FIRST_NETWORK + SLOTS + self.slot % 16}.0.0/16"

    @property
    def api_service_address(self) -> str:
        """The address of the service `kubernetes`: the first of the services' addresses."""
        return self._address(224, 1)

    @property
    def dns_address(self) -> str:
        """The address of the service `kube-dns`."""
        return self._address(224, 10)

    @property
    def host_address(self) -> str:
        """The machine's end of the veth into an isolated cluster."""
        return self._address(255, 1)

    @property
    def api_address(self) -> str:
        """Where the API server listens."""
        return self._address(255, 2) if self.isolated else "127.0.0.1"

    def node_network(self, index: int) -> str:
        """Return the pods of node `index`."""
        return self._address(index, 0) + "/24"

    def node_address(self, index: int) -> str:
        """Return the address of node `index`."""
        return self._address(index, 1)

    def node_folder(self, index: int) -> Path:
        """Return what node `index` keeps on disk."""
        return self.folder / node_name(index)

    @property
    def ports(self) -> range:
        """All ports of the slot."""
        first = _FIRST_PORT + _PORTS_PER_SLOT * self.slot
        return range(first, first + _PORTS_PER_SLOT)

    @property
    def api_port(self) -> int:
        """The API server's port."""
        return self.ports[0]

    @property
    def etcd_client_port(self) -> int:
        """The port where etcd serves the API server."""
        return self.ports[1]

    @property
    def etcd_peer_port(self) -> int:
        """The port where etcd would serve its peers."""
        return self.ports[2]

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.api_address}:{self.api_port}"

    @property
    def veth(self) -> str:
        """The machine's network device into the cluster."""
        return f"boathouse{self.slot}"

    @property
    def nft_table(self) -> str:
        """The machine's nftables table that lets the cluster's pods out."""
        return f"boathouse{self.slot}"

    @property
    def cgroup(self) -> str:
        """The cgroup above all pods of the cluster, in every hierarchy."""
        return f"boathouse{self.slot}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's credentials."""
        return self.folder / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.folder / "pki"

    @property
    def logs(self) -> Path:
        """A log file for each component."""
        return self.folder / "logs"

    def containerd_socket(self, index: int) -> str:
        """Return the socket of node `index`'s containerd, in the cluster's mounts; a socket's path must be short."""
        return f"/run/boathouse/{node_name(index)}/containerd.sock"


def node_name(index: int) -> str:
    """Return the name of real node `index`."""
    return f"node-{index}"
