"""Prepare the submission of a job to a Hadoop cluster, beside the JVM that submits it (`boathouse-task client`).

This writes the settings, the scripts of the commands and the files, and then asks the operator for leave. The operator
gives leave to the pod of the current attempt only, so a client that was cut off from it cannot submit late.
"""

import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec

from boathouse_task import cluster_contract, errors, files, runner
from boathouse_task.cluster_contract import ClientSpec, Leave
from boathouse_task.contract import Reason
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError
from boathouse_task.progress import Endpoint, Unavailable, retried
from boathouse_task.storage import Storage

LEAVE_PATIENCE_S = 600.0
"""How long the client asks for leave before it gives up and another attempt starts."""
_TIMEOUT_S = 10.0
_FINAL = frozenset({200, 403, 409})
"""Statuses of refusals, and of an unexpected response."""
_REDACTED = "mapreduce.job.redacted-properties"
"""Setting with the names of those that the pages and the history of a job do not show."""


class Client:
    """Prepares one submission. `sleep` sleeps between requests and returns whether the pod is to end."""

    def __init__(
        self,
        spec: ClientSpec,
        environment: Environment,
        *,
        conf_path: Path = Path(cluster_contract.CONF_PATH),
        sleep: Callable[[float], bool | None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec, self._environment, self._conf_path = spec, environment, conf_path
        self._endpoint = Endpoint(spec.progress_url, spec.namespace, spec.job_uid, environment)
        self._sleep, self._monotonic = sleep, monotonic

    def run(self) -> None:
        """Let the JVM submit, or end without a submission and say why."""
        work = self._environment.work_path
        if (work / cluster_contract.GO_FILE).exists():
            return  # this container was restarted
        try:
            self._prepare(work)
            self._await_leave()
        except TaskError as error:
            hidden = errors.secrets(self._environment.variables, self._spec.secret_variables)
            _place(work / cluster_contract.STOP_FILE, runner.encode(runner.failure(error, hidden)))
        else:
            _place(work / cluster_contract.GO_FILE, b"")

    def _prepare(self, work: Path) -> None:
        spec, variables = self._spec, self._environment.variables
        secrets = {key: variables[name] for key, name in spec.secret_settings.items() if variables.get(name)}
        write_conf(self._conf_path, work / cluster_contract.CONF_FOLDER, spec.settings, secrets)
        folder = work / cluster_contract.FILES_FOLDER
        folder.mkdir(exist_ok=True)
        storage = Storage(spec.s3, variables, part_bytes=self._environment.part_bytes, hdfs_addresses=spec.hdfs)
        files.place(spec.files, folder, storage, self._environment.window_bytes)
        exported = {name: variables.get(name, "") for name in spec.exported}
        for name, argv in spec.scripts.items():
            (folder / name).write_text(script(argv, exported), encoding="utf-8")
            (folder / name).chmod(0o755)

    def _await_leave(self) -> None:
        path = f"tasks/{quote(self._environment.pod_name)}/leave"
        ask = partial(self._endpoint.ask, Leave, "POST", path, b"{}", _TIMEOUT_S)
        try:
            leave = retried(ask, sleep=self._wait, monotonic=self._monotonic, patience_s=LEAVE_PATIENCE_S, final=_FINAL)
        except Unavailable as error:
            problem = f"the operator gives this client no leave to submit: {error}"
            raise TaskError(Reason.PROGRESS_UNAVAILABLE, problem) from None
        if leave.attempt != self._spec.attempt:
            problem = f"leave is for attempt {leave.attempt}, not {self._spec.attempt}"
            raise TaskError(Reason.PROGRESS_UNAVAILABLE, problem)

    def _wait(self, delay_s: float) -> None:
        if self._sleep(delay_s):
            raise TaskError(Reason.TERMINATED, "the pod was stopped (SIGTERM) before it had leave")


def script(argv: list[str], variables: Mapping[str, str]) -> str:
    """Return a script that becomes a command, with exactly these arguments.

    Hadoop Streaming splits commands at spaces and has quotes of its own, so its command is the script's name. Commands
    are searched for in the working folder first, as streaming does.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return f"#!/bin/sh\nPATH=$PWD:$PATH\nexport PATH\n{exports}exec {shlex.join(argv)}\n"


def write_conf(source: Path, target: Path, settings: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    """Copy the cluster's settings and add those of the job.

    Each file gets all of them: Hadoop merges the files, and the default values of one replace the values of another.
    Nobody else can read the files, and Hadoop redacts the secrets. Raises TaskError: InternalError: the cluster's
    settings cannot be read.
    """
    target.mkdir(exist_ok=True)
    try:
        for path in source.iterdir():
            if path.is_file() and path.name not in cluster_contract.SITES:
                shutil.copyfile(path, target / path.name)
        roots = {name: _site(source / name) for name in cluster_contract.SITES}
        merged = {**secrets, **settings, **_redaction(roots.values(), settings, secrets)}
        for name, root in roots.items():
            _merge(root, merged)
            (target / name).touch(0o600)
            ET.ElementTree(root).write(target / name, encoding="utf-8", xml_declaration=True)
    except (OSError, ET.ParseError) as error:
        raise TaskError(Reason.INTERNAL_ERROR, f"the settings of the cluster cannot be read: {error}") from None


def _site(path: Path) -> ET.Element:
    return ET.parse(path).getroot() if path.exists() else ET.Element("configuration")  # noqa: S314 - the operator's


def _redaction(sites: Iterable[ET.Element], settings: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that adds the secrets to what the cluster and the job redact already."""
    if not secrets:
        return {}
    properties = (element for site in sites for element in site)
    redacted = (element.findtext("value") for element in properties if element.findtext("name") == _REDACTED)
    return {_REDACTED: ",".join(filter(None, [*redacted, settings.get(_REDACTED), *secrets]))}


def _merge(root: ET.Element, settings: Mapping[str, str]) -> None:
    for element in list(root):
        if element.findtext("name") in settings:
            root.remove(element)
    for key, value in settings.items():
        part = ET.SubElement(root, "property")
        ET.SubElement(part, "name").text = key
        ET.SubElement(part, "value").text = value


def _place(path: Path, content: bytes) -> None:
    """Create a file in one step: another container waits for it."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_bytes(content)
    temporary.replace(path)


def run_pod(order: str, environment: Environment) -> None:
    """Prepare the submission, and stay until SIGTERM: a container that ended would be restarted.

    Raises msgspec.DecodeError if the order is not a `ClientSpec`, TaskError: InternalError if its URL is not one.
    """
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
    Client(msgspec.json.decode(order, type=ClientSpec), environment, sleep=stopped.wait).run()
    stopped.wait()
