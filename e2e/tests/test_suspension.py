"""Reduces that are suspended, judged by the cgroups of their containers. The nodes must run on this machine."""

import datetime as dt
import math
import re
import statistics
import time

import pytest

from boathouse.cluster import catalogue, client, config
from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling.pods import suspension
from boathouse.services.mrjob.job.model import MRJOBS
from boathouse_e2e import faults, install, invariants, suspensions, waiting
from boathouse_e2e.container_cpu import ContainerCpu, LimitSampler
from e2e.tests import harness, replicas

pytestmark = pytest.mark.cluster

JOB, BORROWER = "long", "borrower"
CPU = "1100m"
"""Two tasks of this request do not fit on a node."""
SUSPENDED_MILLI = suspension.SUSPENDED_LIMIT_MILLI
ROUNDS = 50
STEP = re.compile(r'suspension_step_duration_seconds_(count|sum)\{[^}]*step="(\w+)"[^}]*\} (\S+)')


def sleeper(seconds):
    """A mapper that is slow where its file is called so."""
    return ["sh", "-c", f'case "$mapreduce_map_input_file" in *slow*) sleep {seconds};; esac; exec python3 mapper.py']


def start(place, *, reduces, cpu, sleep_s):
    """Start a job whose reduces wait for a slow map; return its input."""
    data = harness.text(500_000)
    place.put("in/a.txt", data)
    place.put("in/slow.txt", data)
    reducer = {
        "command": ["python3", "reducer.py"],
        "resources": {"requests": {"cpu": cpu, "memory": "128Mi"}, "limits": {"cpu": "1500m"}},
    }
    mapper = {"command": sleeper(sleep_s), "resources": harness.SMALL}
    place.start(JOB, mapper=mapper, reducer=reducer, numReduceTasks=reduces, slowStartCompletedMapsPercent=0)
    return data + data


def reduces(place, count):
    """Wait until so many reduces run; return their pods."""

    def running():
        pods = [
            pod for pod in place.raw_pods(JOB) if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == "reduce"
        ]
        return pods if [pod["status"].get("phase") for pod in pods] == ["Running"] * count else None

    return harness.until(running, f"{count} reduces run")


def container(pod):
    return ContainerCpu.find(pod["status"]["containerStatuses"][0]["containerID"])


def suspend(place, for_s):
    until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=for_s)
    annotate(place, f"{names.ANNOTATION_SUSPEND_UNTIL}={until.isoformat(timespec='seconds').replace('+00:00', 'Z')}")


def annotate(place, annotation):
    place.cluster.run("annotate", f"mrjob/{JOB}", "-n", place.namespace, "--overwrite", annotation)


def free_milli(cluster, node):
    """The CPU of a node that no pod holds."""
    pods = [pod for pod in cluster.get("pods", "-A")["items"] if pod["spec"].get("nodeName") == node]
    held = sum(invariants.requests(pod).get("cpu", 0) for pod in pods if not invariants.has_ended(pod))
    return quantity.milli(cluster.get("node", node)["status"]["allocatable"]["cpu"]) - held


@pytest.mark.timeout(600)
def test_reduces_stop_while_a_map_uses_their_cpu_and_continue_with_the_right_output(place):
    with faults.recording(place.cluster) as recording:
        data = start(place, reduces=2, cpu=CPU, sleep_s=60)
        pods = reduces(place, 2)
        free = {pod["spec"]["nodeName"]: free_milli(place.cluster, pod["spec"]["nodeName"]) for pod in pods}
        assert max(free.values()) < quantity.milli(CPU)
        mapper = {"command": ["sh", "-c", "sleep 5; cat"], "resources": {"requests": {"cpu": CPU, "memory": "128Mi"}}}
        place.start(BORROWER, mapper=mapper, input=[place.url("in/a.txt")], reducer=None, numReduceTasks=None)
        suspend(place, 120)
        paused = [container(pod) for pod in pods]
        harness.until(lambda: {each.limit_milli() for each in paused} == {SUSPENDED_MILLI}, "the reduces have 10m CPU")
        harness.until(lambda: borrower_node(place) in free, "a map runs in the CPU of a reduce")
        assert max(each.rate(1) for each in paused) < 0.02
        harness.until(lambda: place.look(JOB).holds(names.ConditionType.REDUCERS_SUSPENDED), "the job says so")
        place.succeed(BORROWER)
        annotate(place, f"{names.ANNOTATION_SUSPEND_UNTIL}-")
        harness.until(lambda: {each.limit_milli() for each in paused} == {1500}, "the reduces have their CPU again")
        job = place.succeed(JOB)
        assert harness.pairs(place.parts(JOB)) == harness.counted(data)
        assert [*recording.over_commits(), *recording.wrong_suspensions()] == []
    counters = place.gateway.job("mrjobs", JOB)["status"]["counters"]
    assert counters["Boathouse"]["Suspended milliseconds"] > 5000
    assert not job.failures


def borrower_node(place):
    """The node on which the map of the borrowing job runs."""
    pods = [pod for pod in place.raw_pods(BORROWER) if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == "map"]
    return next((pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Running"), None)


class Latency:
    """Suspends one reduce by hand, and resizes a plain pod of its node, one after the other.

    Attributes:
        took_s: Seconds by what was done: until the cgroup had changed.
    """

    def __init__(self, place, api, sampler, reduce, plain):
        self._place, self._api, self._sampler = place, api, sampler
        self._reduce, self._plain = reduce, plain
        self.took_s = {"suspend, from the annotation": [], "suspend, from its acknowledgement": []}
        self.took_s |= {"resume": [], "bare resize": []}

    async def round(self):
        """Suspend and resume, and resize."""
        began_s = time.time()
        until_s = math.ceil(began_s + 1.5)
        moment = dt.datetime.fromtimestamp(until_s, dt.UTC).isoformat().replace("+00:00", "Z")
        change = {"metadata": {"annotations": {names.ANNOTATION_SUSPEND_UNTIL: moment}}}
        await self._api.patch(MRJOBS, JOB, change, self._place.namespace)
        stopped_s = await self._changed("reduce", SUSPENDED_MILLI, began_s)
        record = suspension.parse((await self._pod()).metadata.annotations[names.ANNOTATION_SUSPENSION])
        self.took_s["suspend, from the annotation"].append(stopped_s - began_s)
        self.took_s["suspend, from its acknowledgement"].append(stopped_s - record.since_s)
        resumed_s = await self._changed("reduce", 1500, stopped_s)
        self.took_s["resume"].append(resumed_s - record.until_s)
        await waiting.eventually(self._is_restored, "the reduce has its request again", within_s=30)
        for limit in (SUSPENDED_MILLI, 1500):
            await self._resize(limit)

    async def _resize(self, limit_milli):
        began_s = time.time()
        resources = {"requests": {"cpu": "1m"}, "limits": {"cpu": f"{limit_milli}m"}}
        change = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        style = client.PatchStyle.STRATEGIC
        await self._api.patch(
            catalogue.PODS, self._plain, change, self._place.namespace, style=style, subresource="resize"
        )
        self.took_s["bare resize"].append(await self._changed("plain", limit_milli, began_s) - began_s)

    async def _changed(self, name, limit_milli, after_s):
        what = f"{name} has {limit_milli}m"
        look = lambda: self._sampler.changed_s(name, limit_milli, after_s)  # noqa: E731 - one expression
        return await waiting.eventually(look, what, within_s=60, every_s=0.01)

    async def _pod(self):
        return await self._api.get(catalogue.PODS, self._reduce, self._place.namespace)

    async def _is_restored(self):
        task = (await self._pod()).spec.containers[0]
        return task.resources.requests["cpu"] == "100m"

    def report(self):
        """Print all figures; return the medians."""
        for what, took_s in self.took_s.items():
            print(
                f"{what}: {len(took_s)} times, p50 {statistics.median(took_s):.3f} s, "
                f"p99 {statistics.quantiles(took_s, n=100)[98]:.3f} s"
            )
        return {what: statistics.median(took_s) for what, took_s in self.took_s.items()}


def steps_s(cluster):
    """Print and return how long the steps of suspensions took on average, by the leader's metrics."""
    path = f"/api/v1/namespaces/{install.NAMESPACE}/pods/{replicas.leader(cluster).pod}:8080/proxy/metrics"
    sums = {(step, what): float(value) for what, step, value in STEP.findall(cluster.run("get", "--raw", path))}
    counts = {step: count for (step, what), count in sums.items() if what == "count" and count}
    means = {step: sums[step, "sum"] / count for step, count in counts.items()}
    for step, mean_s in means.items():
        print(f"step {step}: {counts[step]:.0f} times, mean {mean_s:.3f} s")
    return means


def plain_pod(place, node):
    """Start a pod on a node that is resized without an operator."""
    resources = {"requests": {"cpu": "1m", "memory": "32Mi"}, "limits": {"cpu": "1500m"}}
    image = {"image": "localhost/boathouse-task:dev", "imagePullPolicy": "IfNotPresent"}
    one = {"name": "c", "command": ["sleep", "3600"], "resources": resources, **image}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [one]}
    metadata = {"name": "plain", "namespace": place.namespace}
    place.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def running():
        pod = place.cluster.get("pod/plain", "-n", place.namespace)
        return pod if pod["status"]["phase"] == "Running" else None

    return harness.until(running, "the plain pod runs")


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_a_suspension_takes_little_longer_than_a_bare_resize(place):
    data = start(place, reduces=1, cpu="100m", sleep_s=ROUNDS * 8)
    (pod,) = reduces(place, 1)
    plain = plain_pod(place, pod["spec"]["nodeName"])
    containers = {"reduce": container(pod), "plain": container(plain)}
    kubeconfig = config.from_kubeconfig(place.cluster.kubeconfig)
    async with client.ApiClient(kubeconfig) as api:
        with LimitSampler(containers) as sampler:
            latency = Latency(place, api, sampler, pod["metadata"]["name"], "plain")
            for _ in range(ROUNDS):
                await latency.round()
    medians, steps = latency.report(), steps_s(place.cluster)
    most_s = 1.5 * medians["bare resize"] + 0.1
    assert medians["suspend, from its acknowledgement"] + steps["order"] <= most_s
    assert medians["resume"] <= most_s
    place.succeed(JOB, timeout_s=ROUNDS * 10)
    assert harness.pairs(place.parts(JOB)) == harness.counted(data)
    assert max(latency.took_s["resume"]) < suspensions.LATE_S
