"""Choose a provider by name, or the one that fits this machine."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from boathouse_e2e import archive, catalogue, kwok, tools
from boathouse_e2e.docker import docker_answers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import Cluster, ClusterSpec, ComponentStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from boathouse_e2e.spec import Provider


_MOST_REPORTED: Final = 50
"""`nodeStatusMaxImages` of a kubelet, if it is not configured."""


class ExistingProvider:
    """A cluster of the user's; `up` checks that it answers, `down` leaves it alone."""

    name = "existing"

    def __init__(self, context: str | None) -> None:
        if not context:
            raise ClusterError("say which cluster: --context NAME (CONTEXT=NAME), one of `kubectl config get-contexts`")
        self._context = context

    def missing(self, spec: ClusterSpec) -> list[str]:
        """Return what cannot be had of a cluster that is only used: another version, fake nodes and an audit log."""
        wrong = []
        if spec.kubernetes != catalogue.DEFAULT_RELEASE:
            wrong.append(f"a cluster of yours keeps its version: Kubernetes {spec.kubernetes} needs PROVIDER=local")
        if spec.kwok_nodes:
            wrong.append("fake nodes are not added to a cluster of yours: use another provider")
        if spec.audit_log:
            wrong.append("the audit log of a cluster of yours is not switched on: use another provider")
        return wrong

    def up(self, spec: ClusterSpec) -> Cluster:
        """Check that the context's cluster answers and has as many nodes as are asked for."""
        if problems := self.missing(spec):
            raise ClusterError("\n".join(problems))
        cluster = self._cluster()
        nodes = cluster.get("nodes")["items"]
        if len(nodes) < spec.nodes:
            raise ClusterError(f"context {self._context!r} has {len(nodes)} nodes, {spec.nodes} are asked for (NODES)")
        return cluster

    def down(self, name: str) -> None:
        """Leave the cluster as it is."""
        print(f"Cluster {name!r} is not ours to end (context {self._context!r}); nothing was done")

    def find(self, name: str) -> Cluster | None:
        """Return the context's cluster; the name is only a label here."""
        del name
        return self._cluster()

    def status(self, name: str) -> list[ComponentStatus]:
        """Return the nodes of the context's cluster."""
        del name
        return kwok.node_status(self._cluster().get("nodes")["items"])

    def load_images(self, cluster: Cluster, archives: Sequence[Path]) -> None:
        """Check that the nodes have the images, which their owner loads into them.

        Raises:
            ClusterError: A node lacks images; the message has the archives, and commands that load them.
        """
        lacking = lacking_images(cluster.workers(), {archive.name_of(path): path for path in archives})
        if lacking:
            nodes = "\n".join(f"  {node} lacks {', '.join(names)}" for node, names in lacking.items())
            files = " ".join(map(str, archives))
            raise ClusterError(
                f"nodes of context {self._context!r} lack images:\n{nodes}\n"
                f"Load these archives into them, then repeat the command: {files}\n"
                "For example: kind load image-archive FILE; minikube image load FILE; on a node, "
                "ctr -n k8s.io images import FILE or k3s ctr images import FILE"
            )

    def _cluster(self) -> Cluster:
        kubeconfig = Path(os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or Path.home() / ".kube" / "config")
        if not kubeconfig.exists():
            raise ClusterError(f"there is no kubeconfig at {kubeconfig}: set KUBECONFIG")
        cluster = Cluster(
            name=self._context,
            provider=self.name,
            kubeconfig=kubeconfig,
            context=self._context,
            kubectl=find_kubectl(),
            server="",
        )
        view = json.loads(cluster.run("config", "view", "--minify", "-o", "json"))
        server = view["clusters"][0]["cluster"]["server"]
        cluster.run("version", "-o", "json")
        return Cluster(**{**_fields(cluster), "server": server})


def lacking_images(nodes: Iterable[Mapping[str, Any]], names: Collection[str]) -> dict[str, list[str]]:
    """Return the images that nodes lack, by node.

    A kubelet reports its largest images only, 50 by default. A node that reports so many counts as one with all images;
    if it has not, the pods' `ErrImagePull` says so.
    """
    lacking = {}
    for node in nodes:
        images = node["status"].get("images") or ()
        known = {name for image in images for name in image.get("names") or ()}
        missing = sorted(set(names) - known)
        if missing and len(images) < _MOST_REPORTED:
            lacking[node["metadata"]["name"]] = missing
    return lacking


def _fields(cluster: Cluster) -> dict[str, object]:
    return {name: getattr(cluster, name) for name in Cluster.__dataclass_fields__}


def find_kubectl() -> Path:
    """Return the user's own kubectl where there is one, else ours."""
    own = shutil.which("kubectl")
    return Path(own) if own else tools.ensure(["kubectl"])["kubectl"]


NAMES = ("auto", "local", "kind", "existing")


def choose(provider: str, *, name: str = "", context: str | None = None) -> Provider:
    """Return the provider of this name; for `auto` that of the cluster `name`, or kind where Docker answers, or local.

    Raises:
        ClusterError: there is no such provider, or it lacks the context.
    """
    match provider:
        case "local":
            return LocalProvider()
        case "kind":
            return KindProvider()
        case "existing":
            return ExistingProvider(context)
        case "auto":
            known = state.load(name) if name else None
            if known:
                return KindProvider() if known.provider == state.KIND else LocalProvider()
            return KindProvider() if docker_answers() else LocalProvider()
        case _:
            raise ClusterError(f"no provider {provider!r}; there are {', '.join(NAMES)}")
