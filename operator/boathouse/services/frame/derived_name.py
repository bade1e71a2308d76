"""Derive the names of an object's pods and other objects from its own. Pure."""

import hashlib
from typing import Final

MAX_NAME: Final = 63
"""The longest name of a pod that is also its host name, and of a Service."""
_HASH: Final = 8


def derived_name(name: str, uid: str, suffix: str, *, limit: int = MAX_NAME) -> str:
    """Return `NAME-UID8-SUFFIX`; a name that is too long or has dots is truncated and gets a hash."""
    end = f"-{uid[:8]}-{suffix}"
    label = name.replace(".", "-")
    if len(label) + len(end) > limit or label != name:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
        label = f"{label[: limit - len(end) - _HASH - 1].rstrip('-')}-{digest}"
    return label + end
