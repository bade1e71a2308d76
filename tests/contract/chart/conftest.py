"""The chart: rendered by helm, and applied to a real API server where others act on it by name."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from boathouse_e2e import tools
from tests.contract.chart import drivers, installations
from tests.contract.chart.api_server import ApiServer, Manifest
from tests.contract.chart.builders import (
    CONTROLLER,
    EPOCH,
    JOBS,
    OPERATOR,
    OPERATORS_LABEL,
    lease,
    mrjob,
    object_,
    pod,
    role,
    task_pod,
    wait_for_policies,
)

CHART = Path(__file__).resolve().parents[3] / "charts" / "boathouse"
NAMESPACE = "boathouse-system"
POD_CERTIFICATES = ("--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1=true")


class Manifests:
    """What helm rendered."""

    def __init__(self, text: str) -> None:
        self._all: list[Manifest] = [manifest for manifest in yaml.load_all(text, yaml.CSafeLoader) if manifest]

    def __iter__(self) -> Iterator[Manifest]:
        return iter(self._all)

    def of(self, *kinds: str) -> list[Manifest]:
        """All manifests of some kinds."""
        return [manifest for manifest in self._all if manifest["kind"] in kinds]

    def find(self, kind: str, name: str = "boathouse", namespace: str | None = None) -> Manifest:
        """The one manifest of that kind and name."""
        metas = [(manifest, manifest["metadata"]) for manifest in self.of(kind)]
        (found,) = [m for m, meta in metas if meta["name"] == name and namespace in (None, meta.get("namespace"))]
        return found


class Chart:
    """What helm makes of the chart."""

    def __init__(self, helm: Path) -> None:
        self._helm = helm

    def lint(self, *arguments: str) -> str:
        """What `helm lint --strict` says; empty when it is content."""
        done = self._run("lint", str(CHART), "--strict", *arguments)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def render(self, *arguments: str, **values: Any) -> Manifests:
        """The manifests for some values: `render(namespaces=["a"])`."""
        return Manifests(self.text(*arguments, **values))

    def text(self, *arguments: str, **values: Any) -> str:
        """The manifests as helm writes them."""
        done = self._template(*arguments, **values)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refusal(self, *arguments: str, **values: Any) -> str:
        """What helm says about values that it does not take."""
        done = self._template(*arguments, **values)
        assert done.returncode != 0, "helm took the values"
        return done.stderr

    def _template(self, *arguments: str, **values: Any) -> subprocess.CompletedProcess[str]:
        settings = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        chart = ("template", "boathouse", str(CHART), f"--namespace={NAMESPACE}")
        return self._run(*chart, "--skip-tests", *settings, *arguments)

    def test_pod(self) -> Manifest:
        """The pod that `helm test` runs."""
        done = self._run("template", "boathouse", str(CHART), f"--namespace={NAMESPACE}")
        return Manifests(done.stdout).find("Pod", "boathouse-test")

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._helm, *command], capture_output=True, text=True, check=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the modules together that need the chart with the same values: it is installed once for these."""
    own = [(number, item) for number, item in enumerate(items) if Path(__file__).parent in item.path.parents]
    ordered = sorted((item for _, item in own), key=lambda item: json.dumps(getattr(item.module, "VALUES", {})))
    for (number, _), item in zip(own, ordered, strict=True):
        items[number] = item


@pytest.fixture(scope="session")
def chart() -> Chart:
    return Chart(tools.ensure(["helm"])["helm"])


@pytest.fixture(scope="session")
def defaults(chart: Chart) -> Manifests:
    return chart.render()


@pytest.fixture(scope="session")
def control_plane(start_control_plane: Callable[[str], Any]) -> Any:
    """One for the chart alone: its policies hold for the whole cluster, and the fence outlives an uninstall."""
    return start_control_plane("chart", apiserver_args=POD_CERTIFICATES)


@pytest.fixture(scope="session")
def cluster(control_plane: Any, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    return ApiServer(control_plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="session")
def installation(cluster, chart):
    with installations.on(cluster, chart) as shared:
        yield shared


@pytest.fixture(scope="module")
def installed(request, cluster, installation):
    """The chart with the values that the module has as `VALUES`, and pods that wait to be bound."""
    waiting = [
        pod("ordinary", schedulerName="nobody"),
        pod("foreign", schedulerName="boathouse"),
        pod("neighbour", NAMESPACE, schedulerName="nobody"),
        pod("boathouse-0", NAMESPACE, meta=OPERATORS_LABEL, schedulerName="nobody"),
        mrjob(),
    ]
    installation.take(getattr(request.module, "VALUES", {}))
    cluster.until(lambda: cluster.creates(mrjob()), "admitted")  # its CRD is served
    cluster.apply(*waiting, lease(EPOCH))
    wait_for_policies(cluster)
    yield cluster
    cluster.delete(*waiting)


@pytest.fixture(scope="module")
def operator(installed):
    return installed.acting_as(OPERATOR)


@pytest.fixture(scope="module")
def alice(installed):
    """A user who may do everything that roles can allow."""
    return installed.acting_as("alice")


@pytest.fixture(scope="module")
def controller(installed):
    """A controller of Kubernetes' own, which makes pods from templates."""
    return installed.acting_as(CONTROLLER)


@pytest.fixture(scope="module")
def as_user(installed):
    """Act as somebody who may create jobs and applications in the namespace demo, and what else the rules say."""
    applied = []

    def acting(name: str, *rules: tuple[str, list[str], list[str], list[str]]) -> ApiServer:
        manifests = role(name, "demo", name, JOBS, *rules)
        installed.apply(*manifests)
        applied.extend(manifests)
        user = installed.acting_as(name)
        user.until(lambda: user.may("create", "mrjobs.boathouse.dev", "demo"), "yes")
        return user

    yield acting
    installed.delete(*applied)


@pytest.fixture(scope="module")
def task(installed, operator):
    """A task's pod that is there, made under the operator's name."""
    node = installed.get("nodes")["items"][0]["metadata"]["name"]
    manifest = task_pod(uid=installed.get("mrjob/wc")["metadata"]["uid"], node=node)
    created = operator.kubectl("create", "-f", "-", body=[manifest])
    assert created.returncode == 0, created.stderr
    return f"pod/{manifest['metadata']['name']}"


@pytest.fixture(scope="module")
def start_driver(installed, operator):
    """Start drivers with real tokens; the module's values must enable Spark in their namespace."""
    started = []

    def start(name: str, namespace: str = "demo") -> drivers.Driver:
        started.append(drivers.start(installed, operator, name, namespace))
        return started[-1]

    yield start
    installed.delete(*(driver.application for driver in started))
    installed.delete(*(object_("Pod", driver.name, driver.namespace) for driver in started))
