"""Bounds of the messages between operator and agent."""

import msgspec
import pytest

from boathouse_task import cluster_contract
from boathouse_task.cluster_contract import (
    REPORT_MAX_BYTES,
    AgentOrders,
    AgentReport,
    ApplicationFigures,
    DfsState,
    HdfsFigures,
    Leaving,
    NodeFigures,
    Version,
    YarnFigures,
    YarnState,
    encode_report,
)

COUNTERS = {"Job Counters": {f"counter {number}": number for number in range(60)}}


def decode(body: bytes) -> AgentReport:
    return msgspec.json.decode(body, type=AgentReport)


def application(number: int = 1, **fields: object) -> ApplicationFigures:
    return ApplicationFigures(id=f"application_1_{number:04d}", state="FINISHED", **fields)


def transient(number: int, containers: int) -> NodeFigures:
    return NodeFigures(f"t{number}", DfsState.NONE, YarnState.RUNNING, containers, 8192)


def core(number: int) -> NodeFigures:
    return NodeFigures(f"c{number}", DfsState.LIVE, YarnState.RUNNING, 9, 65_536, 10**6, 10**14, 10**14)


def test_a_report_survives_the_wire():
    report = AgentReport(
        version=Version(3, 41),
        refreshed=True,
        hdfs=HdfsFigures(cluster_id="CID-1", started_s=1, safe_mode=False),
        yarn=YarnFigures(started_s=2, running=4),
        nodes=[core(0), transient(7, 2)],
        tags={"uid-1": [application(counters=COUNTERS)]},
    )
    assert decode(encode_report(report)) == report


def test_reports_of_agents_without_and_with_the_words_of_safe_mode_are_read():
    old = {"cluster_id": "C", "started_s": 1, "safe_mode": True}
    for hdfs, text in ((old, ""), (old | {"safe_mode_text": "low", "of_a_later_version": 1}, "low")):
        assert decode(msgspec.json.encode({"hdfs": hdfs})).hdfs.safe_mode_text == text


def test_orders_are_short_lists_on_the_wire():
    orders = AgentOrders(version=Version(2, 7), leaving=[Leaving("t3", 300), Leaving("c4", stores=True)])
    body = msgspec.json.encode(orders)
    assert body == b'{"version":[2,7],"leaving":[["t3",300,false],["c4",-1,true]]}'
    assert msgspec.json.decode(body, type=AgentOrders) == orders


def test_a_later_leader_or_status_has_the_larger_version():
    assert Version(1, 900) < Version(2, 7) < Version(2, 8)


def test_the_report_of_the_largest_cluster_has_all_its_nodes():
    nodes = [core(number) for number in range(200)] + [transient(number, 9) for number in range(500)]
    report = AgentReport(nodes=nodes, tags={"uid-1": [application()]})
    body = encode_report(report)
    assert len(body) <= REPORT_MAX_BYTES
    assert decode(body) == report


def test_a_large_report_loses_diagnostics_first_those_of_the_last_tags():
    tags = {f"uid-{tag}": [application(tag, diagnostics="x" * 500, name="y" * 80)] * 8 for tag in range(16)}
    sent = decode(encode_report(AgentReport(tags=tags)))
    assert list(sent.tags) == list(tags)
    assert sent.tags["uid-0"][0].diagnostics
    assert not sent.tags["uid-15"][0].diagnostics


def test_a_larger_report_loses_counters_too():
    tags = {f"uid-{tag}": [application(tag, diagnostics="x" * 500, counters=COUNTERS)] * 3 for tag in range(32)}
    sent = decode(encode_report(AgentReport(tags=tags)))
    assert not any(figures.diagnostics for found in sent.tags.values() for figures in found)
    assert sent.tags["uid-0"][0].counters == COUNTERS
    assert not sent.tags["uid-31"][0].counters


def test_a_report_keeps_a_few_tags_and_counts_idle_nodes_as_the_last_resort():
    tags = {f"uid-{tag}": [application(tag, name="\x01" * 80)] * 8 for tag in range(32)}
    nodes = [transient(number, containers=number % 2) for number in range(700)]
    nodes = [msgspec.structs.replace(node, memory_mb=2**62, free_bytes=2**62, used_bytes=2**62) for node in nodes]
    body = encode_report(AgentReport(tags=tags, nodes=nodes))
    sent = decode(body)
    assert len(body) <= REPORT_MAX_BYTES
    assert list(sent.tags) == ["uid-0", "uid-1", "uid-2", "uid-3"]
    assert (len(sent.nodes), sent.idle_nodes) == (350, 350)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"hdfs": {"cluster_id": "C", "started_s": 1, "safe_mode": False, "missing": -1}}, id="negative"),
        pytest.param({"yarn": {"started_s": 2**62 + 1}}, id="beyond 2^62"),
        pytest.param({"yarn": {"started_s": 1, "pending": 1.5}}, id="no integer"),
        pytest.param({"hdfs": {"cluster_id": "C\n", "started_s": 1, "safe_mode": False}}, id="ID with a newline"),
        pytest.param(
            {"hdfs": {"cluster_id": "C", "started_s": 1, "safe_mode": True, "safe_mode_text": "t" * 201}}, id="text"
        ),
        pytest.param({"nodes": [["../t1", "L", "R"]]}, id="host that is a path"),
        pytest.param({"nodes": [["t1", "?", "R"]]}, id="state that does not exist"),
        pytest.param({"nodes": [["t1"]] * 702}, id="too many nodes"),
        pytest.param({"tags": {"UID": []}}, id="tag of upper case"),
        pytest.param({"tags": {"a": [{"id": "application_1_1/../x", "state": "FINISHED"}]}}, id="ID with a path"),
        pytest.param({"tags": {"a": [{"id": "application_1_\u0661", "state": "FINISHED"}]}}, id="ID of other digits"),
        pytest.param({"tags": {"a": [{"id": "application_1_1\n", "state": "FINISHED"}]}}, id="ID with a newline"),
        pytest.param({"tags": {str(number): [] for number in range(33)}}, id="too many tags"),
        pytest.param({"error": "e" * 301}, id="error too long"),
    ],
)
def test_a_report_with_a_value_outside_of_its_bounds_is_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        decode(msgspec.json.encode(wrong))


def test_the_bounds_of_the_orders_are_those_of_the_design():
    limits = (cluster_contract.MOST_LEAVING, cluster_contract.MOST_TAGS, cluster_contract.MOST_KILLS)
    assert limits == (64, 32, 16)
