"""A cluster whose workers are switched off until a provisioner adds them, in the place of the session's cluster.

The operator and the S3 server are on the first node, which takes no other pods.
"""

import os
from collections.abc import Iterator

import pytest

from boathouse_e2e import ahead, images, storage
from boathouse_e2e.spec import Cluster, ClusterSpec, FaultInjection
from e2e.tests import conftest, hadoop_harness, harness, spark_harness
from e2e.tests.hadoop.conftest import bucket, place  # noqa: F401 # the same fixtures for another cluster
from e2e.tests.scaling.provisioner import Provisioner

NAME = f"{conftest.NAME}-scaling"
WORKERS = 2
SYSTEM = "tests.boathouse.dev/system=true:NoSchedule"
VALUES = {**conftest.VALUES, "replicas": 1}


@pytest.fixture(scope="session")
def provider() -> FaultInjection:
    """Return the provider, which must start and end kubelets."""
    chosen = conftest.chosen(NAME)
    assert isinstance(chosen, FaultInjection)
    return chosen


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config, provider: FaultInjection) -> Iterator[Cluster]:
    chosen = conftest.chosen(NAME)
    with ahead.shown(pytestconfig):
        up = chosen.up(ClusterSpec(name=NAME, nodes=1 + WORKERS))
    for node in up.workers()[1:]:
        name = node["metadata"]["name"]
        provider.switch_off(NAME, name)
        up.run("delete", "node", name)
    yield up
    if os.environ.get("KEEP") != "1":
        chosen.down(NAME)


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """Return the cluster with Boathouse in it."""
    images.load(cluster, [*images.DEFAULT, images.HADOOP])
    return conftest.with_boathouse(cluster, VALUES)


@pytest.fixture(scope="session")
def credentials(installed: Cluster) -> storage.Credentials:
    """Return the S3 server's keys; with the server all that needs the first node is there."""
    found = storage.deploy(installed)
    (first,) = (node["metadata"]["name"] for node in installed.workers())
    installed.run("taint", "node", first, SYSTEM)
    return found


@pytest.fixture
def provisioner(place: harness.Place, provider: FaultInjection) -> Iterator[Provisioner]:  # noqa: F811
    """Add workers while a test runs. Before it there are none."""
    names = [f"node-{number}" for number in range(1, 1 + WORKERS)]
    with Provisioner(place.cluster, provider, names).running() as one:
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
