import http.server
import os
from pathlib import Path

import pytest

from boathouse_task import hdfs, local, placing, splits, web_hdfs
from boathouse_task.contract import HdfsAddress, InputFile, Plan
from boathouse_task.web_hdfs import Block
from tests.unit.task.hadoop import BLOCK_BYTES, NameNode, block, serving
from tests.unit.task.hadoop import web_hdfs as serving_blocks

MIB = 1 << 20
GIB = 1 << 30


def located(plan: Plan) -> list[list[str]]:
    return [plan.location_sets[split.locations] if split.locations >= 0 else [] for split in plan.splits]


def plan_of(size: int, most: int, blocks: list[Block], block_bytes: int = 0) -> Plan:
    file = InputFile(url="hdfs://lake/a", size_bytes=size, block_bytes=block_bytes)
    return placing._located(splits.plan([file], split_max_bytes=most), {file.url: blocks})


def test_web_hdfs_tells_the_hosts_of_each_block():
    asked: list[str] = []
    there = {"/a b%20ü?.txt": [block(0, 128 * MIB, ["c0.x", "c1.x"]), block(128 * MIB, MIB, ["c2.x"])]}
    with serving_blocks(there, asked) as address:
        found = web_hdfs.block_hosts(address, "a b%20ü?.txt", 129 * MIB, user="hadoop")
    assert found == [
        Block(offset=0, length=128 * MIB, hosts=["c0.x", "c1.x"]),
        Block(offset=128 * MIB, length=MIB, hosts=["c2.x"]),
    ]
    assert asked == [
        "/webhdfs/v1/a%20b%2520%C3%BC%3F.txt?op=GETFILEBLOCKLOCATIONS&offset=0&length=135266304&user.name=hadoop"
    ]


def test_a_large_file_is_asked_for_in_parts():
    asked: list[str] = []
    there = {"/a": [block(number * GIB, GIB, [f"c{number}"]) for number in range(10)]}
    with serving_blocks(there, asked) as address:
        found = web_hdfs.block_hosts(address, "a", 10 * GIB, user="hadoop")
    assert [each.hosts for each in found] == [[f"c{number}"] for number in range(10)]
    assert len(asked) == 3


def test_many_replicas_and_odd_names_are_left_out():
    with serving_blocks({"/a": [block(0, 1, ["", "x" * 300, "c0", "c1", "c2", "c3"])]}) as address:
        assert web_hdfs.block_hosts(address, "a", 1, user="u") == [Block(offset=0, length=1, hosts=["c0", "c1", "c2"])]


def answering(status: int, body: bytes, headers: dict[str, str] | None = None) -> type:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_args: object) -> None:
            pass

    return Handler


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (answering(302, b"", {"Location": "http://169.254.169.254/"}), "status 302"),
        (answering(404, b"{}"), "status 404"),
        (answering(200, b"[]"), "something else"),
        (answering(200, b'{"BlockLocations": {"BlockLocation": [{"offset": "1"}]}}'), "something else"),
        (answering(200, b" " * (5 * MIB)), "more than 4194304 bytes"),
    ],
    ids=["redirect", "missing", "no locations", "wrong types", "too large"],
)
def test_other_answers_are_refused(handler, message):
    with serving(handler) as address, pytest.raises(web_hdfs.Unavailable, match=message):
        web_hdfs.block_hosts(address, "a", 1, user="u")


def test_a_slow_answer_is_left():
    ticks = iter(range(0, 1000, 8))
    with serving(answering(200, b" " * MIB)) as address, pytest.raises(web_hdfs.Unavailable, match="more than 10 s"):
        web_hdfs.block_hosts(address, "a", 1, user="u", monotonic=lambda: float(next(ticks)))


def test_no_answer_is_no_error_of_ours():
    with pytest.raises(web_hdfs.Unavailable, match="no answer from WebHDFS"):
        web_hdfs.block_hosts("127.0.0.1:1", "a", 1, user="u")


def test_a_split_is_where_most_of_it_is():
    blocks = [Block(offset=0, length=100, hosts=["b", "a"]), Block(offset=100, length=100, hosts=["c"])]
    assert located(plan_of(200, 60, blocks)) == [["a", "b"], ["a", "b"], ["c"], ["c"]]


def test_splits_of_the_same_hosts_share_a_set():
    blocks = [Block(offset=10 * number, length=10, hosts=["a", "b"][:: 1 if number % 2 else -1]) for number in range(9)]
    assert plan_of(90, 10, blocks).location_sets == [["a", "b"]]


@pytest.mark.parametrize("blocks", [[], [Block(offset=0, length=0, hosts=["a"])], [Block(offset=900, length=9)]])
def test_a_split_without_blocks_has_no_location(blocks):
    assert located(plan_of(200, 100, blocks)) == [[], []]


def test_splits_are_those_of_a_bucket_unless_blocks_are_smaller():
    assert plan_of(1000, 64, [], block_bytes=128).splits == plan_of(1000, 64, []).splits
    assert plan_of(1000, 256, [], block_bytes=128).splits == plan_of(1000, 128, []).splits


def test_a_job_reads_and_writes_hdfs(workshop, words, total, monkeypatch):
    node = NameNode()
    monkeypatch.setattr(hdfs, "_client", lambda _address, _name: node)
    lines = b"".join(b"%d %d\n" % (number % 7, number) for number in range(600))
    node.files["/in/a"] = lines
    node.files["/in/_hidden"] = b"no\n"
    workshop.given("a", lines)
    fields = {"combiner": total, "reducer": total, "reduces": 2, "split_max_bytes": 4 * BLOCK_BYTES}
    with serving_blocks({"/in/a": [block(0, 10 * BLOCK_BYTES, ["c1.lake"])]}) as address:
        spec = local.job_spec(
            inputs=["hdfs://lake/in"],
            output="hdfs://lake/out/here",
            mapper=words,
            hdfs={"lake": HdfsAddress(name_node="nn:8020", web_hdfs=address)},
            **fields,
        )
        results = []
        local.run_job(spec, workshop.environment(), lambda task, result: results.append((task, result.splits)))
    workshop.run_job(words, **fields)
    parts = [node.files[f"/out/here/part-0000{number}"] for number in range(2)]
    assert parts == workshop.parts()
    assert sorted(node.files) == [
        "/in/_hidden",
        "/in/a",
        "/out/here/_SUCCESS",
        "/out/here/part-00000",
        "/out/here/part-00001",
    ]
    assert results[0] == ("setup-0", -(-len(lines) // BLOCK_BYTES))
    assert not any("_temporary" in folder for folder in node._folders())


def test_setup_plans_without_locations_if_web_hdfs_is_down(workshop, monkeypatch, capsys):
    node = NameNode()
    monkeypatch.setattr(hdfs, "_client", lambda _address, _name: node)
    node.files["/in/a"] = b"1\n"
    spec = local.job_spec(
        inputs=["hdfs://lake/in"],
        output=f"file://{workshop.output}",
        mapper=["cat"],
        hdfs={"lake": HdfsAddress(name_node="nn:8020", web_hdfs="127.0.0.1:1")},
    )
    local.run_job(spec, workshop.environment())
    assert workshop.parts() == [b"1\t\n"]
    assert "the splits of hdfs://lake/in/a have no locations: no answer from WebHDFS" in capsys.readouterr().err


def test_the_command_line_runs_a_job_over_hdfs(monkeypatch, tmp_path: Path):
    from boathouse_task import __main__ as main

    node = NameNode()
    addresses: list[str] = []
    monkeypatch.setattr(hdfs, "_client", lambda address, _name: addresses.append(address) or node)
    monkeypatch.setattr(os, "environ", {**os.environ})
    node.files["/in/a"] = b"1\n"
    main.main(["local", "--input", "hdfs://nn:8020/in", "--output", f"{tmp_path}/out", "--mapper", "cat"])
    assert (tmp_path / "out" / "part-00000").read_bytes() == b"1\t\n"
    assert set(addresses) == {"nn:8020"}
