"""A namespace may have only so many shapes of pods, and so many constraints, considered at a time."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.config import TenantLimits
from boathouse.scheduling import limits as namespace_limits
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators.desks import Desk

TWO = TenantLimits(max_shapes=2)


def shape(number: int, constraints: int = 0, like: int | None = None) -> model.TaskClass:
    selector = tuple((f"k{number if like is None else like}-{i}", "v") for i in range(constraints))
    return model.TaskClass(
        id=model.ClassId(f"j/{number}"),
        job=model.JobId("j"),
        resources=model.Resources(cpu_milli=1),
        constraints=model.Constraints(node_selector=selector),
    )


class Book:
    """Variety, what waits, and a clock."""

    def __init__(self, limits: TenantLimits = TWO, nodes: int = 1) -> None:
        self.now_s = 0.0
        self.waiting: dict[model.ClassId, model.TaskClass] = {}
        self.variety = namespace_limits.Variety(
            limits, waiting=lambda _: self.waiting.values(), nodes=lambda: nodes, clock=lambda: self.now_s
        )

    def admits(self, one: model.TaskClass, namespace: str = "demo") -> bool:
        admitted = self.variety.refusal(namespace, one) is None
        if admitted and namespace == "demo":
            self.waiting[one.id] = one
        return admitted


def test_beyond_its_number_of_shapes_a_namespace_waits_and_others_do_not():
    book = Book()
    assert [book.admits(shape(n)) for n in range(3)] == [True, True, False]
    assert book.admits(shape(0))
    assert book.admits(shape(2), "other")


def test_when_a_shape_waits_no_more_another_is_considered():
    book = Book()
    for number in range(2):
        book.admits(shape(number))
    book.waiting.pop(shape(0).id)
    book.now_s += namespace_limits.RECOUNT_S
    assert book.admits(shape(2))
    assert not book.admits(shape(3))


def test_constraints_of_all_shapes_together_have_a_limit():
    book = Book(TenantLimits(max_constraints=10))
    assert book.admits(shape(1, constraints=6))
    assert not book.admits(shape(2, constraints=5))
    assert book.admits(shape(3, constraints=4))


def test_equal_constraints_of_several_shapes_count_once():
    book = Book(TenantLimits(max_constraints=10))
    assert all(book.admits(shape(number, constraints=6, like=1)) for number in range(100))


def test_new_constraints_are_evaluated_a_few_at_a_time_where_there_are_many_nodes():
    book = Book(TenantLimits(), nodes=1000)
    admitted = [book.admits(shape(number, constraints=5)) for number in range(100)]
    assert 30 <= admitted.count(True) <= 40
    for number, waited_s, expected in ((100, 1.0, range(6, 8)), (200, 10.0, range(33, 34))):  # a twentieth of the time
        book.now_s += waited_s
        assert sum(book.admits(shape(number + one, constraints=5)) for one in range(100)) in expected


def test_sizes_without_constraints_are_not_slowed_down():
    book = Book(TenantLimits(), nodes=1000)
    assert all(book.admits(shape(number)) for number in range(500))


def test_what_waits_no_more_is_forgotten():
    book = Book()
    book.admits(shape(1))
    book.waiting.clear()
    book.now_s += namespace_limits.FORGET_S
    book.variety.sweep()
    assert not book.variety._used


def test_values_of_an_expression_count_by_tens():
    values = tuple(map(str, range(25)))
    term = model.AffinityTerm(expressions=(model.Expression(key="k", operator=model.Operator.IN, values=values),))
    assert namespace_limits.count(model.Constraints(affinity=(term,))) == 1 + 1 + 2


# In the scheduler


def waiting_pod(number: int, **spec) -> wire.PodView:
    container = manifests.container(cpu=f"{number + 1}m")
    return manifests.pod_view(f"p{number}", containers=(container,), **spec)


def reported_reason(desk: Desk, number: int) -> str:
    return desk.row(f"demo/p{number}").report.condition.reason


async def test_a_pod_of_one_shape_too_many_says_so_and_is_placed_once_others_are_deleted():
    async with Desk(tenant_limits=TWO).writing() as desk:
        pods = [waiting_pod(number) for number in range(3)]
        for pod in pods:
            desk.show(pod)
        await desk.decide()
        assert reported_reason(desk, 2) == "TooComplex"
        while written := [what for verb, what in desk.requests if verb == "status"]:
            await desk.answer("status", written[0])
        desk.delete(pods[0])
        desk.now_s += 2.0
        desk.node("n1")
        assert ("bind", "uid-p2 n1") in await desk.decide()


async def test_a_job_of_one_shape_too_many_says_why_it_waits():
    async with Desk(tenant_limits=TWO).writing() as desk:
        for number in range(3):
            desk.submit(f"demo/t{number}", job_id=f"j{number}", cpu_milli=number + 1)
        await desk.decide()
        found = desk.scheduler.diagnosis("j2")
        assert (found.reason, "tenantLimits.maxShapes" in found.message) == ("TooComplex", True)
        desk.scheduler.withdraw("j0")
        desk.now_s += 2.0
        desk.node("n1")
        assert ("create", "t2 n1") in await desk.decide()


async def test_ten_thousand_shapes_leave_few_classes_to_each_cycle():
    async with Desk().writing() as desk:
        for number in range(2000):
            desk.show(waiting_pod(number))
        await desk.decide()
        assert len(desk.scheduler.state.queue.sorted_classes().queued) == 500
        for number in range(2000):
            desk.delete(waiting_pod(number))
        desk.now_s += 2.0
        await desk.decide()
        assert not any(row.is_excess for row in desk.scheduler.state.pods.waiting())


async def test_too_many_constraints_are_dropped_and_the_condition_says_so():
    values = [f"value-{number}" for number in range(20_000)]
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    raw = {"schedulerName": names.SCHEDULER_NAME, "affinity": {"nodeAffinity": required}}
    spec = msgspec.convert(raw, wire.PodSpec)
    assert (spec.affinity, spec.too_many_constraints) == (None, 2002)
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(wire.PodView(metadata=waiting_pod(0).metadata, spec=spec))
        assert await desk.decide() == [("status", "p0")]
        assert reported_reason(desk, 0) == "TooComplex"


@pytest.mark.parametrize("count", [0, wire.MOST_CONSTRAINTS])
def test_constraints_within_measure_are_kept(count):
    selector = {f"k{number}": "v" for number in range(count)}
    spec = wire.PodSpec(node_selector=selector)
    assert (spec.node_selector, spec.too_many_constraints) == (selector, 0)


def test_a_pod_cannot_claim_to_have_too_many_constraints():
    raw = b'{"too_many_constraints": 5, "tooManyConstraints": 5, "nodeSelector": {"a": "b"}}'
    assert msgspec.json.decode(raw, type=wire.PodSpec).too_many_constraints == 0


@pytest.mark.parametrize(
    ("pods", "counted"),
    [
        (model.PodSet(selector=model.Selector(), namespaces=("demo",)), 1),
        (model.PodSet(selector=model.Selector(), namespaces=("demo", "other")), 10),
        (model.PodSet(selector=model.Selector(), namespace_selector=model.Selector()), 10),
    ],
)
def test_a_term_about_pods_of_other_namespaces_counts_as_ten(pods, counted):
    term = model.PodTerm(topology_key="zone", pods=pods)
    assert namespace_limits.count(model.Constraints(pod_affinity=(term,)), "demo") == counted
