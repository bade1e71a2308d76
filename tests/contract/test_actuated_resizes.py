"""Who actuates resizes where no kubelet runs: a stage of KWOK, and the model of kubelets for pods that are left to it.

The same sequence of patches on real kubelets had the same results: Deferred while the node is full, with the former
limit in force, and the limit alone without delay.
"""

import contextlib
import itertools

import pytest

from boathouse.cluster import catalogue, client, config, errors
from boathouse_e2e import kwok, model_kubelet

pytestmark = pytest.mark.apiserver

SMALL, CONTINUED, FULL = ("1m", "10m"), ("1m", "1"), ("1500m", "1500m")


@pytest.fixture(scope="module")
def resizing(start_control_plane):
    """A control plane with a node of 2 CPUs for each test."""
    return start_control_plane("resizes", kwok_nodes=5, kwok_node_cpu=2, kwok_resizes=True)


_NODES = itertools.count()


@pytest.fixture
def node():
    """A node without pods."""
    return kwok.name_of(next(_NODES))


@pytest.fixture
async def api(resizing):
    async with client.ApiClient(config.from_kubeconfig(resizing.kubeconfig)) as connected:
        yield connected


class Pod:
    """A pod of the node, and what its status shows."""

    def __init__(self, api, namespace, node, eventually, name):
        self._api, self._namespace, self._node = api, namespace, node
        self._eventually, self._name = eventually, name

    async def create(self, size=FULL, **annotations):
        container = {"name": "task", "image": "i", "resources": sized(size)}
        spec = {"nodeName": self._node, "terminationGracePeriodSeconds": 0, "containers": [container]}
        metadata = {"name": self._name, "namespace": self._namespace, "annotations": annotations}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await self._api.create(catalogue.PODS, manifest, self._namespace)
        await self.shows(size)
        return self

    async def resize(self, size):
        change = {"spec": {"containers": [{"name": "task", "resources": sized(size)}]}}
        style = client.PatchStyle.STRATEGIC
        where = (catalogue.PODS, self._name, change, self._namespace)
        await self._api.patch(*where, style=style, subresource="resize")

    async def get(self):
        return await self._api.get(catalogue.PODS, self._name, self._namespace)

    async def delete(self):
        await self._api.delete(catalogue.PODS, self._name, self._namespace)

    async def size(self):
        """The size in force."""
        statuses = (await self.get()).status.container_statuses
        if not statuses or statuses[0].resources is None:
            return None
        shown = statuses[0].resources
        assert statuses[0].allocated_resources["cpu"] == shown.requests["cpu"]
        return shown.requests["cpu"], shown.limits["cpu"]

    async def shows(self, size):
        async def has_size():
            return await self.size() == size

        await self._eventually(has_size)

    async def problem(self):
        """Why the node does not resize it."""
        found = [
            condition.reason
            for condition in (await self.get()).status.conditions
            if condition.type == "PodResizePending"
        ]
        return found[0] if found else ""

    async def has_problem(self, reason):
        async def has_reason():
            return await self.problem() == reason

        await self._eventually(has_reason)


def sized(size):
    return {"requests": {"cpu": size[0]}, "limits": {"cpu": size[1]}}


@pytest.fixture
def pod(api, namespace, node, eventually):
    return lambda name: Pod(api, namespace, node, eventually, name)


@pytest.fixture
async def kubelet(api, node):
    """The model of the node's kubelet, at work."""
    found = await api.get(catalogue.NODES, node)
    model = model_kubelet.ModelKubelet(api, {node: dict(found.status.allocatable)}, delay_s=0.05)
    async with model_kubelet.running(model):
        yield model.allocations


BY_HAND = {kwok.RESIZE_ANNOTATION: kwok.BY_HAND}


async def test_kwok_actuates_the_resizes_of_a_suspension(pod):
    task = await pod("task").create()
    for size in (SMALL, CONTINUED, FULL):
        await task.resize(size)
        await task.shows(size)


async def test_a_pod_that_is_left_to_the_model_keeps_its_size_without_it(pod):
    task, other = await pod("task").create(("500m", "1"), **BY_HAND), await pod("other").create(("500m", "1"))
    for resized_pod in (task, other):
        await resized_pod.resize(SMALL)
    await other.shows(SMALL)
    assert await task.size() == ("500m", "1")


async def test_the_model_defers_a_resize_without_room_and_keeps_the_former_limit(pod, kubelet):
    task = await pod("task").create(**BY_HAND)
    await task.resize(SMALL)
    await task.shows(SMALL)
    filler = await pod("filler").create()
    await task.resize(FULL)
    await task.has_problem("Deferred")
    assert await task.size() == SMALL
    await task.resize(CONTINUED)
    await task.shows(CONTINUED)
    assert await task.problem() == ""
    await task.resize(FULL)
    await task.has_problem("Deferred")
    await filler.delete()
    await task.shows(FULL)
    assert kubelet.counted_twice == []


async def test_the_model_kubelet_refuses_a_resize_as_set(pod, kubelet):
    task = await pod("task").create(**BY_HAND)
    kubelet.verdict = lambda _pod: "Infeasible"
    await task.resize(SMALL)
    await task.has_problem("Infeasible")
    assert await task.size() == FULL


@pytest.mark.usefixtures("kubelet")
async def test_more_than_the_node_has_is_refused_by_the_api_server_or_else_by_the_node(pod):
    task = await pod("task").create(**BY_HAND)
    with contextlib.suppress(errors.Forbidden):  # by the admission plugin PodResizeValidator, where there is one
        await task.resize(("2001m", "2001m"))
        await task.has_problem("Infeasible")
    assert await task.size() == FULL
