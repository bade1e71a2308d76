"""What a user's data and commands can do to a task, and what they get for it."""

import os
import subprocess
import sys

import msgspec
import pytest

from boathouse_task import lines, reader, runner
from boathouse_task.contract import MEMORY_LIMIT_ENV, TASK_ENV, InputFormat, InputFormatType, Reason
from boathouse_task.errors import TaskError

MIB = 1 << 20
_PEAK = """
import dataclasses, os, pathlib, re
from boathouse_task import __main__, environment
work = pathlib.Path(os.environ["WORK"])
surroundings = environment.from_variables(os.environ)
__main__.run_pod(
    os.environ["BOATHOUSE_TASK"], dataclasses.replace(surroundings, work_path=work, termination_log_path=work / "end")
)
print(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""


def peak_mib(job_folder, spec, memory_mib):
    """Run a task in a process of its own; return its reason and the largest memory of the runtime in MiB."""
    work = job_folder.folder / "own"
    work.mkdir()
    order, limit = msgspec.json.encode(spec).decode(), str(memory_mib * MIB)
    variables = {**os.environ, TASK_ENV: order, MEMORY_LIMIT_ENV: limit, "WORK": str(work)}
    done = subprocess.run([sys.executable, "-c", _PEAK], env=variables, stdout=subprocess.PIPE, check=True)
    termination = msgspec.json.decode((work / "end").read_bytes())
    return termination.get("reason", ""), int(done.stdout) // 1024


def test_a_record_of_64_mb_passes_where_the_job_allows_it(job_folder):
    content = b"key\t" + b"x" * (64 * MIB) + b"\nother\t1\n"
    spec = job_folder.map_spec(content, reducer=["cat"], reduces=2, max_record_bytes=128 * MIB)
    reason, peak = peak_mib(job_folder, spec, memory_mib=2048)
    assert reason == ""
    assert 64 < peak < 400


def test_a_record_that_is_too_long_ends_the_task_before_it_fills_the_memory(job_folder):
    spec = job_folder.map_spec(b"x" * (150 * MIB), reducer=["cat"], reduces=2)
    reason, peak = peak_mib(job_folder, spec, memory_mib=256)
    assert reason == "RecordTooLong"
    assert peak < 130


@pytest.mark.parametrize("mapper", ["head -c 3000 /dev/zero | tr '\\0' x", "cat"])
def test_a_long_record_says_which_limit_to_raise_and_where_it_came_from(job_folder, mapper):
    job_folder.write_input("a", b"short\n" * 3 if "zero" in mapper else b"x" * 3000 + b"\n")
    failed = job_folder.fail_job(["sh", "-c", mapper], reducer=["cat"], max_record_bytes=2048)
    assert (failed.reason, failed.user_error) == (Reason.RECORD_TOO_LONG, True)
    assert "maxRecordBytes (2048)" in failed.message
    assert ("the mapper's output" if "zero" in mapper else "in/a") in failed.message


@pytest.mark.parametrize("reducer", [None, ["sh", "-c", "cat > /dev/null; head -c 3000 /dev/zero | tr '\\0' x"]])
def test_a_long_record_of_the_output_is_noticed_too(job_folder, reducer):
    job_folder.write_input("a", b"short\n")
    mapper = ["sh", "-c", "head -c 3000 /dev/zero | tr '\\0' x"] if reducer is None else ["cat"]
    failed = job_folder.fail_job(mapper, reducer=reducer, max_record_bytes=2048)
    assert failed.reason == Reason.RECORD_TOO_LONG
    assert f"the {'reducer' if reducer else 'mapper'}'s output" in failed.message


@pytest.mark.parametrize("form", [InputFormat(ignore_key=False), InputFormat(type=InputFormatType.N_LINE)])
def test_a_record_whose_position_is_read_is_no_longer_than_the_limit(job_folder, form):
    job_folder.write_input("a", b"short\n" + b"x" * 3000 + b"\n")
    failed = job_folder.fail_job(["cat"], max_record_bytes=2048, input_format=form)
    assert (failed.reason, failed.user_error) == (Reason.RECORD_TOO_LONG, True)
    assert "in/a, a" in failed.message


def test_a_file_without_lines_does_not_fill_the_memory_of_a_map_that_reads_positions(job_folder):
    spec = job_folder.map_spec(b"x" * (150 * MIB), reducer=["cat"], input_format=InputFormat(ignore_key=False))
    reason, peak = peak_mib(job_folder, spec, memory_mib=256)
    assert reason == "RecordTooLong"
    assert peak < 150


def test_a_combiners_long_record_is_noticed_too(job_folder):
    job_folder.write_input("a", b"short\n")
    combiner = ["sh", "-c", "head -c 3000 /dev/zero | tr '\\0' x"]
    failed = job_folder.fail_job(["cat"], combiner=combiner, reducer=["cat"], max_record_bytes=2048)
    assert "the combiner's output" in failed.message


@pytest.mark.parametrize("sizes", [[10], [3, 3, 4], [0, 10, 0]])
def test_a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not(sizes):
    def cut(content):
        pieces, start = [], 0
        for size in sizes:
            pieces.append(content[start : start + size])
            start += size
        return [*pieces, content[start:]]

    assert b"".join(lines.limited(cut(b"x" * 10 + b"\ny\n"), 10, "w")) == b"x" * 10 + b"\ny\n"
    with pytest.raises(TaskError, match="RecordTooLong"):
        list(lines.limited(cut(b"x" * 11 + b"\ny\n"), 10, "w"))


def test_an_empty_file_is_a_map_without_records(job_folder):
    job_folder.write_input("a", b"")
    result = job_folder.run_job(["cat"], reducer=["cat"], reduces=2)
    assert job_folder.parts() == [b"", b""]
    assert result.counters["org.apache.hadoop.mapreduce.TaskCounter"]["Map input records"] == 0


def test_every_byte_value_passes_through_map_shuffle_and_reduce(job_folder):
    content = bytes(byte for byte in range(256) if byte not in b"\n\t\r") * 20 + b"\t\0\xff\n" + b"\0\n\xff\xfe\n\x01\n"
    job_folder.write_input("a", content)
    job_folder.run_job(["cat"], reducer=["cat"], reduces=3)
    expected = [line if b"\t" in line else line + b"\t" for line in content[:-1].split(b"\n")]
    assert sorted(b"".join(job_folder.parts())[:-1].split(b"\n")) == sorted(expected)


def test_a_binary_file_without_lines_fails_with_the_question_whether_it_is_text(job_folder):
    job_folder.write_input("a", bytes(range(11)).replace(b"\n", b"") * 1000)
    failed = job_folder.fail_job(["cat"], reducer=["cat"], max_record_bytes=5000, split_max_bytes=2000)
    assert failed.reason == Reason.RECORD_TOO_LONG
    assert "check that it is text with lines" in failed.message


def test_a_later_split_of_a_file_without_lines_does_not_read_it_all(job_folder):
    spec = job_folder.map_spec(b"x" * 100_000, max_record_bytes=5000)
    split = msgspec.structs.replace(spec.split, offset_bytes=10, length_bytes=100)
    task = job_folder.task(msgspec.structs.replace(spec, split=split))
    seen = []
    task.storage.read_range = lambda _where, start, length: seen.append(start + length) or b"x" * length
    with pytest.raises(TaskError, match="RecordTooLong"):
        list(reader.read_split(task.storage, split, InputFormat(), 1000, 5000))
    assert max(seen) < 80_000


def test_one_partition_with_all_keys_is_correct_and_spills(job_folder):
    job_folder.write_input("a", b"same\t%d\n" % 1 * 20_000)
    fields = {"reducer": ["cut", "-f1"], "reduces": 4, "buffer_bytes": 100_000, "split_max_bytes": 40_000}
    result = job_folder.run_job(["cat"], **fields)
    sizes = sorted(map(len, job_folder.parts()))
    assert sizes == [0, 0, 0, 20_000 * 6]
    assert result.counters["Boathouse"]["Spilled bytes"] > 0


def test_a_mapper_that_floods_its_standard_error_works_and_only_its_end_is_kept(job_folder, capfd):
    job_folder.write_input("a", b"1\n")
    flood = "seq 1 2000000 >&2; echo the end >&2; exit 3"
    failed = job_folder.fail_job(["sh", "-c", flood])
    assert failed.reason == Reason.USER_COMMAND_FAILED
    assert failed.stderr_tail.endswith("2000000\nthe end")
    assert len(failed.stderr_tail) <= 1500
    assert len(runner.encode(failed)) <= 4096
    assert capfd.readouterr().err.count("\n") >= 2_000_000


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 2 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False, capture_output=True)
    if made.returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_the_infrastructures_fault_and_says_which_disk(job_folder, tiny_disk):
    spec = job_folder.map_spec(b"%07d\tvalue\n" * 300_000, reducer=["cat"], reduces=2)
    result = job_folder.run_task(spec, work_path=tiny_disk, buffer_bytes=500_000)
    assert (result.reason, result.user_error) == (Reason.OUT_OF_DISK, False)
    assert str(tiny_disk) in result.message
    assert runner.exit_status(result) == 20


def test_a_command_that_fills_the_disk_fails_by_its_own_words(job_folder, tiny_disk):
    spec = job_folder.map_spec(b"a\n", ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=9"])
    result = job_folder.run_task(spec, work_path=tiny_disk)
    assert result.reason == Reason.USER_COMMAND_FAILED
    assert "No space left on device" in result.stderr_tail
