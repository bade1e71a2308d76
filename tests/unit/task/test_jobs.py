import collections
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_task import counters, key_fields, local
from boathouse_task.contract import LF_ONLY, FileSource, InputFormat, OutputFormat, Partitioner, Reason
from tests.builders.tasks import SUM, WORDS, JobFolder, partition_of

TEXT = b"the boat and the house\nand the lake\n" * 40
PYTHON_MAPPER = b"""#!/usr/bin/env python3
import sys
for line in sys.stdin:
    for word in line.split():
        print(word + "\\t1")
print("reporter:counter:Words,Scripts,1", file=sys.stderr)
"""
PYTHON_REDUCER = b"""#!/usr/bin/env python3
import itertools, sys
rows = (line.rstrip("\\n").split("\\t") for line in sys.stdin)
for word, group in itertools.groupby(rows, key=lambda row: row[0]):
    print(word, sum(int(row[1]) for row in group), sep="\\t")
"""


def counted(parts: list[bytes]) -> dict[bytes, int]:
    rows = [row.split(b"\t") for row in b"".join(parts).splitlines()]
    assert len({row[0] for row in rows}) == len(rows)
    return {word: int(number) for word, number in rows}


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("buffer_bytes", [None, 5000])
def test_words_are_counted_in_awk(job_folder, combined, buffer_bytes):
    job_folder.write_input("a", TEXT)
    job_folder.run_job(
        WORDS,
        combiner=SUM if combined else None,
        reducer=SUM,
        reduces=3,
        split_max_bytes=300,
        buffer_bytes=buffer_bytes,
    )
    assert counted(job_folder.parts()) == collections.Counter(TEXT.split())
    assert len(job_folder.parts()) == 3


def test_streaming_scripts_in_python_run_from_the_jobs_files(job_folder):
    job_folder.write_input("a", TEXT)
    job_folder.write_input("_map.py", PYTHON_MAPPER)
    (job_folder.folder / "reduce.py").write_bytes(PYTHON_REDUCER)
    files = [
        FileSource(name="map.py", url=f"file://{job_folder.input}/_map.py"),
        FileSource(name="reduce.py", path=str(job_folder.folder / "reduce.py")),
    ]
    result = job_folder.run_job(["map.py"], combiner=["./reduce.py"], reducer=["reduce.py"], reduces=2, files=files)
    assert counted(job_folder.parts()) == collections.Counter(TEXT.split())
    assert result.counters["Words"] == {"Scripts": 1}


def test_hadoops_counters_are_exact(job_folder):
    job_folder.write_input("a", TEXT)
    result = job_folder.run_job(WORDS, combiner=SUM, reducer=SUM, reduces=2)
    task, count = result.counters[counters.TASK], len(TEXT.split())
    assert task[counters.MAP_INPUT_RECORDS] == TEXT.count(b"\n")
    assert task[counters.MAP_OUTPUT_RECORDS] == task[counters.COMBINE_INPUT_RECORDS] == count
    assert task[counters.COMBINE_OUTPUT_RECORDS] == task[counters.REDUCE_INPUT_RECORDS] == len(set(TEXT.split()))
    assert task[counters.REDUCE_INPUT_GROUPS] == task[counters.REDUCE_OUTPUT_RECORDS] == len(set(TEXT.split()))
    assert task[counters.SPILLED_RECORDS] == 0
    assert result.counters[counters.INPUT][counters.BYTES_READ] == len(TEXT)


def test_lines_that_end_at_lf_only_and_are_keys_only_keep_bytes_and_order(job_folder):
    content = b"\xef\xbb\xbf" + bytes(range(256)) * 20
    job_folder.write_input("a", content)
    lf = {"input_format": InputFormat(record_delimiter=LF_ONLY), "keeps_returns": True}
    job_folder.run_job(split_max_bytes=700, output_format=OutputFormat(key_only=True), **lf)
    assert b"".join(job_folder.parts()) == content + b"\n"
    assert len(job_folder.parts()) == 8


def test_the_output_holds_parts_and_the_mark_of_success_only(job_folder):
    job_folder.write_input("a", b"k\t1\n")
    job_folder.run_job(reducer=SUM, reduces=2)
    assert job_folder.output_names() == ["_SUCCESS", "part-00000", "part-00001"]
    assert not (job_folder.output / "_temporary").exists()


def test_a_key_without_value_reaches_the_reducer_with_its_tab(job_folder):
    job_folder.write_input("a", b"a\na\x01\na\tv\nb")
    job_folder.run_job(reducer=["cat"])
    assert job_folder.parts() == [b"a\t\na\tv\na\x01\t\nb\t\n"]


def test_a_mapper_runs_without_input_and_its_output_counts(job_folder):
    job_folder.write_input("a", b"")
    job_folder.run_job(["sh", "-c", "cat; echo from-mapper"], reducer=["cat"])
    assert job_folder.parts() == [b"from-mapper\t\n"]


def test_a_reducer_without_input_runs_but_its_output_is_dropped(job_folder):
    job_folder.write_input("a", b"k\t1\n")
    speaks = "echo reporter:counter:Reducers,Run,1 >&2; echo from-reducer; cat"
    result = job_folder.run_job(reducer=["sh", "-c", speaks], reduces=2)
    assert job_folder.parts() == [b"from-reducer\t\nk\t1\n", b""]
    assert result.counters["Reducers"] == {"Run": 1}


def test_a_reducer_without_input_may_fail(job_folder):
    job_folder.write_input("a", b"")
    result = job_folder.fail_job(reducer=["sh", "-c", "cat; exit 3"])
    assert (result.reason, result.exit_code) == (Reason.USER_COMMAND_FAILED, 3)


def test_a_mapper_may_stop_reading_early(job_folder):
    job_folder.write_input("a", b"line\n" * 500_000)
    job_folder.run_job(["head", "-n", "1"])
    assert job_folder.parts() == [b"line\t\n"]


def test_a_reducer_may_stop_reading_early(job_folder):
    job_folder.write_input("a", b"line\t1\n" * 300_000)
    job_folder.run_job(reducer=["head", "-n", "1"])
    assert job_folder.parts() == [b"line\t1\n"]


def test_key_fields_bring_keys_together_that_share_them(job_folder):
    content = b"".join(b"k%d.%d\t1\n" % (number % 5, number) for number in range(100))
    job_folder.write_input("a", content)
    options = Partitioner(type=key_fields.KEY_FIELD, options="-k1,1", key_field_separator=".")
    job_folder.run_job(reducer=["cat"], reduces=4, partitioner=options)
    homes = collections.defaultdict(set)
    for number, part in enumerate(job_folder.parts()):
        for line in part.splitlines():
            homes[line.split(b".")[0]].add(number)
    assert set(map(len, homes.values())) == {1}
    assert sum(part.count(b"\n") for part in job_folder.parts()) == 100


def test_commands_see_hadoops_variables(job_folder):
    url = job_folder.write_input("a", b"x\n")
    show = (
        'echo "$mapreduce_task_ismap $mapreduce_task_partition $mapreduce_job_reduces $mapreduce_map_input_file"; cat'
    )
    job_folder.run_job(["sh", "-c", show], reducer=["sh", "-c", "cat; echo $mapreduce_task_ismap $mapreduce_task_id"])
    (part,) = job_folder.parts()
    assert f"true 0 1 {url}\t\n".encode() in part
    assert b"false task_" in part


def test_commands_do_not_see_the_runtimes_own_variables(job_folder):
    job_folder.write_input("a", b"")
    environment = job_folder.environment(
        variables={"PATH": "/usr/bin:/bin", "BOATHOUSE_TASK": "{}", "PYTHONUNBUFFERED": "1", "MINE": "kept"}
    )
    local.run_job(job_folder.setup_spec(["env"]), environment)
    (part,) = job_folder.parts()
    assert b"MINE=kept" in part
    assert b"BOATHOUSE" not in part
    assert b"PYTHONUNBUFFERED" not in part


@pytest.mark.parametrize(
    ("command", "reason", "message"),
    [
        (["sh", "-c", "echo why >&2; exit 3"], Reason.USER_COMMAND_FAILED, "exited with status 3: why"),
        (["sh", "-c", "kill -9 $$"], Reason.USER_COMMAND_FAILED, "was killed by SIGKILL"),
        (["sh", "-c", "no-such-command"], Reason.COMMAND_NOT_FOUND, "exited with status 127"),
    ],
)
@pytest.mark.parametrize("kind", ["mapper", "combiner", "reducer"])
def test_a_command_that_fails_is_charged_to_the_user(job_folder, kind, command, reason, message):
    job_folder.write_input("a", b"x\t1\n")
    commands = {"mapper": ["cat"], "combiner": ["cat"], "reducer": ["cat"]} | {kind: command}
    result = job_folder.fail_job(**commands)
    assert (result.reason, result.user_error) == (reason, True)
    assert message in result.message


def test_a_script_without_an_interpreter_says_so(job_folder):
    job_folder.write_input("a", b"")
    (job_folder.folder / "script").write_bytes(b"\x00\x01\x02")
    result = job_folder.fail_job(["script"], files=[FileSource(name="script", path=str(job_folder.folder / "script"))])
    assert result.reason == Reason.COMMAND_NOT_FOUND
    assert "#!" in result.message


def test_an_input_that_has_vanished_is_the_storages_fault(job_folder):
    spec = job_folder.map_spec(b"x\n", reducer=["cat"])
    (job_folder.input / "split").unlink()
    result = job_folder.run_task(spec)
    assert (result.reason, result.user_error) == (Reason.STORAGE_ERROR, False)


PAIRS = st.lists(
    st.tuples(st.sampled_from([b"", b"a", b"a\x01", b"b", b"\xff", b"key"]), st.binary(max_size=6)).map(
        lambda pair: pair[0] + (b"\t" + pair[1] if pair[1] else b"")
    ),
    max_size=30,
).map(lambda lines: [line.replace(b"\n", b"").replace(b"\r", b"") for line in lines])


@settings(max_examples=25, deadline=None)
@given(
    lines=PAIRS,
    final_newline=st.booleans(),
    split_max_bytes=st.integers(10, 200),
    reduces=st.integers(1, 4),
    buffer_bytes=st.sampled_from([200, 2000, 1 << 20]),
    combiner=st.sampled_from([None, ["cat"], ["tac"]]),
    partitioner=st.sampled_from([Partitioner(), Partitioner(type=key_fields.KEY_FIELD, options="-k1,1")]),
)
def test_any_lines_arrive_as_sorted_groups(
    lines, final_newline, split_max_bytes, reduces, buffer_bytes, combiner, partitioner
):
    with tempfile.TemporaryDirectory() as folder:
        job_folder = JobFolder(Path(folder))
        job_folder.write_input("a", b"\n".join(lines) + (b"\n" if final_newline and lines else b""))
        job_folder.run_job(
            reducer=["cat"], reduces=reduces, combiner=combiner, partitioner=partitioner,
            split_max_bytes=split_max_bytes, buffer_bytes=buffer_bytes,
        )  # fmt: skip
        assert job_folder.parts() == reference(lines, final_newline, reduces, partitioner)


def reference(lines: list[bytes], final_newline: bool, reduces: int, partitioner: Partitioner) -> list[bytes]:
    """Plain Python: every line with its TAB, in its key's part, in byte order."""
    if lines and not lines[-1] and not final_newline:
        lines = lines[:-1]
    parts: list[list[bytes]] = [[] for _ in range(reduces)]
    for line in lines:
        whole = line if b"\t" in line else line + b"\t"
        parts[partition_of(partitioner, whole.split(b"\t")[0], reduces)].append(whole)
    return [
        b"".join(line + b"\n" for line in sorted(part, key=lambda line: (line.partition(b"\t")[0], line)))
        for part in parts
    ]


def test_a_combiner_may_stop_reading_early(job_folder):
    job_folder.write_input("a", b"line\t1\n" * 100_000)
    job_folder.run_job(combiner=["head", "-n", "1"], reducer=["cat"])
    assert job_folder.parts() == [b"line\t1\n"]


def test_a_mapper_that_fails_late_leaves_no_process_behind(job_folder):
    job_folder.write_input("a", b"line\t1\n" * 100_000)
    result = job_folder.fail_job(["sh", "-c", "cat; exit 1"], combiner=["cat"], reducer=["cat"], buffer_bytes=1 << 20)
    assert result.reason == Reason.USER_COMMAND_FAILED


def test_commands_may_write_temporary_files_below_the_work_folder(job_folder):
    job_folder.write_input("a", b"")
    environment = job_folder.environment(variables={"PATH": "/usr/bin:/bin"})
    local.run_job(job_folder.setup_spec(["sh", "-c", "mktemp"]), environment)
    assert job_folder.parts()[0].startswith(str(environment.work_path).encode())
