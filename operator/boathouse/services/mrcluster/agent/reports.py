"""Keep the last report of each cluster's agent. Reports are only in memory, because agents send them again."""

import dataclasses
import random
import time
from collections.abc import Callable
from typing import Final, NewType

from msgspec.structs import replace

from boathouse.cluster import server_time
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.progress.rejections import Reason, Rejected
from boathouse_task.cluster_contract import AgentReport

Arrival = NewType("Arrival", float)
"""When the request of a report arrived, in seconds of the clock of ages."""
_NUMBER_BITS: Final = 62


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _NameNode:
    """The NameNode of the last report that had one.

    Attributes:
        told_s: When it started, by its node's clock.
        started_s: When it started, as far as that can be right: after the last report of its predecessor, and before
            its own first one.
        seen_s: When its last report arrived.
    """

    told_s: int
    started_s: int
    seen_s: float


@dataclasses.dataclass(slots=True)
class _Received:
    """A cluster's last report, and when the responses were made that its next report may follow."""

    report: AgentReport
    arrival: Arrival
    answers: dict[int, float]
    name_node: _NameNode | None


class Reports:
    """Last reports of the agents of all clusters.

    Args:
        mark: Called with a cluster whose report has news.
        monotonic: Clock of ages.
        now: Returns epoch seconds.
    """

    def __init__(
        self,
        mark: Callable[[ObjectUid], None],
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = server_time.SERVER_TIME.now_s,
    ) -> None:
        self._mark, self._monotonic, self._now = mark, monotonic, now
        self._received: dict[ObjectUid, _Received] = {}

    def last(self, uid: ObjectUid) -> AgentReport | None:
        """Return the last report of a cluster."""
        received = self._received.get(uid)
        return received.report if received else None

    def age_s(self, uid: ObjectUid) -> float | None:
        """Return how long ago the last report of a cluster arrived."""
        received = self._received.get(uid)
        return self._monotonic() - received.arrival if received else None

    def arrive(self) -> Arrival:
        """Return the time of a report's request, for `take`."""
        return Arrival(self._monotonic())

    def take(self, uid: ObjectUid, report: AgentReport, arrival: Arrival) -> float | None:
        """Keep a report in the place of the cluster's last, with the start of the NameNode as far as it can be right.

        Returns:
            A time, in epoch seconds, before the agent began the round of the report. None if it is unknown: the
            report is the agent's first to this leader, or the agent did not get the last responses.

        Raises:
            Rejected: A later request has been taken; the body of this one was slower.
        """
        last = self._received.get(uid)
        if last is not None and arrival < last.arrival:
            raise Rejected(Reason.OUT_OF_ORDER)
        began_s = last.answers.get(report.follows) if last else None
        answers = {} if began_s is None else {report.follows: began_s}
        name_node = last.name_node if last else None
        if report.hdfs is not None:
            name_node = _name_node(report.hdfs.started_s, name_node, self._now())
            report = replace(report, hdfs=replace(report.hdfs, started_s=name_node.started_s))
        self._received[uid] = _Received(report=report, arrival=arrival, answers=answers, name_node=name_node)
        if last is None or _news(last.report) != _news(report):
            self._mark(uid)
        return began_s

    def number(self, uid: ObjectUid) -> int:
        """Return the number of the response to the report that was just taken.

        It is random, so that neither an agent nor another leader has it before.
        """
        number = 1 + random.getrandbits(_NUMBER_BITS - 1)
        self._received[uid].answers[number] = self._now()
        return number

    def forget(self, uid: ObjectUid) -> None:
        """Drop the report of a deleted cluster."""
        self._received.pop(uid, None)


def _name_node(told_s: int, last: _NameNode | None, now_s: float) -> _NameNode:
    """Return the NameNode that started at a time by its node's clock, which may be wrong and may step."""
    if last is not None and last.told_s == told_s:
        return dataclasses.replace(last, seen_s=now_s)
    after_s = last.seen_s if last is not None else 0.0
    return _NameNode(told_s=told_s, started_s=int(min(max(told_s, after_s), now_s)), seen_s=now_s)


def _news(report: AgentReport) -> AgentReport:
    """Return a report without the parts that change in each, and without tags, which concern jobs."""
    yarn = replace(report.yarn, up_s=0) if report.yarn else None
    return replace(report, yarn=yarn, tags={}, took_ms=0, follows=0)
