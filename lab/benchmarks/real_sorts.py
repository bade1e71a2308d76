"""Sorts on a real kubelet whose memory is scarce: Boathouse beside kube-scheduler with the same pods.

    python -m benchmarks.real_sorts [--rounds 3] [--seed 1] [--jobs 9] [--node-mib 1536]
                                    [--cluster boathouse-sorts] [--keep 0]

MRJobs of 1 to 6 maps and one reduce sort random lines. A map gets its input at 4 MB/s, as from a busy store, so that
the machine's cores do not limit it. It requests more than half of what the only node has free, so that one map with all
of its memory runs at a time; with less memory it spills to the disk. The reduce of a job starts after its last map.
Each round submits the same jobs at the same times, once with the default profile, and once with pods that an admission
policy gives to kube-scheduler: Boathouse creates them and kube-scheduler places them.
Before the rounds one job runs alone, from which the default profile learns run times.

Checks that each output is its input in order, and prints mean times from submission to end, what was spilled, and the
ratio. Needs the local provider, which limits what a node has.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import statistics
import time
import zlib
from typing import TYPE_CHECKING

from benchmarks import support, suspensions
from boathouse.resources import quantity
from boathouse_cli import kinds, mrjobs
from boathouse_e2e import install, invariants
from boathouse_task import counters
from e2e.tests import harness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_e2e.spec import Cluster

AIM = 0.75
"""Of the mix: the largest ratio to kube-scheduler that the default profile should have."""
SPLIT_MIB = 32
LEAST_MIB = 128
"""What a map runs with at least."""
SHARE = 0.6
"""Of the node's free memory, which a map requests."""
SIZES = (1, 1, 1, 1, 2, 2, 3, 4, 6)
"""Maps of the jobs."""
APART_S = 3.0
"""Mean time between two submissions."""
LINE_BYTES = 128
MAPPER = """
import sys, time
while piece := sys.stdin.buffer.read(1 << 18):
    sys.stdout.buffer.write(piece)
    time.sleep(1 / 16)
"""
KUBE_SCHEDULER, BOATHOUSE = "kube-scheduler", "boathouse"
POLICY = "given-to-kube-scheduler"
_API = "admissionregistration.k8s.io/v1"


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """A job of the workload.

    Attributes:
        name: Without the round's.
        maps: How many.
        submit_s: When it is submitted, from the start of its round.
    """

    name: str
    maps: int
    submit_s: float


def workload(seed: int, jobs: int) -> Sequence[Job]:
    """Draw a workload."""
    chance = random.Random(seed)  # noqa: S311 - a workload
    sizes = list(itertools.islice(itertools.cycle(SIZES), jobs))
    chance.shuffle(sizes)
    times_s = itertools.accumulate((chance.expovariate(1 / APART_S) for _ in sizes[1:]), initial=0.0)
    return [Job(f"sort-{n}", *both) for n, both in enumerate(zip(sizes, times_s, strict=True))]


def lines(maps: int) -> bytes:
    """Return the input of a job: lines of random letters, those of fewer maps first."""
    count, chance = maps * (SPLIT_MIB << 20) // LINE_BYTES, random.Random(maps)  # noqa: S311 - a workload
    return b"".join(b"%s\n" % chance.randbytes(LINE_BYTES // 2).hex()[1:].encode() for _ in range(count))


def checksum(data: Iterable[bytes]) -> int:
    """Return a number that does not depend on the order of lines."""
    return sum(map(zlib.crc32, data))


class Sorts:
    """Runs the jobs of rounds on one cluster."""

    def __init__(self, place: harness.Place) -> None:
        self._place = place
        self._map_mib = int(SHARE * free_mib(place.cluster))
        self._sums: dict[int, int] = {}

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Store the inputs, and let the default profile learn from a job that runs alone."""
        for maps in sorted({job.maps for job in jobs} | {LEARNED.maps}):
            data = lines(maps)
            self._place.put(f"in/{maps}", data)
            self._sums[maps] = checksum(data.splitlines())
        support.say(f"==> a map requests {self._map_mib} MiB and runs with {LEAST_MIB} MiB at least")
        self.round([LEARNED], "alone")

    def round(self, jobs: Sequence[Job], name: str) -> Mapping[str, float]:
        """Run the jobs; return seconds from submission to end, by job."""
        began_s, submitted_s = time.monotonic(), {}
        for job in jobs:
            time.sleep(max(0.0, began_s + job.submit_s - time.monotonic()))
            submitted_s[job.name] = time.monotonic()
            self._start(job, name)
        return self._finish(jobs, name, submitted_s)

    def _start(self, job: Job, name: str) -> None:
        elastic = {"min": f"{LEAST_MIB}Mi", "slowdownPercent": 50}
        resources = {"requests": {"cpu": "250m", "memory": f"{self._map_mib}Mi"}}
        self._place.start(
            f"{name}-{job.name}",
            input=[self._place.url(f"in/{job.maps}")],
            mapper={"command": ["python3", "-c", MAPPER], "resources": resources, "elasticMemory": elastic},
            reducer={"command": ["cat"], "resources": {"requests": {"cpu": "250m", "memory": "160Mi"}}},
            numReduceTasks=1,
            slowStartCompletedMapsPercent=100,
            splitMaxSize=f"{SPLIT_MIB}Mi",
            files=None,
        )

    def _finish(self, jobs: Sequence[Job], name: str, submitted_s: Mapping[str, float]) -> Mapping[str, float]:
        took_s: dict[str, float] = {}
        spilled, left = 0, {f"{name}-{job.name}": job for job in jobs}
        while left:
            for raw in self._place.gateway.objects(kinds.MRJOB.plural, all_namespaces=False):
                found = mrjobs.read(raw)
                if found.finished and (job := left.pop(found.name, None)) is not None:
                    took_s[job.name] = time.monotonic() - submitted_s[job.name]
                    spilled += self._check(found, job)
            time.sleep(0.5)
        for job in jobs:
            self._place.cluster.run("delete", "mrjob", f"{name}-{job.name}", "-n", self._place.namespace)
        support.say(f"    {name}: mean {statistics.fmean(took_s.values()):.1f} s, {spilled >> 20} MiB spilled")
        return took_s

    def _check(self, found: mrjobs.MRJob, job: Job) -> int:
        """Return how many bytes the tasks of a job spilled; its output is its input in order.

        Raises:
            SystemExit: It is not.
        """
        if found.phase != "Succeeded":
            raise SystemExit(f"mrjob/{found.name}: {found.phase}: {found.failures}")
        (output,) = self._place.parts(found.name).values()
        got = [line.rstrip(b"\t") for line in output.splitlines()]
        if checksum(got) != self._sums[job.maps] or any(a > b for a, b in itertools.pairwise(got)):
            raise SystemExit(f"the output of mrjob/{found.name} is not its input in order")
        return sum(group.get(counters.SPILLED_BYTES, 0) for group in found.counters.values())


def free_mib(cluster: Cluster) -> int:
    """Return the memory of the only node that no pod has requested."""
    (node,) = cluster.workers()
    pods = [pod for pod in cluster.get("pods", "-A")["items"] if not invariants.has_ended(pod)]
    held = sum(invariants.requests(pod).get("memory", 0) for pod in pods)
    return (quantity.milli(node["status"]["allocatable"]["memory"]) - held) // 1000 >> 20


def give_to_kube_scheduler(place: harness.Place) -> None:
    """Have kube-scheduler place the pods of the namespace that are created from now on."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}
    change = 'Object{spec: Object.spec{schedulerName: "default-scheduler"}}'
    policy = {
        "matchConstraints": {"resourceRules": [pods], "namespaceSelector": here},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": change}}],
    }
    kind, metadata = "MutatingAdmissionPolicy", {"name": POLICY}
    place.cluster.apply({"apiVersion": _API, "kind": kind, "metadata": metadata, "spec": policy})
    binding = {"policyName": POLICY}
    place.cluster.apply({"apiVersion": _API, "kind": f"{kind}Binding", "metadata": metadata, "spec": binding})

    def is_given() -> bool:
        pod = {"containers": [{"name": "c", "image": "none"}], "schedulerName": BOATHOUSE}
        metadata = {"name": "tried", "namespace": place.namespace}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
        tried = place.cluster.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(manifest))
        return bool(json.loads(tried)["spec"]["schedulerName"] != BOATHOUSE)

    harness.until(is_given, "the admission policy gives pods to kube-scheduler")


def give_back(place: harness.Place) -> None:
    """Let Boathouse place the pods of the namespace again."""
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        place.cluster.run("delete", kind, POLICY)


def main() -> None:
    asked = support.options(
        __doc__ or "", rounds=3, seed=1, jobs=9, cluster="boathouse-sorts", keep=0, **{"node-mib": 1536}
    )
    jobs, ratios = workload(asked.seed, asked.jobs), []
    shape = {"nodes": 1, "node_memory_mib": asked.node_mib}
    with suspensions.prepared(asked.cluster, keeps=bool(asked.keep), **shape) as place:
        install.install(place.cluster, {"replicas": 1})
        sorts = Sorts(place)
        sorts.prepare(jobs)
        for number in range(asked.rounds):
            support.say(f"==> round {number + 1} of {asked.rounds}")
            means_s = {}
            for scheduler in (BOATHOUSE, KUBE_SCHEDULER) if number % 2 == 0 else (KUBE_SCHEDULER, BOATHOUSE):
                if scheduler == KUBE_SCHEDULER:
                    give_to_kube_scheduler(place)
                took_s = sorts.round(jobs, f"{scheduler}-{number}")
                means_s[scheduler] = statistics.fmean(took_s.values())
                if scheduler == KUBE_SCHEDULER:
                    give_back(place)
            ratios.append(means_s[BOATHOUSE] / means_s[KUBE_SCHEDULER])
    ratio = statistics.geometric_mean(ratios)
    by_round = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    reached = "reached" if ratio <= AIM else "NOT reached"
    support.say(f"boathouse / kube-scheduler: {ratio:.2f} (by round {by_round}); aim at most {AIM}: {reached}")


LEARNED = Job("sort-alone", 4, 0.0)

if __name__ == "__main__":
    main()
