"""Metrics of kubelets, as recorded."""

from __future__ import annotations

import pathlib

_FOLDER = pathlib.Path(__file__).parents[1] / "unit/services/instruments/recorded"


def recorded_metrics(name: str) -> bytes:
    """Return the body of a recorded response."""
    return (_FOLDER / f"{name}.txt").read_bytes()
