"""Pods of Kubernetes' own controllers that name `schedulerName: boathouse`, on a real API server with fake nodes."""

from __future__ import annotations

import pytest

from boathouse.cluster import catalogue, errors, views
from boathouse.scheduling.options import Options
from tests.contract.predicates import comparison

pytestmark = pytest.mark.apiserver

DEPLOYMENTS = catalogue.Resource(group="apps", plural="deployments", kind="Deployment", view=dict)
JOBS = catalogue.Resource(group="batch", plural="jobs", kind="Job", view=dict)
PRIORITIES = catalogue.Resource(
    group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass", namespaced=False, view=dict
)
PODS = catalogue.PODS.untyped()


def spec(*, cpu: str = "10m", **more) -> dict:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {"schedulerName": "boathouse", "containers": [container]} | more


def templated(**more) -> dict:
    return {"metadata": {"labels": {"app": "a"}}, "spec": spec(**more)}


@pytest.fixture
async def scheduling(api, namespace):
    options = Options(namespaces=frozenset({namespace}), pending_ahead=0)
    async with comparison.boathouse(api, options=options) as parts:
        yield parts


async def nodes(api, namespace) -> list[str]:
    return [one.spec.node_name for one in (await api.list(catalogue.PODS, namespace)).items]


async def add_pod(api, namespace, name: str, **more) -> None:
    await api.create(PODS, {"metadata": {"name": name}, "spec": spec(**more)}, namespace)


@pytest.mark.usefixtures("scheduling")
async def test_the_pods_of_a_deployment_run_and_have_events(api, namespace, eventually):
    whole = {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": templated()}
    await api.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": whole}, namespace)

    async def available() -> bool:
        return (await api.get(DEPLOYMENTS, "web", namespace)).get("status", {}).get("availableReplicas") == 3

    await eventually(available)

    async def scheduled_by() -> list[str]:
        events = (await api.list(catalogue.EVENTS, namespace, fields="reason=Scheduled")).items
        return [event["reportingController"] for event in events]

    async def all_have_events() -> bool:
        return len(await scheduled_by()) == 3

    await eventually(all_have_events)
    assert set(await scheduled_by()) == {"boathouse.dev/scheduler"}


@pytest.mark.usefixtures("scheduling")
async def test_a_job_completes(api, namespace, eventually):
    whole = {"completions": 4, "parallelism": 2, "template": templated(restartPolicy="Never")}
    await api.create(JOBS, {"metadata": {"name": "batch"}, "spec": whole}, namespace)

    async def succeeded() -> bool:
        return (await api.get(JOBS, "batch", namespace)).get("status", {}).get("succeeded") == 4

    await eventually(succeeded)


@pytest.mark.usefixtures("scheduling")
async def test_a_gated_pod_waits_until_its_gate_is_lifted(api, namespace, eventually):
    await add_pod(api, namespace, "gated", schedulingGates=[{"name": "example.com/gate"}])
    await add_pod(api, namespace, "plain")

    async def placed() -> bool:
        return [bool(node) for node in await nodes(api, namespace)].count(True) == 1

    await eventually(placed)
    assert not (await api.get(catalogue.PODS, "gated", namespace)).spec.node_name
    await api.patch(PODS, "gated", {"spec": {"schedulingGates": []}}, namespace)

    async def both() -> bool:
        return all(await nodes(api, namespace))

    await eventually(both)


@pytest.mark.usefixtures("scheduling")
async def test_a_pod_that_is_deleted_while_it_is_pending_is_forgotten_and_its_name_may_be_used_again(
    api, namespace, eventually
):
    await add_pod(api, namespace, "p", nodeSelector={"no-such": "label"})

    async def has_condition() -> bool:
        return (await api.get(catalogue.PODS, "p", namespace)).condition("PodScheduled") is not None

    await eventually(has_condition)
    await api.delete(catalogue.PODS, "p", namespace, grace_period_s=0)
    await add_pod(api, namespace, "p")

    async def placed() -> bool:
        return all(await nodes(api, namespace))

    await eventually(placed)


@pytest.fixture
async def scarce(api, namespace):
    """A resource of which one node has one, and no other test knows."""
    name = f"example.com/{namespace}"

    async def offer(amount: str | None) -> None:
        await api.patch_status(
            catalogue.NODES.untyped(), "kwok-0", {"capacity": {name: amount}, "allocatable": {name: amount}}
        )

    await offer("1")
    yield name
    await offer(None)


async def test_the_pod_of_the_highest_priority_gets_what_there_is(api, namespace, scarce, eventually):
    values = {"low": 10, "high": 1000, "middle": 100}
    for name, value in values.items():
        manifest = {"metadata": {"name": f"{namespace}-{name}"}, "value": value}
        await api.create(PRIORITIES, manifest)
        container = {"name": "c", "image": "none", "resources": {"requests": {scarce: "1"}, "limits": {scarce: "1"}}}
        more = {"containers": [container], "priorityClassName": f"{namespace}-{name}"}
        manifest = {"metadata": {"name": name}, "spec": spec(**more)}

        async def taken(manifest=manifest) -> bool:
            try:
                await api.create(PODS, manifest, namespace)
            except errors.Forbidden:
                return False  # admission has not seen the new PriorityClass yet
            return True

        await eventually(taken)
    options = Options(namespaces=frozenset({namespace}), pending_ahead=0)
    async with comparison.boathouse(api, options=options):

        async def placed() -> bool:
            return any(await nodes(api, namespace))

        await eventually(placed)
    pods = (await api.list(catalogue.PODS, namespace)).items
    assert [one.metadata.name for one in pods if one.spec.node_name] == ["high"]
    for name in values:
        await api.delete(PRIORITIES, f"{namespace}-{name}")


@pytest.mark.usefixtures("scheduling")
async def test_a_pod_in_a_namespace_that_is_not_enabled_is_left_alone(api, namespace, eventually):
    service_account = {"automountServiceAccountToken": False}
    await api.create(PODS, {"metadata": {"name": f"p-{namespace}"}, "spec": spec(**service_account)}, "default")
    await add_pod(api, namespace, "later")

    async def placed() -> bool:
        return all(await nodes(api, namespace))

    await eventually(placed)
    found = await api.get(catalogue.PODS, f"p-{namespace}", "default")
    assert (found.spec.node_name, found.status.conditions) == ("", ())
    await api.delete(catalogue.PODS, found.metadata.name, "default", grace_period_s=0)


@pytest.mark.usefixtures("scheduling")
async def test_a_resource_of_a_device_class_is_unsupported_where_the_api_server_keeps_the_offer(
    api, namespace, eventually
):
    gpu, kind = f"example.com/{namespace}", views.DEVICE_CLASSES.untyped()
    kept = await api.create(kind, {"metadata": {"name": namespace}, "spec": {"extendedResourceName": gpu}})
    expected = "UnsupportedConstraint" if "extendedResourceName" in kept["spec"] else "Unschedulable"
    resources = {"requests": {gpu: "1"}, "limits": {gpu: "1"}}
    await add_pod(api, namespace, "p", containers=[{"name": "c", "image": "none", "resources": resources}])

    async def has_condition() -> bool:
        condition = (await api.get(catalogue.PODS, "p", namespace)).condition("PodScheduled")
        return condition is not None and condition.reason == expected

    await eventually(has_condition)
    await api.delete(kind, namespace)


REFUSED = {
    "spec.resourceClaims": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
}


@pytest.mark.usefixtures("scheduling")
async def test_what_is_not_supported_is_refused_by_its_field_and_never_placed(api, namespace, eventually):
    for number, fields in enumerate(REFUSED.values()):
        await add_pod(api, namespace, f"p{number}", **fields)

    async def has_condition() -> bool:
        found = [pod.condition("PodScheduled") for pod in (await api.list(catalogue.PODS, namespace)).items]
        return all(condition is not None and condition.reason == "UnsupportedConstraint" for condition in found)

    await eventually(has_condition)
    pods = {pod.metadata.name: pod for pod in (await api.list(catalogue.PODS, namespace)).items}
    messages = [pods[f"p{number}"].condition("PodScheduled").message for number in range(len(REFUSED))]
    assert all(field in message for field, message in zip(REFUSED, messages, strict=True))
    assert not any(pod.spec.node_name for pod in pods.values())


def test_the_docs_name_each_field_that_is_refused(request):
    page = (request.config.rootpath / "docs" / "scheduling.md").read_text()
    missing = [field for field in (*REFUSED, "spec.schedulingGroup", "spec.workloadRef") if f"`{field}`" not in page]
    assert not missing
