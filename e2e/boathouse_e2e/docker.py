"""Docker: whether a daemon answers, and commands against the user's daemon or against one of a cluster's own."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_PULL_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    """A Docker daemon.

    Attributes:
        environment: the environment of the client, which selects the daemon. Default: the user's.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def answers(self) -> bool:
        """Return whether the daemon answers."""
        return self.succeeds("info")

    def run(self, *arguments: str | Path, stdin: str | None = None, timeout_s: float | None = None) -> str:
        """Run a docker command and return what it wrote.

        Raises:
            ClusterError: it failed or did not end in time.
        """
        return run("docker", *arguments, stdin=stdin, env=self.environment, timeout_s=timeout_s)

    def succeeds(self, *arguments: str | Path, timeout_s: float = 10) -> bool:
        """Return whether a docker command ends with code 0 in time."""
        return succeeds("docker", *arguments, env=self.environment, timeout_s=timeout_s)

    def obtains(self, image: str) -> bool:
        """Return whether the daemon has an image, after a pull if it has not; False where no registry answers."""
        return not self.pull(image)

    def pull(self, image: str) -> str:
        """Pull an image that the daemon has not; return why that failed, empty if the daemon has it."""
        if self.succeeds("image", "inspect", image):
            return ""
        print(f"  pulling {image}", flush=True)
        try:
            self.run("pull", "--quiet", image, timeout_s=_PULL_S)
        except ClusterError as error:
            return str(error).splitlines()[-1]
        return ""


def docker_answers() -> bool:
    """Return whether the user's Docker daemon answers."""
    return Docker().answers()
