"""The namespaces of an isolated cluster, its one cable to the machine, and the way out for its pods."""

from __future__ import annotations

import ipaddress
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import processes
from boathouse_e2e.local.processes import Component
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from boathouse_e2e.local.layout import Layout
    from boathouse_e2e.local.state import State

HOLDER = "namespaces"
POLICY_QUEUE = 100
ASK_POLICIES: Final = (
    *("iptables", "--append", "FORWARD", "--match", "conntrack", "--ctstate", "NEW"),
    *("--jump", "NFQUEUE", "--queue-num", str(POLICY_QUEUE)),
)
"""Asks `network-policies` before a connection is forwarded to or from a pod; while it does not run none is.

The nodes' own connections are not asked for.

By iptables, because `nft` needs a kernel module for queues that not all kernels have.
"""
_RESOLV_CONF = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))
_HOLDER_TIMEOUT_S = 60
# Mounts made inside stay inside and are shared among the cluster's processes only. /run, /var/log, /var/lib/kubelet and
# /etc/docker are its own, so that what programs put there neither meets another cluster's, or that of the machine's own
# kubelet and Docker, nor stays behind.
_HOLDER_SCRIPT = """
set -eu
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/log
mkdir -p /var/lib/kubelet /etc/docker
mount -t tmpfs -o mode=755 tmpfs /var/lib/kubelet
mount -t tmpfs -o mode=755 tmpfs /etc/docker
mkdir -p /run/lock /run/netns
target=$(realpath -m /etc/resolv.conf)
mkdir -p "$(dirname "$target")"
[ -e "$target" ] || : > "$target"
mount --bind "$1" "$target"
exec "$2"
"""


def holder(layout: Layout, pause: Path) -> Component:
    """Return the process that is the first in the cluster's namespaces; everything else in them ends with it."""
    unshare = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--propagation", "private")
    script = ("sh", "-c", _HOLDER_SCRIPT, HOLDER, str(resolv_conf(layout)), str(pause))
    log = str(layout.logs / f"{HOLDER}.log")
    return Component(name=HOLDER, command=(*unshare, *script), log=log, program=str(pause))


def enter(holder_pid: int, *, namespaces: tuple[str, ...] = ("net", "mount", "pid")) -> tuple[str, ...]:
    """Return the words that run the rest of a command inside the cluster's namespaces."""
    return ("nsenter", f"--target={holder_pid}", *(f"--{name}" for name in namespaces), "--")


def resolv_conf(layout: Layout) -> Path:
    """Return the resolver configuration inside the cluster."""
    return layout.folder / "resolv.conf"


def usable_nameservers(texts: list[str]) -> list[str]:
    """Return the first text's name servers that are reached from another network namespace: none on loopback."""
    for text in texts:
        words = [line.split() for line in text.splitlines()]
        servers = [word[1] for word in words if word[:1] == ["nameserver"] and len(word) > 1]
        if usable := [server for server in servers if not server.startswith("127.") and server != "::1"]:
            return usable
    return []


def create(begun: State, pause: Path) -> tuple[str, ...]:
    """Make the namespaces and the devices; returns the words that enter them.

    Raises:
        ClusterError: the kernel refused.
    """
    layout = begun.layout
    texts = [path.read_text() for path in _RESOLV_CONF if path.exists()]
    resolv_conf(layout).write_text("".join(f"nameserver {server}\n" for server in usable_nameservers(texts)))
    processes.start(holder(layout, pause), cluster_id=begun.cluster_id, folder=layout.folder)
    pid = _holder_pid(begun)
    _cable(layout, pid)
    _way_out(layout)
    return enter(pid)


def holder_pid(begun: State) -> int | None:
    """Return the id of the process that holds the namespaces, if it lives."""
    found = processes.find_component(begun.cluster_id, HOLDER)
    return found.pid if found else None


def _holder_pid(begun: State) -> int:
    deadline = time.monotonic() + _HOLDER_TIMEOUT_S
    while time.monotonic() < deadline:
        if pid := holder_pid(begun):
            return pid
        time.sleep(0.02)
    log = begun.layout.logs / f"{HOLDER}.log"
    raise ClusterError(f"could not make the cluster's namespaces: {processes.log_tail(log)}")


def _cable(layout: Layout, pid: int) -> None:
    run("ip", "link", "add", layout.veth, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    inside = [
        "link set lo up",
        f"address add {layout.api_address}/30 dev eth0",
        "link set eth0 up",
        f"route add default via {layout.host_address}",
        *(f"address add {layout.node_address(index)}/32 dev lo" for index in range(layout.nodes)),
    ]
    into = enter(pid, namespaces=("net",))
    run(*into, "ip", "-batch", "-", stdin="\n".join(inside) + "\n")
    run(*into, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    if layout.nodes:
        run(*into, "nft", "-f", "-", stdin=hairpin_rules(layout))
        run(*into, *ASK_POLICIES)
    outside = [
        f"address add {layout.host_address}/30 dev {layout.veth}",
        f"link set {layout.veth} up",
        f"route add {layout.network} via {layout.api_address}",
    ]
    run("ip", "-batch", "-", stdin="\n".join(outside) + "\n")


def hairpin_rules(layout: Layout) -> str:
    """Return the nftables rules for pods that reach themselves through a service.

    All nodes share one kube-proxy, which masks the sender of such packets only for the pods of the node whose name it
    bears. nftables cannot compare two addresses, so here is a set of all pairs that are equal.
    """
    networks = [ipaddress.IPv4Network(layout.node_network(index)) for index in range(layout.nodes)]
    pairs = ", ".join(f"{address} . {address}" for network in networks for address in network.hosts())
    return f"""table ip hairpin {{
  set same {{ type ipv4_addr . ipv4_addr; elements = {{ {pairs} }} }}
  chain postrouting {{
    type nat hook postrouting priority srcnat - 1; policy accept;
    ct status dnat ip saddr . ip daddr @same masquerade
  }}
}}
"""


def way_out_rules(layout: Layout) -> str:
    """Return the nftables rules that give the cluster's pods the machine's address when they speak to the outside."""
    return f"""table ip {layout.nft_table} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {layout.network} oifname != "{layout.veth}" masquerade
  }}
}}
"""


def _way_out(layout: Layout) -> None:
    run("nft", "-f", "-", stdin=way_out_rules(layout))


def remove(layout: Layout) -> None:
    """Remove what the end of the namespaces may have left on the machine."""
    if succeeds("ip", "link", "show", layout.veth):
        succeeds("ip", "link", "delete", layout.veth)  # the kernel may just have deleted it with its other end
    if succeeds("nft", "list", "table", "ip", layout.nft_table):
        run("nft", "delete", "table", "ip", layout.nft_table)
