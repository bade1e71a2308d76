"""A cluster of providers local and kind: pods run on real nodes, find one another, are resized; and nothing stays."""

import concurrent.futures
import functools
import json
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest

from boathouse_e2e import images, invariants, kwok, storage, waiting
from boathouse_e2e.docker import docker_answers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import processes, state
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.shell import run
from boathouse_e2e.spec import Cluster, ClusterSpec, ComponentStatus
from e2e.tests import conftest, traces

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("another cluster"),  # which the tests of this file start once
    pytest.mark.skipif(os.environ.get("PROVIDER") == "existing", reason="tests the providers that start clusters"),
]
NAME = f"test-{os.getpid()}"
READY_WITHIN_S = 120  # twenty where nothing else runs; forty with kind
until = functools.partial(waiting.until, within_s=200)


def moments() -> tuple[str, ...]:
    """Components after whose start `up` is killed."""
    if conftest.chosen(NAME).name == state.LOCAL:
        return ("namespaces", "containerd-node-1", "kube-apiserver", "kubelet-node-0")
    return ("kind",) if docker_answers() else ("namespaces", "dockerd", "kind")


def provider() -> LocalProvider | KindProvider:
    """The provider under test."""
    chosen = conftest.chosen(NAME)
    assert isinstance(chosen, LocalProvider | KindProvider)
    return chosen


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.log"


@pytest.fixture(scope="module")
def cluster(audit_log: Path) -> Iterator[Cluster]:
    spec = ClusterSpec(name=NAME, nodes=2, kwok_nodes=3, audit_log=audit_log, node_monitor_grace_period_s=6)
    images.ensure([images.TASK, images.VERSITYGW])
    try:
        up = provider().up(conftest.with_audit_log_if_possible(provider(), spec))
        images.load(up, [images.TASK, images.VERSITYGW])
        yield up
    finally:
        provider().down(NAME)


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> list[str]:
    """The names of the real nodes that take pods."""
    return [node["metadata"]["name"] for node in cluster.workers()]


def pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": images.TASK,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}},
    }
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    defaults = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**defaults, **spec}}


def runs_to_its_end(cluster: Cluster, name: str, *command: str, **spec: Any) -> str:
    cluster.apply(pod(name, *command, **spec))
    ended = until(lambda: phase(cluster, name) in {"Succeeded", "Failed"} and phase(cluster, name), f"{name} ends")
    log = cluster.run("logs", name)
    assert ended == "Succeeded", log
    return log


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.get("pod", name)["status"]["phase"])


def serve(cluster: Cluster, name: str, node: str) -> None:
    service = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}]}
    metadata = {"name": name, "namespace": "default"}
    server = pod(name, "python3", "-m", "http.server", "8000", "--directory", "/etc", nodeName=node)
    server["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    cluster.apply(server, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
    until_ready(cluster, name)


def until_ready(cluster: Cluster, name: str) -> None:
    until(lambda: ("Ready", "True") in conditions(cluster.get("pod", name)), f"{name} is ready")


def conditions(item: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["type"], one["status"]) for one in item["status"].get("conditions", ())}


# Names and services are known a moment after their pods are ready.
FETCH = """
import sys, time, urllib.request
give_up_s = time.monotonic() + 100
while True:
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
        break
    except OSError:
        if time.monotonic() > give_up_s:
            raise
        time.sleep(0.2)
"""


CALL = """
import os, socket, sys, urllib.request
urllib.request.urlopen(f"http://{sys.argv[1]}:8000/hostname", timeout=60).read()
print(socket.gethostbyname(os.environ["HOSTNAME"]))
"""


def test_nodes_offer_what_was_asked_for_and_lie_in_racks(cluster):
    nodes = cluster.workers()
    assert [node["metadata"]["labels"]["boathouse.dev/rack"] for node in nodes] == ["rack-0", "rack-1"]
    for node in nodes:
        assert int(node["status"]["allocatable"]["cpu"]) <= 2
        assert int(node["status"]["allocatable"]["memory"].removesuffix("Ki")) // 1024 in range(4090, 4101)


def test_a_pod_runs_and_its_log_is_read(cluster):
    assert runs_to_its_end(cluster, "hello", "echo", "hello from a pod") == "hello from a pod\n"


@pytest.mark.parametrize("number", [0, 1])
def test_a_pod_finds_a_service_by_name_from_any_node(cluster, nodes, number):
    serve(cluster, f"web-{number}", nodes[0])
    url = f"http://web-{number}.default.svc.cluster.local/hostname"
    log = runs_to_its_end(cluster, f"client-{number}", "python3", "-c", FETCH, url, nodeName=nodes[number])
    assert log.strip() == f"web-{number}"


def test_a_pod_on_another_node_is_seen_by_its_own_address(cluster, nodes):
    serve(cluster, "callee", nodes[0])
    address = cluster.get("pod", "callee")["status"]["podIP"]
    own = runs_to_its_end(cluster, "caller", "python3", "-c", CALL, address, nodeName=nodes[1]).strip()
    assert own == cluster.get("pod", "caller")["status"]["podIP"]
    until(lambda: f"{own} - - " in cluster.run("logs", "callee"), "the server logs its client's address")


def test_a_pod_reaches_itself_through_its_service(cluster, nodes):
    serve(cluster, "mirror", nodes[1])
    fetch = cluster.kubectl_command(
        "exec", "mirror", "--", "python3", "-c", FETCH, "http://mirror.default.svc/hostname"
    )
    assert run(*fetch).strip() == "mirror"


def test_a_running_pod_is_resized_in_place(cluster):
    cluster.apply(pod("busy", "sleep", "600"))
    until_ready(cluster, "busy")
    resize(cluster, "busy", request="1m", limit="10m")
    until(
        lambda: container_status(cluster, "busy")["resources"]["limits"]["cpu"] == "10m",
        "the kubelet applies the new limit",
    )
    assert container_status(cluster, "busy")["restartCount"] == 0


def test_a_resize_beyond_its_node_is_refused_by_the_api_server_or_else_by_the_kubelet(cluster):
    def is_refused() -> bool:
        try:
            resize(cluster, "greedy", request="1000", limit="1000")
        except ClusterError as error:  # of the admission plugin PodResizeValidator, where there is one
            return "Forbidden" in str(error)
        conditions = cluster.get("pod", "greedy")["status"]["conditions"]
        return "Infeasible" in {one.get("reason") for one in conditions if one["type"] == "PodResizePending"}

    cluster.apply(pod("greedy", "sleep", "600"))
    until_ready(cluster, "greedy")
    until(is_refused, "the resize is refused")
    assert container_status(cluster, "greedy")["resources"]["limits"]["cpu"] == "500m"


def resize(cluster: Cluster, name: str, *, request: str, limit: str) -> None:
    resources = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
    change = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    cluster.run("patch", "pod", name, "--subresource=resize", "--patch", json.dumps(change))


def container_status(cluster: Cluster, name: str) -> dict[str, Any]:
    return dict(cluster.get("pod", name)["status"]["containerStatuses"][0])


def test_kubelets_declare_a_feature_where_the_api_server_accepts_pods_that_need_it(cluster):
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    restarting = pod("restarting", "true")
    restarting["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    accepted = is_accepted(cluster, restarting)
    declared = [node["status"].get("declaredFeatures", ()) for node in cluster.workers()]
    assert ["RestartAllContainersOnContainerExits" in features for features in declared] == [accepted, accepted]


def is_accepted(cluster: Cluster, manifest: dict[str, Any]) -> bool:
    try:
        cluster.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    except ClusterError:
        return False
    return True


def test_only_pods_that_ask_for_them_go_to_fake_nodes_and_end_when_they_say(cluster):
    tolerant = {"tolerations": [{"key": kwok.ANNOTATION, "operator": "Exists"}], "nodeSelector": {"type": "kwok"}}
    fake = pod("fake", "none", **tolerant)
    fake["metadata"]["annotations"] = {"kwok.boathouse.dev/run-time": "1s"}
    cluster.apply(fake, pod("choosy", "none", nodeSelector={"type": "kwok"}))
    until(lambda: phase(cluster, "fake") == "Succeeded", "the fake pod ends")
    until(lambda: ("PodScheduled", "False") in conditions(cluster.get("pod", "choosy")), "the other pod is refused")
    assert "nodeName" not in cluster.get("pod", "choosy")["spec"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read the audit log of a kind cluster")
def test_the_audit_log_holds_who_bound_a_pod_and_where_to(cluster, nodes, audit_log):
    runs_to_its_end(cluster, "audited", "true")
    events = invariants.audit_events(audit_log)
    path = "/api/v1/namespaces/default/pods/audited/binding"
    (bound,) = [event for event in events if event["requestURI"].startswith(path)]
    assert bound["user"]["username"] == "system:kube-scheduler"
    assert bound["requestObject"]["target"]["name"] in nodes


def is_ready(cluster: Cluster, node: str, value: str) -> bool:
    return ("Ready", value) in conditions(cluster.get("node", node))


def kill(node: str) -> None:
    provider().signal(NAME, f"kubelet-{node}", signal.SIGKILL)


def pause(node: str) -> None:
    provider().signal(NAME, f"kubelet-{node}", signal.SIGSTOP)


def resume(node: str) -> None:
    provider().signal(NAME, f"kubelet-{node}", signal.SIGCONT)


def start_again(node: str) -> None:
    provider().start_again(NAME, f"kubelet-{node}")


def switch_off(node: str) -> None:
    provider().switch_off(NAME, node)


@pytest.mark.parametrize(
    ("harm", "mend"),
    [(kill, start_again), (pause, resume), (switch_off, start_again)],
    ids=["killed", "paused", "switched-off"],
)
def test_a_node_whose_kubelet_is_silent_is_not_ready_until_it_is_mended(cluster, nodes, harm, mend):
    harm(nodes[1])
    try:
        until(lambda: is_ready(cluster, nodes[1], "Unknown"), "the node is not ready")
    finally:
        mend(nodes[1])
    until(lambda: is_ready(cluster, nodes[1], "True"), "the node is ready again")


@pytest.mark.only_kind  # local nodes share a network
def test_a_node_whose_network_is_cut_is_not_ready_until_it_is_mended(cluster, nodes):
    KindProvider().cut_off(NAME, nodes[1])
    try:
        until(lambda: is_ready(cluster, nodes[1], "Unknown"), "the node is not ready")
    finally:
        KindProvider().rejoin(NAME, nodes[1])
    until(lambda: is_ready(cluster, nodes[1], "True"), "the node is ready again")


def test_the_scheduler_is_paused_and_resumed(cluster):
    provider().signal(NAME, "kube-scheduler", signal.SIGSTOP)
    cluster.apply(pod("unscheduled", "true"))
    provider().signal(NAME, "kube-scheduler", signal.SIGCONT)
    until(lambda: phase(cluster, "unscheduled") == "Succeeded", "the pod is scheduled and ends")


def test_status_shows_every_component_running_with_its_log(cluster, nodes):
    def all_ready() -> dict[str, ComponentStatus] | None:
        parts = {part.name: part for part in provider().status(cluster.name)}
        return parts if parts["fake nodes"].state == "3 of 3 Ready" else None

    parts = until(all_ready, "all fake nodes are ready")  # their silence is borne for 6 s only
    components = [name for name in parts if not name.startswith(("node ", "fake "))]
    assert "kwok" in components
    assert {f"node {name}" for name in nodes} <= set(parts)
    assert {parts[name].state for name in components} == {"running"}


def test_of_32_writers_who_create_an_object_at_once_one_wins(cluster):
    credentials = storage.deploy(cluster)
    with (
        storage.endpoint_from_host(cluster) as endpoint,
        concurrent.futures.ThreadPoolExecutor(32) as pool,
    ):
        bucket = storage.bucket(endpoint, credentials, "races")

        def create(key: str, writer: int) -> list[int]:
            try:
                bucket.put(key, str(writer).encode(), mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return []
            return [writer]

        for race in range(15):
            key = f"race-{race}"
            winners = functools.reduce(operator.iadd, pool.map(create, [key] * 32, range(32)), [])
            assert len(winners) == 1
            assert bytes(bucket.get(key).bytes()) == str(winners[0]).encode()


@pytest.fixture
def other_name() -> Iterator[str]:
    name = f"{NAME}-other"
    yield name
    provider().down(name)


def test_a_second_cluster_beside_the_first_is_ready_in_time_and_leaves_nothing(cluster, other_name):
    before, started = traces.machine(), time.monotonic()
    other = provider().up(ClusterSpec(name=other_name, nodes=2))
    assert time.monotonic() - started < READY_WITHIN_S
    images.load(other, [images.TASK])
    runs_to_its_end(other, "hello", "true")
    other.apply(pod("left-running", "sleep", "600"))
    until_ready(other, "left-running")
    known = state.load(other_name)
    assert known
    assert set(traces.of(known)) == (traces.ISOLATED if known.layout.isolated else {"files"})
    spaces = traces.namespaces(known)

    provider().down(other_name)

    assert traces.of(known) == {}
    until(lambda: not spaces & traces.all_namespaces(), "no process is in a namespace of the cluster")
    assert traces.machine().left_since(before) == set()
    assert cluster.get("nodes")["items"]


@pytest.mark.parametrize(
    "moment", [*(pytest.param(moment, marks=pytest.mark.long) for moment in moments()[:-1]), moments()[-1]]
)
def test_when_up_is_killed_halfway_down_leaves_nothing(other_name, moment):
    def began() -> state.State | None:
        known = state.load(other_name)
        found = processes.find(known.cluster_id) if known else []
        return known if any(process.component == moment for process in found) else None

    command = [sys.executable, "-m", "boathouse_e2e", "up", "--name", other_name, "--provider", provider().name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as starting:
        try:
            known = until(began, f"{moment} runs")
        finally:
            starting.kill()
    assert traces.of(known)["processes"]

    provider().down(other_name)

    assert traces.of(known) == {}


def test_up_after_a_killed_up_cleans_first_and_succeeds(other_name):
    own_docker = provider().name == state.KIND and not docker_answers()
    half = state.begin(ClusterSpec(name=other_name, nodes=0), provider=provider().name, own_docker=own_docker)
    processes.start(
        processes.Component(name="etcd", command=("sleep", "600"), log=str(half.layout.logs / "etcd.log")),
        cluster_id=half.cluster_id,
        folder=half.layout.folder,
    )
    up = provider().up(ClusterSpec(name=other_name, nodes=0))
    assert up.get("namespace", "default")
    assert processes.find(half.cluster_id) == []


def test_up_of_a_cluster_that_is_up_finds_it(other_name):
    spec = ClusterSpec(name=other_name, nodes=0)
    first = provider().up(spec)
    known = state.load(other_name)
    assert provider().up(spec) == first
    assert state.load(other_name) == known
