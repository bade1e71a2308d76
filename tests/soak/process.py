"""The operator's process of the soak, as the parent sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from boathouse_e2e import lab, paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STOP_S = 30.0
IMAGES = {kind: {"image": f"{kind}:dev"} for kind in ("task", "spark", "hadoop")}
PATIENT = {"durationSeconds": 3600, "renewDeadlineSeconds": 3000}
"""A busy machine that stops the operator for a while does not end the soak."""
_TICKS_PER_S, _PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class Ended(Exception):  # noqa: N818 - what happened
    """The operator has ended during the soak."""


class Operator:
    """A process of the operator.

    Attributes:
        port: Of its progress endpoint.
    """

    def __init__(self, process: subprocess.Popen[bytes], answers: IO[str], port: int) -> None:
        self._process, self._answers, self.port = process, answers, port

    def check(self) -> None:
        """Check that it runs.

        Raises:
            Ended: It does not.
        """
        if (code := self._process.poll()) is not None:
            raise Ended(f"the operator has ended with exit code {code}")

    def rss_mib(self) -> float:
        """Return its resident memory."""
        self.check()
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * _PAGE_BYTES / (1 << 20)

    def cpu_s(self) -> float:
        """Return its CPU time."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    async def census(self) -> dict[str, int]:
        """Return its census."""
        self.check()
        self._process.send_signal(signal.SIGUSR1)
        line = await asyncio.to_thread(self._answers.readline)
        if not line:
            raise Ended("the operator has ended without a census")
        return dict(json.loads(line))


@contextlib.asynccontextmanager
async def running(server: str, folder: Path) -> AsyncIterator[Operator]:
    """Run the operator against an API server during the block; its log goes to `operator.log` in the folder."""
    own = dict(zip(("progressPort", "metricsPort", "healthPort"), lab.free(3), strict=True))
    config = {"namespace": "boathouse-system", "logLevel": "warning", "lease": PATIENT, **IMAGES, **own}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "kubeconfig").write_text(json.dumps(_kubeconfig(server)))
    read, write = os.pipe()
    command = [sys.executable, "-m", "tests.soak.counted", str(write), f"--config={folder / 'config.json'}"]
    with (folder / "operator.log").open("wb") as log, os.fdopen(read) as answers:
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
            [*command, f"--kubeconfig={folder / 'kubeconfig'}", "--identity=soak"],
            cwd=paths.REPOSITORY,
            stdout=log,
            stderr=log,
            pass_fds=[write],
        )
        os.close(write)
        try:
            yield Operator(process, answers, own["progressPort"])
        finally:
            process.terminate()
            try:
                await asyncio.to_thread(process.wait, STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _kubeconfig(server: str) -> dict[str, object]:
    return {
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        "clusters": [{"name": "fake", "cluster": {"server": server}}],
        "users": [{"name": "fake", "user": {}}],
    }
