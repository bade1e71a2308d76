"""A real control plane with a few fake nodes, for the session; without one these tests fail, they are not skipped."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.cluster import catalogue, client, config
from boathouse.resources.mrcluster.status import MRCLUSTER
from boathouse.resources.mrjob.status import MRJOB
from boathouse.resources.sparkapp.status import SPARKAPP
from boathouse_e2e import ahead, catalogue as programs, demo, waiting
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import Cluster, ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNMANAGED = "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller"
PATIENCE_S = 100  # some of Kubernetes' controllers look again after 15 s only, and the machine may be busy


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a control plane in one process, which starts it once; other tests stay together by file."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    fixtures = getattr(item, "fixturenames", ())
    if "control_plane" in fixtures:
        return "chart" if pathlib.Path(item.path).parent.name == "chart" else "contract"
    return "bare" if "bare_control_plane" in fixtures else str(item.path)


def pytest_collection_finish(session: pytest.Session) -> None:
    ahead.build_tools(session, *programs.WORKLOADS, *programs.JUDGES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Put what a failed test's namespace holds into the report, while it is there."""
    report = yield
    known = getattr(item, "funcargs", {})
    if report.when == "call" and report.failed and {"control_plane", "namespace"} <= known.keys():
        report.sections.append(("its namespace", demo.glance(known["control_plane"], known["namespace"])))
    return report


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


@pytest.fixture(scope="session")
def bare_control_plane(start_control_plane):
    """One whose nodes are the test's alone: no KWOK, and no controller that taints or evicts."""
    return start_control_plane(
        "predicates",
        kwok_nodes=0,
        controller_manager_args=(UNMANAGED,),
        apiserver_args=("--disable-admission-plugins=TaintNodesByCondition",),
        scheduler_args=("--kube-api-qps=1000", "--kube-api-burst=1000"),
    )


@pytest.fixture(scope="session")
def crds(control_plane):
    """The control plane with the three CRDs, accepted and served."""
    resources = (MRJOB, SPARKAPP, MRCLUSTER)
    control_plane.apply(*(resource.manifest() for resource in resources))
    for resource in resources:
        control_plane.run("wait", "--for=condition=Established", f"crd/{resource.name}", f"--timeout={PATIENCE_S}s")
    return control_plane


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


_eventually = functools.partial(waiting.eventually, within_s=PATIENCE_S)


@pytest.fixture
def eventually():
    """Wait for a condition, plain or async, instead of sleeping."""
    return _eventually
