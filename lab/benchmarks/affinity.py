"""CPU of a placement with constraints on other pods, as a ratio to that without, in one process.

    python -m benchmarks.affinity [--quick] [--nodes 1000] [--pods 10000]

Each case fills a cluster with pods and then lets pods end one by one, each end followed by a cycle. `fill` is the first
cycle, `ends` the cycles after. Cases take turns; figures are CPU time of this process, medians of the rounds.

    plain      no pod has a constraint on other pods: the baseline
    hosts      every pending pod excludes its like from its node
    zones      spread over 200 zones, with a selector that matches every pod
    near       affinity to pods of the zone, with a selector that matches every pod
    others     2,000 of the pods on nodes forbid their like; the pending pods have no constraint and match nothing
    tenant     one namespace has 2,000 different selectors of its pods; the pending pods are of another namespace
    wide       as tenant, with selectors of all namespaces that match no pending pod
    all        as tenant, with selectors that match every pod of all namespaces, and a label that no node has
    keys       as all, with a different label in each selector and as each topology key
    shapes     200 pods of another namespace are pending, of different shapes that fit nowhere
    queued     the same, and each has such a selector of its own; compared with shapes
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.core import QUEUE
from boathouse_policies import framework, model, profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30
SIZE = model.Resources(cpu_milli=100, memory_bytes=GIB // 4)
NODE = model.Resources(cpu_milli=100_000, memory_bytes=400 * GIB)
ZONES = 200
ROUNDS = 300
QUEUED = 200
EVERYTHING = model.Selector()
LABELS = [{"app": f"app-{i}"} for i in range(50)]
"""Those of pods of one owner, which share the value."""
CASES = ("plain", "hosts", "zones", "near", "others", "tenant", "wide", "all", "keys", "shapes", "queued")
MOST = {
    "hosts": 3.0,
    "zones": 3.0,
    "near": 3.0,
    "others": 1.3,
    "tenant": 2.0,
    "wide": 2.0,
    "all": 2.0,
    "keys": 2.0,
    "queued": 2.0,
}
"""The greatest ratio of each case."""


def label(key: str, value: str) -> model.Selector:
    """Return a selector of one label."""
    return model.Selector(expressions=(model.Expression(key=key, operator=model.Operator.IN, values=(value,)),))


def term(key: str, selector: model.Selector, namespace: str = "a") -> model.PodTerm:
    """Return a term over pods of a namespace."""
    return model.PodTerm(topology_key=key, pods=model.PodSet(selector=selector, namespaces=(namespace,)))


def everywhere(key: str, operator: model.Operator, topology_key: str) -> model.PodTerm:
    """Return a term over pods of all namespaces that have a label, or have it not."""
    selector = model.Selector(expressions=(model.Expression(key=key, operator=operator),))
    return model.PodTerm(topology_key=topology_key, pods=model.PodSet(selector=selector, namespace_selector=EVERYTHING))


TENANTS = {
    "tenant": lambda i: term("host", label("app", f"tenant-{i}"), "b"),
    "wide": lambda i: everywhere(f"key-{i}", model.Operator.EXISTS, "host"),
    "all": lambda i: everywhere(f"key-{i}", model.Operator.DOES_NOT_EXIST, "no-such-label"),
    "keys": lambda i: everywhere(f"key-{i}", model.Operator.DOES_NOT_EXIST, f"no-such-label-{i}"),
}
"""The term of each pod of the other namespace."""


class World:
    """A cluster of pods of other schedulers, and a job of pending pods.

    Args:
        case: The name of the case.
        nodes: The number of nodes.
        pods: The number of pods on them.
    """

    def __init__(self, case: str, nodes: int, pods: int) -> None:
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        self.queue = framework.SchedulingQueue(self.axis, [model.Queue.of(QUEUE)])
        self.profile = profiles.build("fair")
        self.running: list[model.TaskId] = []
        for i in range(nodes):
            labels = {"host": f"n{i}", "zone": f"z{i % ZONES}"}
            self.ledger.set_node(
                model.Node(name=model.NodeName(f"node-{i:05}"), allocatable=NODE, max_pods=500, labels=labels)
            )
        for i in range(pods):
            self._show(case, i, nodes)
        self.job = model.Job(id=model.JobId("job"), queue=QUEUE, submitted_s=0.0, namespace=model.NamespaceName("a"))
        self._submit(case, nodes)
        if case in {"shapes", "queued"}:
            self._queue_shapes(with_selectors=case == "queued")

    def _show(self, case: str, i: int, nodes: int) -> None:
        namespace, labels = "a", LABELS[i % len(LABELS)]
        anti: tuple[model.PodTerm, ...] = ()
        if case == "others" and i % 5 == 0:
            labels = {"app": f"hermit-{i % 100}"}
            anti = (term("host", label("app", labels["app"])),)
        if case in TENANTS and i % 5 == 0:
            namespace, labels = "b", {"app": f"tenant-{i}"}
            anti = (TENANTS[case](i),)
        self.ledger.observe(
            framework.Account(
                id=model.TaskId(f"{namespace}/pod-{i}"),
                node=model.NodeName(f"node-{i % nodes:05}"),
                resources=SIZE,
                namespace=model.NamespaceName(namespace),
                labels=labels,
                anti_affinity=anti,
            )
        )

    def _submit(self, case: str, nodes: int) -> None:
        labels, constraints = {"app": "mine"}, model.UNCONSTRAINED
        if case == "hosts":
            constraints = model.Constraints(pod_anti_affinity=(term("host", label("app", "mine")),))
        elif case == "zones":
            absent = model.Expression(key="absent", operator=model.Operator.DOES_NOT_EXIST)
            everything = model.Selector(expressions=(absent,))  # a spread constraint with an empty one counts no pod
            constraints = model.Constraints(
                spread=(model.Spread(topology_key="zone", max_skew=1, selector=everything),)
            )
        elif case == "near":
            constraints = model.Constraints(pod_affinity=(term("zone", EVERYTHING),))
        one = model.TaskClass(
            id=model.ClassId("job/pods"), job=self.job.id, resources=SIZE, labels=labels, constraints=constraints
        )
        tasks = [model.Task(id=model.TaskId(f"a/mine-{i}"), task_class=one.id, index=i) for i in range(2 * nodes)]
        self.queue.submit(self.job, [one], tasks)

    def _queue_shapes(self, *, with_selectors: bool) -> None:
        job = model.Job(id=model.JobId("b"), queue=QUEUE, submitted_s=0.0, namespace=model.NamespaceName("b"))
        classes = [
            model.TaskClass(
                id=model.ClassId(f"b/{i}"),
                job=job.id,
                resources=SIZE,
                constraints=model.Constraints(
                    node_selector=(("no-such-label", f"x{i}"),),
                    pod_anti_affinity=(TENANTS["all"](i),) if with_selectors else (),
                ),
            )
            for i in range(QUEUED)
        ]
        tasks = [model.Task(id=model.TaskId(task_class.id), task_class=task_class.id) for task_class in classes]
        self.queue.submit(job, classes, tasks)
        self.queue.sorted_classes().declare(self.ledger.tallies)  # the operator admits new selectors at a limited rate

    def cycle(self, most: int | None = None) -> tuple[int, float]:
        """Return one cycle with what follows from it: (placements, CPU seconds)."""
        start = time.process_time()
        self.queue.wake(self.ledger.tallies.take_woken())
        plan = framework.run_cycle(self.queue, self.profile, self.ledger.snapshot(0.0, max_per_node=most))
        placements = [one for one in plan.decisions if isinstance(one, model.Create | model.Bind)]
        self.queue.apply(plan, 0.0)
        for one in placements:
            self.ledger.assume(one)
        seconds = time.process_time() - start
        self.running += [one.task.id for one in placements]
        return len(placements), seconds

    def ends(self) -> Iterator[float]:
        """Yield the CPU seconds of each end of a pod, with the cycle that follows and its placement."""
        for _ in range(ROUNDS):
            start = time.process_time()
            task = self.running.pop(0)
            freed = self.ledger.gone(task)
            assert freed is not None
            self.queue.capacity_freed(freed, self.ledger.free(freed.node))
            self.queue.put_back(task, model.ClassId("job/pods"))
            seconds = time.process_time() - start
            yield seconds + self.cycle()[1]


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one round instead of five")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    arguments = parser.parse_args()
    fills: dict[str, list[float]] = {case: [] for case in CASES}
    ends: dict[str, list[float]] = {case: [] for case in CASES}
    for _ in range(1 if arguments.quick else 5):
        for case in CASES:
            world = World(case, arguments.nodes, arguments.pods)
            placed, seconds = world.cycle(most=1)
            fills[case].append(1e6 * seconds / placed)
            ends[case].append(1e6 * statistics.median(world.ends()))
    print(_line("case", "fill µs each", "ratio", "ends µs each", "ratio", "at most"))
    for case in CASES:
        base = [statistics.median(of["shapes" if case == "queued" else "plain"]) for of in (fills, ends)]
        figures = [statistics.median(of[case]) for of in (fills, ends)]
        ratios = [f"{figure / least:.2f}x" for figure, least in zip(figures, base, strict=True)]
        most = f"{MOST[case]:.1f}x" if case in MOST else ""
        print(_line(case, f"{figures[0]:.1f}", ratios[0], f"{figures[1]:.1f}", ratios[1], most))


def _line(*cells: object) -> str:
    return " ".join(f"{cell!s:>14}" for cell in cells)


if __name__ == "__main__":
    main()
