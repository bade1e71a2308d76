"""A cluster whose workers are switched off until a provisioner adds them, in the place of the session's cluster.

The operator and the S3 server are on the first node, which takes no other pods.
"""

import os
from collections.abc import Iterator

import pytest

from boathouse_e2e import ahead, images, storage
from boathouse_e2e.local.layout import node_name
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import Cluster, ClusterSpec
from e2e.tests import conftest, hadoop_harness, harness, spark_harness
from e2e.tests.hadoop.conftest import bucket, place  # noqa: F401 # the same fixtures for another cluster
from e2e.tests.scaling.provisioner import WORKERS, Provisioner

NAME = f"{conftest.NAME}-scaling"
SYSTEM = "tests.boathouse.dev/system"
VALUES = {**conftest.VALUES, "replicas": 1, "tolerations": [{"key": SYSTEM, "operator": "Exists"}]}


@pytest.fixture(scope="session")
def provider() -> LocalProvider:
    """Return the provider, whose images outlive a node that is switched off."""
    chosen = conftest.chosen(NAME)
    assert isinstance(chosen, LocalProvider), "set PROVIDER=local"
    return chosen


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config, provider: LocalProvider) -> Iterator[Cluster]:
    with ahead.shown(pytestconfig):
        up = provider.up(ClusterSpec(name=NAME, nodes=1 + len(WORKERS)))
    for name in WORKERS:
        if provider.runs(NAME, f"kubelet-{name}"):  # else an earlier session has kept the cluster
            provider.switch_off(NAME, name)
        up.run("delete", "node", name, "--ignore-not-found")
    yield up
    if os.environ.get("KEEP") != "1":
        provider.down(NAME)


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """Return the cluster with Boathouse in it."""
    images.load(cluster, [*images.DEFAULT, images.HADOOP])
    return conftest.with_boathouse(cluster, VALUES)


@pytest.fixture(scope="session")
def credentials(installed: Cluster) -> storage.Credentials:
    """Return the S3 server's keys; with the server all that needs the first node is there."""
    found = storage.deploy(installed)
    installed.run("taint", "node", node_name(0), f"{SYSTEM}=true:NoSchedule", "--overwrite")
    return found


@pytest.fixture
def provisioner(place: harness.Place, provider: LocalProvider) -> Iterator[Provisioner]:  # noqa: F811
    """Add workers while a test runs. Before it there are none."""
    with Provisioner(place.cluster, provider, WORKERS).running() as one:
        yield one


@pytest.fixture
def apps(place: harness.Place) -> spark_harness.Applications:  # noqa: F811
    """A namespace that refuses pods with privileges, and whose drivers may create executors."""
    spark_harness.prepare(place)
    found = spark_harness.Applications(place=place)
    found.enable()
    return found


@pytest.fixture
def hadoop(place: harness.Place) -> hadoop_harness.Clusters:  # noqa: F811
    """A namespace for MRClusters, whose volumes end with their pods."""
    place.cluster.run("label", "namespace", place.namespace, spark_harness.ENFORCED)
    return hadoop_harness.Clusters(place=place, storage_class=None)
