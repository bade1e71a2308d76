"""A node that executors run on is switched off and removed: the application ends with the right result."""

import os
from collections.abc import Iterator

import pytest

from boathouse_cli import model
from boathouse_e2e import storage
from boathouse_e2e.spec import Cluster, FaultInjection
from e2e.tests import conftest, harness, replicas, spark_harness
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, squares, total

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.alone,
    pytest.mark.skipif(os.environ.get("PROVIDER") == "existing", reason="switches off a node"),
]
LABEL = "tests.boathouse.dev/executors"
HOST = "kubernetes.io/hostname"


def nodes(cluster: Cluster) -> tuple[str, str]:
    """The node of the S3 server, and another one."""
    server = cluster.get("pods", "-n", storage.NAMESPACE, "-l", f"app.kubernetes.io/instance={storage.NAME}")["items"]
    kept = str(server[0]["spec"]["nodeName"])
    names = [node["metadata"]["name"] for node in cluster.workers()]
    return kept, next(name for name in names if name != kept)


def label(cluster: Cluster, node: str, value: str) -> None:
    cluster.run("label", "node", node, "--overwrite", f"{LABEL}{value}")


@pytest.fixture
def provider() -> FaultInjection:
    chosen = conftest.chosen()
    assert isinstance(chosen, FaultInjection)
    return chosen


@pytest.fixture
def kept_and_lost(apps: Applications, provider: FaultInjection) -> Iterator[tuple[str, str]]:
    """A node for the driver, and one for executors that the test may lose; mended in the end."""
    cluster = apps.place.cluster
    kept, lost = nodes(cluster)
    label(cluster, lost, "=true")
    yield kept, lost
    kubelet = f"kubelet-{lost}"
    if not provider.runs(cluster.name, kubelet):
        provider.start_again(cluster.name, kubelet)
    cluster.run("wait", f"node/{lost}", "--for=create", f"--timeout={harness.TIMEOUT_S}s", timeout_s=harness.TIMEOUT_S)
    cluster.run("wait", f"node/{lost}", "--for=condition=Ready", f"--timeout={harness.TIMEOUT_S}s", timeout_s=600)
    for node in (kept, lost):
        label(cluster, node, "-")
    replicas.wait_for_both(cluster)


@pytest.mark.long
def test_executors_of_a_node_that_is_switched_off_are_replaced_on_another(
    apps: Applications, kept_and_lost: tuple[str, str], provider: FaultInjection
) -> None:
    kept, lost = kept_and_lost
    cluster = apps.place.cluster
    squares(
        apps,
        "moved",
        seconds=4,
        driver={**spark_harness.SMALL_DRIVER, "nodeSelector": {HOST: kept}},
        executor={"instances": 2, **spark_harness.SMALL_EXECUTOR, "nodeSelector": {LABEL: "true"}},
    )
    harness.until(
        lambda: len(apps.running("moved", model.EXECUTOR)) == 2,
        "both executors run",
        timeout_s=spark_harness.TIMEOUT_S,
    )
    assert {pod["spec"]["nodeName"] for pod in apps.running("moved", model.EXECUTOR)} == {lost}
    provider.switch_off(cluster.name, lost)
    cluster.run("delete", "node", lost)
    label(cluster, kept, "=true")
    app = apps.succeed("moved")
    assert total(apps, "moved") == EXPECTED
    assert (app.attempt, app.driver.node) == (1, kept)
