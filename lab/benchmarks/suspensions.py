"""How long it takes to suspend and resume a reduce, beside a bare resize of a pod on the same node.

    python -m benchmarks.suspensions [--rounds 50] [--cluster boathouse-bench] [--keep 0]

The nodes must run on this machine, because times end when the cgroup of the container has changed. PROVIDER and CONTEXT
choose the cluster as for `make test-e2e`; a cluster that exists is used and left, with Boathouse of this checkout. Each
round suspends a reduce by the annotation of its job, waits until it is resumed at its deadline, and shrinks and grows a
plain pod by `pods/resize`. Prints medians and p99, the mean time of each step by the leader's metrics (`actuated`:
until the ledger has the CPU), and the ratios. The limit of a median is 1.5 times that of the bare resize plus 0.1 s. A
median above it is printed; only an error, such as a wrong output of the job, ends the command with another code than 0.
A round takes about 7 seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import math
import os
import re
import secrets
import statistics
import time
from typing import TYPE_CHECKING, Any

from benchmarks import support
from boathouse.cluster import catalogue, client, config
from boathouse.resources import names
from boathouse.services.mrjob.model import MRJOBS
from boathouse.suspension import stages as suspension_record
from boathouse_e2e import images, install, providers, storage, waiting
from boathouse_e2e.container_cpu import LimitSampler
from boathouse_e2e.spec import Cluster, ClusterSpec
from boathouse_task import contract
from e2e.tests import harness, reduces, replicas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FACTOR, BESIDE_S = 1.5, 0.1
"""The limit of a median: so many times that of the bare resize, and so much more."""
ANNOTATED, SUSPEND, RESUME = "suspend, from the annotation", "suspend, from the acknowledgement", "resume"
BARE = "bare resize"
PLAIN = "plain"
WITHIN_S = 60
SUSPENDED_S = 1.5
REQUEST = "100m"
REST_S = 1.5
"""Before each round, as a kubelet needs up to a second after one sync of a pod before the next (docs/scheduling.md)."""
STEP = re.compile(r'suspension_step_duration_seconds_(count|sum)\{[^}]*step="(\w+)"[^}]*\} (\S+)')
NOTES = {"actuated": ", until the ledger has the CPU"}
Steps = dict[str, tuple[float, float]]
"""How often there was a step, and how many seconds all took."""


class Latency:
    """Suspends one reduce by hand, and resizes a plain pod of its node, one after the other.

    Attributes:
        took_s: Seconds by what was done: until the cgroup had changed.
    """

    def __init__(self, namespace: str, api: client.ApiClient, sampler: LimitSampler, reduce: str) -> None:
        self._namespace, self._api, self._sampler, self._reduce = namespace, api, sampler, reduce
        self.took_s: dict[str, list[float]] = {what: [] for what in (ANNOTATED, SUSPEND, RESUME, BARE)}

    async def round(self) -> None:
        """Suspend and resume, and resize."""
        await asyncio.sleep(REST_S)
        began_s = time.time()
        moment = dt.datetime.fromtimestamp(math.ceil(began_s + SUSPENDED_S), dt.UTC)
        until = moment.isoformat().replace("+00:00", "Z")
        change = {"metadata": {"annotations": {names.ANNOTATION_SUSPEND_UNTIL: until}}}
        await self._api.patch(MRJOBS, reduces.JOB, change, self._namespace)
        stopped_s = await self._changed(self._reduce, contract.SUSPENDED_LIMIT_MILLI, began_s)
        record = suspension_record.parse((await self._pod()).metadata.annotations[names.ANNOTATION_SUSPENSION])
        if record is None:
            raise SystemExit(f"pod {self._reduce} is suspended and its record cannot be read")
        self.took_s[ANNOTATED].append(stopped_s - began_s)
        self.took_s[SUSPEND].append(stopped_s - record.since_s)
        resumed_s = await self._changed(self._reduce, reduces.LIMIT_MILLI, stopped_s)
        self.took_s[RESUME].append(resumed_s - record.until_s)
        await waiting.eventually(self._is_restored, "the reduce has its request again", within_s=WITHIN_S)
        for limit in (contract.SUSPENDED_LIMIT_MILLI, reduces.LIMIT_MILLI):
            await self._resize(limit)

    async def _resize(self, limit_milli: int) -> None:
        began_s = time.time()
        resources = {"requests": {"cpu": "1m"}, "limits": {"cpu": f"{limit_milli}m"}}
        change = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
        style = client.PatchStyle.STRATEGIC
        await self._api.patch(catalogue.PODS, PLAIN, change, self._namespace, style=style, subresource="resize")
        self.took_s[BARE].append(await self._changed(PLAIN, limit_milli, began_s) - began_s)

    async def _changed(self, name: str, limit_milli: int, after_s: float) -> float:
        """Wait until a container has a limit; return when it got it, in epoch seconds."""

        def changed() -> float | None:
            return self._sampler.changed_s(name, limit_milli, after_s)

        found = await waiting.eventually(changed, f"{name} has {limit_milli}m", within_s=WITHIN_S, every_s=0.01)
        assert found is not None
        return found

    async def _pod(self) -> Any:
        return await self._api.get(catalogue.PODS, self._reduce, self._namespace)

    async def _is_restored(self) -> Any:
        return (await self._pod()).spec.containers[0].resources.requests["cpu"] == REQUEST


def report(took_s: Mapping[str, list[float]], steps_s: Mapping[str, float]) -> list[str]:
    """Return the lines that say what was measured.

    Args:
        took_s: Seconds by what was done.
        steps_s: Mean time of each step. The acknowledgement follows on `order`.
    """
    p50_s = {what: statistics.median(times_s) for what, times_s in took_s.items()}
    p99_s = {what: statistics.quantiles(times_s, n=100, method="inclusive")[98] for what, times_s in took_s.items()}
    lines = [f"{what}: {len(took_s[what])} times, p50 {p50_s[what]:.3f} s, p99 {p99_s[what]:.3f} s" for what in took_s]
    lines += [f"step {step}{NOTES.get(step, '')}: mean {mean_s:.3f} s" for step, mean_s in steps_s.items()]
    most_s = FACTOR * p50_s[BARE] + BESIDE_S
    medians = {"suspend, from the order": p50_s[SUSPEND] + steps_s.get("order", 0.0), RESUME: p50_s[RESUME]}
    for what, median_s in medians.items():
        within = "within" if median_s <= most_s else "ABOVE"
        lines.append(
            f"{what}: median {median_s:.3f} s, ratio {median_s / p50_s[BARE]:.2f} to the bare resize, "
            f"{within} the limit of {most_s:.3f} s ({FACTOR} x bare + {BESIDE_S} s)"
        )
    return lines


def steps(cluster: Cluster) -> Steps:
    """Read the steps of all suspensions from the leader's metrics."""
    path = f"/api/v1/namespaces/{install.NAMESPACE}/pods/{replicas.leader(cluster).pod}:8080/proxy/metrics"
    return read_steps(cluster.run("get", "--raw", path))


def read_steps(text: str) -> Steps:
    """Read the steps of all suspensions from metrics."""
    found = {(step, what): float(value) for what, step, value in STEP.findall(text)}
    return {step: (count, found[step, "sum"]) for (step, what), count in found.items() if what == "count"}


def means_s(before: Steps, after: Steps) -> dict[str, float]:
    """Return the mean time of each step that there was in between."""
    found = {}
    for step, (count, total_s) in after.items():
        count_before, total_before_s = before.get(step, (0.0, 0.0))
        if count > count_before:
            found[step] = (total_s - total_before_s) / (count - count_before)
    return found


def plain_pod(place: harness.Place, node: str) -> dict[str, Any]:
    """Start a pod on a node that is resized without an operator."""
    resources = {"requests": {"cpu": "1m", "memory": "32Mi"}, "limits": {"cpu": f"{reduces.LIMIT_MILLI}m"}}
    image = {"image": "localhost/boathouse-task:dev", "imagePullPolicy": "IfNotPresent"}
    one = {"name": "c", "command": ["sleep", "3600"], "resources": resources, **image}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [one]}
    metadata = {"name": PLAIN, "namespace": place.namespace}
    place.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def running() -> dict[str, Any] | None:
        pod: dict[str, Any] = place.cluster.get(f"pod/{PLAIN}", "-n", place.namespace)
        return pod if pod["status"]["phase"] == "Running" else None

    return harness.until(running, "the plain pod runs")


async def measure(place: harness.Place, rounds: int) -> dict[str, list[float]]:
    """Suspend and resume a reduce so many times; return the seconds that each took."""
    data = reduces.start(place, count=1, cpu=REQUEST)
    (pod,) = reduces.running_reduces(place, 1)
    name = pod["metadata"]["name"]
    containers = {name: reduces.container(pod), PLAIN: reduces.container(plain_pod(place, pod["spec"]["nodeName"]))}
    async with client.ApiClient(config.from_kubeconfig(place.cluster.kubeconfig)) as api:
        with LimitSampler(containers) as sampler:
            latency = Latency(place.namespace, api, sampler, name)
            for number in range(rounds):
                await latency.round()
                if not (number + 1) % 10:
                    support.say(f"==> {number + 1} of {rounds} rounds")
    reduces.end_map(place)
    place.succeed(reduces.JOB)
    if harness.pairs(place.parts(reduces.JOB)) != harness.counted(data):
        raise SystemExit(f"the output of job {reduces.JOB} is wrong, although it succeeded")
    return latency.took_s


@contextlib.contextmanager
def prepared(name: str, *, keeps: bool, **shape: Any) -> Iterator[harness.Place]:
    """Start a cluster or use it, with Boathouse and a namespace; `shape` has more fields of the `ClusterSpec`."""
    provider = providers.choose(os.environ.get("PROVIDER", "auto"), name=name, context=os.environ.get("CONTEXT"))
    stays = keeps or provider.find(name) is not None
    try:
        cluster = provider.up(ClusterSpec(name=name, **{"nodes": 2, **shape}))
        images.load(cluster)
        install.install(cluster)
        credentials = storage.deploy(cluster)
        with storage.endpoint_from_host(cluster) as endpoint:
            bucket = storage.bucket(endpoint, credentials, harness.BUCKET)
            namespace = f"{name}-{secrets.token_hex(2)}"
            yield harness.make(cluster, credentials, bucket, namespace, labels={})
            cluster.run("delete", "namespace", namespace, "--wait=false")
    finally:
        if not stays:
            provider.down(name)


def main() -> None:
    asked = support.options(__doc__ or "", rounds=50, cluster="boathouse-bench", keep=0)
    with prepared(asked.cluster, keeps=bool(asked.keep)) as place:
        before = steps(place.cluster)
        took_s = asyncio.run(measure(place, asked.rounds))
        lines = report(took_s, means_s(before, steps(place.cluster)))
    support.say("\n".join(lines))


if __name__ == "__main__":
    main()
