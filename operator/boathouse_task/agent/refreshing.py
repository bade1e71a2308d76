"""Make HDFS and YARN read the exclude files whenever they could have missed a change.

Of each daemon the agent keeps what it has read last: the exclude list, when the daemon started, and the addresses of
the listed DataNodes, which the NameNode resolves when it reads the list. If any of these changes, the agent requests
another refresh. A new agent knows none of it and requests one too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from boathouse_task.agent.host_files import HostFiles
from boathouse_task.cluster_contract import Request

DISTANCE_S: Final = 5.0
"""Minimum time between requests of one kind: each starts a JVM."""
RETRY_S: Final = 30.0
"""Time after which a request that failed is sent again."""
PATIENCE_S: Final = 180.0
"""Time after which a request that is not carried out is an error. The commands have a limit of 60 s each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a daemon should have read.

    Attributes:
        started_s: when the daemon started.
        hosts: the exclude list.
        addresses: addresses of the hosts, where the daemon resolves them.
    """

    started_s: int
    hosts: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A request in flight."""

    wanted: Wanted
    number: int
    sent_s: float


class Refresher:
    """Requests refreshes of the daemons.

    Args:
        files: for the requests.
        clock: monotonic seconds.
    """

    def __init__(self, files: HostFiles, clock: Callable[[], float]) -> None:
        self._files = files
        self._clock = clock
        self._read: dict[Request, Wanted] = {}
        self._sent: dict[Request, _Sent] = {}
        self._errors: dict[Request, str] = {}

    @property
    def error(self) -> str:
        """What went wrong last, or ""."""
        return "; ".join(self._errors.values())

    def update(self, wanted: Mapping[Request, Wanted]) -> bool:
        """Take results of requests and request what is missing.

        Args:
            wanted: of the daemons that run.

        Returns:
            Whether each of these daemons has read what it should have.

        Raises:
            OSError: the files of the requests cannot be read or written.
        """
        for kind, state in wanted.items():
            self._take_result(kind)
            if self._read.get(kind) == state:
                self._errors.pop(kind, None)
            else:
                self._request(kind, state)
        return all(self._read.get(kind) == state for kind, state in wanted.items())

    def _take_result(self, kind: Request) -> None:
        sent, done = self._sent.get(kind), self._files.done(kind)
        if sent is None or sent.wanted == self._read.get(kind):
            return
        if done is None or done.number < sent.number:
            if self._clock() - sent.sent_s > PATIENCE_S:
                self._errors[kind] = f"container refresh has not run request {sent.number} of {kind} yet: see its log"
        elif done.number == sent.number and done.status == 0:
            self._read[kind] = sent.wanted
        else:
            self._errors[kind] = f"refresh of {kind} ended with status {done.status}: see the log of container refresh"

    def _request(self, kind: Request, wanted: Wanted) -> None:
        """Send a request, unless the same one is in flight or another was sent just now.

        From now on it is unknown what the daemon has read.
        """
        sent, done, now_s = self._sent.get(kind), self._files.done(kind), self._clock()
        if sent is not None:
            in_flight = done is None or done.number < sent.number
            distance_s = RETRY_S if sent.wanted == wanted else DISTANCE_S
            if now_s - sent.sent_s < distance_s or (in_flight and sent.wanted == wanted):
                return
        self._read.pop(kind, None)
        self._sent[kind] = _Sent(wanted=wanted, number=self._files.request(kind), sent_s=now_s)
