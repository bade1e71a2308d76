"""The cluster's binaries: which Go module each comes from, and which of them each provider needs."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import TOOLS

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = {"1.36": "kubernetes", "1.35": "kubernetes-1.35"}
"""The folder below `e2e/tools/` that pins each release of Kubernetes; the first is the default."""
DEFAULT_RELEASE = next(iter(RELEASES))
RELEASE_VARIABLE = "KUBERNETES"
NETWORK_POLICIES = "network-policies"
_KUBERNETES_VERSION = "k8s.io/component-base/version"


def chosen_release() -> str:
    """Return the release of Kubernetes that the environment selects for new clusters, such as 1.35."""
    return os.environ.get(RELEASE_VARIABLE) or DEFAULT_RELEASE


def family_of(release: str) -> str:
    """Return the folder below `e2e/tools/` that pins a release of Kubernetes.

    Raises:
        ClusterError: there is none.
    """
    if release not in RELEASES:
        raise ClusterError(f"there is no Kubernetes {release!r}: choose {' or '.join(RELEASES)} ({RELEASE_VARIABLE})")
    return RELEASES[release]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One binary.

    Attributes:
        name: the binary's name.
        family: the folder under `e2e/tools/` with the go.mod that pins it.
        package: the Go package to build.
        module: the module whose version is the tool's; empty for the project's own programs.
        version_variables: linker variables (`-X`) that get the version; `{v}` is it with the `v`, `{n}` without,
            `{minor}` its second number.
    """

    name: str
    family: str
    package: str
    module: str = ""
    version_variables: tuple[str, ...] = ()

    @property
    def is_kubernetes(self) -> bool:
        """Whether it is a program of Kubernetes, so that each release has its own."""
        return self.family in RELEASES.values()

    def of(self, release: str) -> Tool:
        """Return the tool for clusters of a release of Kubernetes.

        Raises:
            ClusterError: there is no such release.
        """
        return dataclasses.replace(self, family=family_of(release)) if self.is_kubernetes else self

    @property
    def folder(self) -> Path:
        """The folder of its Go module."""
        return TOOLS / self.family

    def version(self) -> str:
        """Return the version that go.mod pins, with its `v`; `dev` for the project's own programs."""
        if not self.module:
            return "dev"
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.module)} (v\S+)", text, re.MULTILINE)
        assert found, f"{self.folder}/go.mod does not pin {self.module}"
        return found.group(1)

    def key(self) -> str:
        """Return the name of its cache folder: family, version and a hash of what pins it."""
        digest = hashlib.sha256(self.ldflags().encode())
        for path in sorted(self.folder.iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return f"{self.family}-{self.version()}-{digest.hexdigest()[:12]}"

    def ldflags(self) -> str:
        """Return the linker's flags: no debug tables, and the version that clients see."""
        version = self.version()
        number = version.lstrip("v")
        fields = {"v": version, "n": number, "minor": ".".join(number.split(".")[1:2])}
        variables = (variable.format(**fields) for variable in self.version_variables)
        return " ".join(["-s -w", *(f"-X {variable}" for variable in variables)])


def _kubernetes(name: str) -> Tool:
    return Tool(
        name=name,
        family=RELEASES[DEFAULT_RELEASE],
        package=f"k8s.io/kubernetes/cmd/{name}",
        module="k8s.io/kubernetes",
        version_variables=(
            f"{_KUBERNETES_VERSION}.gitVersion={{v}}",
            f"{_KUBERNETES_VERSION}.gitMajor=1",
            f"{_KUBERNETES_VERSION}.gitMinor={{minor}}",
        ),
    )


def _containerd(name: str) -> Tool:
    module = "github.com/containerd/containerd/v2"
    return Tool(
        name=name,
        family="containerd",
        package=f"{module}/cmd/{name}",
        module=module,
        version_variables=(f"{module}/version.Version={{n}}",),
    )


_ALL = (
    Tool(name="etcd", family="etcd", package="go.etcd.io/etcd/server/v3", module="go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _kubernetes("kubectl"),
    _kubernetes("kubeadm"),
    Tool(name="kwok", family="kwok", package="sigs.k8s.io/kwok/cmd/kwok", module="sigs.k8s.io/kwok"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    Tool(name="pause", family="pause", package="."),
    Tool(name="coredns", family="coredns", package="github.com/coredns/coredns", module="github.com/coredns/coredns"),
    Tool(name=NETWORK_POLICIES, family=NETWORK_POLICIES, package=".", module="sigs.k8s.io/kube-network-policies"),
    Tool(
        name="versitygw",
        family="versitygw",
        package="github.com/versity/versitygw/cmd/versitygw",
        module="github.com/versity/versitygw",
        version_variables=("main.Version={v}",),
    ),
    Tool(
        name="helm",
        family="helm",
        package="helm.sh/helm/v4/cmd/helm",
        module="helm.sh/helm/v4",
        version_variables=("helm.sh/helm/v4/internal/version.version={v}",),
    ),
    Tool(
        name="kube-score",
        family="kube-score",
        package="github.com/zegl/kube-score/cmd/kube-score",
        module="github.com/zegl/kube-score",
    ),
    Tool(
        name="actionlint",
        family="actionlint",
        package="github.com/rhysd/actionlint/cmd/actionlint",
        module="github.com/rhysd/actionlint",
    ),
    Tool(
        name="cosign",
        family="cosign",
        package="github.com/sigstore/cosign/v3/cmd/cosign",
        module="github.com/sigstore/cosign/v3",
    ),
    Tool(
        name="crane",
        family="crane",
        package="github.com/google/go-containerregistry/cmd/crane",
        module="github.com/google/go-containerregistry",
    ),
    Tool(
        name="syft",
        family="syft",
        package="github.com/anchore/syft/cmd/syft",
        module="github.com/anchore/syft",
        version_variables=("main.version={n}",),
    ),
    Tool(
        name="karpenter",
        family="karpenter",
        package="sigs.k8s.io/karpenter/kwok",
        module="sigs.k8s.io/karpenter",
        version_variables=("sigs.k8s.io/karpenter/pkg/operator.Version={n}",),
    ),
    Tool(name="karpenter-crds", family="karpenter", package=".", module="sigs.k8s.io/karpenter"),
    Tool(name="kind", family="kind", package="sigs.k8s.io/kind", module="sigs.k8s.io/kind"),
    Tool(name="kind-cni", family="kind-cni", package="."),
)

TOOLS_BY_NAME = {tool.name: tool for tool in _ALL}
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-proxy", "coredns", "pause")
LOCAL_NODE = (*NODE, NETWORK_POLICIES)
ONLY_KIND = ("kind", "kubeadm", "kind-cni")
KIND_NODE = (*CONTROL_PLANE, *NODE, "kubeadm", "kind-cni")
ONLY_RELEASE = ("actionlint", "cosign", "crane", "syft")
KARPENTER = ("karpenter", "karpenter-crds")
FAKE_NODE = ("kwok",)
WORKLOADS = ("helm", "versitygw")
JUDGES = ("kube-score",)


def for_provider(provider: str, *, nodes: int, kwok_nodes: int) -> tuple[str, ...]:
    """Return the names of the tools that a cluster of this provider and size needs."""
    match provider:
        case "local":
            return CONTROL_PLANE + (LOCAL_NODE if nodes else ()) + (FAKE_NODE if kwok_nodes else ())
        case "kind":
            return ("kind", "kubectl") + (FAKE_NODE if kwok_nodes else ())
        case _:
            return ("kubectl",)
