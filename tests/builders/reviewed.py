"""Comparison with reviewed files. `REVIEW=1 pytest ...` writes them again, for a diff."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pathlib


def check(path: pathlib.Path, text: str) -> None:
    """Compare a text with that of a file."""
    if os.environ.get("REVIEW"):
        path.write_text(text)
    assert text == path.read_text()


def check_manifest(path: pathlib.Path, manifest: dict[str, Any]) -> None:
    """Compare a manifest with that of a file."""
    check(path, yaml.safe_dump(manifest, sort_keys=False, width=120))
