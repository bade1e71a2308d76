"""Limit a port's open connections, the rate at which they begin, and concurrent requests. Pure.

A connection costs memory and CPU time before its client has sent a token, and some ports have no tokens. Both are
therefore limited, in total and by address. If a limit is reached, the oldest connection without a valid token is closed
for a new one, so idle connections never keep out a client that has a request.
"""

import collections
import contextlib
import dataclasses
import enum
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from boathouse.fair import ALL, Buckets

SCARCE: Final = 0.5
"""If less than this part of the total burst remains, only addresses with few connections may begin another."""


class Refusal(enum.StrEnum):
    """Reason why a connection was refused or closed."""

    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HANDSHAKES = "TooManyHandshakes"
    TOO_LARGE_HEAD = "TooLargeHead"
    MALFORMED = "Malformed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Connections that may begin, per second and at once."""

    per_s: float
    burst: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a port: of `most` open connections, of those without a valid token, and of those of an address.

    Connections beyond the `rate` wait in the socket's queue if the port `queues`; otherwise they are closed, so that
    the others do not wait. An address has a right to `few` also if the rate is scarce. The head of a request has to
    arrive within `head_s`, and a connection lives for `life_s`.
    """

    most: int
    unverified: int
    of_address: int
    unverified_of_address: int
    rate: Rate
    address_rate: Rate
    few: Rate
    queues: bool
    head_s: float
    life_s: float


class Connections:
    """Open connections of a port. The clock returns monotonic seconds."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._addresses: dict[Hashable, str] = {}
        self._of_address: collections.Counter[str] = collections.Counter()
        self._unverified: dict[Hashable, None] = {}
        self._unverified_of: dict[str, dict[Hashable, None]] = {}
        self._all, self._of_addresses, self._few = (
            Buckets(rate_per_s=rate.per_s, burst=rate.burst, clock=clock)
            for rate in (limits.rate, limits.address_rate, limits.few)
        )

    @property
    def open(self) -> int:
        """Number of open connections."""
        return len(self._addresses)

    @property
    def may_accept(self) -> bool:
        """Whether to accept another connection now."""
        return not self._limits.queues or self._all.level(ALL) >= 1

    def add(self, connection: Hashable, address: str) -> Refusal | None:
        """Add a connection, or return why it is refused. Close `surplus` afterwards."""
        is_full_of_own = self._of_address[address] >= self._limits.of_address and address not in self._unverified_of
        if is_full_of_own or (self.open >= self._limits.most and not self._unverified):
            return Refusal.TOO_MANY_CONNECTIONS
        if not self._take(address):
            return Refusal.TOO_MANY_HANDSHAKES
        self._addresses[connection] = address
        self._of_address[address] += 1
        self._unverified[connection] = None
        self._unverified_of.setdefault(address, {})[connection] = None
        return None

    def surplus(self, address: str) -> Hashable | None:
        """Remove and return the connection to close after one was added: first of an address beyond its own limits."""
        limits = self._limits
        own = self._unverified_of.get(address, {})
        if own and (len(own) > limits.unverified_of_address or self._of_address[address] > limits.of_address):
            return self._oldest(own)
        if self._unverified and (len(self._unverified) > limits.unverified or self.open > limits.most):
            return self._oldest(self._unverified)
        return None

    def verified(self, connection: Hashable) -> None:
        """Mark a connection, whose token is valid, so that `surplus` does not return it."""
        if connection not in self._unverified:
            return
        del self._unverified[connection]
        address = self._addresses[connection]
        del self._unverified_of[address][connection]
        if not self._unverified_of[address]:
            del self._unverified_of[address]

    def remove(self, connection: Hashable) -> None:
        """Remove a closed connection."""
        self.verified(connection)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def _take(self, address: str) -> bool:
        level = self._all.level(ALL)
        if level < 1 or not self._of_addresses.take(address):
            return False
        if not self._few.take(address) and level < SCARCE * self._limits.rate.burst:
            return False
        self._all.charge(ALL, 1)
        return True

    def _oldest(self, connections: dict[Hashable, None]) -> Hashable:
        oldest = next(iter(connections))
        self.remove(oldest)
        return oldest


class Places:
    """Counts requests in progress, up to a maximum in total and per key."""

    def __init__(self, *, in_all: int, per_key: int) -> None:
        self._in_all, self._per_key = in_all, per_key
        self._held: collections.Counter[Hashable] = collections.Counter()

    @property
    def held(self) -> int:
        """Number of requests in progress."""
        return self._held.total()

    @contextlib.contextmanager
    def place(self, key: Hashable) -> Iterator[bool]:
        """Count a request during the block; yields False if the maximum is reached."""
        if self._held[key] >= self._per_key or self.held >= self._in_all:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
