import os
from pathlib import Path

import pytest

from boathouse_task import hdfs, local, splits
from boathouse_task.contract import HdfsAddress, InputFile, Plan
from boathouse_task.rest import RestError
from boathouse_task.splits import Block
from tests.builders.task_hdfs import BLOCK_BYTES, NameNode, block, web_hdfs as serving_blocks
from tests.builders.task_servers import http_server
from tests.builders.tasks import SUM, WORDS

MIB = 1 << 20
GIB = 1 << 30


def located(plan: Plan) -> list[list[str]]:
    return [plan.location_sets[split.locations] if split.locations >= 0 else [] for split in plan.splits]


def plan_of(size: int, most: int, blocks: list[Block], block_bytes: int = 0) -> Plan:
    file = InputFile(url="hdfs://lake/a", size_bytes=size, block_bytes=block_bytes)
    return splits._located(splits.plan([file], split_max_bytes=most), {file.url: blocks})


def test_web_hdfs_gives_the_hosts_of_each_block():
    requests: list[str] = []
    blocks = {"/a b%20ü?.txt": [block(0, 128 * MIB, ["c0.x", "c1.x"]), block(128 * MIB, MIB, ["c2.x"])]}
    with serving_blocks(blocks, requests) as address:
        found = splits.block_hosts(address, "a b%20ü?.txt", 129 * MIB, user="hadoop")
    assert found == [
        Block(offset=0, length=128 * MIB, hosts=["c0.x", "c1.x"]),
        Block(offset=128 * MIB, length=MIB, hosts=["c2.x"]),
    ]
    assert requests == [
        "/webhdfs/v1/a%20b%2520%C3%BC%3F.txt?op=GETFILEBLOCKLOCATIONS&offset=0&length=135266304&user.name=hadoop"
    ]


def test_the_blocks_of_a_large_file_are_requested_in_parts():
    requests: list[str] = []
    blocks = {"/a": [block(number * GIB, GIB, [f"c{number}"]) for number in range(10)]}
    with serving_blocks(blocks, requests) as address:
        found = splits.block_hosts(address, "a", 10 * GIB, user="hadoop")
    assert [location.hosts for location in found] == [[f"c{number}"] for number in range(10)]
    assert len(requests) == 3


def test_many_replicas_and_odd_names_are_left_out():
    with serving_blocks({"/a": [block(0, 1, ["", "x" * 254, "c0", "c1", "c2", "c3"])]}) as address:
        assert splits.block_hosts(address, "a", 1, user="u") == [Block(offset=0, length=1, hosts=["c0", "c1", "c2"])]


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ((302, b"", {"Location": "http://169.254.169.254/"}), "status 302"),
        ((404, b"{}"), "status 404"),
        ((200, b"[]"), "unexpected response"),
        ((200, b'{"BlockLocations": {"BlockLocation": [{"offset": "1"}]}}'), "unexpected response"),
        ((200, b" " * (5 * MIB)), "too large"),
    ],
    ids=["redirect", "missing", "no locations", "wrong types", "too large"],
)
def test_other_responses_are_refused(response, message):
    with http_server(lambda _: response) as port, pytest.raises(RestError, match=message):
        splits.block_hosts(f"127.0.0.1:{port}", "a", 1, user="u")


def test_a_slow_response_is_given_up():
    ticks = iter(range(0, 1000, 8))
    slow = (200, b" " * MIB)
    with http_server(lambda _: slow) as port, pytest.raises(RestError, match="too slow"):
        splits.block_hosts(f"127.0.0.1:{port}", "a", 1, user="u", monotonic=lambda: float(next(ticks)))


def test_without_a_response_the_locations_are_unavailable():
    with pytest.raises(RestError, match=r"WebHDFS of 127\.0\.0\.1:1: GET .* ConnectionRefusedError"):
        splits.block_hosts("127.0.0.1:1", "a", 1, user="u")


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


def test_a_job_reads_and_writes_hdfs(job_folder, name_node):
    lines = b"".join(b"%d %d\n" % (number % 7, number) for number in range(600))
    name_node.files["/in/a"] = lines
    name_node.files["/in/_hidden"] = b"no\n"
    job_folder.write_input("a", lines)
    fields = {"combiner": SUM, "reducer": SUM, "reduces": 2, "split_max_bytes": 4 * BLOCK_BYTES}
    with serving_blocks({"/in/a": [block(0, 10 * BLOCK_BYTES, ["c1.lake"])]}) as address:
        spec = local.job_spec(
            inputs=["hdfs://lake/in"],
            output="hdfs://lake/out/here",
            mapper=WORDS,
            hdfs={"lake": HdfsAddress(name_node="nn:8020", web_hdfs=address)},
            **fields,
        )
        results = []
        local.run_job(spec, job_folder.environment(), lambda task, result: results.append((task, result.splits)))
    job_folder.run_job(WORDS, **fields)
    parts = [name_node.files[f"/out/here/part-0000{number}"] for number in range(2)]
    assert parts == job_folder.parts()
    assert sorted(name_node.files) == [
        "/in/_hidden",
        "/in/a",
        "/out/here/_SUCCESS",
        "/out/here/part-00000",
        "/out/here/part-00001",
    ]
    assert results[0] == ("setup-0", -(-len(lines) // BLOCK_BYTES))
    assert not any("_temporary" in folder for folder in name_node._folders())


def test_setup_plans_without_locations_if_web_hdfs_is_down(job_folder, name_node, capsys):
    name_node.files["/in/a"] = b"1\n"
    spec = local.job_spec(
        inputs=["hdfs://lake/in"],
        output=f"file://{job_folder.output}",
        mapper=["cat"],
        hdfs={"lake": HdfsAddress(name_node="nn:8020", web_hdfs="127.0.0.1:1")},
    )
    local.run_job(spec, job_folder.environment())
    assert job_folder.parts() == [b"1\t\n"]
    assert "the splits of hdfs://lake/in/a have no locations: WebHDFS of 127.0.0.1:1: GET" in capsys.readouterr().err


def test_the_command_line_runs_a_job_over_hdfs(monkeypatch, tmp_path: Path):
    from boathouse_task import __main__ as main

    name_node = NameNode()
    addresses: list[str] = []
    monkeypatch.setattr(hdfs, "_client", lambda address, _name: addresses.append(address) or name_node)
    monkeypatch.setattr(os, "environ", {**os.environ})
    name_node.files["/in/a"] = b"1\n"
    main.main(["local", "--input", "hdfs://nn:8020/in", "--output", f"{tmp_path}/out", "--mapper", "cat"])
    assert (tmp_path / "out" / "part-00000").read_bytes() == b"1\t\n"
    assert set(addresses) == {"nn:8020"}
