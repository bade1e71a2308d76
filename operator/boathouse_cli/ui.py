"""`boathouse ui`: a web UI in the cluster, by a port of this machine: Spark's of a driver, or Hadoop's of a cluster."""

import dataclasses
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Sequence
from typing import Final

from boathouse.resources.mrcluster.names import LABEL_HOST, Role
from boathouse_cli import kinds, model, mrclusters, printing_logs, sparkapps
from boathouse_cli.errors import CommandError, ExitCode, UsageError
from boathouse_cli.gateway import Gateway

_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(?P<port>\d+) ->")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WebUi:
    """A web UI in a pod, and whose it is."""

    owner: str
    title: str
    pod: str
    port: int


def forward(gateway: Gateway, ui: WebUi, *, port: int | None, kubectl: Sequence[str]) -> None:
    """Forward a port to a web UI, by default the same if it is free, and print the address, until the user ends it."""
    program = shutil.which("kubectl")
    if program is None:
        raise UsageError("kubectl is not on PATH, and forwards the port: install it")
    local = port if port is not None else ui.port if _is_free(ui.port) else 0
    target = (f"pod/{ui.pod}", f"{local or ''}:{ui.port}")
    command = (program, *kubectl, "--namespace", gateway.namespace, "port-forward", "--address=127.0.0.1", *target)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            for match in filter(None, map(_FORWARDING.search, process.stdout or ())):
                print(f"{ui.title} of {ui.owner}: http://127.0.0.1:{match['port']}/ (end with Ctrl-C)", flush=True)
            process.wait()
        except KeyboardInterrupt:
            process.terminate()
            return
        errors = process.stderr.read().strip() if process.stderr else ""
        why = errors.splitlines()[-1] if errors else "its connection ended"
        raise CommandError(f"the UI of {ui.owner} is gone ({why}): see `boathouse explain {ui.owner}`")


def of_driver(gateway: Gateway, name: str) -> WebUi:
    """Return Spark's web UI of a SparkApp."""
    job = kinds.job(gateway, kinds.SPARKAPP, name)
    running = [
        pod
        for pod in _running(sparkapps.own_pods(job, gateway.pods(sparkapps.selector(job))))
        if pod["metadata"].get("labels", {}).get(model.SPARK_ROLE) == model.DRIVER
    ]
    if not running:
        ended = "event logs have what the UI showed (docs/sparkapp.md)"
        advice = ended if job.finished else f"boathouse explain {job.title}"
        raise CommandError(
            f"{job.title} has no running driver (phase {job.phase or 'Pending'}): see {advice}", ExitCode.NOT_FOUND
        )
    driver = max(running, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    ports = [port for container in driver["spec"].get("containers") or () for port in container.get("ports") or ()]
    port = next((int(port["containerPort"]) for port in ports if port.get("name") == "spark-ui"), 4040)
    return WebUi(owner=job.title, title="Spark's UI", pod=driver["metadata"]["name"], port=port)


def of_cluster(gateway: Gateway, name: str, *, hdfs: bool) -> WebUi:
    """Return a web UI of an MRCluster's master: the ResourceManager's, or the NameNode's."""
    cluster = mrclusters.read(gateway.get(kinds.MRCLUSTER.plural, name))
    if not hdfs and not cluster.has_compute:
        raise UsageError(f"{cluster.title} has no YARN (spec.compute is false): pass --hdfs")
    running = _running(gateway.pods(f"{kinds.MRCLUSTER.selector(cluster)},{LABEL_HOST}={Role.MASTER}"))
    if not running:
        raise CommandError(
            f"the master of {cluster.title} does not run (phase {cluster.phase or 'Pending'}): "
            f"see `boathouse explain {cluster.title}`",
            ExitCode.NOT_FOUND,
        )
    title, port = ("The NameNode", 9870) if hdfs else ("The ResourceManager", printing_logs.RESOURCE_MANAGER_PORT)
    return WebUi(owner=cluster.title, title=title, pod=running[0]["metadata"]["name"], port=port)


def _running(pods: Iterable[model.Raw]) -> list[model.Raw]:
    return [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
