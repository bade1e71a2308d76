"""Progress and counters of MapReduce applications.

While an application runs, its ApplicationMaster knows its progress, and the ResourceManager's proxy passes requests to
it. Once it has ended, the JobHistoryServer knows its progress and its counters.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from boathouse_task.agent.rest import Rest, RestError, clip, figure
from boathouse_task.cluster_contract import MOST_COUNTERS, MOST_GROUPS, ApplicationFigures
from boathouse_task.contract import clamp

MOST_KEPT: Final = 512
"""Applications whose details are kept after their end, so that the JobHistoryServer is asked once."""
PAUSE_S: Final = 5.0
"""Time after a timeout of the JobHistoryServer in which it is not asked: one that hangs would delay each report."""
_HISTORY: Final = "/ws/v1/history/mapreduce/jobs"
_NAME_CHARS: Final = 128


class MapReduce:
    """Adds the details of MapReduce to applications.

    Args:
        proxy: connection to the ResourceManager's web port.
        history: connection to the JobHistoryServer.
        monotonic: clock of the pause after a timeout.
    """

    def __init__(self, proxy: Rest, history: Rest, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._proxy = proxy
        self._history = history
        self._monotonic = monotonic
        self._paused_until_s = 0.0
        self._ended: dict[str, ApplicationFigures] = {}

    def add_details(self, application: ApplicationFigures) -> ApplicationFigures:
        """Return an application with the details that are known now."""
        if not application.has_ended:
            return self._running(application) if application.state == "RUNNING" else application
        if application.id not in self._ended:
            if self._monotonic() < self._paused_until_s:
                return application
            try:
                details = self._details(application)
            except RestError as error:  # it has the job some seconds after its end, or never if the job did not start
                if error.is_timeout:
                    self._paused_until_s = self._monotonic() + PAUSE_S
                return application
            while len(self._ended) >= MOST_KEPT:
                del self._ended[next(iter(self._ended))]
            self._ended[application.id] = details
        return self._ended[application.id]

    def _running(self, application: ApplicationFigures) -> ApplicationFigures:
        try:
            jobs = self._proxy.get(f"/proxy/{application.id}/ws/v1/mapreduce/jobs", _Jobs).jobs.job
        except RestError:
            return application
        return _with_progress(application, jobs[0]) if jobs else application

    def _details(self, application: ApplicationFigures) -> ApplicationFigures:
        """Return an ended application with progress and counters.

        Raises:
            RestError: the JobHistoryServer does not respond, or does not know the job.
        """
        path = f"{_HISTORY}/{application.id.replace('application', 'job')}"
        job = self._history.get(path, _OneJob).job
        groups = self._history.get(f"{path}/counters", _Counters).job_counters.counter_group
        return replace(_with_progress(application, job), counters=_counters(groups))


def _with_progress(application: ApplicationFigures, job: "_Job") -> ApplicationFigures:
    return replace(
        application,
        maps=(figure(job.maps_completed), figure(job.maps_total)),
        reduces=(figure(job.reduces_completed), figure(job.reduces_total)),
    )


def _counters(groups: "list[_Group]") -> dict[str, dict[str, int]]:
    """Return counters by the short names of their groups, within the limits of the wire."""
    left, found = MOST_COUNTERS, {}
    for group in groups[:MOST_GROUPS]:
        counters = {clip(each.name, _NAME_CHARS): clamp(each.total_counter_value) for each in group.counter[:left]}
        left -= len(counters)
        if counters:
            found[clip(group.counter_group_name, _NAME_CHARS)] = counters
    return found


class _Job(msgspec.Struct, rename="camel"):
    maps_total: int = 0
    maps_completed: int = 0
    reduces_total: int = 0
    reduces_completed: int = 0


class _JobList(msgspec.Struct):
    job: list[_Job] = []


class _Jobs(msgspec.Struct):
    """An ApplicationMaster's only job."""

    jobs: _JobList


class _OneJob(msgspec.Struct):
    job: _Job


class _Counter(msgspec.Struct, rename="camel"):
    name: str
    total_counter_value: int = 0


class _Group(msgspec.Struct, rename="camel"):
    counter_group_name: str
    counter: list[_Counter] = []


class _JobCounters(msgspec.Struct, rename="camel"):
    counter_group: list[_Group] = []


class _Counters(msgspec.Struct, rename="camel"):
    job_counters: _JobCounters
