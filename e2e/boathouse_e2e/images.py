"""The images of demo and tests, as docker-archive files in the cache: no registry is needed to get them to nodes.

An image is built again only when something that goes into it has changed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boathouse_e2e import builders, tools
from boathouse_e2e.archive import Image, forget_older, write_programs
from boathouse_e2e.catalogue import TOOLS_BY_NAME
from boathouse_e2e.dockerfiles import HADOOP_BASE, PYTHON_BASE, SPARK_BASE, Recipe
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import REPOSITORY, images_folder, locked
from boathouse_e2e.providers import choose

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boathouse_e2e.spec import Cluster

OPERATOR, TASK, SPARK, OLDER_SPARK, HADOOP, OLDER_HADOOP, VERSITYGW = (
    "localhost/boathouse-operator:dev",
    "localhost/boathouse-task:dev",
    "localhost/boathouse-spark:dev",
    "localhost/boathouse-spark:3.5",
    "localhost/boathouse-hadoop:dev",
    "localhost/boathouse-hadoop:3.3.5",
    "localhost/versitygw:dev",
)
OF_VERSION = {OPERATOR: Recipe(target="operator", base=PYTHON_BASE), TASK: Recipe(target="task", base=PYTHON_BASE)}
SPARK_RECIPE = Recipe(target="spark", base=SPARK_BASE, context="images/spark")
HADOOP_RECIPE = Recipe(target="hadoop", base=HADOOP_BASE, context="images/hadoop")
RECIPES = {
    **OF_VERSION,
    SPARK: SPARK_RECIPE,
    OLDER_SPARK: replace(SPARK_RECIPE, arguments=("VERSION=3.5",)),
    HADOOP: HADOOP_RECIPE,
    OLDER_HADOOP: replace(HADOOP_RECIPE, arguments=("VERSION=3.3.5",)),
}
ALL = (*RECIPES, VERSITYGW)
FOR_MRJOBS = (OPERATOR, TASK, VERSITYGW)
DEFAULT = (*FOR_MRJOBS, SPARK)

_KEPT_ARCHIVES = 3


def ensure(names: Iterable[str] = FOR_MRJOBS) -> dict[str, Path]:
    """Return the archives of the named images, after building those whose inputs have changed.

    Raises:
        ClusterError: no such image, a builder is missing and cannot be installed, or a build failed.
    """
    names = list(names)
    if unknown := set(names) - set(ALL):
        raise ClusterError(f"no such image: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    with locked(images_folder() / ".lock"):
        found = {name: archive_of(name) for name in names}
        missing = [name for name in names if not found[name].exists()]
        if VERSITYGW in missing:
            _build_versitygw(found[VERSITYGW])
        builders.build([_build(name, RECIPES[name], found[name]) for name in missing if name in RECIPES], REPOSITORY)
        for name in names:
            forget_older(found[name], kept=_KEPT_ARCHIVES)
    return found


def ensure_version(repository: Path, tag: str) -> dict[str, Path]:
    """Return the archives of the images of a version, built from its checkout, by their names with a tag of their own.

    Raises:
        ClusterError: as `ensure`.
    """
    recipes = {f"{name.rpartition(':')[0]}:{tag}": recipe for name, recipe in OF_VERSION.items()}
    with locked(images_folder() / ".lock"):
        found = {name: _archive(name, recipe.key(repository)) for name, recipe in recipes.items()}
        missing = [name for name in recipes if not found[name].exists()]
        builders.build([_build(name, recipes[name], found[name]) for name in missing], repository)
        for archive in found.values():
            forget_older(archive, kept=_KEPT_ARCHIVES)
    return found


def _build(name: str, recipe: Recipe, archive: Path) -> builders.Build:
    return builders.Build(name=name, recipe=recipe, archive=archive)


def load_archives(cluster: Cluster, archives: Iterable[Path]) -> None:
    """Make images known to every real node of the cluster."""
    choose(cluster.provider, name=cluster.name, context=cluster.context).load_images(cluster, list(archives))


def load(cluster: Cluster, names: Iterable[str] = FOR_MRJOBS) -> None:
    """Build the named images where that is needed and make them known to every real node of the cluster."""
    archives = list(ensure(names).values())
    started = time.monotonic()
    load_archives(cluster, archives)
    print(f"  {len(archives)} images loaded into the nodes of {cluster.name!r} in {time.monotonic() - started:.1f} s")


def archive_of(name: str) -> Path:
    """Return where the archive of an image with its present inputs is, or will be."""
    return _archive(name, TOOLS_BY_NAME["versitygw"].key() if name == VERSITYGW else RECIPES[name].key(REPOSITORY))


def _archive(name: str, key: str) -> Path:
    short = name.removeprefix("localhost/").replace(":", "-")
    return images_folder() / f"{short}-{key}.tar"


def _build_versitygw(target: Path) -> None:
    program = tools.ensure(["versitygw"])["versitygw"]
    write_programs(
        target, Image(name=VERSITYGW, entrypoint=("/versitygw",), user="10001:10001"), {"/versitygw": program}
    )
