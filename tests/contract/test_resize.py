"""What the API server accepts of resizes of running pods, on which suspensions depend."""

from __future__ import annotations

import pytest

from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from tests.builders import manifests

pytestmark = pytest.mark.apiserver

STRATEGIC = client.PatchStyle.STRATEGIC
QUOTAS = catalogue.Resource(plural="resourcequotas", kind="ResourceQuota", view=dict)
LIMIT_RANGES = catalogue.Resource(plural="limitranges", kind="LimitRange", view=dict)
RAW_PODS = catalogue.Resource(plural="pods", kind="Pod", view=dict)


def cpu(request: str, limit: str) -> dict[str, dict[str, dict[str, str]]]:
    return {"task": {"requests": {"cpu": request}, "limits": {"cpu": limit}}}


SHRUNK, CONTINUED, WHOLE = cpu("1m", "10m"), cpu("1m", "1"), cpu("500m", "1")


@pytest.fixture
async def running(api, namespace, eventually):
    """A pod that runs on a node, with a CPU request of 500m and a limit of 1."""
    node = (await api.list(catalogue.NODES)).items[0].metadata.name
    tolerations = [{"operator": "Exists"}]
    limits = {"cpu": "1", "memory": "65Mi"}
    await api.create_pod(
        namespace,
        manifests.pod("p", namespace=namespace, cpu="500m", limits=limits, node=node, tolerations=tolerations),
    )

    async def runs() -> bool:
        return (await api.get(catalogue.PODS, "p", namespace)).status.phase == "Running"

    await eventually(runs)
    return await api.get(catalogue.PODS, "p", namespace)


async def test_a_running_pod_shrinks_continues_and_grows(api, namespace, running):
    for size in (SHRUNK, CONTINUED, WHOLE):
        resized = await api.resize(namespace, "p", size, manager="boathouse-1", uid=running.metadata.uid)
        given = resized.spec.containers[0].resources
        assert (given.requests["cpu"], given.limits["cpu"]) == (
            size["task"]["requests"]["cpu"],
            size["task"]["limits"]["cpu"],
        )


async def test_a_resize_of_another_pod_is_a_conflict(api, namespace, running):
    del running
    with pytest.raises(errors.Conflict):
        await api.resize(namespace, "p", SHRUNK, uid="another")


async def test_the_record_of_a_suspension_is_kept_by_pods_status_and_not_by_pods_resize(api, namespace, running):
    version, uid = running.metadata.resource_version, running.metadata.uid
    record = {names.ANNOTATION_SUSPENSION: "{}"}
    written = await api.annotate_status(namespace, "p", record, resource_version=version, uid=uid)
    assert written.metadata.annotations[names.ANNOTATION_SUSPENSION] == "{}"
    with pytest.raises(errors.Conflict):
        await api.annotate_status(namespace, "p", record, resource_version=version, uid=uid)
    with pytest.raises(errors.Conflict):
        await api.annotate_status(namespace, "p", record, resource_version="", uid="another")
    patch = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "task"}]}}
    resized = await api.patch(catalogue.PODS, "p", patch, namespace, style=STRATEGIC, subresource="resize")
    assert resized.metadata.annotations == written.metadata.annotations


async def test_field_managers_of_many_epochs_do_not_pile_up(api, namespace, running):
    del running
    for epoch in range(5):
        await api.resize(namespace, "p", cpu("1m", f"{20 + epoch}m"), manager=f"boathouse-{epoch}")
    pod = await api.get(RAW_PODS, "p", namespace)
    managers = [one["manager"] for one in pod["metadata"]["managedFields"] if one.get("subresource") == "resize"]
    assert managers == ["boathouse-0", "boathouse-4"]  # the first one set a request that the others left


async def test_a_used_up_quota_of_requests_refuses_the_growth_and_not_the_limit(api, namespace, running, eventually):
    await suspended(api, namespace, running)
    await quota(api, namespace, eventually, "requests.cpu", "100m")
    await api.resize(namespace, "p", CONTINUED)
    with pytest.raises(errors.Forbidden, match="exceeded quota"):
        await api.resize(namespace, "p", WHOLE)


async def test_a_used_up_quota_of_limits_refuses_the_limit(api, namespace, running, eventually):
    await suspended(api, namespace, running)
    await quota(api, namespace, eventually, "limits.cpu", "50m")
    with pytest.raises(errors.Forbidden, match="exceeded quota"):
        await api.resize(namespace, "p", CONTINUED)


async def suspended(api, namespace, running):
    """Shrink the pod, in the place of its kubelet too: a quota counts what a kubelet has not taken back yet."""
    await api.resize(namespace, "p", SHRUNK)
    task = SHRUNK["task"]
    memory = running.status.container_statuses[0].resources.requests["memory"]
    given = {"resources": task, "allocatedResources": task["requests"] | {"memory": memory}}
    statuses = [{"name": "task"} | given]
    await api.patch_status(catalogue.PODS, "p", {"containerStatuses": statuses}, namespace, style=STRATEGIC)


async def quota(api, namespace, eventually, line, amount):
    """Create a quota, and wait until its use is counted."""
    await api.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {line: amount}}}, namespace)

    async def is_counted() -> bool:
        found = await api.get(QUOTAS, "q", namespace)
        return line in found.get("status", {}).get("used", {})

    await eventually(is_counted)


@pytest.mark.parametrize("limit", [{"maxLimitRequestRatio": {"cpu": "20"}}, {"min": {"cpu": "5m"}}])
async def test_a_limit_range_refuses_the_limit_alone_and_not_both(api, namespace, running, eventually, limit):
    del running
    await api.resize(namespace, "p", SHRUNK)
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"} | limit]}}
    await api.create(LIMIT_RANGES, limits, namespace)

    async def is_refused() -> bool:
        try:
            await api.resize(namespace, "p", CONTINUED)
        except errors.Forbidden:
            return True
        await api.resize(namespace, "p", SHRUNK)
        return False

    await eventually(is_refused)  # the plugin learns of the LimitRange by its watch
    await api.resize(namespace, "p", WHOLE)


async def test_a_limit_cannot_be_removed(api, namespace, running):
    del running
    patch = {"spec": {"containers": [{"name": "task", "resources": {"limits": {"cpu": None}}}]}}
    with pytest.raises(errors.Invalid):
        await api.patch(catalogue.PODS, "p", patch, namespace, style=STRATEGIC, subresource="resize")
