"""Make the files of a release, check that its parts agree, and publish them: `python -m boathouse_e2e.release`."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Annotated, Final

import typer
import yaml

from boathouse_e2e import images, publishing, tools
from boathouse_e2e.archive import ARCHITECTURES
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.install import CHART
from boathouse_e2e.paths import REPOSITORY
from boathouse_e2e.shell import run

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The parts of a release, below build/release.")

IMAGES: Final = (images.OPERATOR, images.TASK, images.SPARK, images.HADOOP)
OUTPUT: Final = REPOSITORY / "build" / "release"
_LOADED = "registry: localhost"
_NAMES_OWNER = ("pyproject.toml", "lab/pyproject.toml", "lab/README.md", "README.md", "docs/getting-started.md")
_NO_OWNER = re.compile(r"(?:github\.com|ghcr\.io)/OWNER\b")


def version(repository: Path = REPOSITORY) -> str:
    """Return the version of the project, which pyproject.toml alone decides."""
    return str(tomllib.loads((repository / "pyproject.toml").read_text())["project"]["version"])


def disagreements(repository: Path, tag: str) -> list[str]:
    """Return what does not have the version of pyproject.toml, a sentence each.

    Args:
        repository: The checkout.
        tag: The git tag of the release; empty for a release that has none yet, whose notes may be `Unreleased`.
    """
    expected = version(repository)
    chart = yaml.safe_load((repository / CHART.relative_to(REPOSITORY) / "Chart.yaml").read_text())
    found = [
        f"Chart.yaml: {field} is {chart[field]}, but pyproject.toml has version {expected}"
        for field in ("version", "appVersion")
        if str(chart[field]) != expected
    ]
    laboratory = tomllib.loads((repository / "lab" / "pyproject.toml").read_text())["project"]
    if laboratory["version"] != expected:
        found.append(f"lab/pyproject.toml: version is {laboratory['version']}, but pyproject.toml has {expected}")
    if not any(
        dependency.startswith("boathouse[") and dependency.endswith(f"=={expected}")
        for dependency in laboratory["dependencies"]
    ):
        found.append(f"lab/pyproject.toml: the dependency on boathouse is not =={expected}")
    if tag and tag != f"v{expected}":
        found.append(f"the tag is {tag}, but pyproject.toml has version {expected}: use the tag v{expected}")
    changelog = (repository / "CHANGELOG.md").read_text()
    if tag and notes(changelog, expected) is None:
        found.append(f"CHANGELOG.md has no section {expected}: rename `## Unreleased` to `## {expected}`")
    named = {name: _NO_OWNER.search((repository / name).read_text()) for name in _NAMES_OWNER if tag}
    found.extend(
        f"{name} has {placeholder.group()}: replace OWNER by the owner of the hosted repository"
        for name, placeholder in named.items()
        if placeholder
    )
    return found


def notes(changelog: str, section: str) -> str | None:
    """Return the text below the heading of a version, such as `## 0.2.0 - 2026-12-01`; None if it has no text."""
    heading = rf"^## \[?{re.escape(section)}\]?(?: [^\n]*)?$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    text = found.group(1).strip() if found else ""
    return f"{text}\n" if text else None


def published_values(values: str, registry: str) -> str:
    """Return the chart's values.yaml with the registry of the published images in place of images loaded into nodes.

    Raises:
        ClusterError: An image of the chart has another registry, so that it would not be published with the others.
    """
    declared = len(re.findall(r"^ +repository:", values, re.MULTILINE))
    lines = re.subn(rf"^( +){_LOADED}$", rf"\1registry: {registry}", values, flags=re.MULTILINE)
    if lines[1] != declared:
        raise ClusterError(f"values.yaml names {declared} images, and {lines[1]} have `{_LOADED}`: all must have it")
    return lines[0]


@app.command()
def check(tag: Annotated[str, typer.Argument(help="The tag of the release, such as v0.2.0.")] = "") -> None:
    """Check that version, tag, chart and changelog agree, and lint the hosted workflows."""
    if found := disagreements(REPOSITORY, tag):
        raise ClusterError("\n".join(found))
    workflows = sorted((REPOSITORY / ".github" / "workflows").glob("*.yaml"))
    run(tools.ensure(["actionlint"])["actionlint"], *workflows)
    print(f"Version {version()}: tag, chart and changelog agree; actionlint accepts {len(workflows)} workflows")


@app.command(name="images")
def build_images() -> None:
    """Build the images for this machine's architecture, each with its SBOM in SPDX."""
    folder = OUTPUT / "images" / ARCHITECTURES[platform.machine()]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    syft = tools.ensure(["syft"])["syft"]
    for name, archive in images.ensure(IMAGES).items():
        target = folder / f"{publishing.short_name(name)}.tar"
        _place(archive, target)
        sbom = target.with_suffix(".spdx.json")
        run(
            *(syft, "scan", f"docker-archive:{target}", "--quiet", "--output", f"spdx-json={sbom}"),
            *("--source-name", target.stem, "--source-version", version()),
            env={**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"},
        )
        print(f"  {target.relative_to(REPOSITORY)} and its SBOM", flush=True)


@app.command()
def chart(
    registry: Annotated[str, typer.Argument(help="Where the images will be, such as ghcr.io/OWNER.")] = "",
) -> None:
    """Package the chart with the published images as its defaults."""
    if not registry:
        raise ClusterError("no registry: set REGISTRY=ghcr.io/OWNER, where the chart's images will be")
    folder = OUTPUT / "chart"
    shutil.rmtree(folder, ignore_errors=True)
    helm = tools.ensure(["helm"])["helm"]
    with tempfile.TemporaryDirectory(prefix="boathouse-chart-") as scratch:
        copy = Path(scratch) / CHART.name
        shutil.copytree(CHART, copy)
        values = copy / "values.yaml"
        values.write_text(published_values(values.read_text(), registry.lower()))
        run(helm, "lint", "--strict", copy)
        run(helm, "package", copy, "--destination", folder)
    print(f"  {next(folder.glob('*.tgz')).relative_to(REPOSITORY)}")


@app.command(name="notes")
def write_notes() -> None:
    """Write the notes of this version from the changelog; those of `Unreleased` while it has no section."""
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    text = notes(changelog, version()) or notes(changelog, "Unreleased")
    if text is None:
        raise ClusterError(f"CHANGELOG.md has neither a section {version()} nor one `Unreleased` with text")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / "notes.md").write_text(text)
    print("  build/release/notes.md")


@app.command()
def publish(
    registry: Annotated[str, typer.Argument(help="Where images and chart go, such as ghcr.io/OWNER.")] = "",
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Use a registry that ends with the command, and a throw-away key.")
    ] = False,
) -> None:
    """Push images and chart, sign them, attest SBOM and provenance, and verify all of this."""
    with tempfile.TemporaryDirectory(prefix="boathouse-release-") as scratch:
        if dry_run:
            with publishing.throw_away_registry(Path(scratch)) as address:
                publishing.publish(OUTPUT, version(), address, publishing.throw_away_key(Path(scratch)))
            return
        if not registry:
            raise ClusterError("no registry: set REGISTRY=ghcr.io/OWNER, or DRY_RUN=1 to publish nothing")
        if missing := [name for name in ARCHITECTURES.values() if not (OUTPUT / "images" / name).is_dir()]:
            raise ClusterError(f"no images for {', '.join(missing)} in {OUTPUT}: run `make release-images` there")
        publishing.publish(OUTPUT, version(), registry.lower(), publishing.workflow_identity(os.environ))


def _place(archive: Path, target: Path) -> None:
    """Make a file of the cache known in another folder, without a copy where both are on one file system."""
    try:
        target.hardlink_to(archive)
    except OSError:
        shutil.copyfile(archive, target)


def main() -> None:
    """Run a command; what a person can mend ends with its message and code 1."""
    try:
        app()
    except ClusterError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
