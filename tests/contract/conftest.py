"""A real control plane with a few fake nodes, for the session; without one these tests fail, they are not skipped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.cluster import catalogue, client, config
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import Cluster, ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


@pytest.fixture(scope="session")
def start_control_plane() -> Iterator[Callable[..., Cluster]]:
    """Start clusters of their own: etcd, API server, controller manager, scheduler, four KWOK nodes; no kubelets."""
    provider = LocalProvider()
    with contextlib.ExitStack() as ends:

        def start(purpose: str, **spec: Any) -> Cluster:
            name = f"{purpose}-{os.getpid()}"
            ends.callback(provider.down, name)
            return provider.up(ClusterSpec(name=name, nodes=0, **{"kwok_nodes": 4} | spec))

        yield start


@pytest.fixture(scope="session")
def control_plane(start_control_plane):
    """The cluster that contract tests share."""
    return start_control_plane("contract")


@pytest.fixture
async def api(control_plane):
    """Our client, as the cluster's administrator."""
    async with client.ApiClient(config.from_kubeconfig(control_plane.kubeconfig)) as connected:
        yield connected


@pytest.fixture
async def namespace(api):
    """A namespace for one test, with the service account that pods need; deleted at the end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await api.create(catalogue.NAMESPACES, manifest)
    accounts = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=dict)

    async def has_account() -> bool:
        return bool((await api.list(accounts, name)).items)

    await _eventually(has_account)
    yield name
    await api.delete(catalogue.NAMESPACES, name)


async def _eventually(holds: Callable[[], Awaitable[object] | object], *, within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while True:
        answer = holds()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        if time.monotonic() > deadline:
            pytest.fail(f"did not come true within {within_s} s")
        await asyncio.sleep(0.05)


@pytest.fixture
def eventually():
    """Wait for a condition, plain or async, instead of sleeping."""
    return _eventually
