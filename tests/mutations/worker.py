"""Run tests in forked processes, so that each run imports the code anew but no library: a process in a copy.

It reads a request on each line of its input: `tests`, each with `name`, `cpu_s` and `wall_s`, and `wall_s` of the run.
It writes an answer on each line of its output: `wall_s`, and if a test failed `fails` with `limit` or `text`. With
`is_whole` a failure does not end the run, and `failing` has all tests that fail, of those in `begun`.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import pathlib
import resource
import select
import signal
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.mutations import plugin

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARIES = (
    *("aiohttp", "asyncio", "cramjam", "cryptography.x509", "hdfs_native", "http.server", "jinja2", "kopf", "msgspec"),
    *(
        "numpy",
        "obstore",
        "prometheus_client",
        "pycurl",
        "pydantic",
        "rich",
        "scipy.stats",
        "structlog",
        "typer",
        "yaml",
    ),
)
_MEMORY_BYTES = 6 << 30
"""A fault may take memory without end."""
_FILE_BYTES = 2 << 30
_OPTIONS = (
    *("-q", "--no-header", "--tb=short", "--color=no", "--timeout=0"),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


def main() -> None:
    """Answer requests until the input ends."""
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")
        answers.flush()


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run tests in a fork. Return which fails."""
    began = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_here(request, writer)
    os.close(writer)
    output = _read(reader, began + request["wall_s"], is_whole=request["is_whole"])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    rows = [json.loads(line) for line in output.splitlines() if line.endswith(b"}")]
    begun = [row["begins"] for row in rows if "begins" in row]
    failed = next((row for row in rows if "fails" in row), None)
    ended = next((row for row in rows if "ended" in row), None)
    if failed is None and ended is None:
        failed = {"fails": begun[-1] if begun else "", "limit": f"the process ended with status {status}"}
    elif failed is None and ended is not None and ended["ended"] != 0:
        failed = {"fails": "", "text": f"pytest ended with {ended['ended']}"}
    failing = sorted({row["fails"] for row in rows if "fails" in row})
    return {**(failed or {}), "begun": begun, "failing": failing, "wall_s": round(time.monotonic() - began, 2)}


def _run_here(request: Mapping[str, Any], writer: int) -> None:
    """Run tests in this process, which ends."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    log = os.open("build/run.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    chosen = plugin.Chosen(request["tests"], lambda line: os.write(writer, line))
    own = hashlib.sha256(str(pathlib.Path.cwd()).encode()).hexdigest()[:8]
    temporary = f"--basetemp={tempfile.gettempdir()}/boathouse-{own}"  # short: tests have sockets there
    files = sorted({test["name"].partition("::")[0] for test in request["tests"]})  # else folders lose fixtures
    status = 1
    try:
        status = int(
            pytest.main([*_OPTIONS, *([] if request["is_whole"] else ["-x"]), temporary, *files], plugins=[chosen])
        )
    finally:
        chosen.tell(ended=status)
        os._exit(0)


def _read(reader: int, until_s: float, *, is_whole: bool) -> bytes:
    """Read what a run tells until it ends, takes too long, or fails if the first failure is enough."""
    output = b""
    with os.fdopen(reader, "rb", buffering=0) as stream:
        while (left_s := until_s - time.monotonic()) > 0:
            ready = select.select([stream, sys.stdin], [], [], left_s)[0]
            if stream not in ready:  # it takes too long, or the input has ended: the command was stopped
                break
            part = stream.read(1 << 16)
            if not part:
                break
            output += part
            if b'{"ended"' in output or (not is_whole and b'{"fails"' in output and output.endswith(b"\n")):
                break
    return output


if __name__ == "__main__":
    main()
