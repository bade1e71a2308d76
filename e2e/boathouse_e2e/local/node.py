"""A real node: a containerd and a kubelet; and what all nodes share: kube-proxy, NetworkPolicies, the cluster's DNS."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from boathouse_e2e.archive import Image, write_programs
from boathouse_e2e.catalogue import NETWORK_POLICIES
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups, checks, control_plane, network
from boathouse_e2e.local.layout import node_name
from boathouse_e2e.local.processes import Component
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from boathouse_e2e.local.layout import Layout
    from boathouse_e2e.local.state import State
    from boathouse_e2e.spec import ClusterSpec

PAUSE_IMAGE = "localhost/pause:dev"
CNI_PLUGINS = "/usr/lib/cni"
EVICTION_MIB = 100
_CONTAINERD_TIMEOUT_S = 90
_DNS_LABELS = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}


def runtimes(layout: Layout, tools: Mapping[str, Path]) -> list[Component]:
    """Make every node's cgroup and files; returns the containerds to start."""
    found = []
    for index in range(layout.nodes):
        cgroups.create(f"{layout.cgroup}/{node_name(index)}")
        folder = layout.node_folder(index)
        (folder / "cni").mkdir(parents=True, exist_ok=True)
        config = folder / "containerd.toml"
        config.write_text(containerd_config(layout, index, tools["containerd-shim-runc-v2"]))
        (folder / "cni" / "10-boathouse.conflist").write_text(json.dumps(cni_config(layout, index)))
        found.append(_component(layout, f"containerd-{node_name(index)}", tools["containerd"], f"--config={config}"))
    return found


def agents(layout: Layout, spec: ClusterSpec, tools: Mapping[str, Path]) -> list[Component]:
    """Write their files; returns what all nodes share and the kubelets, to be started once the API server is ready."""
    proxy = layout.folder / "kube-proxy.json"
    proxy.write_text(json.dumps(kube_proxy_config(layout)))
    corefile = layout.folder / "Corefile"
    corefile.write_text(coredns_config(layout))
    shared = [
        _component(layout, "kube-proxy", tools["kube-proxy"], f"--config={proxy}"),
        _component(layout, "coredns", tools["coredns"], f"-conf={corefile}"),
        _network_policies(layout, tools[NETWORK_POLICIES]),
    ]
    return shared + [_kubelet(layout, spec, index, tools["kubelet"]) for index in range(layout.nodes)]


def _network_policies(layout: Layout, program: Path) -> Component:
    kubeconfig = control_plane.kubeconfig_of(layout, NETWORK_POLICIES)
    return _component(layout, NETWORK_POLICIES, program, f"-kubeconfig={kubeconfig}", f"-queue={network.POLICY_QUEUE}")


def _component(layout: Layout, name: str, program: Path, *arguments: str) -> Component:
    return Component(name=name, command=(str(program), *arguments), log=str(layout.logs / f"{name}.log"))


def containerd_config(layout: Layout, index: int, shim: Path) -> str:
    """Return the configuration of a containerd: all of its folders and sockets are the node's own."""
    folder, name = layout.node_folder(index), node_name(index)
    return f"""version = 4
root = '{folder}/containerd'
state = '/run/boathouse/{name}/containerd'
[plugins.'io.containerd.server.v1.grpc']
  address = '{layout.containerd_socket(index)}'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '{layout.containerd_socket(index)}.ttrpc'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = '{snapshotter(folder)}'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{PAUSE_IMAGE}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    runtime_path = '{shim}'
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{CNI_PLUGINS}']
    conf_dir = '{folder}/cni'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.internal.v1.opt']
  path = '{folder}/opt'
"""


def snapshotter(folder: Path) -> str:
    """Return the kind of snapshots: overlays do not lie upon overlays, as where this runs in a container."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = run("stat", "--file-system", "--format=%T", folder).strip()
    return "native" if kind == "overlayfs" else "overlayfs"


def cni_config(layout: Layout, index: int) -> dict[str, Any]:
    """Return the pods' network: a routed link each, so that packets to services pass the address translation."""
    ipam = {
        "type": "host-local",
        "dataDir": f"/run/boathouse/{node_name(index)}/cni",
        "ranges": [[{"subnet": layout.node_network(index), "gateway": layout.node_address(index)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [{"type": "ptp", "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return {"cniVersion": "1.0.0", "name": "boathouse", "plugins": plugins}


def kube_proxy_config(layout: Layout) -> dict[str, Any]:
    """Return the kube-proxy of all nodes, which share the network namespace; it keeps the machine's limits."""
    untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": layout.pod_network,
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig_of(layout, "kube-proxy"))},
        "hostnameOverride": node_name(0),
        "nodePortAddresses": [layout.pod_network],
        "conntrack": untouched,
        "nftables": {"minSyncPeriod": "100ms"},
    }


def coredns_config(layout: Layout) -> str:
    """CoreDNS answers for the cluster's names, and asks the machine's name servers for others where it has some."""
    kubeconfig = control_plane.kubeconfig_of(layout, "coredns")
    upstream = network.resolv_conf(layout).read_text().split()[1::2]
    forward = f"forward . {' '.join(upstream[:3])}" if upstream else ""
    return f""".:53 {{
    bind {layout.api_address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig} {_context(kubeconfig)}
        pods verified
        fallthrough in-addr.arpa
        ttl 5
    }}
    {forward}
    cache 5
    loop
    reload
}}
"""


def _context(kubeconfig: Path) -> str:
    return str(json.loads(kubeconfig.read_text())["current-context"])


def dns_objects(layout: Layout) -> list[tuple[str, dict[str, Any]]]:
    """Return the API objects that CoreDNS needs, with their paths: its role, and the service `kube-dns`."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    role = {**rbac, "kind": "ClusterRole", "metadata": {"name": "system:coredns"}, "rules": rules}
    binding = {
        **rbac,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:coredns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}],
    }
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": _DNS_LABELS},
        "spec": {"clusterIP": layout.dns_address, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-local",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": [layout.api_address], "conditions": {"ready": True}}],
    }
    return [
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", role),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding),
        ("/api/v1/namespaces/kube-system/services", service),
        ("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", endpoints),
    ]


def reserved(spec: ClusterSpec, *, machine_cpus: int, machine_memory_mib: int) -> dict[str, str]:
    """Return what a kubelet must keep back so that its node offers just what the spec asks for."""
    memory_mib = max(0, machine_memory_mib - EVICTION_MIB - spec.node_memory_mib)
    return {"cpu": str(max(0, machine_cpus - spec.node_cpu)), "memory": f"{memory_mib}Mi"}


def kubelet_config(layout: Layout, spec: ClusterSpec, index: int) -> dict[str, Any]:
    """Return the kubelet's configuration."""
    keys, name = layout.pki, node_name(index)
    lease_s = control_plane.lease_duration_s(spec)
    machine_memory_mib = checks.machine_memory_mib()
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.node_address(index),
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(keys / "ca.crt")}},
        "tlsCertFile": str(keys / f"{name}.crt"),
        "tlsPrivateKeyFile": str(keys / f"{name}.key"),
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket(index)}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}/{name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "clusterDNS": [layout.dns_address],
        "clusterDomain": "cluster.local",
        "resolvConf": str(network.resolv_conf(layout)),
        "podLogsDir": f"/var/log/pods-{name}",
        "volumePluginDir": str(layout.node_folder(index) / "volume-plugins"),
        "maxPods": spec.node_max_pods,
        "kubeReserved": reserved(spec, machine_cpus=os.cpu_count() or 1, machine_memory_mib=machine_memory_mib),
        "evictionHard": {"memory.available": f"{EVICTION_MIB}Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "serializeImagePulls": False,
        "nodeLeaseDurationSeconds": lease_s,
        "nodeStatusUpdateFrequency": status_update_frequency(lease_s),
    }


def status_update_frequency(lease_s: int) -> str:
    """Return how often a kubelet reports its status, for how long its lease lasts."""
    return f"{max(1, min(10, lease_s // 4))}s"


def node_labels(spec: ClusterSpec, index: int) -> dict[str, str]:
    """Return the labels a real cluster's nodes have, beyond those a kubelet sets itself."""
    return {"topology.kubernetes.io/zone": "zone-0", "boathouse.dev/rack": f"rack-{index % spec.racks}"}


def _kubelet(layout: Layout, spec: ClusterSpec, index: int, kubelet: Path) -> Component:
    folder, name = layout.node_folder(index), node_name(index)
    config = folder / "kubelet.json"
    config.write_text(json.dumps(kubelet_config(layout, spec, index), indent=1))
    labels = ",".join(f"{key}={value}" for key, value in node_labels(spec, index).items())
    return _component(
        layout,
        f"kubelet-{name}",
        kubelet,
        f"--config={config}",
        f"--kubeconfig={control_plane.kubeconfig_of(layout, name)}",
        f"--hostname-override={name}",
        f"--node-ip={layout.node_address(index)}",
        f"--node-labels={labels}",
        f"--root-dir={folder}/kubelet",
        f"--cert-dir={folder}/kubelet-pki",
    )


def import_pause_image(known: State, tools: Mapping[str, Path]) -> None:
    """Make the image that holds each pod's namespaces, from the project's own program, known to all nodes."""
    target = known.layout.folder / "pause.tar"
    image = Image(name=PAUSE_IMAGE, entrypoint=("/pause",), user="65535:65535")
    write_programs(target, image, {"/pause": tools["pause"]})
    import_images(known, tools["ctr"], [target])


def import_images(known: State, ctr: Path, archives: Sequence[Path]) -> None:
    """Import docker-archive files into the containerd of every node, all nodes at once.

    Raises:
        ClusterError: the cluster is not up, or an import failed.
    """
    pid = network.holder_pid(known)
    if pid is None:
        raise ClusterError(f"cluster {known.spec.name!r} has no nodes to load images into")
    into = network.enter(pid, namespaces=("mount",))

    def import_into(index: int) -> None:
        client = (*into, str(ctr), f"--address={known.layout.containerd_socket(index)}", "--namespace=k8s.io")
        _wait_for_containerd(client)
        for archive in archives:
            run(
                *client,
                "images",
                "import",
                "--local",
                "--snapshotter",
                _snapshotter_of(known, index),
                archive.resolve(),
            )

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(import_into, range(known.spec.nodes)))


def _snapshotter_of(known: State, index: int) -> str:
    return snapshotter(known.layout.node_folder(index))


def _wait_for_containerd(client: Sequence[str]) -> None:
    deadline = time.monotonic() + _CONTAINERD_TIMEOUT_S
    while not succeeds(*client, "version"):
        if time.monotonic() > deadline:
            raise ClusterError(f"containerd did not answer in {_CONTAINERD_TIMEOUT_S} s: see its log")
        time.sleep(_POLL_S)


_POLL_S = 0.1
