import functools
import gc
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_task import counters, sorting
from boathouse_task.contract import Partitioner
from boathouse_task.counters import CounterSet
from boathouse_task.errors import TaskError
from boathouse_task.mapoutput import ROW_BYTES, Prefixer, Section, SectionWriter
from boathouse_task.processes import Processes
from boathouse_task.sorting import CombiningSorter, Run, Sorter, SortProcess, SortTool
from tests.builders.tasks import partition_of

LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spills")


def make_tool(folder) -> SortTool:
    return SortTool(Processes(), CounterSet(), folder)


def spilled(tool: SortTool) -> tuple[int, int]:
    return tool.counters.get(counters.SPILLED_BYTES, counters.BOATHOUSE), tool.counters.get(counters.SPILLED_RECORDS)


@settings(max_examples=40, deadline=None)
@given(LINES, st.integers(100, 3000))
def test_any_lines_are_sorted_as_bytes_in_any_memory(folder, lines, budget):
    tool = make_tool(folder)
    sorter = Sorter(tool, budget)
    for start in range(0, len(lines), 7):
        sorter.write(b"".join(lines[start : start + 7]))
    assert b"".join(sorter.finish()) == b"".join(sorted(lines, key=lambda line: line[:-1]))
    assert list(folder.iterdir()) == []


def test_lines_that_fit_are_never_spilled(folder):
    tool = make_tool(folder)
    sorter = Sorter(tool, 100_000)
    sorter.write(b"b\na\n")
    assert b"".join(sorter.finish()) == b"a\nb\n"
    assert spilled(tool) == (0, 0)


def test_what_is_spilled_is_counted_to_the_byte(folder):
    tool = make_tool(folder)
    line = b"%03d" + b"x" * 99_996 + b"\n"
    sorter = Sorter(tool, 10 * sorting.cost(line % 0, 1))
    for number in range(25):
        sorter.write(line % number)
    assert len(b"".join(sorter.finish())) == 2_500_000
    assert spilled(tool) == (2_500_000, 25)
    assert tool.counters.get(counters.SPILLS, counters.BOATHOUSE) == 3


def test_more_runs_than_can_be_merged_at_once_are_merged_in_passes_that_count(folder):
    tool = make_tool(folder)
    runs = [tool.spill([b"%d\n" % number], 1) for number in (3, 1, 2)]
    assert b"".join(tool.merge(runs, buffer_bytes=1)) == b"1\n2\n3\n"
    assert spilled(tool) == (6 + 4, 3 + 2)
    assert list(folder.iterdir()) == []


def test_sort_never_starts_a_temporary_file_of_its_own(folder, tmp_path, monkeypatch):
    (tmp_path / "mark").write_text(f"#!/bin/sh\ntouch {tmp_path}/marked\nexec cat\n")
    (tmp_path / "sort").write_text(f'#!/bin/sh\nexec /usr/bin/sort --compress-program={tmp_path}/mark "$@"\n')
    for name in ("mark", "sort"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool, line = make_tool(folder), b"x" * 9 + b"\n"
    sorter = Sorter(tool, 1 << 20)
    for _ in range(300):
        sorter.write(line * 100)
    assert len(b"".join(sorter.finish())) == 300_000
    assert tool.counters.get(counters.SPILLS, counters.BOATHOUSE) == 2
    assert not (tmp_path / "marked").exists()


def test_a_line_larger_than_the_memory_passes(folder):
    sorter = Sorter(make_tool(folder), 1000)
    sorter.write(b"b\n" + b"a" * 5000 + b"\nc\n")
    assert b"".join(sorter.finish()) == b"a" * 5000 + b"\nb\nc\n"


def test_a_finished_sorter_keeps_nothing_of_its_map_until_a_collection_of_cycles(folder):
    combiner = functools.partial(SortProcess.chunks)
    sorter = CombiningSorter(make_tool(folder), 1 << 20, combine=combiner, prepare=bytes)
    sorter.write(b"a\t1\n")
    assert [*sorter.finish()] == [b"a\t1\n"]
    kept = weakref.ref(combiner)
    gc.disable()
    try:
        del combiner, sorter
        assert kept() is None
    finally:
        gc.enable()


def test_a_sort_that_fails_says_why(folder):
    tool = make_tool(folder)
    with pytest.raises(TaskError, match=r"sort ended with status 2: .*no-such-file"):
        b"".join(tool.merge([Run(path=str(folder / "no-such-file"), size_bytes=1, records=1)], 1 << 20))


def test_a_full_disk_has_its_own_reason():
    full = Path("/dev/full")
    with pytest.raises(TaskError, match=r"OutOfDisk: no space left in /dev"), sorting.out_of_disk(full):
        full.write_bytes(b"x")


@settings(max_examples=50, deadline=None)
@given(LINES, st.integers(1, 120), st.integers(1, 200))
def test_sections_hold_each_partitions_lines_without_prefixes(lines, reduces, chunk):
    prefixed = Prefixer(Partitioner(), reduces)(b"".join(lines)) if lines else b""
    in_order = b"".join(sorted(_lines(prefixed), key=lambda line: line[:-1]))
    writer = SectionWriter(reduces)
    data = b"".join(writer.strip([in_order[i : i + chunk] for i in range(0, len(in_order), chunk)]))
    rows = [Section.unpack(writer.index[i : i + ROW_BYTES]) for i in range(0, reduces * ROW_BYTES, ROW_BYTES)]
    for number, row in enumerate(rows):
        section = _lines(data[row.offset_bytes : row.offset_bytes + row.length_bytes])
        assert section == sorted(section, key=lambda line: line[:-1])
        assert row.records == len(section)
        assert all(partition_of(Partitioner(), line.split(b"\t")[0], reduces) == number for line in section)
    assert sum(row.records for row in rows) == len(lines)


def _lines(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]]
