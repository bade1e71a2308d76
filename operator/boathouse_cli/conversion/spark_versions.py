"""What an application that names a version of Spark has to know of the versions that Boathouse supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_cli.conversion.draft import Draft

VERSIONS: Final = ("3.5", "4.0", "4.1", "4.2", "4.3")
NEWEST: Final = VERSIONS[-1]
"""That of the chart's image."""
SINCE: Final[Mapping[str, str]] = {"driver.minMemoryOverhead": "4.0", "executor.minMemoryOverhead": "4.0"}
"""Fields of a SparkApp that some versions do not know; a test compares with the versions' own definitions."""


def convert(draft: Draft, path: str, version: str) -> None:
    """Leave out what the version does not know, and note that, and which image the application needs.

    Args:
        draft: All fields are set.
        path: Where the version is named.
        version: Such as 3.5.3.
    """
    minor = ".".join(version.split(".")[:2])
    if minor not in VERSIONS:
        known = f"{', '.join(VERSIONS[:-1])} and {NEWEST}"
        draft.note(path, f"{version}: Spark {known} are supported: use an image of one of them")
        return
    if minor != NEWEST and draft.get("image") is None:
        draft.note(path, f"{version}: the chart's image has Spark {NEWEST}: set image to one of Spark {minor}")
    for field, since in SINCE.items():
        if VERSIONS.index(minor) < VERSIONS.index(since) and draft.get(field) is not None:
            role, _, name = field.partition(".")
            del draft.spec[role][name]
            draft.note(path, f"Spark {minor} ignores {field}, which is new in {since}: it is left out")
