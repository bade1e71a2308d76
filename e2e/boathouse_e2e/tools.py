"""Build the cluster's binaries once, from pinned Go modules, into the user's cache folder."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.catalogue import RELEASE_VARIABLE, RELEASES, TOOLS_BY_NAME, Tool, chosen_release
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.gotoolchain import find_go
from boathouse_e2e.paths import cache_folder, locked
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_e2e.gotoolchain import Go

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
FROM_ASSETS = ("etcd", "kube-apiserver")


def tools_folder() -> Path:
    """Return where the binaries are kept: a folder for each family and version."""
    return cache_folder() / "tools"


def ensure(names: Iterable[str], release: str | None = None) -> dict[str, Path]:
    """Return the paths of the named tools, after building those that are not in the cache; a line of progress for each.

    Args:
        names: Of tools.
        release: Of Kubernetes. None: what the environment selects. `KUBEBUILDER_ASSETS`, as envtest has it, then wins
            for etcd, and for kube-apiserver where no release is selected.

    Raises:
        ClusterError: there is no Go, or a build failed.
    """
    wanted = [TOOLS_BY_NAME[name].of(release or chosen_release()) for name in names]
    given = {} if release else from_assets(os.environ)
    found = {tool.name: given.get(tool.name) or path_of(tool) for tool in wanted}
    missing = [tool for tool in wanted if not found[tool.name].exists()]
    if missing:
        with locked(tools_folder() / ".lock"):
            _build_all([tool for tool in missing if not found[tool.name].exists()])
    return found


def path_of(tool: Tool) -> Path:
    """Return where a tool's binary is, or will be."""
    return tools_folder() / tool.key() / tool.name


def from_assets(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the binaries of envtest's folder of assets that are used; empty where the variable is not set.

    Its kube-apiserver may be of any release, so it is not used where one is selected.
    """
    folder = environment.get(ASSETS_VARIABLE)
    if not folder:
        return {}
    used = ("etcd",) if environment.get(RELEASE_VARIABLE) else FROM_ASSETS
    return {name: Path(folder) / name for name in used if (Path(folder) / name).exists()}


def _build_all(tools: list[Tool]) -> None:
    if not tools:
        return
    go = find_go()
    print(f"Building {len(tools)} tools once, with {run(go.command, 'version').strip()}")
    print("  all of them take about 12 minutes on two cores", flush=True)
    began = time.monotonic()
    for number, tool in enumerate(tools, start=1):
        started = time.monotonic()
        print(f"  {number}/{len(tools)} {tool.name} {tool.version()} ...", end="", flush=True)
        _build(tool, go)
        print(f" {time.monotonic() - started:.0f} s ({time.monotonic() - began:.0f} s in all)", flush=True)
    go.trim()


def _build(tool: Tool, go: Go) -> None:
    target = path_of(tool)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{tool.name}.unfinished")
    try:
        run(
            *(go.command, "build", "-trimpath", "-ldflags", tool.ldflags(), "-o", unfinished, tool.package),
            cwd=tool.folder,
            env=go.environment(),
        )
    except ClusterError as error:
        unfinished.unlink(missing_ok=True)
        raise ClusterError(f"could not build {tool.name} {tool.version()} from {tool.folder}: {error}") from error
    unfinished.rename(target)


def remove_other_versions() -> list[Path]:
    """Delete the binaries of versions that go.mod no longer pins; returns the folders deleted."""
    current = {tool.of(release).key() for tool in TOOLS_BY_NAME.values() for release in RELEASES}
    stale = [path for path in tools_folder().glob("*-*") if path.is_dir() and path.name not in current]
    for path in stale:
        shutil.rmtree(path)
    return stale
