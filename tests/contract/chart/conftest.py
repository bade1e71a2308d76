"""The chart: rendered by helm, and applied to a real API server where others act on it by name."""

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from boathouse_e2e import tools
from tests.contract.chart import drivers
from tests.contract.chart.builders import (
    CONTROLLER,
    EPOCH,
    OPERATOR,
    OPERATORS_LABEL,
    RBAC,
    RESTRICTED,
    grant,
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
PATIENCE_S = 100
JOBS = ("boathouse.dev", ["mrclusters", "mrjobs", "sparkapps"], ["get", "create", "update", "patch"], [])
POD_CERTIFICATES = ("--feature-gates=PodCertificateRequest=true", "--runtime-config=certificates.k8s.io/v1beta1=true")

Manifest = dict[str, Any]


class Manifests:
    """What helm rendered."""

    def __init__(self, text: str) -> None:
        self._all: list[Manifest] = [manifest for manifest in yaml.safe_load_all(text) if manifest]

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


@pytest.fixture(scope="session")
def chart() -> Chart:
    return Chart(tools.ensure(["helm"])["helm"])


@pytest.fixture(scope="session")
def defaults(chart: Chart) -> Manifests:
    return chart.render()


class Cluster:
    """The API server, as kubectl reaches it under some name."""

    def __init__(self, kubeconfig: Path, cache: Path, user: str = "") -> None:
        self._kubeconfig = kubeconfig
        self._cache = cache
        self._user = [f"--as={user}"] if user else []
        self._program = tools.ensure(["kubectl"])["kubectl"]

    def acting_as(self, user: str) -> "Cluster":
        """The same API server under another name."""
        return Cluster(self._kubeconfig, self._cache, user)

    def with_token(self, token: str) -> "Cluster":
        """The same API server for the bearer of a token."""
        content = yaml.safe_load(self._kubeconfig.read_text())
        content["users"] = [{"name": user["name"], "user": {"token": token}} for user in content["users"]]
        kubeconfig = self._cache.parent / f"{hashlib.sha256(token.encode()).hexdigest()[:16]}.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(content))
        return Cluster(kubeconfig, self._cache)

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests as a user of the rendered chart would."""
        done = self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", body=manifests)
        assert done.returncode == 0, done.stderr

    def delete(self, *manifests: Manifest) -> None:
        """Delete what the manifests name, if it is there."""
        done = self.kubectl("delete", "--ignore-not-found", "--now", "--wait=false", "-f", "-", body=manifests)
        assert done.returncode == 0, done.stderr

    def uninstall(self, *manifests: Manifest) -> None:
        """Delete what `helm uninstall` deletes: all but what is marked to be kept."""
        kept = ("annotations", {"helm.sh/resource-policy": "keep"})
        self.delete(*(manifest for manifest in manifests if kept not in manifest["metadata"].items()))

    def kubectl(self, *arguments: str, body: Sequence[Manifest] = ()) -> subprocess.CompletedProcess[str]:
        """Run kubectl, with manifests as its input."""
        command = [self._program, f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._cache}", *self._user]
        whole = body[0] if len(body) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(body)}
        return subprocess.run(
            [*command, *arguments], input=json.dumps(whole), capture_output=True, text=True, check=False
        )

    @staticmethod
    def until(answer: Callable[[], str], expected: str) -> None:
        """Wait for an answer: the API server's own caches take some milliseconds to learn of a change."""
        deadline = time.monotonic() + PATIENCE_S
        while expected not in (last := answer()):
            assert time.monotonic() < deadline, f"in {PATIENCE_S} s not {expected!r}, but {last!r}"

    def has_field(self, path: str) -> bool:
        """Return whether the schema of the API server has a field (`pod.spec.nodeName`)."""
        return self.kubectl("explain", path).returncode == 0

    # What follows is a dry run: admitted or not, and nothing is left behind. Each returns `admitted`, or the refusal.

    def creates(self, manifest: Manifest) -> str:
        """Create an object."""
        return self._answer("create", "--dry-run=server", "-f", "-", body=[manifest])

    def binds(self, pod: str, namespace: str = "demo", **metadata: Any) -> str:
        """Bind a pod to a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **metadata}, "target": target}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding?dryRun=All"
        return self._answer("create", "--raw", path, "-f", "-", body=[binding])

    def patches(self, what: str, patch: Manifest, namespace: str = "demo", **flags: str) -> str:
        """Merge a patch into an object (`pod/p`), or with `subresource=` into a part of it."""
        flags = {"type": "merge"} | flags
        options = [f"--namespace={namespace}", *(f"--{name}={value}" for name, value in flags.items())]
        return self._answer("patch", what, f"--patch={json.dumps(patch)}", "--dry-run=server", *options)

    def deletes(self, what: str, namespace: str = "demo") -> str:
        """Delete an object (`pod/p`)."""
        return self._answer("delete", what, f"--namespace={namespace}", "--dry-run=server", "--wait=false")

    def deletes_all(self, resource: str, labels: str = "", namespace: str = "demo") -> str:
        """Delete a collection (`pods`), by one request."""
        path = f"/api/v1/namespaces/{namespace}/{resource}?dryRun=All&labelSelector={labels}"
        return self._answer("delete", f"--raw={path}")

    def may(self, verb: str, resource: str, namespace: str = "", *, name: str = "") -> str:
        """Ask the API server's authorizer: `yes`, `no`, or what went wrong; `resource` may have a subresource."""
        scope = f"--namespace={namespace}" if namespace else "--all-namespaces"
        kind, _, part = resource.partition("/")
        subject = [f"{kind}/{name}" if name else kind, *([f"--subresource={part}"] if part else [])]
        done = self.kubectl("auth", "can-i", verb, *subject, scope)
        return done.stdout.strip() or done.stderr

    def _answer(self, *arguments: str, body: Sequence[Manifest] = ()) -> str:
        done = self.kubectl(*arguments, body=body)
        return "admitted" if done.returncode == 0 else done.stderr


@pytest.fixture(scope="session")
def control_plane(start_control_plane: Callable[[str], Any]) -> Any:
    """One for the chart alone: its policies hold for the whole cluster, and the fence outlives an uninstall."""
    return start_control_plane("chart", apiserver_args=POD_CERTIFICATES)


@pytest.fixture(scope="session")
def cluster(control_plane: Any, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(control_plane.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    """The chart's values; a module that needs others replaces this fixture."""
    return {}


@pytest.fixture(scope="module")
def installed(cluster, chart, values):
    """The chart, namespaces with and without the restricted standard, and pods that wait to be bound."""
    read_first = ["pods/status", "pods/resize", "persistentvolumes", "persistentvolumeclaims"]
    reader = {"apiGroups": [""], "resources": read_first, "verbs": ["get"]}
    others = [
        *(object_("Namespace", name, metadata={"labels": RESTRICTED}) for name in ("boathouse-system", "demo")),
        object_("Namespace", "unguarded"),
        object_("Namespace", "closed", metadata={"labels": {"boathouse.dev/enabled": "false"}}),
        object_("ServiceAccount", "builder", "unguarded"),
        grant("chart-test-everything", "cluster-admin", "alice", CONTROLLER),
        object_("ClusterRole", "chart-test-kubectl-reads-before-it-patches", api=f"{RBAC}/v1", rules=[reader]),
        grant("chart-test-reader", "chart-test-kubectl-reads-before-it-patches", OPERATOR),
        object_("ConfigMap", "coredns", "demo"),
    ]
    waiting = [
        pod("ordinary", schedulerName="nobody"),
        pod("foreign", schedulerName="boathouse"),
        pod("neighbour", "boathouse-system", schedulerName="nobody"),
        pod("boathouse-0", "boathouse-system", meta=OPERATORS_LABEL, schedulerName="nobody"),
    ]
    manifests = [*chart.render(**values), lease(EPOCH)]
    cluster.apply(*others)
    cluster.apply(*manifests)
    for namespace in ("boathouse-system", "demo", "unguarded"):
        cluster.until(lambda name=namespace: cluster.creates(pod(namespace=name)), "admitted")  # it has its account
    cluster.until(lambda: cluster.creates(mrjob()), "admitted")  # its CRD is served
    cluster.apply(*waiting, mrjob())
    wait_for_policies(cluster)
    yield cluster
    cluster.delete(*waiting, mrjob())
    cluster.uninstall(*manifests)
    cluster.delete(*(other for other in others if other["kind"] != "Namespace"))


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

    def acting(name: str, *rules: tuple[str, list[str], list[str], list[str]]) -> Cluster:
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
    uid = installed.kubectl("get", "mrjob", "wc", "--namespace=demo", "--output=jsonpath={.metadata.uid}").stdout
    node = installed.kubectl("get", "nodes", "--output=jsonpath={.items[0].metadata.name}").stdout
    manifest = task_pod(uid=uid, node=node)
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
