"""A reduce that is ordered to pause while it lacks map output."""

import functools
import signal
import threading
import time

import msgspec
import pytest

from boathouse_task import contract, counters, pausing, runner
from boathouse_task.contract import Acknowledgement, SuspendOrder, SuspendRefusal
from boathouse_task.pausing import Ended, Pause
from boathouse_task.storage import Storage
from boathouse_task.task import Reporter
from tests.unit.task.endpoints import credentials, serving
from tests.unit.task.pods import ended, start_pod
from tests.unit.task.suspending import RESULT, Cgroup, Leader, reduce_spec, result_of

ORDER = SuspendOrder(id="7-1", for_s=60.0)


class Clock:
    """Time that passes only by sleeping, and what happens in it.

    Args:
        events: Seconds and what is done then, in order.
    """

    def __init__(self, *events) -> None:
        self.now_s, self._events = 0.0, list(events)

    def sleep(self, seconds):
        self.now_s += seconds
        while self._events and self._events[0][0] <= self.now_s:
            self._events.pop(0)[1]()


def obey(cgroup, clock=None, order=ORDER, *, lacks_maps=True, pause=None):
    """Carries out an order; returns how it ended, the acknowledgement, and how long it took."""
    clock = clock or Clock()
    pause = pause or Pause(sleep=clock.sleep, monotonic=lambda: clock.now_s)
    sent = []
    end = pause.obey(order, cgroup=cgroup.folder, lacks_maps=lacks_maps, acknowledge=sent.append)
    (acknowledgement,) = sent
    assert pause.order == acknowledgement.id == order.id
    return end, acknowledgement.refused, round(pause.suspended_s)


def limits(cgroup, *changes):
    """Events that set the limit."""
    return Clock(*((at_s, functools.partial(cgroup.limit, milli)) for at_s, milli in changes))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("original", [500, None])
def test_a_task_continues_when_its_cpu_limit_is_raised(tmp_path, version, original):
    cgroup = Cgroup(tmp_path / "cgroup", version)
    cgroup.limit(original)
    assert obey(cgroup, limits(cgroup, (1, 10), (30, original))) == (Ended.LIMIT_RAISED, "", 30)


def test_a_task_continues_if_its_cpu_limit_is_not_lowered(tmp_path):
    cgroup = Cgroup(tmp_path / "cgroup")
    assert obey(cgroup, limits(cgroup, (1, 250))) == (Ended.NOT_SHRUNK, "", 10)


def test_a_task_continues_at_its_deadline_with_whatever_limit(tmp_path):
    cgroup = Cgroup(tmp_path / "cgroup")
    assert obey(cgroup, limits(cgroup, (1, 10))) == (Ended.DEADLINE, "", 60)


def test_a_deadline_that_is_near_ends_also_a_pause_that_is_not_shrunk(tmp_path):
    assert obey(Cgroup(tmp_path / "cgroup"), order=SuspendOrder(id="7-2", for_s=3.0)) == (Ended.DEADLINE, "", 3)


def test_no_order_pauses_for_more_than_an_hour(tmp_path):
    cgroup = Cgroup(tmp_path / "cgroup")
    forever = SuspendOrder(id="7-3", for_s=1e9)
    assert obey(cgroup, limits(cgroup, (1, 10)), forever) == (Ended.DEADLINE, "", contract.MOST_SUSPENDED_S)


def test_a_task_with_all_map_output_refuses(tmp_path):
    refusal = SuspendRefusal.PHASE_PASSED
    assert obey(Cgroup(tmp_path / "cgroup"), lacks_maps=False) == (refusal, refusal, 0)


def test_a_task_that_cannot_see_its_limit_refuses(tmp_path):
    cgroup = Cgroup(tmp_path / "cgroup")
    (cgroup.folder / "cpu.max").unlink()
    assert obey(cgroup) == (SuspendRefusal.NO_CGROUP, "NoCgroup", 0)


def test_a_task_whose_limit_cannot_become_so_low_refuses(tmp_path):
    assert obey(Cgroup(tmp_path / "cgroup", period_us=10_000))[0] == SuspendRefusal.NO_CGROUP


def test_a_task_whose_fetch_hangs_refuses_and_its_threads_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(pausing, "STOP_WITHIN_S", 0.01)
    pause = Pause()
    with pause.working():
        assert obey(Cgroup(tmp_path / "cgroup"), pause=pause) == (SuspendRefusal.BUSY, "Busy", 0)
    with pause.working():
        pass


def test_chunks_stop_while_a_task_pauses_and_none_is_lost(tmp_path):
    cgroup, pause, seen = Cgroup(tmp_path / "cgroup"), Pause(), []
    first, consumed = threading.Event(), threading.Event()

    def consume():
        for chunk in pause.gated([b"a", b"b"]):
            seen.append(chunk)
            first.set()
            consumed.wait(10)

    def acknowledge(_):
        consumed.set()
        time.sleep(0.05)
        assert seen == [b"a"]

    consumer = threading.Thread(target=consume)
    consumer.start()
    first.wait(10)
    pause.obey(SuspendOrder(id="x", for_s=0.1), cgroup=cgroup.folder, lacks_maps=True, acknowledge=acknowledge)
    consumer.join(10)
    assert seen == [b"a", b"b"]


@pytest.fixture
def reads(monkeypatch):
    """The times of all reads of ranges; reports are sent and tasks checked all the time."""
    times, read_range = [], Storage.read_range

    def noting(self, *arguments):
        times.append(time.monotonic())
        return read_range(self, *arguments)

    monkeypatch.setattr(Storage, "read_range", noting)
    monkeypatch.setattr(runner, "Reporter", functools.partial(Reporter, interval_s=0.01))
    return times


def test_a_reduce_that_pauses_sends_no_request_and_loses_nothing(workshop, reads):
    cgroup, leader, results = Cgroup(workshop.folder / "cgroup"), Leader(ORDER), []
    with serving(workshop.folder, leader) as url:
        spec = reduce_spec(workshop, url)
        surroundings = {**credentials(workshop.folder), "cgroup_path": cgroup.folder}
        task = threading.Thread(target=lambda: results.append(workshop.run(spec, **surroundings)))
        task.start()
        assert leader.acknowledged.wait(10)
        cgroup.limit(10)
        time.sleep(0.3)
        requests, fetches = len(leader.asked), len(reads)
        time.sleep(0.5)
        assert (len(leader.asked), len(reads)) == (requests, fetches)
        cgroup.limit(500)
        task.join(10)
    assert leader.acknowledgements == [Acknowledgement(id=ORDER.id)]
    assert result_of(workshop, spec) == RESULT
    assert 800 <= results[0].counters[counters.BOATHOUSE][counters.SUSPENDED_MILLISECONDS] < 9000


def test_a_reduce_that_has_all_maps_refuses_and_goes_on(workshop, monkeypatch):
    monkeypatch.setattr("tests.unit.task.suspending.MAPS", 1)
    leader = Leader(ORDER)
    with serving(workshop.folder, leader) as url:
        spec = reduce_spec(workshop, url)
        assert workshop.run(spec, **credentials(workshop.folder)).succeeded
    assert leader.acknowledgements == [Acknowledgement(id=ORDER.id, refused="PhasePassed")]


def test_sigterm_ends_a_task_that_pauses(workshop):
    cgroup, leader = Cgroup(workshop.folder / "cgroup"), Leader(ORDER)
    with serving(workshop.folder, leader) as url:
        order = reduce_spec(workshop, url)
        pod = start_pod(workshop, msgspec.json.encode(order), **credentials(workshop.folder), cgroup_path=cgroup.folder)
        assert leader.acknowledged.wait(20)
        pod.send_signal(signal.SIGTERM)
        status, result = ended(workshop, pod)
    assert (status, result.reason) == (contract.EXIT_TERMINATED, "Terminated")
