"""Limit the open connections of a port, and the rate of handshakes. Pure.

A TLS connection uses 40 to 70 KiB of memory and 0.8 ms of CPU time (asyncio, OpenSSL 3, P-256) before the client has
sent a token. Both are therefore limited. Beyond the limits, handshakes are refused to addresses that begin more of
them than a node full of tasks, and the oldest connection without a valid token is closed.
"""

import collections
import enum
from collections.abc import Callable, Hashable
from typing import Final

from boathouse.buckets import ALL, Buckets

CONNECTIONS_OF_ADDRESS: Final = 512
"""Connections of one address. Some networks map all pods of a node to one: 250 pods with a report and a poll each."""
HANDSHAKES_A_S, HANDSHAKES_BURST = 300.0, 300.0
"""Handshakes per second in total: a quarter of a core. Further ones wait in the listening socket's queue."""
ADDRESS_HANDSHAKES_A_S, ADDRESS_HANDSHAKES_BURST = 60.0, 250.0
"""Handshakes per second of one address: 250 tasks that report every 5 s need 50."""
SCARCE: Final = HANDSHAKES_BURST / 2
"""If fewer tokens than this remain in total, only addresses with few handshakes may begin another."""
FEW_HANDSHAKES_A_S, FEW_HANDSHAKES_BURST = 2.0, 20.0


class Refusal(enum.StrEnum):
    """Reason why a connection was refused or closed."""

    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"


class Connections:
    """Open connections of a port.

    Args:
        most: Maximum of open connections.
        clock: Returns monotonic seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._of_address: collections.Counter[str] = collections.Counter()
        self._unverified: collections.OrderedDict[Hashable, None] = collections.OrderedDict()
        self._addresses: dict[Hashable, str] = {}
        self._handshakes = Buckets(rate_per_s=HANDSHAKES_A_S, burst=HANDSHAKES_BURST, clock=clock)
        self._of_addresses = Buckets(rate_per_s=ADDRESS_HANDSHAKES_A_S, burst=ADDRESS_HANDSHAKES_BURST, clock=clock)
        self._few = Buckets(rate_per_s=FEW_HANDSHAKES_A_S, burst=FEW_HANDSHAKES_BURST, clock=clock)

    @property
    def open(self) -> int:
        """Number of open connections."""
        return len(self._addresses)

    @property
    def may_accept(self) -> bool:
        """Whether another handshake may begin now."""
        return self._handshakes.level(ALL) >= 1

    def add(self, connection: Hashable, address: str) -> Refusal | None:
        """Add a connection, or return why it is refused. Call `surplus` afterwards."""
        if self._of_address[address] >= CONNECTIONS_OF_ADDRESS:
            return Refusal.TOO_MANY_CONNECTIONS
        if self.open >= self._most and not self._unverified:
            return Refusal.TOO_MANY_CONNECTIONS
        scarce = self._handshakes.level(ALL) < SCARCE
        if not self._of_addresses.take(address) or (not self._few.take(address) and scarce):
            return Refusal.TOO_MANY_HANDSHAKES
        self._handshakes.charge(ALL, 1)
        self._of_address[address] += 1
        self._addresses[connection] = address
        self._unverified[connection] = None
        return None

    def surplus(self) -> Hashable | None:
        """Return the connection to close if there are too many: the oldest without a valid token."""
        if self.open <= self._most or not self._unverified:
            return None
        return self._unverified.popitem(last=False)[0]

    def verified(self, connection: Hashable) -> None:
        """Mark a connection, whose token is valid, so that `surplus` does not return it."""
        self._unverified.pop(connection, None)

    def remove(self, connection: Hashable) -> None:
        """Remove a closed connection."""
        self._unverified.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]
