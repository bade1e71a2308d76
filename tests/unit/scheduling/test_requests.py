"""What a pod asks of its node, by the formula that its kubelet applies."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from boathouse.cluster import wire
from boathouse.scheduling.pods import requests
from tests.builders.manifests import container, container_status, pod_view, sidecar

INFEASIBLE = wire.Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = wire.Condition(type="PodResizePending", status="True", reason="Deferred")


def cpu(of: wire.PodView) -> int:
    return requests.milli(requests.pod_requests(of).get("cpu", 0))


def test_containers_add_up():
    assert cpu(pod_view(containers=(container("a", cpu="300m"), container("b", cpu="1")))) == 1300


def test_an_init_container_larger_than_the_rest_counts_instead_of_the_rest():
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=(container("i", cpu="3"),))) == 3000


def test_an_init_container_smaller_than_the_rest_does_not_count():
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=(container("i", cpu="500m"),))) == 1000


def test_init_containers_run_one_after_another():
    inits = (container("i", cpu="2"), container("j", cpu="3"))
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=inits)) == 3000


def test_a_sidecar_runs_beside_the_containers():
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=(sidecar("s", cpu="2"),))) == 3000


def test_a_sidecar_runs_beside_the_init_containers_after_it():
    inits = (sidecar("s", cpu="2"), container("i", cpu="3"))
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=inits)) == 5000


def test_a_sidecar_does_not_run_beside_the_init_containers_before_it():
    inits = (container("i", cpu="3"), sidecar("s", cpu="2"))
    assert cpu(pod_view(containers=(container(cpu="1"),), init_containers=inits)) == 3000


def test_overhead_is_added_to_the_requests():
    assert cpu(pod_view(containers=(container(cpu="1"),), overhead={"cpu": "250m"})) == 1250


def test_pod_level_requests_replace_those_of_containers_for_the_resources_they_name():
    level = wire.ResourceRequirements(requests={"cpu": "4"})
    asked = requests.pod_requests(pod_view(containers=(container(cpu="1", memory="1Gi"),), resources=level))
    assert (requests.milli(asked["cpu"]), requests.ones(asked["memory"])) == (4000, 1 << 30)


def test_extended_resources_are_counted():
    asked = requests.pod_requests(pod_view(containers=(wire.Container(name="g", resources=gpu(2)),)))
    assert requests.ones(asked["example.com/gpu"]) == 2


def gpu(count: int) -> wire.ResourceRequirements:
    return wire.ResourceRequirements(requests={"example.com/gpu": str(count)})


@pytest.mark.parametrize(
    ("spec", "actuated", "allocated", "conditions", "expected"),
    [
        ("1", "1", "1", (), 1000),
        ("2", "1", "1", (), 2000),
        ("500m", "1", "1", (), 1000),
        ("500m", "500m", "1", (), 1000),
        ("4", "1", "1", (DEFERRED,), 4000),
        ("4", "1", "2", (INFEASIBLE,), 2000),
        ("4", "1", "1", (INFEASIBLE,), 1000),
    ],
)
def test_a_resize_under_way_counts_at_its_larger_end(spec, actuated, allocated, conditions, expected):
    status = container_status(actuated={"cpu": actuated}, allocated={"cpu": allocated})
    assert cpu(pod_view(containers=(container(cpu=spec),), statuses=(status,), conditions=conditions)) == expected


def test_a_status_without_resources_leaves_the_specification():
    assert (
        cpu(
            pod_view(
                containers=(container(cpu="2"),),
                statuses=(container_status(actuated=None),),
            )
        )
        == 2000
    )


@st.composite
def pods(draw) -> wire.PodView:
    amounts = st.builds("{}{}".format, st.integers(0, 5000), st.sampled_from(["m", "u", "", "n"]))
    kinds = draw(st.lists(st.tuples(st.booleans(), amounts), max_size=5))
    inits = tuple((sidecar if side else container)(f"i{n}", cpu=cpu) for n, (side, cpu) in enumerate(kinds))
    mains = tuple(container(f"c{n}", cpu=cpu) for n, cpu in enumerate(draw(st.lists(amounts, min_size=1, max_size=3))))
    return pod_view(containers=mains, init_containers=inits, overhead={"cpu": draw(amounts)})


@given(pods())
def test_the_formula_agrees_with_a_simulation_of_the_pods_life(subject):
    """The peak over the pod's life: each init container in turn beside the sidecars started before it, then all."""
    units = {"m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)}

    def cores(text: str) -> Fraction:
        return int(text.rstrip("mun")) * units.get(text[-1], Fraction(1))

    running, peak = Fraction(0), Fraction(0)
    for init in subject.spec.init_containers:
        asked = cores(init.resources.requests["cpu"])
        peak = max(peak, running + asked)
        running += asked if init.restart_policy == "Always" else 0
    peak = max(peak, running + sum(cores(main.resources.requests["cpu"]) for main in subject.spec.containers))
    assert Fraction(requests.pod_requests(subject)["cpu"], 10**9) == peak + cores(subject.spec.overhead["cpu"])
