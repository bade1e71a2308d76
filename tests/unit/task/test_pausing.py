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
from tests.builders.task_servers import credentials
from tests.builders.task_suspensions import RESULT, Cgroup, SuspendingEndpoint, reduce_output, reduce_spec
from tests.builders.tasks import SleepingClock, start_pod, termination

ORDER = SuspendOrder(id="7-1", for_s=60.0)


class ThreadClock(SleepingClock):
    """A clock at which other threads go on while somebody sleeps."""

    def sleep(self, seconds: float) -> None:
        time.sleep(0.001)
        super().sleep(seconds)


def carry_out(cgroup, *changes, order=ORDER, lacks_maps=True, pause=None):
    """Obey an order to pause; return how the pause ended, the refusal, and how long it lasted.

    `changes`: (second, CPU limit) of the container.
    """
    clock = SleepingClock(*((at_s, functools.partial(cgroup.limit, milli)) for at_s, milli in changes))
    pause = pause or Pause(sleep=clock.sleep, monotonic=clock.monotonic)
    acknowledgements = []
    end = pause.carry_out(order, cgroup=cgroup.folder, lacks_maps=lacks_maps, acknowledge=acknowledgements.append)
    (acknowledgement,) = acknowledgements
    assert pause.order == acknowledgement.id == order.id
    return end, acknowledgement.refused, round(pause.suspended_s)


@pytest.fixture
def cgroup(tmp_path):
    return Cgroup(tmp_path / "cgroup")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("original", [500, None])
def test_a_task_continues_when_its_cpu_limit_is_raised(tmp_path, version, original):
    cgroup = Cgroup(tmp_path / "cgroup", version)
    cgroup.limit(original)
    assert carry_out(cgroup, (1, 10), (30, original)) == (Ended.LIMIT_RAISED, "", 30)


def test_a_task_continues_if_its_cpu_limit_is_not_lowered(cgroup):
    assert carry_out(cgroup, (1, 250)) == (Ended.NOT_SHRUNK, "", 10)


def test_a_task_continues_at_its_deadline_with_whatever_limit(cgroup):
    assert carry_out(cgroup, (1, 10)) == (Ended.DEADLINE, "", 60)


def test_a_deadline_that_is_near_ends_also_a_pause_that_is_not_shrunk(cgroup):
    assert carry_out(cgroup, order=SuspendOrder(id="7-2", for_s=3.0)) == (Ended.DEADLINE, "", 3)


def test_no_order_pauses_for_more_than_an_hour(cgroup):
    forever = SuspendOrder(id="7-3", for_s=1e9)
    assert carry_out(cgroup, (1, 10), order=forever) == (Ended.DEADLINE, "", contract.MOST_SUSPENDED_S)


def test_a_task_with_all_map_output_refuses(cgroup):
    refusal = SuspendRefusal.PHASE_PASSED
    assert carry_out(cgroup, lacks_maps=False) == (refusal, refusal, 0)


def test_a_task_that_cannot_see_its_limit_refuses(cgroup):
    (cgroup.folder / "cpu.max").unlink()
    assert carry_out(cgroup) == (SuspendRefusal.NO_CGROUP, "NoCgroup", 0)


def test_a_task_whose_limit_cannot_become_so_low_refuses(tmp_path):
    assert carry_out(Cgroup(tmp_path / "cgroup", period_us=10_000))[0] == SuspendRefusal.NO_CGROUP


def test_a_task_whose_fetch_hangs_refuses_and_its_threads_go_on(cgroup, monkeypatch):
    monkeypatch.setattr(contract, "STOPS_WITHIN_S", 0.01)
    pause = Pause()
    with pause.working():
        assert carry_out(cgroup, pause=pause) == (SuspendRefusal.BUSY, "Busy", 0)
    with pause.working():
        pass


def test_chunks_stop_while_a_task_pauses_and_none_is_lost(cgroup):
    taken, first, is_pausing = [], threading.Event(), threading.Event()
    clock = ThreadClock((2.9, lambda: taken.append("the end of the pause")))
    pause = Pause(sleep=clock.sleep, monotonic=clock.monotonic)

    def consume():
        for chunk in pause.gated([b"a", b"b"]):
            taken.append(chunk)
            first.set()
            is_pausing.wait()

    consumer = threading.Thread(target=consume)
    consumer.start()
    first.wait()
    order = SuspendOrder(id="x", for_s=3.0)
    pause.carry_out(order, cgroup=cgroup.folder, lacks_maps=True, acknowledge=lambda _: is_pausing.set())
    consumer.join()
    assert taken == [b"a", "the end of the pause", b"b"]


def test_a_reduce_that_pauses_sends_no_request_and_loses_nothing(job_folder, cgroup, monkeypatch):
    endpoint, reads, counts = SuspendingEndpoint(ORDER), [], []
    read_range = Storage.read_range
    monkeypatch.setattr(Storage, "read_range", lambda *arguments: reads.append(arguments) or read_range(*arguments))
    monkeypatch.setattr(runner, "REPORT_S", 0.005)
    clock = ThreadClock(
        (1, lambda: cgroup.limit(10)),
        (2, lambda: counts.append((len(endpoint.requests), len(reads)))),
        (30, lambda: counts.append((len(endpoint.requests), len(reads)))),
        (30, lambda: cgroup.limit(500)),
    )
    monkeypatch.setattr(pausing, "Pause", lambda: Pause(sleep=clock.sleep, monotonic=clock.monotonic))
    with endpoint.serving(job_folder.folder) as url:
        spec = reduce_spec(job_folder, url)
        result = job_folder.run_task(spec, **credentials(job_folder.folder), cgroup_path=cgroup.folder)
    assert endpoint.acknowledgements == [Acknowledgement(id=ORDER.id)]
    assert counts[0] == counts[1]
    assert reduce_output(job_folder, spec) == RESULT
    assert result.counters[counters.BOATHOUSE][counters.SUSPENDED_MILLISECONDS] == pytest.approx(30_000, abs=200)


def test_a_reduce_that_has_all_maps_refuses_a_suspension_and_succeeds(job_folder):
    endpoint = SuspendingEndpoint(ORDER, maps=1)
    with endpoint.serving(job_folder.folder) as url:
        spec = reduce_spec(job_folder, url, maps=1)
        assert job_folder.run_task(spec, **credentials(job_folder.folder)).succeeded
    assert endpoint.acknowledgements == [Acknowledgement(id=ORDER.id, refused="PhasePassed")]


def test_sigterm_ends_a_task_that_pauses(job_folder, cgroup):
    endpoint = SuspendingEndpoint(ORDER)
    with endpoint.serving(job_folder.folder) as url:
        spec = msgspec.json.encode(reduce_spec(job_folder, url))
        pod = start_pod(job_folder, spec, **credentials(job_folder.folder), cgroup_path=cgroup.folder)
        endpoint.acknowledged.wait()
        pod.send_signal(signal.SIGTERM)
        status, result = termination(job_folder, pod)
    assert (status, result.reason) == (contract.EXIT_TERMINATED, "Terminated")
