"""Operator's command line, and changes of its configuration file, which flags, and the environment, override.

After a change of the file the process stops in order, and its container restarts within seconds with the new
configuration: all state is in the API server. So every setting takes effect by one tested path, the start.
"""

import argparse
import asyncio
import dataclasses
import os
import pathlib
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import pydantic

from boathouse.resources import config
from boathouse.telemetry import logs

_log = logs.get(__name__)

_FLAGS: Final = {
    "namespace": ("namespace", "the operator's own namespace"),
    "watch-namespaces": ("watch_namespaces", "namespaces with jobs, comma-separated; empty for all"),
    "profile": ("profile", f"the scheduling profile: {', '.join(config.PROFILES)}"),
    "pending-ahead": ("pending_ahead", "pods created without a node for each pending task class"),
    "task-image": ("task.image", "default task image of jobs"),
    "lease-duration-s": ("lease.duration_seconds", "seconds until the Lease expires"),
    "progress-port": ("progress_port", "HTTPS port of the progress endpoint"),
    "metrics-port": ("metrics_port", "port of /metrics"),
    "health-port": ("health_port", "port of /healthz and /readyz"),
    "log-level": ("log_level", "debug, info, warning or error"),
    "log-format": ("log_format", "json or console"),
}


def _variable(flag: str) -> str:
    return "POD_NAMESPACE" if flag == "namespace" else f"BOATHOUSE_{flag.upper().replace('-', '_')}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the process, by its identity among the replicas; `file` is the file before flags and environment."""

    file: config.OperatorConfig = dataclasses.field(default_factory=config.OperatorConfig)
    config: config.OperatorConfig
    identity: str
    config_path: pathlib.Path | None = None
    kubeconfig: pathlib.Path | None = None
    state_folder: pathlib.Path | None = None
    list_failpoints: bool = False


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    result = argparse.ArgumentParser(
        prog="python -m boathouse",
        description="The Boathouse operator: reconciles MRJobs and schedules pods. One replica is the leader.",
        epilog=f"Environment: {', '.join(map(_variable, _FLAGS))}, POD_NAME.",
    )
    result.add_argument("--config", type=pathlib.Path, help="configuration file (JSON), which the chart generates")
    for flag, (_, text) in _FLAGS.items():
        result.add_argument(f"--{flag}", help=f"{text} (environment: {_variable(flag)})")
    result.add_argument("--identity", help="name of this replica (environment: POD_NAME; default: host name)")
    result.add_argument("--kubeconfig", type=pathlib.Path, help="kubeconfig file, outside a cluster")
    kept = "private folder in memory for state that survives a container restart"
    result.add_argument("--state-folder", type=pathlib.Path, help=kept)
    result.add_argument("--list-failpoints", action="store_true", help="print the values of BOATHOUSE_FAILPOINT")
    return result


def parse(arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> Options:
    """Read command line, environment and file; raises `OSError`, `pydantic.ValidationError` or `SystemExit`."""
    environment = os.environ if environment is None else environment
    given = parser().parse_args(arguments)
    base = config.load(given.config) if given.config else config.OperatorConfig()
    values = base.model_dump()
    for flag, (field, _) in _FLAGS.items():
        if value := getattr(given, flag.replace("-", "_")) or environment.get(_variable(flag)):
            _set(values, field, value)
    # in a pod, a folder in the temporary folder, which the chart places in memory
    in_memory = pathlib.Path(tempfile.gettempdir()) / "boathouse" if "POD_NAME" in environment else None
    return Options(
        config=config.OperatorConfig.model_validate(values),
        identity=given.identity or environment.get("POD_NAME") or socket.gethostname(),
        config_path=given.config,
        file=base,
        kubeconfig=given.kubeconfig,
        state_folder=given.state_folder or in_memory,
        list_failpoints=given.list_failpoints,
    )


def _set(values: dict[str, Any], field: str, value: str) -> None:
    *path, last = field.split(".")
    for name in path:
        values = values[name]
    values[last] = [name for name in value.split(",") if name] if isinstance(values[last], list) else value


READ_EVERY_S = 5.0


async def file_changed(
    path: pathlib.Path, current: config.OperatorConfig, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Wait until the file has another valid configuration. An invalid one is logged once and ignored."""
    accepted = refused = ""
    while True:
        await sleep(READ_EVERY_S)
        if (text := _read(path)) in (accepted, refused, ""):
            continue
        try:
            is_other = config.OperatorConfig.model_validate_json(text) != current
        except pydantic.ValidationError as error:
            refused = text
            _log.error("the changed configuration is invalid and ignored", file=str(path), error=str(error))
            continue
        if is_other:
            _log.warning("the configuration changed: exiting to restart with it", file=str(path))
            return
        accepted = text


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it is being replaced
        return ""
