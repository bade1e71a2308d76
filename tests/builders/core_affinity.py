"""Drawn and given constraints on other pods, and a shell that knows their reference.

Few values are drawn, so that nearly everything concerns everything.
"""

from __future__ import annotations

from hypothesis import strategies as st

from boathouse_policies import model
from boathouse_policies.framework import eligibility
from tests.builders import core
from tests.unit.policies.affinity import reference

IN, NOT_IN, EXISTS = model.Operator.IN, model.Operator.NOT_IN, model.Operator.EXISTS
ABSENT = model.Operator.DOES_NOT_EXIST


def selector(*expressions: tuple) -> model.Selector:
    """A selector of (key, operator, values...)."""
    return model.Selector(
        expressions=tuple(
            model.Expression(key=key, operator=how, values=tuple(values)) for key, how, *values in expressions
        )
    )


def label(key: str, value: str) -> model.Selector:
    """A selector of one label."""
    return model.Selector(expressions=(model.Expression(key=key, operator=IN, values=(value,)),))


expressions = st.builds(
    lambda key, how, values: model.Expression(key=key, operator=how, values=values if how in {IN, NOT_IN} else ()),
    st.sampled_from(["app", "tier"]),
    st.sampled_from([IN, IN, IN, NOT_IN, EXISTS, ABSENT]),
    st.sampled_from([("a",), ("b",), ("a", "b")]),
)
selectors = st.one_of(
    st.none(),
    st.builds(lambda found: model.Selector(expressions=tuple(found)), st.lists(expressions, max_size=2)),
)
namespaces_of_terms = st.sampled_from([("x",), ("x",), ("x", "y"), ("y",)])
labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("ab")})
keys = st.sampled_from(["zone", "host", "host"])
pod_sets = st.one_of(
    st.builds(model.PodSet, selector=selectors, namespaces=namespaces_of_terms),
    st.builds(model.PodSet, selector=selectors, namespace_selector=selectors, namespaces=st.sampled_from([(), ("y",)])),
)
terms = st.builds(model.PodTerm, topology_key=keys, pods=pod_sets)
spreads = st.builds(
    model.Spread,
    topology_key=keys,
    max_skew=st.integers(1, 2),
    selector=selectors,
    min_domains=st.sampled_from([1, 1, 2, 4]),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
)
node_selectors = st.sampled_from([(), (), (("disk", "ssd"),)])
tolerations = st.sampled_from([(), (model.Toleration(key="t", operator=model.TolerationOperator.EXISTS),)])


def few(values, most=2):
    """A short tuple."""
    return st.lists(values, max_size=most).map(tuple)


constraints = st.builds(
    model.Constraints,
    node_selector=node_selectors,
    tolerations=tolerations,
    pod_affinity=st.one_of(st.just(()), few(terms)),
    pod_anti_affinity=st.one_of(st.just(()), few(terms)),
    spread=st.one_of(st.just(()), few(spreads)),
)
namespaces = st.fixed_dictionaries({}, optional={"x": labels, "y": labels})


@st.composite
def drawn_nodes(draw: st.DrawFn, most: int = 6) -> list[model.Node]:
    """Some nodes; some lack a label, or have a taint."""
    return [
        core.node(
            f"n{i}",
            max_pods=draw(st.sampled_from([1, 3, 110])),
            taints=draw(st.sampled_from([(), (), (model.Taint(key="t"),)])),
            labels={
                key: value
                for key, value in {
                    "host": f"n{i}",
                    "zone": draw(st.sampled_from("abc")),
                    "disk": draw(st.sampled_from(["ssd", "hdd"])),
                }.items()
                if draw(st.integers(0, 7))
            },
        )
        for i in range(draw(st.integers(1, most)))
    ]


@st.composite
def drawn_pods(draw: st.DrawFn, where: st.SearchStrategy[str]) -> reference.Pod:
    """A pod on a node, perhaps one that does not exist."""
    anti = draw(st.one_of(st.just(()), few(terms)))
    return reference.Pod(
        namespace=draw(st.sampled_from("xy")),
        labels=draw(labels),
        constraints=model.Constraints(pod_anti_affinity=anti),
        node=draw(where),
        is_ending=draw(st.sampled_from([False, False, True])),
    )


class AffinityShell(core.Shell):
    """A shell whose pods have labels. It knows the same cluster as the reference."""

    def __init__(self, nodes: list[model.Node], namespaces: dict[str, dict[str, str]]) -> None:
        super().__init__(nodes)
        self.nodes, self.namespaces = {node.name: node for node in nodes}, namespaces
        self.pods: dict[str, reference.Pod] = {}
        for name, labels in namespaces.items():
            self.ledger.tallies.set_namespace(name, labels)

    def set_node(self, node: model.Node) -> None:
        """Add or change a node."""
        self.nodes[node.name] = node
        self.ledger.set_node(node)

    def set_namespace(self, name: str, labels: dict[str, str]) -> None:
        """Set the labels of a namespace."""
        self.namespaces[name] = labels
        self.ledger.tallies.set_namespace(name, labels)

    def observe(self, name: str, pod: reference.Pod) -> None:
        """Observe a pod of another scheduler."""
        self.pods[f"ns/{name}"] = pod
        fields = {"namespace": pod.namespace, "labels": pod.labels, "is_ending": pod.is_ending}
        anti_affinity = pod.constraints.pod_anti_affinity
        self.free(
            self.ledger.observe(core.account(name, pod.node, core.amount(10), anti_affinity=anti_affinity, **fields))
        )

    def submit_pods(self, name: str = "job", count: int = 1, namespace: str = "x", labels=(), **fields) -> None:
        """Submit a job of pods with labels."""
        self.submit(name, count, core.amount(10), namespace=namespace, labels=dict(labels), **fields)

    def end(self, task_id: str) -> None:
        del self.pods[task_id]
        super().end(task_id)

    @property
    def cluster(self) -> reference.Cluster:
        """What the reference judges."""
        return reference.Cluster(list(self.nodes.values()), list(self.pods.values()), self.namespaces)

    def settle(self) -> list[list[tuple[model.Placement, reference.Cluster]]]:
        """Run cycles until none is due: the placements of each, each with the cluster before it.

        Every placement must be allowed when it is made.
        """
        cycles = []
        for _ in range(200):
            self.queue.wake(self.ledger.tallies.take_woken())
            if not self.queue.tick(self.now_s):
                return cycles
            cycles.append([self._placed(placement) for placement in core.placements(self.cycle())])
        raise AssertionError("cycles go on for ever")

    def _placed(self, placement: model.Placement) -> tuple[model.Placement, reference.Cluster]:
        pod, before = pod_of(placement.task_class, placement.job, placement.node), self.cluster
        assert not before.refusal(pod, self.nodes[placement.node])
        self.pods[placement.task.id] = pod
        return placement, before

    def nodes_after_settling(self) -> list[str]:
        """The nodes of the pods that start, in order."""
        return [placement.node for cycle in self.settle() for placement, _ in cycle]

    def check_nothing_is_left_that_could_start(self) -> None:
        """Check that the reference refuses all pending pods on nodes with room."""
        cluster = self.cluster
        for queued in self.queue.sorted_classes().queued:
            of = queued.task_class
            if not queued.pool.count or of.gang_min:
                continue
            for node in self.nodes.values():
                free = self.ledger.free(node.name)
                has_room = free[model.PODS] >= 1 and free[model.CPU] >= 10
                if has_room and eligibility.refusal(of.constraints, node) is None:
                    assert cluster.refusal(pod_of(of, queued.job), node), f"{of} could start on {node}"


def pod_of(of: model.TaskClass, job: model.Job, node: str = "") -> reference.Pod:
    """The reference's pod for a task of a class."""
    return reference.Pod(job.namespace, of.labels, of.constraints, node)


def drawn_shell(data: st.DataObject, most_pods: int = 8) -> AffinityShell:
    """A shell with drawn nodes, namespaces and pods of other schedulers."""
    shell = AffinityShell(data.draw(drawn_nodes()), data.draw(namespaces))
    where = st.sampled_from([*shell.nodes, *shell.nodes, "gone"])
    for i, pod in enumerate(data.draw(st.lists(drawn_pods(where), max_size=most_pods))):
        shell.observe(f"p{i}", pod)
    return shell


def submit_drawn(shell: AffinityShell, data: st.DataObject, name: str, most: int = 4, **fields) -> None:
    """Submit a job with drawn labels and constraints."""
    drawn = {"namespace": st.sampled_from("xy"), "labels": labels, "constraints": constraints}
    count = data.draw(st.integers(1, most))
    shell.submit_pods(name, **{"count": count} | {key: data.draw(strategy) for key, strategy in drawn.items()} | fields)
