"""Comparison with reviewed files. `REVIEW=1 pytest ...` writes them anew, for a diff."""

import os
import pathlib

import yaml

FOLDER = pathlib.Path(__file__).parent / "golden"


def check(name, text):
    path = FOLDER / name
    if os.environ.get("REVIEW"):
        path.write_text(text)
    assert text == path.read_text()


def check_manifest(name, manifest):
    check(f"{name}.yaml", yaml.safe_dump(manifest, sort_keys=False, width=120))
