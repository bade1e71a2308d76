"""Detect changes of the configuration file.

After a change the process stops in order, and its container restarts within seconds with the new configuration: all
state is in the API server. So every setting takes effect by one tested path, the start.
"""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable

import pydantic

from boathouse.resources import config
from boathouse.telemetry import logs

_log = logs.get(__name__)

EVERY_S = 5.0


async def changed(
    path: pathlib.Path,
    current: config.OperatorConfig,
    *,
    every_s: float = EVERY_S,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Wait until the file has another valid configuration. An invalid one is logged once and ignored.

    Args:
        path: The file, in a mounted ConfigMap.
        current: Its content when the process read it.
        every_s: Interval of checks.
        sleep: Sleeps for a number of seconds.
    """
    known = refused = ""
    while True:
        await sleep(every_s)
        text = _read(path)
        if text in (known, refused, ""):
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
        known = text


def _read(path: pathlib.Path) -> str:
    """Return the file's text, or None while it is being replaced."""
    try:
        return path.read_text()
    except OSError:
        return ""
