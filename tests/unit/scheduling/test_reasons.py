"""What people read when something waits."""

import collections
import dataclasses
import types

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.cluster import views as device_views, wire
from boathouse.scheduling import reasons
from boathouse.scheduling.pods import indexes
from boathouse_policies import model

JOB = model.Job(
    id=model.JobId("u"),
    queue=model.QueueName("default"),
    submitted_s=0,
    name="demo/wc",
    namespace=model.NamespaceName("demo"),
)

ASKED = {"cpu": 8000, "memory": 2 << 30}


def found(code=model.Code.UNSCHEDULABLE, *, count=1, scarce=None, name="map", message="0/2 nodes are available."):
    class_id = model.ClassId(name)
    asked, largest = ASKED.get(scarce, 0), ASKED.get(scarce, 0) // 4
    return model.Diagnosis(
        task_class=class_id,
        job=JOB.id,
        count=count,
        code=code,
        message=message,
        scarce=scarce,
        asked=asked,
        largest=largest,
    )


def size(cpu_milli: int) -> model.Resources:
    return model.Resources(cpu_milli=cpu_milli, memory_bytes=3 << 29)


def held(namespace: str = "demo", who: indexes.Holders | None = None, **pods: tuple[str, str]) -> indexes.Holders:
    who = who or indexes.Holders()
    for owner, cpu in pods.values():
        who.add(namespace, owner, size(int(cpu)), +1)
    return who


def largest(who: indexes.Holders, namespace: str = "demo") -> list[tuple[str, int]]:
    return list(who.top("cpu", namespace).named)


def test_figures_of_the_policies_are_in_the_messages_of_jobs_and_in_coarser_steps_in_those_of_pods():
    figures = (("jobsAhead", 2.0), ("gainSeconds", 48.0), ("costSeconds", 12.0))
    figures += (("reservedForSeconds", 134.0), ("predictedWaitSeconds", 26.0))
    waiting = dataclasses.replace(found(), figures=figures)
    of_job, of_pod = reasons.diagnose(JOB, [waiting], held()), reasons.for_pod(waiting, "demo", held())
    ahead = "0/2 nodes are available; 2 jobs of its queue and namespace go before it"
    worth = "waiting for another node gains {} s and costs {} s of job time; nodes have been reserved for it for {} s"
    assert of_job.message.endswith(f"{ahead}; {worth.format(50, 10, 130)}; predicted wait 30 s")
    assert of_pod.message == f"{ahead}; {worth.format(60, 0, 120)}; predicted wait 60 s"


def test_a_line_counts_the_tasks_and_names_the_scarce_resource_and_its_largest_holders():
    who = held(a=("mrjob/demo/big", "2500"), b=("mrjob/demo/big", "500"), c=("demo/web", "100"))
    found_ = reasons.diagnose(JOB, [found(count=12, scarce="cpu")], who)
    assert found_.message == (
        "12 tasks pending: 0/2 nodes are available. Each requests 8 cpu; mrjob/demo/big holds 3, demo/web holds 0.1."
    )
    assert (found_.reason, found_.scarce) == ("Unschedulable", "cpu")


def test_memory_is_given_as_people_write_it():
    assert reasons.diagnose(JOB, [found(scarce="memory")], held(a=("x/y", "1"))).message.endswith("x/y holds 1.5Gi.")


def test_a_scarce_resource_that_nobody_holds_is_said_so():
    assert "cpu; no pod holds any" in reasons.diagnose(JOB, [found(scarce="cpu")], held()).message


def test_a_task_that_may_start_with_less_says_with_how_much():
    less = dataclasses.replace(found(model.Code.NEVER_FITS, scarce="memory"), least=1 << 30)
    message = reasons.diagnose(JOB, [less], held()).message
    assert message.endswith("Each requests 2Gi memory (at least 1Gi), and the largest node has 512Mi.")


def test_what_never_fits_is_compared_with_the_largest_node():
    message = reasons.diagnose(JOB, [found(model.Code.NEVER_FITS, scarce="memory")], held()).message
    assert message.endswith("Each requests 2Gi memory, and the largest node has 512Mi.")


def test_the_class_that_is_worst_off_gives_the_reason_and_all_are_counted():
    several = [found(count=9), found(model.Code.NEVER_FITS, name="reduce", message="too large")]
    found_ = reasons.diagnose(JOB, several, held())
    assert (found_.reason, found_.message) == ("NeverFits", "10 tasks pending: too large")


def test_every_code_has_its_place_in_the_order_of_reasons():
    assert {reasons.diagnose(JOB, [found(code)], held()).reason for code in model.Code} == set(model.Code)


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 2000, "2"),
        ("cpu", 1, "0.001"),
        ("memory", 512 << 20, "512Mi"),
        ("memory", 100, "100"),
        ("ephemeral-storage", 5 << 40, "5Ti"),
        ("example.com/gpu", 3, "3"),
    ],
)
def test_amounts_are_short(resource, value, text):
    assert model.readable(resource, value) == text


def test_of_other_namespaces_a_line_has_the_total_only():
    who = held(a=("mrjob/demo/big", "2500"))
    held("secret", who, b=("mrjob/secret/plan", "500"), c=("secret/merger", "7000"))
    message = reasons.diagnose(JOB, [found(scarce="cpu")], who).message
    assert message.endswith("; mrjob/demo/big holds 2.5, other namespaces hold 7.5.")
    message = reasons.for_pod(found(scarce="cpu"), "nobody", who).message
    assert message.endswith("Each requests 8 cpu; other namespaces hold 10.")


GPU = "example.com/gpu"


def offering(name: str = "gpu", resource: str = GPU) -> reasons.Devices:
    found = reasons.Devices(model.Axis())
    spec = device_views.DeviceClassSpec(extended_resource_name=resource)
    found.set(device_views.DeviceClassView(metadata=wire.ObjectMeta(name=name), spec=spec))
    return found


@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_a_resource_that_only_a_device_class_offers_is_not_supported_and_the_reason_says_what_to_do(resource):
    absent = dataclasses.replace(found(model.Code.NEVER_FITS, scarce=resource), asked=1)
    condition = reasons.for_pod(absent, "demo", held(), offering())
    assert condition.reason == "UnsupportedConstraint"
    assert condition.message.endswith(
        f"and the largest node has 0. DeviceClass gpu offers {resource} by dynamic resource allocation, which "
        "Boathouse does not support: request a resource that nodes have in status.allocatable, or name another "
        "scheduler in spec.schedulerName."
    )
    of_job = reasons.diagnose(JOB, [absent], held(), offering())
    assert (of_job.reason, "DeviceClass gpu offers" in of_job.message) == ("NeverFits", True)


def test_a_resource_that_a_node_has_or_that_no_device_class_offers_is_like_any_other():
    absent = dataclasses.replace(found(model.Code.NEVER_FITS, scarce=GPU), asked=2)
    present = dataclasses.replace(absent, largest=1)
    gone = offering()
    gone.set(device_views.DeviceClassView(metadata=wire.ObjectMeta(name="gpu")), is_gone=True)
    for diagnosis, known in ((present, offering()), (absent, gone), (absent, offering(resource="")), (absent, None)):
        assert reasons.for_pod(diagnosis, "demo", held(), known).reason == "NeverFits"


@pytest.mark.parametrize("code", model.Code)
def test_a_pod_buys_a_node_only_for_what_a_node_cures(code):
    cured = {"Unschedulable", "NeverFits", "Gang", "JobOrder", "Sizing"}
    where_nodes_come = reasons.for_pod(found(code), "demo", held(), nodes_can_come=True).reason
    assert where_nodes_come == ("Unschedulable" if code in cured else code)
    assert reasons.for_pod(found(code), "demo", held()).reason == code


def test_holders_are_forgotten_with_their_last_pod():
    who = held(a=("x", "100"), b=("x", "200"))
    who.add("demo", "x", size(100), -1)
    assert largest(who) == [("x", 200)]
    who.add("demo", "x", size(200), -1)
    assert who.top("cpu", "demo") == indexes.Held()
    assert who.top("cpu", "other") == indexes.Held()


def test_equal_holders_are_named_in_alphabetical_order():
    assert [owner for owner, _ in largest(held(a=("b", "1"), b=("a", "1"), c=("c", "2")))] == ["c", "a", "b"]


changes = st.lists(
    st.tuples(
        st.sampled_from(["a/p", "a/q", "b/p", "b/q"]), st.sampled_from(["x", "y"]), st.sampled_from([None, 0, 1, 5])
    ),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(changes)
def test_holders_equal_recomputed_sums_after_any_changes(course):
    who, pods = indexes.Holders(), {}
    for pod, owner, cpu in course:
        if pod in pods:
            former, was = pods.pop(pod)
            who.add(pod[0], former, model.Resources(cpu_milli=was), -1)
        if cpu is not None:
            who.add(pod[0], owner, model.Resources(cpu_milli=cpu), +1)
            pods[pod] = owner, cpu
    named = collections.Counter()
    for pod, (owner, cpu) in pods.items():
        named[owner] += cpu if pod.startswith("a/") else 0
    expected = sorted(((owner, cpu) for owner, cpu in named.items() if cpu), key=lambda one: (-one[1], one[0]))
    elsewhere = sum(cpu for pod, (_, cpu) in pods.items() if pod.startswith("b/"))
    assert who.top("cpu", "a") == indexes.Held(named=tuple(expected), elsewhere=elsewhere)


class PlanOfClasses:
    """The plan of a cycle in which no node took any of some classes; counts the diagnoses that were computed."""

    def __init__(self, number: int) -> None:
        waits = types.SimpleNamespace(verdict=model.Verdict(code=model.Code.UNSCHEDULABLE), job=JOB)
        self.left = {model.ClassId(f"class-{n}"): waits for n in range(number)}
        self.computed = 0

    def diagnosis(self, class_id: model.ClassId) -> model.Diagnosis:
        self.computed += 1
        return found(name=class_id)


@pytest.mark.parametrize(("classes", "refresh_s"), [(1, 1.0), (100, 1.0), (600, 6.0)])
def test_diagnoses_are_computed_again_after_a_second_and_at_most_a_hundred_in_a_second(classes, refresh_s):
    now_s, plan = [0.0], PlanOfClasses(classes)
    pods = types.SimpleNamespace(holders=indexes.Holders())
    diagnoses = reasons.Diagnoses(None, pods, None, lambda: now_s[0], nodes_can_come=False)
    computed = []
    for now_s[0] in (0.0, refresh_s - 0.01, refresh_s):
        diagnoses.update(plan, set())
        computed.append(plan.computed)
    assert computed == [classes, classes, 2 * classes]
