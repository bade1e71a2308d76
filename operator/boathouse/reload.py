"""Whether the configuration file holds something else than at the start.

The process then ends in good order and is started anew with it: all state is in the API server, and that takes seconds.
So every setting takes effect by the one path that is tested, the start.
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
    """Return when the file holds another valid configuration; one that is not valid is logged, once, and left alone.

    Args:
        path: The file; a mounted ConfigMap is replaced under it.
        current: What it held when the process read it.
        every_s: How often to look.
        sleep: How to wait.
    """
    known = refused = ""
    while True:
        await sleep(every_s)
        text = _read(path)
        if text in (known, refused, ""):
            continue
        try:
            found = config.OperatorConfig.model_validate_json(text)
        except pydantic.ValidationError as error:
            refused = text
            _log.error("the changed configuration is not valid and not used", file=str(path), error=str(error))
            continue
        if found != current:
            _log.warning("the configuration changed: terminating, to restart with it", file=str(path))
            return
        known = text


def _read(path: pathlib.Path) -> str:
    """Return the file's text; nothing while it is being replaced."""
    try:
        return path.read_text()
    except OSError:
        return ""
