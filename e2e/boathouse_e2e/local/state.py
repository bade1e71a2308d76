"""What is known of each cluster of this machine on disk, written before anything of it is started, and its slot."""

from __future__ import annotations

import ipaddress
import json
import socket
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local.layout import SLOTS, Layout
from boathouse_e2e.paths import locked, state_folder
from boathouse_e2e.spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

STARTING, READY = "starting", "ready"
LOCAL, KIND = "local", "kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A cluster that was begun.

    Attributes:
        cluster_id: a random id that marks its processes.
        slot: what its addresses, ports and names are derived from.
        phase: `starting` or `ready`.
        spec: what was asked for.
        provider: `local` or `kind`.
        own_docker: whether it has a Docker daemon of its own (provider kind).
    """

    cluster_id: str
    slot: int
    phase: str
    spec: ClusterSpec
    provider: str = LOCAL
    own_docker: bool = False

    @property
    def layout(self) -> Layout:
        """Its addresses, ports and names."""
        nodes = self.spec.nodes if self.provider == LOCAL else 0
        return Layout(slot=self.slot, folder=folder_of(self.spec.name), nodes=nodes, docker=self.own_docker)

    def save(self) -> None:
        """Write it, whole or not at all."""
        folder = folder_of(self.spec.name)
        folder.mkdir(parents=True, exist_ok=True)
        data = {
            "clusterId": self.cluster_id,
            "slot": self.slot,
            "phase": self.phase,
            "spec": self.spec.to_json(),
            "provider": self.provider,
            "ownDocker": self.own_docker,
        }
        unfinished = folder / ".state.json"
        unfinished.write_text(json.dumps(data, indent=1))
        unfinished.rename(folder / "state.json")

    def ready(self) -> State:
        """Return the same cluster, once it is ready."""
        return replace(self, phase=READY)


def clusters_folder() -> Path:
    """Return the folder of all clusters that this user has on this machine."""
    return state_folder() / "clusters"


def folder_of(name: str) -> Path:
    """Return the folder of one cluster."""
    return clusters_folder() / name


def lock_of(name: str) -> Path:
    """Held by whoever starts or ends the cluster."""
    return clusters_folder() / f".{name}.lock"


def load(name: str, provider: str | None = None) -> State | None:
    """Return the cluster of this name, if it was begun and not ended, and is the provider's."""
    try:
        data = json.loads((folder_of(name) / "state.json").read_text())
    except FileNotFoundError:
        return None
    found = State(
        cluster_id=data["clusterId"],
        slot=data["slot"],
        phase=data["phase"],
        spec=ClusterSpec.from_json(data["spec"]),
        provider=data.get("provider", LOCAL),  # earlier checkouts knew no other
        own_docker=data.get("ownDocker", False),
    )
    return found if provider in {None, found.provider} else None


def load_all() -> list[State]:
    """Return all clusters that were begun and not ended."""
    names = sorted(path.parent.name for path in clusters_folder().glob("*/state.json"))
    return [state for name in names if (state := load(name))]


def begin(spec: ClusterSpec, *, provider: str = LOCAL, own_docker: bool = False) -> State:
    """Take a free slot and write the new cluster's state, both under one lock.

    Raises:
        ClusterError: all slots are taken, or another provider has a cluster of this name.
    """
    with locked(clusters_folder() / ".lock"):
        if other := load(spec.name):
            raise ClusterError(
                f"a cluster {spec.name!r} of provider {other.provider} is there: "
                f"end it first (make cluster-down CLUSTER={spec.name}), or choose a name"
            )
        taken = {state.slot for state in load_all()}
        slot = free_slot(taken, routed=_routed_networks(), nodes=spec.nodes)
        state = State(
            cluster_id=uuid.uuid4().hex, slot=slot, phase=STARTING, spec=spec, provider=provider, own_docker=own_docker
        )
        state.save()
    return state


def free_slot(taken: Container[int], *, routed: Iterable[ipaddress.IPv4Network], nodes: int) -> int:
    """Return the lowest unused slot whose ports are free and whose addresses the machine does not route."""
    networks = list(routed)
    for slot in range(SLOTS):
        layout = Layout(slot=slot, folder=Path(), nodes=nodes)
        if slot in taken or not all(map(_port_free, layout.ports)):
            continue
        if not any(ipaddress.IPv4Network(layout.network).overlaps(network) for network in networks):
            return slot
    raise ClusterError(f"all {SLOTS} places for local clusters are taken: end some with `down`")


def _port_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _routed_networks() -> list[ipaddress.IPv4Network]:
    """Return the networks in the kernel's routing table, without the default route."""
    try:
        lines = Path("/proc/net/route").read_text().splitlines()[1:]
    except OSError:
        return []
    found = []
    for line in lines:
        _, destination, _, _, _, _, _, mask, *_ = line.split()
        address, netmask = (int.from_bytes(bytes.fromhex(word), "little") for word in (destination, mask))
        if netmask:
            found.append(ipaddress.IPv4Network((address, netmask.bit_count())))
    return found
