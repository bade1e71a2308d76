"""Which connections to a port may be open, and how many may begin. Pure.

A TLS connection costs 40 to 70 KiB of memory and 0.8 ms of CPU time (asyncio, OpenSSL 3, P-256). Both are spent
before anybody has shown a token. So all of it is bounded; and when there is too much, those lose who take most:
an address that begins more handshakes than a node full of tasks, and the connection that has shown no token for the
longest time.
"""

import collections
import enum
from collections.abc import Callable, Hashable
from typing import Final

from boathouse.buckets import ALL, Buckets

CONNECTIONS_OF_ADDRESS: Final = 512
"""Some networks show all pods of a node under one address: 250 pods with a report and a poll each."""
HANDSHAKES_A_S, HANDSHAKES_BURST = 300.0, 300.0
"""Begun in all: a quarter of a core. Further ones wait in the listening socket's queue."""
ADDRESS_HANDSHAKES_A_S, ADDRESS_HANDSHAKES_BURST = 60.0, 250.0
"""Begun from one address: 250 tasks that report every 5 s begin 50."""
SCARCE: Final = HANDSHAKES_BURST / 2
"""Below so many left in all, only addresses that begin few may go on."""
FEW_HANDSHAKES_A_S, FEW_HANDSHAKES_BURST = 2.0, 20.0


class Refusal(enum.StrEnum):
    """Why a connection was refused or ended."""

    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"


class Connections:
    """Which connections are open.

    Args:
        most: Open at a time.
        clock: Seconds that only grow.
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
        """How many are open."""
        return len(self._addresses)

    @property
    def may_accept(self) -> bool:
        """Whether another handshake may begin now."""
        return self._handshakes.level(ALL) >= 1

    def add(self, connection: Hashable, address: str) -> Refusal | None:
        """Take a connection in, or say why not; ask `surplus` afterwards."""
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
        """Return the connection to end when there are too many: the oldest that has shown no good token."""
        if self.open <= self._most or not self._unverified:
            return None
        return self._unverified.popitem(last=False)[0]

    def verified(self, connection: Hashable) -> None:
        """Keep a connection, whose token was good, until its request is answered."""
        self._unverified.pop(connection, None)

    def remove(self, connection: Hashable) -> None:
        """Forget a connection that is closed."""
        self._unverified.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]
