"""Values within the bounds of the wire, from numbers and texts of a user's programs."""

import re
from typing import Final

MOST: Final = 2**62
_HOST: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_NAME: Final = re.compile(r"[a-z0-9.-]{1,253}")


def figure(value: float) -> int:
    """Return a number as an integer from 0 to 2^62."""
    return int(max(0, min(MOST, value)))


def clip(text: str, most_chars: int) -> str:
    """Return a text as one line of printable characters, shortened to the limit."""
    return "".join(char if char.isprintable() else " " for char in text[:most_chars])


def host_of(name: str, domain: str) -> str | None:
    """Return the short name of a cluster's node from the name that it registered, or None if it is not of the domain.

    The name may have the domain of the Kubernetes cluster behind it, as in `c0.SERVICE.NAMESPACE.svc.cluster.local`.
    """
    host, _, rest = name.partition(".")
    is_ours = f"{rest}.".startswith(f"{domain}.") and _NAME.fullmatch(name)
    return host if is_ours and _HOST.fullmatch(host) else None
