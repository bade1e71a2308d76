"""Jobs of each kind in a namespace where a webhook gives each pod a sidecar, larger requests and a node selector."""

from collections.abc import Iterator, Sequence

import pytest

from boathouse_cli import kinds, model
from boathouse_e2e import admission_server, webhook
from e2e.tests import hadoop_harness, harness
from e2e.tests.hadoop_harness import Clusters
from e2e.tests.harness import Place
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import EXPECTED, ONE_EXECUTOR, squares, total

pytestmark = pytest.mark.cluster
DATA = harness.text(1_500_000)
ENDED = {"Succeeded", "Failed"}
ON_ONE_NODE = {
    "master": {"resources": {"cpu": "500m"}, "volume": {"emptyDir": True}},
    "core": {"count": 1, "resources": {"cpu": "500m", "memory": "1408Mi"}, "volume": {"emptyDir": True}},
    "hdfs": {"replication": 1},
}


@pytest.fixture
def selected(place: Place) -> Iterator[dict[str, str]]:
    """A label that the last node alone bears."""
    node = max(node["metadata"]["name"] for node in place.cluster.workers())
    label = f"tests.boathouse.dev/{place.namespace}"
    place.cluster.run("label", "node", node, f"{label}=true")
    yield {label: "true"}
    place.cluster.run("label", "node", node, f"{label}-")


@pytest.fixture
def changing(place: Place, selected: dict[str, str]) -> Iterator[None]:
    """A webhook that changes the pods of the namespace."""
    with webhook.running(place.cluster, place.namespace, node_selector=selected):
        yield


@pytest.fixture
def changing_without_dry_runs(place: Place, selected: dict[str, str]) -> Iterator[None]:
    """A webhook that changes the pods of the namespace, and refuses dry runs."""
    with webhook.running(place.cluster, place.namespace, node_selector=selected, refuses_dry_runs=True):
        yield


def count_words(place: Place, name: str) -> None:
    """Run an MRJob: each pod is changed, no task fails by itself, and nothing of it goes on afterwards."""
    place.put("in/a.txt", DATA)
    job = place.succeed(place.start(name))
    assert harness.pairs(place.parts(name)) == harness.counted(DATA)
    assert job.maps.succeeded == job.maps.total == 2
    assert place.gateway.get(kinds.MRJOB.plural, name)["status"]["failures"]["user"] == 0
    pods = place.raw_pods(name)
    assert all(map(is_changed, pods))
    requests = {pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods}
    assert f"{100 + admission_server.MORE['cpu']}m" in requests
    harness.until(lambda: have_ended(place.raw_pods(name)), "the pods end with their sidecars")


def is_changed(pod: model.Raw) -> bool:
    return webhook.SIDECAR in {container["name"] for container in pod["spec"]["containers"]}


def have_ended(pods: Sequence[model.Raw]) -> bool:
    return all(pod["status"]["phase"] in ENDED for pod in pods)


@pytest.mark.usefixtures("changing")
def test_an_mrjob_whose_pods_a_webhook_changes_counts_the_words(place: Place) -> None:
    count_words(place, "count")


@pytest.mark.usefixtures("changing_without_dry_runs")
def test_an_mrjob_counts_the_words_where_the_webhook_refuses_dry_runs(place: Place) -> None:
    count_words(place, "count")


@pytest.mark.long  # an MRJob is tried by dry runs above
@pytest.mark.usefixtures("changing")
def test_a_sparkapp_whose_pods_a_webhook_changes_adds_up_squares(apps: Applications) -> None:
    squares(apps, "squares", executor=ONE_EXECUTOR)
    app = apps.succeed("squares")
    assert total(apps, "squares") == EXPECTED
    assert apps.raw("squares")["status"]["failures"]["application"] == 0
    assert all(map(is_changed, apps.raw_pods("squares")))
    harness.until(lambda: have_ended(apps.raw_pods("squares")), f"the pods of {app.name} end with their sidecars")


@pytest.mark.long
@pytest.mark.usefixtures("changing")
def test_a_hadoop_cluster_whose_pods_a_webhook_changes_counts_the_words(hadoop: Clusters) -> None:
    hadoop.start("lake", **ON_ONE_NODE)
    hadoop.ready("lake")
    hadoop_harness.fill(hadoop, "lake", DATA)
    hadoop.streaming("lake", "commands")
    hadoop.succeed("commands")
    assert hadoop.words("lake", "/out-commands") == harness.counted(DATA)
    assert all(map(is_changed, hadoop.pods("lake").values()))
    harness.until(lambda: have_ended(hadoop.place.raw_pods("commands")), "the job's pods end with their sidecars")
