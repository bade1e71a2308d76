"""Installs Boathouse into a cluster as a user would: images the nodes can have, then `helm upgrade --install`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from boathouse_e2e import dockerfiles, paths, shell, tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boathouse_e2e.spec import Cluster

CHART: Final = paths.REPOSITORY / "charts" / "boathouse"
NAMESPACE: Final = "boathouse-system"
RELEASE: Final = "boathouse"
DEPLOYMENT: Final = "deployment/boathouse"
TIMEOUT_S: Final = 300
TAG: Final = "dev"


def install(
    cluster: Cluster, values: Mapping[str, Any] | None = None, *, checkout: Path = paths.REPOSITORY, tag: str = TAG
) -> None:
    """Install, upgrade or downgrade the chart of a checkout, and wait until the operator is ready.

    Args:
        cluster: Its nodes must have the images (`boathouse_e2e.images.load`).
        values: The chart's values beside the image tags.
        checkout: The folder whose chart is installed.
        tag: Of the images built from that folder.

    Raises:
        ClusterError: Helm failed, or the operator did not become ready; the message holds what Helm said.
    """
    chart = checkout / CHART.relative_to(paths.REPOSITORY)
    context = ("--kube-context", cluster.context) if cluster.context else ()
    shell.run(
        *(tools.ensure(["helm"])["helm"], "upgrade", RELEASE, chart, "--install", "--kubeconfig", cluster.kubeconfig),
        *(*context, "--namespace", NAMESPACE, "--create-namespace", "--values", "-"),
        *("--wait", "--timeout", f"{TIMEOUT_S}s"),
        stdin=json.dumps(_values(checkout, chart, tag) | dict(values or {})),
        timeout_s=TIMEOUT_S + 30,
    )


def _values(checkout: Path, chart: Path, tag: str) -> dict[str, Any]:
    # The tag says nothing of the build: without the hash a new one would not replace the pods of the old.
    built = dockerfiles.inputs_hash(checkout)
    task: dict[str, Any] = {"image": {"tag": tag}}
    values: dict[str, Any] = {"image": {"tag": tag}, "task": task, "podAnnotations": {"checksum/build": built}}
    known = yaml.safe_load((chart / "values.yaml").read_text())
    if "ephemeralStorage" in known["task"]:  # 0.1.0 refuses such values
        # The local provider's kubelets report no ephemeral storage: a pod that requests some would fit on no node.
        task["ephemeralStorage"] = {"request": "", "limit": ""}
        values["resources"] = {kind: {"ephemeral-storage": None} for kind in ("requests", "limits")}
    if "spark" in known:  # 0.2.0 has no SparkApps
        values["spark"] = {"image": {"tag": tag}, "ephemeralStorage": {"request": "", "limit": ""}}
    if "hadoop" in known:  # earlier versions have no MRClusters
        values["hadoop"] = {"image": {"tag": tag}, "ephemeralStorage": {"request": "", "limit": ""}}
    return values
