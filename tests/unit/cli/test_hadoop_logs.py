"""Logs of Hadoop clusters and of jobs on them, with web servers of Hadoop that may answer anything."""

import json

import pytest

from boathouse_cli import mrclusters, mrjobs, printing_logs
from boathouse_cli.errors import CommandError, ExitCode, StartingError
from boathouse_cli.printing_logs import Selection
from tests.builders import cli

APPLICATION = "application_1800000000000_0007"
CONTAINER = "container_e01_1800000000000_0007_01_000002"
ATTEMPT = "appattempt_1800000000000_0007_000001"
LOG = "Container: x on c0\nLogType:stderr\nLogContents:\nfirst\nsecond\n\nEnd of LogType:stderr\n*****\n"
APPS = f"ws/v1/cluster/apps/{APPLICATION}/appattempts"
HISTORY = f"ws/v1/history/aggregatedlogs?appid={APPLICATION}"


def container_logs(container=CONTAINER, *files):
    logs = [{"fileName": name, "fileSize": str(size)} for name, size in files or (("stderr", 9), ("stdout", 0))]
    return {"containerLogsInfo": {"containerLogInfo": logs, "containerId": container, "nodeId": "c0.x:8041"}}


class Gateway:
    """Responds by path; a text is what a file has, anything else is JSON."""

    def __init__(self, responses, pods):
        self.responses, self.listed, self.requests = responses, pods, []
        self.refusals = 0
        """Requests that are answered with 503 first."""

    def pods(self, selector):
        requested = dict(requirement.partition("=")[::2] for requirement in selector.split(","))
        labels = [(pod, pod["metadata"]["labels"]) for pod in self.listed]
        return [
            pod
            for pod, has in labels
            if all(key in has and value in {"", has[key]} for key, value in requested.items())
        ]

    def get(self, plural, name):
        assert (plural, name) == ("mrclusters", "etl")
        return cli.mrcluster()

    def log(self, pod, container, *, tail, follow=False, prefix=""):
        yield f"{prefix}log of {pod} {container} {tail} {follow}"

    def proxied(self, pod, port, path):
        self.requests.append((pod, port, path))
        if len(self.requests) <= self.refusals:
            raise StartingError("answered 503")
        if path not in self.responses:
            raise CommandError("answered 404", ExitCode.NOT_FOUND)
        response = self.responses[path]
        text = response if isinstance(response, str) else json.dumps(response)
        yield from (text[:7].encode(), text[7:].encode())


def client_pod():
    labels = {"boathouse.dev/task-type": "client", "boathouse.dev/attempt": "1", "boathouse.dev/job-uid": "u-1"}
    raw = cli.host_pod("c9")
    return raw | {"metadata": raw["metadata"] | {"name": "wc-client", "labels": labels}}


def gateway(responses=(), *hosts):
    return Gateway(dict(responses), [client_pod(), *map(cli.host_pod, hosts or ("master", "c0"))])


def hadoop_job(state="RUNNING", application=APPLICATION):
    raw = cli.mrjob(hadoop={"attempt": 1, "tag": "t", "applications": [{"id": application, "state": state}]})
    return mrjobs.read(raw | {"spec": {"clusterRef": {"name": "etl"}}})


def logs_of_job(reached, state="FINISHED", container=None, tail=None, **more):
    return list(printing_logs.of_job(reached, hadoop_job(state, **more), Selection(container=container, tail=tail)))


def logs_of_cluster(reached, host=None, container=None):
    cluster = mrclusters.read(cli.mrcluster())
    return list(printing_logs.of_cluster(reached, cluster, Selection(host=host, container=container, tail=5)))


def test_logs_of_a_cluster_are_those_of_its_master():
    assert logs_of_cluster(gateway()) == [
        "namenode: log of etl-master namenode 5 False",
        "resourcemanager: log of etl-master resourcemanager 5 False",
    ]


def test_logs_of_one_container_of_a_node_have_no_prefix():
    assert logs_of_cluster(gateway(), "c0", "datanode") == ["log of etl-c0 datanode 5 False"]


@pytest.mark.parametrize(("host", "container"), [("t9", None), ("c0", "namenode")])
def test_what_is_not_there_is_refused_with_what_there_is(host, container):
    with pytest.raises(CommandError, match=r"master|datanode"):
        logs_of_cluster(gateway(), host, container)


def test_logs_of_a_job_that_ended_are_read_from_the_history_server():
    reached = gateway({HISTORY: container_logs(), f"ws/v1/history/containerlogs/{CONTAINER}/stderr": LOG})
    assert logs_of_job(reached) == [
        "client-a1: log of wc-client task None False",
        f"{CONTAINER} stderr: first",
        f"{CONTAINER} stderr: second",
        f"{CONTAINER} stderr: ",
    ]
    assert {(pod, port) for pod, port, _ in reached.requests} == {("etl-master", 19888)}


def test_logs_of_a_job_that_runs_are_read_from_the_nodes_of_its_containers():
    responses = {
        APPS: {"appAttempts": {"appAttempt": [{"appAttemptId": ATTEMPT}]}},
        f"{APPS}/{ATTEMPT}/containers": {"container": {"containerId": CONTAINER, "nodeId": "c0.etl.demo.svc:8041"}},
        f"ws/v1/node/containers/{CONTAINER}/logs": [container_logs()],
        f"ws/v1/node/containerlogs/{CONTAINER}/stderr": LOG,
    }
    reached = gateway(responses)
    assert logs_of_job(reached, "RUNNING")[1:3] == [f"{CONTAINER} stderr: first", f"{CONTAINER} stderr: second"]
    assert [request[:2] for request in reached.requests[2:]] == [("etl-c0", 8042)] * 2


def test_a_container_that_has_just_ended_has_no_logs_yet():
    containers = {"container": {"containerId": CONTAINER, "nodeId": "c0:8041"}}
    reached = gateway({APPS: {"appAttemptId": ATTEMPT}, f"{APPS}/{ATTEMPT}/containers": containers})
    assert logs_of_job(reached, "RUNNING")[1:] == []


def test_one_container_and_the_last_lines_can_be_chosen():
    reached = gateway({HISTORY: container_logs(), f"ws/v1/history/containerlogs/{CONTAINER}/stderr": LOG})
    assert logs_of_job(reached, container=CONTAINER, tail=2) == [f"{CONTAINER} stderr: second", f"{CONTAINER} stderr: "]
    assert logs_of_job(reached, container="container_1_1_1_1") == []


@pytest.mark.parametrize(
    "response",
    [
        container_logs("../../../secrets"),
        container_logs("container_1_1_1_1/../../x"),
        container_logs(CONTAINER, ("../stderr", 1), ("..", 1), ("a?b", 1)),
        {"containerId": CONTAINER, "containerLogInfo": 7},
    ],
)
def test_names_that_are_paths_are_not_requested(response):
    reached = gateway({HISTORY: response})
    assert logs_of_job(reached)[1:] == []
    assert len(reached.requests) == 1


def test_an_application_that_is_no_id_is_not_requested():
    reached = gateway()
    logs_of_job(reached, application="../nodes")
    assert reached.requests == []


def test_logs_that_are_not_collected_yet_say_so():
    with pytest.raises(CommandError, match=r"there are no logs of application_.* yet, or no more"):
        logs_of_job(gateway())


def test_a_server_that_starts_is_waited_for(monkeypatch):
    monkeypatch.setattr(printing_logs, "STARTING_PAUSE_S", 0)
    reached = gateway({HISTORY: []})
    reached.refusals = printing_logs.STARTING_TRIES
    logs_of_job(reached)
    assert len(reached.requests) == printing_logs.STARTING_TRIES + 1


def test_a_server_that_never_starts_is_an_error(monkeypatch):
    monkeypatch.setattr(printing_logs, "STARTING_PAUSE_S", 0)
    reached = gateway({HISTORY: []})
    reached.refusals = printing_logs.STARTING_TRIES + 1
    with pytest.raises(StartingError):
        logs_of_job(reached)


def test_an_endless_response_is_cut_off(monkeypatch):
    monkeypatch.setattr(printing_logs, "MOST_JSON_BYTES", 100)
    with pytest.raises(CommandError, match="answered no JSON"):
        logs_of_job(gateway({HISTORY: "[" + "1," * 1000 + "1]"}))


def test_a_cluster_without_a_master_says_so():
    with pytest.raises(CommandError, match="the master of mrcluster/etl has no pod"):
        logs_of_job(gateway({}, "c0"))
