"""`boathouse ui`: Spark's web UI of a running driver, by a port of this machine."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Final

from boathouse_cli import kinds, sparkapps
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_cli import model
    from boathouse_cli.gateway import Gateway

PORT_NAME: Final = "spark-ui"
DEFAULT_PORT: Final = 4040
_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(?P<port>\d+) ->")


def forward(gateway: Gateway, name: str, *, port: int | None, kubectl: Sequence[str]) -> None:
    """Forward a port to the driver's UI, and print the address, until the user ends it.

    Args:
        gateway: Finds the driver.
        name: Of the SparkApp.
        port: Of this machine; None: that of the UI, if it is free.
        kubectl: Options that name the cluster to kubectl.

    Raises:
        CommandError: There is no driver, or it has ended.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise CommandError("kubectl is not on PATH, and forwards the port: install it", ExitCode.USAGE)
    job = kinds.job(gateway, kinds.SPARKAPP, name)
    driver = _driver(gateway, job)
    remote = _ui_port(driver)
    local = port if port is not None else remote if _is_free(remote) else 0
    target = (f"pod/{driver['metadata']['name']}", f"{local or ''}:{remote}")
    command = (program, *kubectl, "--namespace", gateway.namespace, "port-forward", "--address=127.0.0.1", *target)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _print_address(process, job.title)
        except KeyboardInterrupt:
            process.terminate()
            return
        errors = process.stderr.read().strip() if process.stderr else ""
        why = errors.splitlines()[-1] if errors else "its connection ended"
        raise CommandError(f"the UI of {job.title} is gone ({why}): see `boathouse explain {job.title}`")


def _print_address(process: subprocess.Popen[str], title: str) -> None:
    for line in process.stdout or ():
        if match := _FORWARDING.search(line):
            print(f"Spark's UI of {title}: http://127.0.0.1:{match['port']}/ (end with Ctrl-C)", flush=True)
    process.wait()


def _driver(gateway: Gateway, job: model.Job) -> model.Raw:
    """Return the pod of the running driver.

    Raises:
        CommandError: None does.
    """
    pods = sparkapps.own_pods(job, gateway.pods(sparkapps.selector(job)))
    running = [
        pod
        for pod in pods
        if pod["metadata"].get("labels", {}).get("spark-role") == "driver"
        and (pod.get("status") or {}).get("phase") == "Running"
    ]
    if running:
        return max(running, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    advice = (
        "event logs have what the UI showed (docs/sparkapp.md)" if job.finished else f"boathouse explain {job.title}"
    )
    raise CommandError(
        f"{job.title} has no running driver (phase {job.phase or 'Pending'}): see {advice}", ExitCode.NOT_FOUND
    )


def _ui_port(pod: model.Raw) -> int:
    ports = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    return next((int(port["containerPort"]) for port in ports if port.get("name") == PORT_NAME), DEFAULT_PORT)


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
