"""A cluster of four nodes for tests of Hadoop clusters, in the place of the session's cluster of two.

The fixtures of the session have their values from its cluster, so those that follow from the cluster are here again.
"""

import os
from collections.abc import Iterator

import pytest
from obstore.store import S3Store

from boathouse_e2e import ahead, storage
from boathouse_e2e.spec import Cluster, ClusterSpec
from e2e.tests import conftest, harness, local_volumes

NAME = f"{conftest.NAME}-hadoop"
NODES = 4
VOLUMES = 32
"""On each node, for all tests, also if all masters go to one node: a volume is used once."""


VALUES = {
    **conftest.VALUES,
    # The JVMs of two clusters that start hold a leader up for longer than other tests do.
    "lease": {"durationSeconds": 30, "renewDeadlineSeconds": 25, "retryPeriodSeconds": 2},
}


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    provider = conftest.chosen(NAME)
    with ahead.shown(pytestconfig):
        up = provider.up(ClusterSpec(name=NAME, nodes=NODES))
    yield up
    if os.environ.get("KEEP") != "1":
        provider.down(NAME)


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """Return the cluster with Boathouse in it."""
    return conftest.with_boathouse(cluster, VALUES)


@pytest.fixture(scope="session")
def volumes(cluster: Cluster) -> Iterator[str | None]:
    """Yield the StorageClass of claims."""
    with local_volumes.pool(cluster, volumes_per_node=VOLUMES) as storage_class:
        yield storage_class


@pytest.fixture(scope="session")
def credentials(installed: Cluster) -> storage.Credentials:
    """Return the S3 server's keys."""
    return storage.deploy(installed)


@pytest.fixture(scope="session")
def bucket(installed: Cluster, credentials: storage.Credentials) -> Iterator[S3Store]:
    """Yield the tests' bucket, reached from this machine."""
    with storage.endpoint_from_host(installed) as endpoint:
        yield storage.bucket(endpoint, credentials, harness.BUCKET)


@pytest.fixture
def place(
    installed: Cluster, credentials: storage.Credentials, bucket: S3Store, request: pytest.FixtureRequest
) -> Iterator[harness.Place]:
    """Yield a namespace named after the test."""
    with conftest.namespace_of(installed, credentials, bucket, request) as one:
        yield one
