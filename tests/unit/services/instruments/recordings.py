"""Recorded answers of kubelets."""

import pathlib

_FOLDER = pathlib.Path(__file__).parent / "recorded"


def answer(name):
    """Return a recorded answer."""
    return (_FOLDER / f"{name}.txt").read_bytes()
