"""What the policies of the profile `boathouse` do to pods, on a real cluster."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services import learned as learned_state
from boathouse_cli import model
from boathouse_e2e import demo, install, invariants
from boathouse_policies import fspy
from boathouse_policies.fspy.prediction import Features, TotalTimes
from e2e.tests import command_line, conftest, harness, spark_harness, spark_programs

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.timeout(600)]

BOATHOUSE = {"profile": "boathouse", "prediction": {"leastMaps": 2}}
IMAGE = "localhost/boathouse-task:dev"
NO_REDUCE = {"reducer": None, "numReduceTasks": None}
FULL = "1536Mi"


def installed_with(cluster, values, learned=None):
    """Install Boathouse with more values, and with nothing learned but what is given."""
    operator = ("-n", names.OPERATOR_NAMESPACE, "--ignore-not-found")
    cluster.run("delete", install.DEPLOYMENT, "--cascade=foreground", *operator)  # its leader saves when it stops
    cluster.run("delete", "configmap", learned_state.NAME, *operator)
    if learned is not None:
        metadata = {"name": learned_state.NAME, "namespace": names.OPERATOR_NAMESPACE}
        packed = base64.b64encode(gzip.compress(json.dumps(learned).encode())).decode()
        data = {learned_state.KEY: packed}
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data})
    install.install(cluster, conftest.VALUES | values)


@pytest.fixture(scope="module")
def as_before(installed):
    """Leave the operator behind as the other files expect it."""
    yield installed
    install.install(installed, conftest.VALUES)


@pytest.fixture(scope="module")
def boathouse(as_before):
    """The profile `boathouse`, whose models of run times have learned from enough jobs to predict."""
    installed_with(as_before, BOATHOUSE, learned={"fspy/SizeBased": earlier_jobs().dump()})


def earlier_jobs():
    """Return an order by size that has learned from jobs whose maps took 5 s and whose reduces took 3 s."""
    order, chance = fspy.SizeBased(fspy.Config()), np.random.default_rng(0)
    for maps in range(1, order.config.least_jobs + 1):
        reduces = 1 + maps % 3
        features = Features(maps, reduces, *chance.uniform(0, [1e6, 1, 1e6, 1e5, 1, 1e5, 1e5]))
        order.predictor.learn(features, TotalTimes(map_s=5.0 * maps, reduce_s=3.0 * reduces))
    return order


def raw(place, name):
    return place.gateway.get("mrjobs", name)


def prediction(place, name):
    return raw(place, name)["status"].get("prediction") or {}


def task_pods(place, name, task_type):
    """Return the pods of a job's tasks of a type that have a node."""
    pods = [pod for pod in place.raw_pods(name) if pod["spec"].get("nodeName")]
    return [pod for pod in pods if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == task_type]


def node_names(cluster):
    return [node["metadata"]["name"] for node in cluster.workers()]


def free(cluster, node, resource):
    """Return how much of a resource no pod of a node holds, in thousandths."""
    pods = [pod for pod in cluster.get("pods", "-A")["items"] if pod["spec"].get("nodeName") == node]
    held = sum(invariants.requests(pod).get(resource, 0) for pod in pods if not invariants.has_ended(pod))
    return quantity.milli(cluster.get("node", node)["status"]["allocatable"][resource]) - held


def plain_pod(place, name, node, command, **requests):
    """Return a pod that Boathouse does not schedule."""
    one = {"name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": command}
    one["resources"] = {"requests": requests}
    one["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    profile = {"runAsNonRoot": True, "runAsUser": 4242, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "securityContext": profile}
    spec["containers"] = [one]
    spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    metadata = {"name": name, "namespace": place.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def run_pods(place, *pods):
    """Start pods, and wait until they run."""
    place.cluster.apply(*pods)
    for pod in pods:
        what = f"pod/{pod['metadata']['name']}"
        place.cluster.run(
            "wait", what, "-n", place.namespace, "--for=jsonpath={.status.phase}=Running", "--timeout=120s"
        )


# FSPY


SLEEP = "import sys, time\nfor line in sys.stdin: time.sleep(0.0005); print(line, end='')"
LARGE = {"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"cpu": "2"}}
BY_INPUT = {"command": ["sh", "-c", f'python3 -c "{SLEEP}" | python3 mapper.py'], "resources": LARGE}
"""Takes about as long as its input has half milliseconds of lines. Four request a tenth of the cluster's memory, so a
job of them is large enough for a probe."""


@pytest.mark.usefixtures("boathouse")
def test_a_probe_predicts_the_size_of_a_job(place):
    data = harness.text(200_000)
    for index in range(4):
        place.put(f"in/{index}.txt", data)
    for name in ("probed", "again"):
        place.start(name, mapper=BY_INPUT)
        place.succeed(name)
        print(f"{name}: {prediction(place, name)}")
        assert harness.pairs(place.parts(name)) == harness.counted(data * 4)
    found, later = prediction(place, "probed"), prediction(place, "again")
    assert (found["probe"], found["source"]) == ("Succeeded", "Probe")
    assert found["error"] > -1  # how large it is depends on what else runs on the machine
    assert later["memorySeconds"] > 0
    assert "probe" not in later
    folders = {key.split("/")[1] for key in demo.sizes(place.store, place.namespace)}
    assert folders == {"in", "out-probed", "out-again"}


# YARN-ME


def elastic(*command):
    resources = {"requests": {"cpu": "50m", "memory": FULL}, "limits": {"cpu": "2"}}
    return {"command": list(command), "resources": resources, "elasticMemory": {"min": "96Mi", "slowdownPercent": 20}}


def sort_job(place, name):
    """Run a job that sorts lines with one map and one reduce; return what it spilled."""
    place.start(name, mapper=elastic("cat"), reducer=elastic("cat"), numReduceTasks=1, splitMaxSize="256Mi")
    place.succeed(name)
    counters = raw(place, name)["status"]["counters"]["Boathouse"]
    limits = {
        task_type: quantity.units(pod["spec"]["containers"][0]["resources"]["limits"]["memory"]) >> 20
        for task_type in ("map", "reduce")
        for pod in task_pods(place, name, task_type)
    }
    print(f"{name}: memory in MiB {limits}, {counters}")
    return counters.get("Spilled bytes", 0), limits


def fill_memory(place, left_bytes):
    """Leave so much memory on each node."""
    pods = []
    for node in node_names(place.cluster):
        taken = free(place.cluster, node, "memory") // 1000 - left_bytes
        pods.append(plain_pod(place, f"filler-{node}", node, ["sleep", "3600"], cpu="1m", memory=str(taken)))
    run_pods(place, *pods)


@pytest.mark.usefixtures("boathouse")
def test_a_map_and_a_reduce_with_less_memory_spill_more_and_write_the_same(place):
    place.put("in/a.txt", harness.text(10_000_000) * 4)
    spilled, limits = sort_job(place, "full")
    assert set(limits.values()) == {quantity.units(FULL) >> 20}
    fill_memory(place, 400 << 20)
    spilled_more, limits = sort_job(place, "shrunk")
    assert max(limits.values()) < 400
    assert spilled_more > spilled
    assert place.parts("shrunk") == place.parts("full")
    events = place.gateway.events(reason="MemoryShrunk")
    assert any(f"instead of {FULL}" in event["message"] for event in events)


# iKayak


@pytest.mark.usefixtures("boathouse")
def test_executors_that_start_together_have_nodes_reserved_for_them(apps):
    place = apps.place
    busy = {"command": ["sleep", "17"], "resources": {"requests": {"cpu": "800m", "memory": "64Mi"}}}
    for index in range(4):
        place.put(f"in/{index}.txt", b"a\n")
    place.start("known", mapper=busy, input=[place.url("in/0.txt")], **NO_REDUCE)
    place.succeed("known")
    place.start("busy", mapper=busy, **NO_REDUCE)
    harness.until(lambda: len(task_pods(place, "busy", "map")) == 4, "maps fill the nodes")
    executor = {"instances": 2, "coreRequest": "1200m", "memory": "512m"}
    spark_programs.squares(apps, "gang", seconds=0, executor=executor)
    message = harness.until(lambda: reserved_for(apps), "the condition says for how long nodes have been reserved")
    reserved = harness.until(lambda: reservations(place), "an event says which node is reserved")
    print(f"{reserved}\n{message}\n{command_line.output(place, 'explain', 'sparkapp/gang')}")
    assert any(re.fullmatch(r"\S+ is reserved for its pods; predicted wait \d+ s", message) for message in reserved)
    executors = harness.until(lambda: both(apps), "both executors run", timeout_s=spark_harness.TIMEOUT_S)
    assert len({pod["spec"]["nodeName"] for pod in executors}) == 2
    apps.succeed("gang")
    assert spark_programs.total(apps, "gang") == spark_programs.EXPECTED


def reservations(place):
    return [event["message"] for event in place.gateway.events(reason="Reserved")]


def scheduled(apps):
    """Return what the application's condition says of its scheduling."""
    conditions = apps.raw("gang").get("status", {}).get("conditions", ())
    return " ".join(one["message"] for one in conditions if one["type"] == names.ConditionType.SCHEDULED)


def reserved_for(apps):
    """Return what the condition says of the age of the reservation."""
    message = scheduled(apps)
    return message if re.search(r"reserved for it for \d+ s", message) else None


def both(apps):
    pods = apps.running("gang", model.EXECUTOR)
    return pods if len(pods) == 2 else None


# ILA


SIGNALS = {"enabled": True, "intervalSeconds": 5, "insecureSkipVerify": True, "cpu": "Pods"}
SPIN = "import time; end = time.process_time() + float(input())\nwhile time.process_time() < end: pass"
SPINNING = {"command": ["python3", "-c", SPIN], "resources": harness.SMALL}
"""Computes for as many seconds as its input says, with a request of a tenth of a CPU."""
NEIGHBOURS = 4


@pytest.fixture
def ila(as_before):
    """The profile `ila` with measurements of the nodes, which share a machine."""
    installed_with(as_before, {"profile": "ila", "signals": {"kubelets": SIGNALS}})


def spin(place, name, seconds, *, maps=1, node=None):
    """Start a job of maps that compute, on a node."""
    selector = {"kubernetes.io/hostname": node} if node else None
    data = [place.put(f"in-{name}/{number}.txt", f"{seconds}\n".encode()) for number in range(maps)]
    place.start(name, mapper=SPINNING, input=data, nodeSelector=selector, **NO_REDUCE)


def refused(place, name):
    """Return what a job's condition says if a predicted slowdown keeps tasks of it waiting."""
    conditions = raw(place, name).get("status", {}).get("conditions", ())
    message = " ".join(one["message"] for one in conditions if one["type"] == names.ConditionType.SCHEDULED)
    return message if "predicted slowdown" in message else ""


def refused_on(place, node):
    """Start jobs on a node, one after the other, until one waits; return its name, and what it says.

    A node that has not been measured yet refuses nothing.
    """
    for number in range(50):
        name = f"beside-{number}"
        spin(place, name, 0.1, node=node)
        harness.until(lambda name=name: refused(place, name) or place.look(name).finished, f"{name} waits, or ends")
        if message := refused(place, name):
            return name, message
    raise AssertionError("no task was refused")


@pytest.mark.long
@pytest.mark.usefixtures("ila")
def test_a_host_is_refused_because_of_its_neighbours_while_another_is_free(place):
    busy, idle = node_names(place.cluster)[:2]
    spin(place, "known", 3)
    place.succeed("known")
    spin(place, "neighbours", 3600, maps=NEIGHBOURS, node=busy)
    harness.until(lambda: len(task_pods(place, "neighbours", "map")) == NEIGHBOURS, "the neighbours compute")
    beside, message = refused_on(place, busy)
    print(f"{message}\n{command_line.output(place, 'explain', f'mrjob/{beside}')}")
    assert free(place.cluster, busy, "cpu") >= 100  # thousandths: it would fit
    spin(place, "elsewhere", 1)
    place.succeed("elsewhere")
    assert {pod["spec"]["nodeName"] for pod in task_pods(place, "elsewhere", "map")} == {idle}
    assert not task_pods(place, beside, "map")
    place.cluster.run("delete", "mrjob", "neighbours", "-n", place.namespace)
    place.succeed(beside)


# LATE

STUCK = """
case "$mapreduce_map_input_file $mapreduce_task_attempt_id" in *stuck.txt*_0) sleep 3600;; esac
exec python3 mapper.py
"""
"""Counts words, but for the first attempt on one file, which stops before it reads."""
QUICK_MAPS = 5


@pytest.fixture
def speculating(as_before):
    """The profile `fair` with second attempts."""
    installed_with(as_before, {"profile": "fair", "actuators": {"speculate": True}})


def running_alone(place, name):
    """Return the first attempt of the map that runs while all others have ended; None until then."""
    firsts = [pod for pod in place.pods(name) if (pod.task_type, pod.attempt) == ("map", 1)]
    left = [pod for pod in firsts if pod.finished_s is None and pod.node]
    return left[0] if len(left) == 1 and place.look(name).maps.succeeded == QUICK_MAPS else None


@pytest.mark.long
@pytest.mark.usefixtures("speculating")
def test_a_second_attempt_of_a_slow_map_runs_on_another_node_and_wins(place):
    data = harness.text(1_000_000)  # more than a pipe holds
    for name in ("stuck", *map(str, range(QUICK_MAPS))):
        place.put(f"in/{name}.txt", data)
    place.start("straggler", mapper={"command": ["sh", "-c", STUCK], "resources": harness.SMALL}, numReduceTasks=1)
    first = harness.until(lambda: running_alone(place, "straggler"), "one map is left")
    (other,) = set(node_names(place.cluster)) - {first.node}
    others = {"input": [place.url(f"in/{number}.txt") for number in range(QUICK_MAPS)], **NO_REDUCE}
    place.start("elsewhere", nodeSelector={"kubernetes.io/hostname": other}, **others)  # so that its node is not slow
    place.succeed("straggler")
    assert harness.pairs(place.parts("straggler")) == harness.counted(data * (QUICK_MAPS + 1))
    (winner,) = [pod for pod in place.pods("straggler") if pod.task == first.task and pod.phase == "Succeeded"]
    assert (winner.attempt, winner.node) == (2, other)
    assert place.look("straggler").maps.failed_attempts == 0
