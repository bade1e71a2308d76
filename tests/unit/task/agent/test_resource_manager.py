"""Figures and applications of a ResourceManager, from recordings of one."""

import json
from pathlib import Path

import pytest

from boathouse_task.agent import daemons
from boathouse_task.agent.daemons import PAUSE_S, MapReduce, NodeManager, ResourceManager
from boathouse_task.cluster_contract import MOST_COUNTERS, ApplicationFigures, YarnFigures, YarnState
from boathouse_task.rest import Rest, RestError
from tests.builders.agents import APPLICATION, DOMAIN, Daemon, agent_spec, recording

RUNNING = "application_1795455136309_0001"


class Yarn:
    """A ResourceManager, a JobHistoryServer and a client of them."""

    def __init__(self, manager: Daemon, history: Daemon, ports: tuple[int, int], folder: Path) -> None:
        self.manager, self.history = manager, history
        self.now_s = 0.0
        proxy, self.rest = Rest("ResourceManager", ports[0]), Rest("JobHistoryServer", ports[1])
        map_reduce = MapReduce(proxy, self.rest, monotonic=lambda: self.now_s)
        self.client = ResourceManager(proxy, map_reduce, agent_spec(folder), clock=lambda: 1795455236.0)

    def applications(self, tag: str) -> list[ApplicationFigures]:
        """The applications with a tag, with time for all details."""
        return self.client.applications(tag, lambda: True)

    def with_apps(self, *applications: dict[str, object]) -> None:
        """Change the list of applications."""
        self.manager.responses["/ws/v1/cluster/apps?"] = (200, json.dumps({"apps": {"app": applications}}).encode())

    def with_nodes(self, *nodes: dict[str, object]) -> None:
        """Change the list of nodes."""
        self.manager.responses["/ws/v1/cluster/nodes?"] = (200, json.dumps({"nodes": {"node": nodes}}).encode())


@pytest.fixture
def yarn(tmp_path):
    manager, history = Daemon.resource_manager(), Daemon.history()
    with manager.serving() as port, history.serving() as history_port:
        yield Yarn(manager, history, (port, history_port), tmp_path)


def yarn_app(number: int = 1, **fields: object) -> dict[str, object]:
    return {"id": f"application_1_{number:04d}", "state": "RUNNING", "applicationType": "TEZ", **fields}


def test_figures_have_the_nodes_of_all_labels(yarn):
    figures, nodes = yarn.client.state(leaving={})
    metrics = json.loads(recording("rm-metrics"))["clusterMetrics"]
    assert metrics["totalMB"] == 1536  # without those of the label
    assert figures == YarnFigures(
        started_s=1795455136, up_s=99, running=2, pending=0, apps_running=1, apps_pending=0, memory_mb=3072, used_mb=704
    )
    assert nodes == {
        "c0": NodeManager(state=YarnState.RUNNING, name=f"c0.{DOMAIN}", containers=2, memory_mb=1536, used_mb=704),
        "t0": NodeManager(state=YarnState.RUNNING, name=f"t0.{DOMAIN}", memory_mb=1536),
    }


def test_a_draining_node_has_containers_and_no_room(yarn):
    yarn.manager.responses["/ws/v1/cluster/nodes?"] = (200, recording("rm-nodes-leaving"))
    figures, nodes = yarn.client.state(leaving={"c0": f"c0.{DOMAIN}"})
    assert nodes["c0"] == NodeManager(
        state=YarnState.DECOMMISSIONING, name=f"c0.{DOMAIN}", containers=1, memory_mb=384, used_mb=384
    )
    assert (figures.running, figures.memory_mb) == (1, 0)


def test_a_leaving_node_that_has_ended_is_requested_by_name(yarn):
    yarn.manager.responses["/ws/v1/cluster/nodes?"] = (200, recording("rm-nodes-none"))
    yarn.manager.responses[f"/ws/v1/cluster/nodes/t0.{DOMAIN}:8041"] = (200, recording("rm-node-ended"))
    _, nodes = yarn.client.state(leaving={"t0": f"t0.{DOMAIN}", "t9": f"t9.{DOMAIN}.cluster.local"})
    assert {host: node.state for host, node in nodes.items()} == {"t0": YarnState.DECOMMISSIONED}
    assert f"/ws/v1/cluster/nodes/t9.{DOMAIN}.cluster.local:8041" in yarn.manager.paths()


def test_a_node_that_registered_with_the_domain_of_kubernetes_is_known_by_its_host(yarn):
    name = f"t1.{DOMAIN}.cluster.local"
    yarn.with_nodes({"state": "RUNNING", "nodeHostName": name}, {"state": "RUNNING", "nodeHostName": f"t2.{DOMAIN}x"})
    _, nodes = yarn.client.state(leaving={})
    assert nodes == {"t1": NodeManager(state=YarnState.RUNNING, name=name)}


def test_nodes_that_left_before_are_not_requested(yarn):
    yarn.client.state(leaving={})
    (path,) = [path for path in yarn.manager.paths() if "/nodes" in path]
    assert path.endswith("?states=NEW,RUNNING,UNHEALTHY,DECOMMISSIONING")


def test_unknown_states_and_foreign_nodes_do_no_harm(yarn):
    node = {"state": "NAPPING", "nodeHostName": f"t1.{DOMAIN}", "usedMemoryMB": -4, "availMemoryMB": 2**80}
    yarn.with_nodes(node, {"state": "RUNNING", "nodeHostName": "evil.example.com"})
    _, nodes = yarn.client.state(leaving={})
    assert nodes == {"t1": NodeManager(state=YarnState.NONE, name=f"t1.{DOMAIN}", memory_mb=2**62)}


@pytest.mark.parametrize("path", ["info", "metrics", "nodes?"])
@pytest.mark.parametrize("response", [(200, b"[]"), (503, b"standby"), (302, b""), (200, b'{"nodes":{"node":{}}}')])
def test_a_resource_manager_without_figures_is_an_error(yarn, path, response):
    yarn.manager.responses[f"/ws/v1/cluster/{path}"] = response
    with pytest.raises(RestError, match="ResourceManager: "):
        yarn.client.state(leaving={})


def test_a_running_job_has_its_progress_from_its_application_master(yarn):
    (found,) = yarn.applications("uid-1-1")
    assert found == ApplicationFigures(
        id=RUNNING,
        name="word count",
        state="RUNNING",
        progress=50,
        started_ms=1795455206514,
        maps=(6, 6),
        reduces=(0, 1),
    )
    assert "applicationTags=uid-1-1&" in yarn.manager.paths()[0]


def test_a_job_whose_application_master_does_not_respond_has_no_progress(yarn):
    yarn.manager.responses["/proxy/"] = (302, b"")
    (found,) = yarn.applications("uid-1-1")
    assert (found.state, found.maps) == ("RUNNING", (0, 0))


def test_a_job_that_ended_has_its_counters_from_the_history(yarn):
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-finished"))
    (found,) = yarn.applications("uid-3-1")
    assert (found.id, found.final, found.maps, found.reduces) == (APPLICATION, "SUCCEEDED", (6, 6), (1, 1))
    assert found.counters["org.apache.hadoop.mapreduce.TaskCounter"]["MAP_INPUT_RECORDS"] == 73585


def test_the_history_is_requested_once_for_a_job(yarn):
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-finished"))
    first = yarn.applications("uid-3-1")
    assert yarn.applications("uid-3-1") == first
    assert len(yarn.history.requests) == 2


def test_the_history_is_requested_again_while_it_does_not_know_the_job(yarn):
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-finished"))
    responses, yarn.history.responses = yarn.history.responses, {}
    assert yarn.applications("uid-3-1")[0].counters == {}
    yarn.history.responses = responses
    assert yarn.applications("uid-3-1")[0].counters


def test_a_history_that_hangs_delays_a_round_once(yarn, monkeypatch):
    paths = []

    def hang(path, *_):
        paths.append(path)
        raise RestError("JobHistoryServer: TimeoutError", is_timeout=True)

    monkeypatch.setattr(yarn.rest, "get", hang)
    yarn.with_apps(*[yarn_app(number, state="FINISHED", applicationType="MAPREDUCE") for number in range(1, 9)])
    for _ in range(3):
        assert len(yarn.applications("uid-1")) == 8
    assert len(paths) == 1
    yarn.now_s = PAUSE_S
    yarn.applications("uid-1")
    assert len(paths) == 2


def test_a_history_that_does_not_know_a_job_is_requested_for_the_next(yarn):
    yarn.with_apps(*[yarn_app(number, state="FINISHED", applicationType="MAPREDUCE") for number in (1, 2)])
    yarn.applications("uid-1")
    assert len(yarn.history.requests) == 2


def test_details_are_left_out_when_there_is_no_time_for_them(yarn):
    jobs = [yarn_app(number, applicationType="MAPREDUCE") for number in range(1, 9)]
    yarn.with_apps(*jobs)
    time_left = iter([True, True])
    found = yarn.client.applications("uid-1", lambda: next(time_left, False))
    assert [application.maps for application in found] == [(6, 6)] * 2 + [(0, 0)] * 6
    assert sum(path.startswith("/proxy/") for path in yarn.manager.paths()) == 2


def test_a_job_that_was_killed_says_why(yarn):
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-killed"))
    (found,) = yarn.applications("uid-4-1")
    assert (found.state, found.final, found.has_ended) == ("KILLED", "KILLED", True)
    assert found.diagnostics.endswith("was killed by user hadoop")


def test_a_tag_without_applications_has_none(yarn):
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-none"))
    assert yarn.applications("uid-9") == []


def test_of_many_applications_those_that_run_come_first_then_the_newest(yarn):
    ended = [yarn_app(number, state="FINISHED", startedTime=number) for number in range(1, 20)]
    yarn.with_apps(*ended, yarn_app(20), yarn_app(21))
    found = yarn.applications("uid-1")
    assert [application.id[-2:] for application in found] == ["20", "21", "19", "18", "17", "16", "15", "14"]


def test_texts_of_an_application_are_brought_into_their_bounds(yarn):
    yarn.with_apps(
        yarn_app(name="a\n" + "b" * 100, state="</script>", diagnostics="x\x00" * 900, progress=-3.5),
        {"id": "application_1_1/../../jmx", "state": "RUNNING"},
    )
    (found,) = yarn.applications("uid-1")
    assert (found.name, found.state, found.progress) == ("a " + "b" * 78, "UNKNOWN", 0)
    assert found.diagnostics == "x " * 250


def test_counters_are_limited_in_number(yarn):
    counter = [{"name": f"n{number}", "totalCounterValue": 2**70} for number in range(100)]
    groups = [{"counterGroupName": f"g{number}", "counter": counter[:5]} for number in range(100)]
    yarn.manager.responses["/ws/v1/cluster/apps?"] = (200, recording("rm-apps-finished"))
    path = next(iter(yarn.history.responses))
    yarn.history.responses[path] = (200, json.dumps({"jobCounters": {"counterGroup": groups}}).encode())
    (found,) = yarn.applications("uid-3-1")
    assert sum(map(len, found.counters.values())) == MOST_COUNTERS
    assert found.counters["g0"]["n0"] == 2**63 - 1


def test_details_of_ended_jobs_are_kept_in_a_limited_number(yarn, monkeypatch):
    monkeypatch.setattr(daemons, "MOST_KEPT", 1)
    yarn.history.responses = {
        "/ws/v1/history/mapreduce/jobs/job_1_0001/counters": (200, b'{"jobCounters":{}}'),
        "/ws/v1/history/mapreduce/jobs/job_1_0002/counters": (200, b'{"jobCounters":{}}'),
        "/ws/v1/history/mapreduce/jobs/": (200, b'{"job":{"mapsTotal":3}}'),
    }
    jobs = [yarn_app(number, state="FINISHED", applicationType="MAPREDUCE") for number in (1, 2)]
    yarn.with_apps(*jobs)
    assert [application.maps for application in yarn.applications("uid-1")] == [(0, 3), (0, 3)]
    assert len(yarn.history.requests) == 4
    yarn.with_apps(jobs[1])
    yarn.applications("uid-1")
    assert len(yarn.history.requests) == 4


def test_an_application_is_killed_as_the_user_hadoop(yarn):
    yarn.client.kill("application_1_0001")
    path = "/ws/v1/cluster/apps/application_1_0001/state?user.name=hadoop"
    assert yarn.manager.requests == [("PUT", path, b'{"state":"KILLED"}')]
