"""Figures of a NameNode, from recordings of one."""

import json

import pytest

from boathouse_task.agent.daemons import DataNode, NameNode
from boathouse_task.cluster_contract import DfsState, HdfsFigures
from boathouse_task.rest import Rest, RestError
from tests.builders.agents import DOMAIN, Daemon, recording

INFO = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"


def state(daemon: Daemon):
    with daemon.serving() as port:
        return NameNode(Rest("NameNode", port), DOMAIN).state()


def states(daemon: Daemon) -> dict[str, str]:
    return {host: node.state.value for host, node in state(daemon)[1].items()}


def with_info(**attributes: object) -> Daemon:
    """A NameNode with other values of attributes."""
    info = json.loads(recording("nn-info"))
    info["beans"][0].update(attributes)
    daemon = Daemon.name_node()
    daemon.responses[INFO] = (200, json.dumps(info).encode())
    return daemon


def test_a_name_node_has_the_figures_of_hdfs_and_of_its_data_nodes():
    figures, nodes = state(Daemon.name_node())
    assert figures == HdfsFigures(
        cluster_id="CID-6a2f",
        started_s=1795455130,
        safe_mode=False,
        capacity_bytes=541106348032,
        used_bytes=6593318,
        free_bytes=124177964300,
        files=24,
        under_replicated=2,
        pending_replication=2,
        version="3.4.2",
    )
    assert nodes["c0"].state is DfsState.LIVE
    assert nodes["c1"].used_bytes == 6568742


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ("nn-info-leaving", {"c0": "L", "c1": "P"}),
        ("nn-info-left", {"c0": "L", "c1": "X"}),
        ("nn-info-dead", {"c0": "D", "c1": "X"}),
    ],
)
def test_a_data_node_that_leaves_or_died_says_so(recording, expected):
    assert states(Daemon.name_node(recording)) == expected


def test_a_decommissioning_data_node_has_its_blocks_left():
    _, nodes = state(Daemon.name_node("nn-info-leaving"))
    assert nodes["c1"].blocks_left > 0
    assert nodes["c0"].blocks_left == 0


def test_missing_blocks_and_safe_mode_are_reported():
    figures, _ = state(Daemon.name_node("nn-info-dead", "nn-system-missing"))
    assert (figures.missing, figures.safe_mode) == (14, False)
    figures, nodes = state(Daemon.name_node("nn-info-safe"))
    assert (figures.safe_mode, nodes) == (True, {})
    assert figures.safe_mode_text.startswith("The reported blocks 0 needs additional 21 blocks to reach the threshold")
    assert (len(figures.safe_mode_text), figures.safe_mode_text.isprintable()) == (200, True)


def test_of_two_data_nodes_with_a_name_the_live_one_counts():
    node = f"c0.{DOMAIN}:9866"
    daemon = with_info(DeadNodes=json.dumps({node: {"adminState": "In Service"}}))
    assert states(daemon)["c0"] == "L"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"adminState": "In Service", "lastContact": 31}, {"c0": "S"}),
        ({"adminState": "Decommissioned", "lastContact": 31}, {"c0": "X"}),
    ],
)
def test_a_data_node_without_a_heartbeat_is_stale(node, expected):
    assert states(with_info(LiveNodes=json.dumps({f"c0.{DOMAIN}:9866": node}))) == expected


@pytest.mark.parametrize("name", ["c0:9866", "c0.other.demo.svc:9866", f"..{DOMAIN}:1", f"C0.{DOMAIN}:1", "", DOMAIN])
def test_a_data_node_of_another_domain_is_left_out(name):
    assert states(with_info(LiveNodes=json.dumps({name: {}}))) == {}


@pytest.mark.parametrize("name", [f"c0.{DOMAIN}", f"c0.{DOMAIN}.cluster.local", f"c0.{DOMAIN}.cluster.local."])
def test_a_data_node_is_known_by_its_host_and_keeps_its_name(name):
    _, nodes = state(with_info(LiveNodes=json.dumps({f"{name}:9866": {"adminState": "In Service"}})))
    assert nodes == {"c0": DataNode(state=DfsState.LIVE, name=name)}


def test_figures_are_brought_into_their_bounds():
    node = {"adminState": "In Service", "remaining": -5, "used": 2**80}
    figures, nodes = state(with_info(LiveNodes=json.dumps({f"c0.{DOMAIN}:1": node}), ClusterId="C\n" + "x" * 200))
    assert nodes["c0"] == DataNode(state=DfsState.LIVE, name=f"c0.{DOMAIN}", free_bytes=0, used_bytes=2**62)
    assert len(figures.cluster_id) == 100


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"ClusterId": ""}, id="no ID"),
        pytest.param({"ClusterId": 7}, id="ID of another type"),
        pytest.param({"LiveNodes": "[]"}, id="list of nodes"),
        pytest.param({"LiveNodes": {}}, id="nodes that are no text"),
        pytest.param({"DecomNodes": "{"}, id="broken text"),
        pytest.param({"DeadNodes": "[" * 100_000}, id="deep text"),
        pytest.param({"NNStartedTimeInMillis": "now"}, id="time of another type"),
    ],
)
def test_an_unexpected_response_is_an_error(attributes):
    with pytest.raises(RestError, match="NameNode: "):
        state(with_info(**attributes))


@pytest.mark.parametrize("bean", ["NameNodeInfo", "FSNamesystem"])
def test_a_name_node_that_has_not_started_has_no_figures(bean):
    daemon = Daemon.name_node()
    daemon.responses[f"/jmx?qry=Hadoop:service=NameNode,name={bean}"] = (200, b'{"beans":[]}')
    with pytest.raises(RestError, match="yet"):
        state(daemon)


def test_folders_are_made_as_the_user_hadoop():
    daemon = Daemon.name_node()
    with daemon.serving() as port:
        NameNode(Rest("NameNode", port), DOMAIN).make_folders({"/logs": "1777"})
    assert daemon.requests == [("PUT", "/webhdfs/v1/logs?op=MKDIRS&permission=1777&user.name=hadoop", b"")]


def test_a_folder_that_cannot_be_made_is_an_error():
    daemon = Daemon({"/webhdfs": (403, b"safe mode")})
    with daemon.serving() as port, pytest.raises(RestError, match="status 403"):
        NameNode(Rest("NameNode", port), DOMAIN).make_folders({"/logs": "1777"})
