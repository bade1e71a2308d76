"""What tasks and their commands use: CPU time, memory, time for spills."""

import subprocess
import sys

import msgspec

from boathouse_task import counters
from boathouse_task.processes import Processes
from boathouse_task.sorting import Sorter
from tests.builders.tasks import SUM, WORDS, start_pod, termination

MIB = 1024 * 1024
LARGE = [sys.executable, "-c", "import sys; kept = bytearray(300 << 20); sys.stdout.write(sys.stdin.read())"]
BUSY_MS = 50
BUSY = [sys.executable, "-SEc", f"import time\nwhile time.process_time() < {BUSY_MS / 1000}: pass"]


def measured(result, name):
    assert result.succeeded, result.message
    return result.counters[counters.BOATHOUSE].get(name)


def test_the_cpu_time_of_a_mapper_is_counted_apart_from_the_runtimes(job_folder):
    result = job_folder.run_task(job_folder.map_spec(b"a\t1\n", BUSY, reducer=["cat"]))
    function_ms = measured(result, counters.MAP_FUNCTION_MILLISECONDS)
    assert BUSY_MS <= function_ms < result.counters[counters.TASK][counters.CPU_MILLISECONDS]


def test_the_cpu_time_of_mappers_and_reducers_is_summed_up_apart(job_folder):
    job_folder.write_input("a", b"b a b\n")
    sums = job_folder.run_job(WORDS, reducer=SUM).counters[counters.BOATHOUSE]
    assert {counters.MAP_FUNCTION_MILLISECONDS, counters.REDUCE_FUNCTION_MILLISECONDS} <= set(sums)


def test_the_largest_memory_of_a_command_is_reported(job_folder):
    pod = start_pod(job_folder, msgspec.json.encode(job_folder.map_spec(b"a\n", LARGE)))
    _, result = termination(job_folder, pod)
    assert 300 * MIB <= measured(result, counters.PEAK_MEMORY_BYTES) < 400 * MIB


def test_a_command_smaller_than_the_runtime_has_no_figure_of_memory(job_folder):
    assert measured(job_folder.run_task(job_folder.map_spec(b"a\n", ["cat"])), counters.PEAK_MEMORY_BYTES) is None


def test_of_peaks_a_job_shows_the_largest():
    peaks = [{counters.BOATHOUSE: {counters.PEAK_MEMORY_BYTES: peak, counters.SPILLS: 1}} for peak in (3, 5, 4)]
    assert counters.total(peaks) == {counters.BOATHOUSE: {counters.PEAK_MEMORY_BYTES: 5, counters.SPILLS: 3}}


def test_time_for_spills_is_counted_where_there_are_spills(job_folder):
    task = job_folder.task(job_folder.map_spec(b""))
    small, large = Sorter(task.sort, MIB), Sorter(task.sort, 64 * MIB)
    block = b"".join(b"%07d\t1\n" % (number % 1000) for number in range(100_000))
    large.write(block)
    assert b"".join(large.finish())
    assert task.report().spill_s == 0
    small.write(block)
    assert b"".join(small.finish())
    assert task.sort.spill_s > 0


def test_the_status_of_a_command_that_another_thread_reaped_is_known():
    processes = Processes()
    process = processes.start(["sh", "-c", "exit 3"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={})
    process.wait()
    assert processes.wait_usage(process) == (3, 0.0, 0)
    processes.wait(process)
