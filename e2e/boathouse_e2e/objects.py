"""Files to and from a bucket."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import obstore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from obstore.store import S3Store


def sizes(store: S3Store, prefix: str) -> dict[str, int]:
    """Return the sizes in bytes of the objects below a prefix (whole path segments), by key."""
    return {each["path"]: each["size"] for page in obstore.list(store, prefix) for each in page}


def upload(store: S3Store, files: Mapping[str, Path]) -> int:
    """Store files under keys; those that are there with their size stay. Returns how many were sent."""
    there: dict[str, int] = {}
    for folder in {key.rpartition("/")[0] for key in files}:
        there |= sizes(store, folder)
    missing = {key: path for key, path in files.items() if there.get(key) != path.stat().st_size}
    for key, path in missing.items():
        obstore.put(store, key, path)
    return len(missing)


def download(store: S3Store, keys: list[str], folder: Path) -> list[Path]:
    """Fetch objects into a folder, which is emptied first, by the last part of their keys."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / key.rpartition("/")[2] for key in keys]
    for key, path in zip(keys, paths, strict=True):
        path.write_bytes(read(store, key))
    return paths


def read(store: S3Store, key: str) -> bytes:
    """Return the content of one object."""
    return bytes(obstore.get(store, key).bytes())


def remove(store: S3Store, prefix: str) -> int:
    """Delete everything below a prefix; return how many objects that were."""
    keys = list(sizes(store, prefix))
    if keys:
        obstore.delete(store, keys)
    return len(keys)
