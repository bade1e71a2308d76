"""A control plane without nodes, real Karpenter beside it, and jobs whose pods end by models."""

from __future__ import annotations

import pytest

from boathouse_e2e import ahead, catalogue, karpenter, lab
from boathouse_e2e.spec import ClusterSpec
from tests.faults.conftest import trial  # noqa: F401 # an MRJob in this laboratory

VALUES = {"spark": {"namespaces": [lab.NAMESPACE]}}


def pytest_collection_finish(session: pytest.Session) -> None:
    ahead.build_tools(session, "helm", *catalogue.KARPENTER)


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory):
    """A cluster without nodes, whose KWOK keeps those that come."""
    spec = ClusterSpec(nodes=0, kwok_nodes=1, kwok_resizes=True)
    with lab.laboratory(tmp_path_factory.mktemp("autoscaling"), spec, VALUES) as place:
        place.cluster.run("delete", "nodes", "--all")
        yield place


@pytest.fixture(scope="session")
def autoscaler(laboratory):
    with karpenter.running(laboratory.cluster, laboratory.folder) as one:
        yield one
