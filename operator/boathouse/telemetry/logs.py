"""Configure logs of the operator and of libraries: JSON or coloured text, a line per event, without secrets."""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, TextIO

import structlog

LogFormat = Literal["json", "console"]
REDACTED = "[redacted]"
_SECRETS = r"secret|token|password|passwd|credential|authorization|api_?key|access_?key|private_?key"
_SECRET_KEY = re.compile(_SECRETS, re.IGNORECASE)
_NAMES_A_SECRET = re.compile(r"(name|ref)$", re.IGNORECASE)  # as secretName and secretRef, which are no secrets
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_DEPTH = 6
EventDict = MutableMapping[str, Any]


def configure(*, log_format: LogFormat = "json", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Configure logging to one stream, by default standard error, in one format."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    final = _final_processors(log_format)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=final))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("aiohttp.access", "kopf.objects", "kopf.activities"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def _final_processors(log_format: LogFormat) -> list[structlog.types.Processor]:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if log_format == "console":
        return [remove, redact, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [
        remove,
        structlog.processors.format_exc_info,
        redact,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(),
    ]


def redact(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replace the values of keys that look like secrets, and bearer tokens in any text."""
    return {key: _cleaned(key, value, _DEPTH) for key, value in event.items()}


def _cleaned(key: str, value: Any, depth: int) -> Any:
    if _SECRET_KEY.search(key) and not _NAMES_A_SECRET.search(key) and value not in (None, ""):
        return REDACTED
    if isinstance(value, str):
        return _BEARER.sub(rf"\1 {REDACTED}", value)
    if isinstance(value, Mapping) and depth:
        return {str(name): _cleaned(str(name), inner, depth - 1) for name, inner in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [_cleaned("", inner, depth - 1) for inner in value]
    return value


def get(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
