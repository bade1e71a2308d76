"""Installs Boathouse into a cluster as a user would: images the nodes can have, then `helm upgrade --install`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from boathouse_e2e import images, paths, shell, tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_e2e.spec import Cluster

CHART: Final = paths.REPOSITORY / "charts" / "boathouse"
NAMESPACE: Final = "boathouse-system"
RELEASE: Final = "boathouse"
DEPLOYMENT: Final = "deployment/boathouse"
TIMEOUT_S: Final = 300
TAG: Final = "dev"


def install(cluster: Cluster, values: Mapping[str, Any] | None = None) -> None:
    """Install or upgrade the chart with the images built from this folder, and wait until the operator is ready.

    Args:
        cluster: Its nodes must have the images (`boathouse_e2e.images.load`).
        values: The chart's values beside the image tags.

    Raises:
        ClusterError: Helm failed, or the operator did not become ready; the message holds what Helm said.
    """
    context = ("--kube-context", cluster.context) if cluster.context else ()
    shell.run(
        *(tools.ensure(["helm"])["helm"], "upgrade", RELEASE, CHART, "--install", "--kubeconfig", cluster.kubeconfig),
        *(*context, "--namespace", NAMESPACE, "--create-namespace", "--values", "-"),
        *("--wait", "--timeout", f"{TIMEOUT_S}s"),
        stdin=json.dumps(_values() | dict(values or {})),
        timeout_s=TIMEOUT_S + 30,
    )


def _values() -> dict[str, Any]:
    # The tag is always `dev`: without the hash a new build would not replace the pods of the old.
    built = images.inputs_hash(paths.REPOSITORY)
    # The local provider's kubelets report no ephemeral storage: with a request a task would fit on no node.
    task = {"image": {"tag": TAG}, "ephemeralStorage": {"request": "", "limit": ""}}
    return {"image": {"tag": TAG}, "task": task, "podAnnotations": {"boathouse.dev/build": built}}
