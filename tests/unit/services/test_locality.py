"""Nodes of maps whose splits are in HDFS."""

import dataclasses

import pytest

from boathouse.services.hadoop import Directory
from boathouse.services.mrjob import hdfs, pod_builder, submission
from boathouse_task import contract
from boathouse_task.contract import HdfsAddress, TaskType
from tests.builders import mrjobs
from tests.builders.mrclusters import cluster_facts

ADDRESS = HdfsAddress(name_node="master.lake-nodes.a.svc:8020", web_hdfs="master.lake-nodes.a.svc:9870")


PLAN = contract.Plan(
    splits=[mrjobs.split("hdfs://lake/a", locations=locations) for locations in (0, 1, 2, -1)],
    location_sets=[["c0.lake-nodes.a.svc", "c1.lake-nodes.a.svc"], ["c1.lake-nodes.a.svc", "c9.x"], ["c9.x"]],
)


@pytest.fixture
def clusters() -> Directory:
    found = Directory()
    found.put(cluster_facts(hosts={"c0": "n1", "c1": "n2"}))
    return found


def job_of_urls(*urls, output="s3://b/out"):
    """Return a job of namespace a with these URLs."""
    job = mrjobs.job()
    spec = job.spec.model_copy(update={"input": list(urls), "output": output})
    return dataclasses.replace(job, spec=spec, namespace="a")


def test_a_map_belongs_on_the_nodes_of_the_hosts_of_its_split(clusters):
    def found(index, task_type=TaskType.MAP):
        return hdfs.locations(task_type, index, PLAN, lambda host: clusters.node_of("a", host))

    assert [found(index) for index in range(5)] == [("n1", "n2"), ("n2",), (), (), ()]
    assert found(0, TaskType.REDUCE) == ()


def test_two_hosts_on_a_node_are_one_location():
    assert hdfs.locations(TaskType.MAP, 0, PLAN, lambda _host: "n1") == ("n1",)


def test_submitted_maps_have_the_nodes_of_now(clusters):
    job = job_of_urls("hdfs://lake/a")
    builder = pod_builder.PodBuilder(job=job, settings=mrjobs.SETTINGS, splits=PLAN.splits)
    attempts = [mrjobs.attempt(index=index) for index in range(2)]
    factory = submission.Factory(builder, attempts)

    def locations():
        return [task.locations for task in factory.tasks(PLAN, lambda host: clusters.node_of("a", host))]

    assert locations() == [("n1", "n2"), ("n2",)]
    clusters.put(cluster_facts(hosts={"c0": "n1", "c1": "n7"}))
    assert locations() == [("n1", "n7"), ("n7",)]


def test_tasks_get_the_addresses_of_the_clusters_that_their_urls_name(clusters):
    clusters.put(cluster_facts(uid="u-2", name="pond"))
    job = job_of_urls("s3://b/in", "hdfs://lake/a", "hdfs://gone/x")
    assert hdfs.addresses(job, clusters) == {"lake": ADDRESS}
    assert set(hdfs.addresses(job_of_urls("s3://b/in", output="hdfs://pond/o"), clusters)) == {"pond"}
    builder = pod_builder.PodBuilder(job=job, settings=mrjobs.SETTINGS, hdfs=hdfs.addresses(job, clusters))
    spec = builder.task_spec(mrjobs.attempt(TaskType.SETUP))
    assert spec.hdfs == {"lake": ADDRESS}


def test_a_cluster_of_another_namespace_has_no_address(clusters):
    job = dataclasses.replace(job_of_urls("hdfs://lake/a"), namespace="b")
    assert hdfs.addresses(job, clusters) == {}
