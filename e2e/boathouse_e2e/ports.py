"""Ports for the servers of tests."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Final

_RANGE: Final = (20_000, 32_000)


def free(count: int) -> list[int]:
    """Return distinct ports below those of the kernel for connections, which could take one before a server does."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = random.randrange(*_RANGE)  # noqa: S311 # any will do
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("", port)))
                ports.append(port)
        return ports
