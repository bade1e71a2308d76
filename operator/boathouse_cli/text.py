"""Format durations and sizes. Pure."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def ago(seconds: float) -> str:
    """Return an age with its largest unit, as kubectl prints it: 200 s is "3m"."""
    whole = max(0, int(seconds))
    size, letter = next((unit for unit in _UNITS if whole >= unit[0]), (1, "s"))
    return f"{whole // size}{letter}"


def duration(seconds: float) -> str:
    """Return a duration with its two largest units: 200 s is "3m20s"."""
    whole = max(0, round(seconds))
    parts: list[str] = []
    for size, letter in _UNITS:
        if whole >= size or parts:
            parts.append(f"{whole // size}{letter}")
            whole %= size
    return "".join(parts[:2]) or "0s"


def size(size_bytes: float) -> str:
    """Return a size with a binary unit: 1536 bytes are "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:  # noqa: PLR2004 - the step between binary units
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"
