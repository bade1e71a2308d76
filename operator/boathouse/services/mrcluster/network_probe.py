"""Find out whether the network enforces the NetworkPolicies of clusters.

The agents listen on a port that no policy allows. If a connection from the operator to it succeeds, nothing protects
the cluster's other ports either. If it fails, that may have another cause, such as a route that is missing or a policy
for the operator's own connections. So only a connection to the control port, which the cluster's policies allow, shows
that they are the cause. The probe sends and reads nothing.
"""

import asyncio
import dataclasses
import errno
import ipaddress
import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from boathouse.cluster import retries
from boathouse.resources.mrcluster.names import Reason
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.daemons import CANARY_PORT, CONTROL_PORT

EVERY_S: Final = 600.0
"""Time between two probes of a cluster that showed something. One that showed nothing is repeated in each round."""
ROUND_S: Final = 30.0
"""Time between two rounds, each of which probes the clusters that are due: new ones, and those with another address."""
TIMEOUT_S: Final = 2.0
AT_ONCE: Final = 16
_BLOCKED: Final = frozenset({errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM})
"""What policies answer with, where they do not drop the packets. Other errors are of this host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    address: str
    at_s: float
    finding: Reason


class NetworkProbe:
    """Connects to ports of the masters whose agents listen: `targets` returns their IP addresses, by cluster."""

    def __init__(
        self,
        targets: Callable[[], Mapping[ObjectUid, str]],
        mark: Callable[[ObjectUid], None],
        *,
        canary: int = CANARY_PORT,
        control: int = CONTROL_PORT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets, self._mark = targets, mark
        self._canary, self._control, self._monotonic = canary, control, monotonic
        self._results: dict[ObjectUid, _Result] = {}
        self.loop = retries.Loop("network probe", self.run_once, every_s=ROUND_S)

    def finding(self, uid: ObjectUid) -> Reason | None:
        """Return ENFORCED, NOT_ENFORCED or CANNOT_TELL by the last probe of a cluster; None without one."""
        result = self._results.get(uid)
        return result.finding if result else None

    async def run_once(self) -> None:
        """Connect to the canaries that are due, and drop the results of clusters that are no targets any more."""
        targets = self._targets()
        for uid in self._results.keys() - targets.keys():
            del self._results[uid]
            self._mark(uid)
        places = asyncio.Semaphore(AT_ONCE)

        async def probe(uid: ObjectUid, address: str) -> None:
            async with places:
                finding, former = await self._find(address), self.finding(uid)
                self._results[uid] = _Result(address=address, at_s=self._monotonic(), finding=finding)
                if finding is not former:
                    self._mark(uid)

        await asyncio.gather(*(probe(uid, address) for uid, address in targets.items() if self._is_due(uid, address)))

    async def _find(self, address: str) -> Reason:
        connected = await _connects(address, self._canary)
        if connected:
            return Reason.NOT_ENFORCED
        is_blocked = connected is False and await _connects(address, self._control)
        return Reason.ENFORCED if is_blocked else Reason.CANNOT_TELL

    def _is_due(self, uid: ObjectUid, address: str) -> bool:
        last = self._results.get(uid)
        return (
            last is None
            or last.address != address
            or last.finding is Reason.CANNOT_TELL
            or self._monotonic() - last.at_s >= EVERY_S
        )


async def _connects(address: str, port: int) -> bool | None:
    """Return whether a connection succeeds; None if that is unknown."""
    try:
        is_v6 = isinstance(ipaddress.ip_address(address), ipaddress.IPv6Address)
        with socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET) as connection:
            connection.setblocking(False)
            async with asyncio.timeout(TIMEOUT_S):
                await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except TimeoutError:
        return False
    except OSError as error:
        return False if error.errno in _BLOCKED else None
    except ValueError:  # it is no IP address
        return None
    return True
