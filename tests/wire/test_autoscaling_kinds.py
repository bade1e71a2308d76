"""MRJobs, MRClusters and other pods on a cluster that scales from no node; see `test_autoscaling_sparkapp` too."""

import asyncio

import pytest

from boathouse.services.mrjob import routes
from boathouse.services.mrjob.kind import MRJobKind
from tests.builders import manifests
from tests.builders.operators.leaders import leading
from tests.builders.operators.mrclusters import RunningMRCluster, mrcluster
from tests.builders.operators.mrjobs import KEY, Kubelet, mrjob
from tests.builders.operators.provisioners import provisioning
from tests.builders.operators.schedulers import scheduling, stop


@pytest.fixture
def kinds(monkeypatch):
    """The kinds of the leaders that a test runs."""
    found = []

    def build(*arguments):
        found.append(MRJobKind(*arguments))
        return found[-1]

    monkeypatch.setattr(routes, "MRJobKind", build)
    return found


async def test_an_mrjob_runs_from_no_node_to_its_end(api, kinds, eventually):
    api.add(mrjob())
    async with leading(api, (routes.ENTRY,), without_nodes=True), provisioning(api) as provisioner:
        kubelet = Kubelet(api, 3)
        kubelet.operator = kinds[-1]
        running = asyncio.create_task(kubelet.run())
        await eventually(lambda: (api.get("mrjobs", KEY).get("status") or {}).get("phase") == "Succeeded")
        await stop(running)
    provisioner.remove_empty()
    assert provisioner.added >= 1
    assert not api.objects("nodes")


async def test_a_hadoop_cluster_comes_up_from_no_node(api):
    hadoop = RunningMRCluster(api)
    hadoop.starts_without_nodes = True
    for name in list(api.objects("nodes")):
        api.remove("nodes", name)
    async with hadoop.running(), provisioning(api) as provisioner:
        api.add(mrcluster())
        await hadoop.until(lambda: hadoop.phase() == "Ready")
        assert provisioner.added >= 2  # no two core nodes share one


async def test_another_pod_gets_a_node_and_one_above_the_limit_of_its_queue_gets_none(api, eventually):
    async with scheduling(api) as w, provisioning(api, cpu=2) as provisioner:
        api.add(manifests.pod("p", cpu="2"))
        await eventually(lambda: w.placed() == {"demo/p": "p1"})
    assert provisioner.added == 1
