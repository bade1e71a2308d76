"""Probes: a step's commands on a sample of its input, which write nothing outside of their pod."""

import bz2
import gzip
import itertools
from pathlib import Path

import msgspec
import pytest

from boathouse_task import counters, runner, uber_task
from boathouse_task.contract import InputFile, Reason, Split, TaskType
from boathouse_task.processes import Processes
from boathouse_task.storage import Storage
from tests.builders.tasks import SUM, WORDS

TEXT = b"".join(b"word%04d rest\n" % number for number in range(1000))
BOUND = [*("create", "write", "upload", "move", "delete", "remove_empty_folders")]


@pytest.fixture
def writes(monkeypatch):
    """The paths of all that storages are asked to write or delete."""
    paths = []

    def noting(method):
        def note(self, target, *rest):
            targets = target if method.__name__ == "delete" else [target]
            paths.extend(Path("/" + location.path) for location in targets)
            return method(self, target, *rest)

        return note

    for name in BOUND:
        monkeypatch.setattr(Storage, name, noting(getattr(Storage, name)))
    return paths


def split_of(job_folder, name, content, start=0, length=None):
    length = len(content) - start if length is None else length
    url = job_folder.write_input(name, content)
    return Split(url=url, offset_bytes=start, length_bytes=length, size_bytes=len(content))


def probe(job_folder, parts, mapper=("cat",), **fields):
    """The order of a probe of (split, bytes) of a job with 50 maps."""
    splits, sample_bytes = zip(*parts, strict=True)
    fields = {"reducer": ["cat"], "reduces": 7, **fields}
    return msgspec.structs.replace(
        job_folder.setup_spec(list(mapper), **fields),
        task_type=TaskType.PROBE, maps=50, splits=list(splits), sample_bytes=list(sample_bytes),
    )  # fmt: skip


def sums(result):
    assert result.succeeded, result.message
    return {**result.counters[counters.TASK], **result.counters[counters.BOATHOUSE]}


def test_a_probe_runs_all_commands_on_the_first_lines_of_its_splits(job_folder):
    halves = [split_of(job_folder, "a", TEXT, 0, 7000), split_of(job_folder, "a", TEXT, 7000)]
    found = sums(job_folder.run_task(probe(job_folder, [(halves[1], 1400), (halves[0], 699)], WORDS, reducer=SUM)))
    assert found[counters.MAP_INPUT_RECORDS] == 150
    assert found[counters.REDUCE_INPUT_RECORDS] == 300
    assert found[counters.REDUCE_INPUT_GROUPS] == 151
    assert found[counters.SAMPLED_BYTES] == 2099
    assert {counters.MAP_FUNCTION_MILLISECONDS, counters.REDUCE_FUNCTION_MILLISECONDS} <= set(found)


def test_a_probe_writes_nothing_outside_of_its_work_folder(job_folder, writes):
    order = probe(job_folder, [(split_of(job_folder, "a", TEXT), 5000)], WORDS, reducer=SUM, combiner=SUM)
    surroundings = job_folder.environment()
    before = sorted(job_folder.folder.rglob("*"))
    sums(runner.run(order, surroundings, Processes()))
    assert writes
    assert all(path.is_relative_to(surroundings.work_path) for path in writes)
    left = set(job_folder.folder.rglob("*")) - set(before)
    assert all(path.is_relative_to(surroundings.work_path) and path.is_dir() for path in left)


def test_commands_of_a_probe_get_folders_in_the_pod(job_folder):
    tell = ["sh", "-c", "cat >/dev/null; env | grep -E '^mapreduce_(task_output_dir|output)' >&2; exit 9"]
    result = job_folder.run_task(probe(job_folder, [(split_of(job_folder, "a", TEXT), 100)], tell))
    assert (result.reason, result.exit_code) == (Reason.USER_COMMAND_FAILED, 9)
    assert result.message.startswith("m-00000: ")
    assert result.stderr_tail.count("=file:///") == 2
    assert str(job_folder.output) not in result.stderr_tail


def test_a_probe_of_a_job_without_reduces_has_only_maps(job_folder):
    order = probe(job_folder, [(split_of(job_folder, "a", TEXT), 139)], reducer=None, reduces=0)
    assert sums(job_folder.run_task(order))[counters.MAP_OUTPUT_RECORDS] == 10


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_of_a_compressed_file_a_probe_reads_the_first_bytes_and_only_whole_lines(job_folder, suffix, compress):
    content = b"".join(b"%d\n" % (number * 7919 % 1_000_003) for number in range(400_000))
    whole = {b"%d" % (number * 7919 % 1_000_003) for number in range(400_000)}
    split = split_of(job_folder, f"a.{suffix}", compress(content))
    check = ["awk", "{ if (length($1) > 7) exit 1; n++ } END { print n }"]
    found = sums(job_folder.run_task(probe(job_folder, [(split, split.length_bytes * 9 // 10)], check)))
    assert 0 < found[counters.MAP_INPUT_RECORDS] < len(whole)
    assert found[counters.SAMPLED_BYTES] == split.length_bytes * 9 // 10


def test_of_small_files_in_one_split_a_probe_reads_as_many_as_it_needs(job_folder):
    urls = [job_folder.write_input(f"part{number}", b"x\n" * 100) for number in range(10)]
    files = [InputFile(url=url, size_bytes=200) for url in urls]
    listed = job_folder.write_input("list", msgspec.json.encode(files))
    split = Split(url=listed, offset_bytes=0, length_bytes=2000, size_bytes=2000, combined=10)
    assert sums(job_folder.run_task(probe(job_folder, [(split, 500)])))[counters.MAP_INPUT_RECORDS] == 300


def test_a_probe_that_takes_too_long_reduces_what_it_has(job_folder):
    splits = [split_of(job_folder, name, TEXT) for name in "abc"]
    order = probe(job_folder, [(split, 139) for split in splits])
    clock = itertools.count(0.0, order.probe_s * 0.6)
    task = job_folder.task(order)
    result = uber_task.probe(task, lambda: next(clock))
    assert result.counters[counters.TASK][counters.REDUCE_INPUT_RECORDS] == 20
    assert task.counters.get(counters.SAMPLED_BYTES, counters.BOATHOUSE) == 278
