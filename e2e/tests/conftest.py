"""One cluster for the session, with Boathouse installed by its chart, and a namespace for each test.

PROVIDER, CONTEXT and CLUSTER choose the cluster as for `make cluster-up`; KEEP=1 leaves it up at the end.
A cluster that cannot be had is an error, never a skip.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from obstore.store import S3Store

from boathouse_e2e import ahead, catalogue, debian, demo, errors, images, install, paths, providers, rights, storage
from boathouse_e2e.local import state
from boathouse_e2e.spec import Cluster, ClusterSpec, Provider
from e2e.tests import hadoop_harness, harness, local_volumes, spark_harness, traces

NAME = os.environ.get("TEST_CLUSTER", "boathouse-e2e")
LABEL = "boathouse-end-to-end-test"
AUDIT_LOG = paths.REPOSITORY / "build" / "e2e" / f"{NAME}-audit.log"
VALUES = {
    "queues": [{"name": "default", "weight": 1}, {"name": "left", "weight": 1}, {"name": "right", "weight": 1}],
    # Short for tests that wait until another replica leads, and longer than a busy machine holds a leader up.
    "lease": {"durationSeconds": 12, "renewDeadlineSeconds": 9, "retryPeriodSeconds": 1},
}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of what only kind can do on other providers: a test that is skipped would look like a gap.

    The longest tests come first, and those that need the whole cluster last, so that the others run side by side.
    """
    left_out = [item for item in items if item.get_closest_marker("only_kind") and chosen().name != state.KIND]
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted((item for item in items if item not in left_out), key=_turn)
    for item in items:
        if (group := _group(item)) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str:
    """Return which tests run one after the other; empty for a test that runs beside all others."""
    if item.get_closest_marker("alone"):
        return "alone"
    if marker := item.get_closest_marker("xdist_group"):
        return str(marker.args[0])
    return "hadoop" if _needs_hadoop(item) else ""


def _turn(item: pytest.Item) -> int:
    return {"": 1, "alone": 2}.get(_group(item), 0)


def _needs_hadoop(item: pytest.Item) -> bool:
    return "hadoop" in getattr(item, "fixturenames", ())


def pytest_collection_finish(session: pytest.Session) -> None:
    if not is_worker(session.config):
        _build(session.config, any(map(_needs_hadoop, session.items)), is_needed=bool(session.items))


def _build(config: pytest.Config, needs_hadoop: bool, *, is_needed: bool) -> None:
    if not is_needed or config.option.collectonly:
        return
    with contextlib.suppress(errors.ClusterError):  # the tests will say it
        name = chosen().name
        programs = (*catalogue.for_provider(name, nodes=2, kwok_nodes=1), *catalogue.WORKLOADS)
        hadoop = [images.HADOOP] if needs_hadoop else []
        packages = debian.NODE_PACKAGES if name == state.LOCAL else {}
        ahead.build(config, programs, [] if name == "existing" else [*images.DEFAULT, *hadoop], packages)


# Tests side by side, on one cluster that the main process starts


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is one of several that run tests."""
    return hasattr(config, "workerinput")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the cluster that the workers share."""
    config = session.config
    if is_worker(config) or config.option.dist == "no" or config.option.collectonly:
        return
    _build(config, needs_hadoop=True, is_needed=True)
    config.stash[_SHARED] = stack = contextlib.ExitStack()
    storage.deploy(with_boathouse(stack.enter_context(running(config))))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the cluster that the workers shared."""
    if _SHARED in session.config.stash:
        session.config.stash[_SHARED].close()


_SHARED = pytest.StashKey[contextlib.ExitStack]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test that needs the whole cluster while no other test runs."""
    lock = paths.state_folder() / f"{NAME}.tests.lock"
    with paths.locked(lock, shared=item.get_closest_marker("alone") is None):
        return (yield)


def chosen(name: str = NAME) -> Provider:
    return providers.choose(os.environ.get("PROVIDER", "auto"), name=name, context=os.environ.get("CONTEXT"))


def with_audit_log_if_possible(provider: Provider, spec: ClusterSpec) -> ClusterSpec:
    return dataclasses.replace(spec, audit_log=None) if provider.missing(spec) else spec


@contextlib.contextmanager
def running(config: pytest.Config) -> Iterator[Cluster]:
    """Start the cluster of the tests, and stop it at the end."""
    provider = chosen()
    spec = with_audit_log_if_possible(provider, ClusterSpec(name=NAME, nodes=2, audit_log=AUDIT_LOG))
    before = traces.machine()
    with ahead.shown(config):  # kind may build the image of its nodes, which takes a quarter of an hour
        print(f"provider: {provider.name}")
        up = provider.up(spec)
    yield up
    if spec.audit_log is not None:
        rights.record(spec.audit_log, NAME.removeprefix("boathouse-"))
    if os.environ.get("KEEP") == "1":
        return
    known = state.load(NAME, state.KIND)
    provider.down(NAME)
    if known:
        assert traces.of(known) == {}
        assert traces.machine().left_since(before) == set()


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    if is_worker(pytestconfig):
        found = chosen().find(NAME)
        assert found is not None, f"{NAME} is not up"
        yield found
        return
    with running(pytestconfig) as up:
        yield up


@pytest.fixture(scope="session")
def installed(cluster: Cluster, pytestconfig: pytest.Config) -> Cluster:
    """Return the cluster with Boathouse in it."""
    return cluster if is_worker(pytestconfig) else with_boathouse(cluster)


def with_boathouse(cluster: Cluster, values: Mapping[str, Any] = VALUES) -> Cluster:
    """Install Boathouse; what an earlier session left in the cluster goes."""
    cluster.run("delete", "namespaces", "-l", LABEL, "--wait=false")
    images.load(cluster)
    install.install(cluster, values)
    return cluster


@pytest.fixture(scope="session")
def volumes(cluster: Cluster) -> Iterator[str | None]:
    """Yield the StorageClass of claims: volumes for one small Hadoop cluster."""
    with local_volumes.pool(cluster, volumes_per_node=2) as storage_class:
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
    """Yield a namespace named after the test, with the storage's secret and the scripts; deleted at the end."""
    with namespace_of(installed, credentials, bucket, request) as one:
        yield one


@pytest.fixture
def hadoop(place: harness.Place, volumes: str | None) -> hadoop_harness.Clusters:
    """A namespace for MRClusters that refuses pods with privileges."""
    images.load(place.cluster, [images.HADOOP])
    place.cluster.run("label", "namespace", place.namespace, spark_harness.ENFORCED)
    return hadoop_harness.Clusters(place=place, storage_class=volumes)


@pytest.fixture
def apps(place: harness.Place) -> spark_harness.Applications:
    """A namespace that refuses pods with privileges, and whose drivers may create executors."""
    spark_harness.prepare(place)
    found = spark_harness.Applications(place=place)
    found.enable()
    return found


@pytest.fixture
def other_place(
    installed: Cluster, credentials: storage.Credentials, bucket: S3Store, request: pytest.FixtureRequest
) -> Iterator[harness.Place]:
    """Another namespace beside `place`."""
    with namespace_of(installed, credentials, bucket, request) as one:
        yield one


@contextlib.contextmanager
def namespace_of(
    installed: Cluster, credentials: storage.Credentials, bucket: S3Store, request: pytest.FixtureRequest
) -> Iterator[harness.Place]:
    """Make a namespace named after a test; what to look at is saved if it fails."""
    short = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:40].strip("-")
    namespace = f"t-{short}-{secrets.token_hex(2)}"  # the bucket keeps what earlier runs wrote
    yield harness.make(installed, credentials, bucket, namespace, labels={LABEL: "true"})
    if _failed(request):
        demo.save(installed, namespace, _folder_of(namespace))
    installed.run("delete", "namespace", namespace, "--wait=false")


def _folder_of(namespace: str) -> pathlib.Path:
    """Return where what to look at after a failure is saved."""
    return paths.REPOSITORY / "build" / "e2e" / namespace


def _failed(request: pytest.FixtureRequest) -> bool:
    report = request.node.stash.get(_REPORT, None)
    return report is not None and report.failed


_REPORT = pytest.StashKey[pytest.TestReport]()


@pytest.fixture
def fault_table(request: pytest.FixtureRequest) -> list[tuple[object, ...]]:
    """Rows for the table of faults that is printed at the end of the session."""
    return request.config.stash.setdefault(_FAULTS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what the harmed operator's jobs took."""
    rows = config.stash.get(_FAULTS, [])
    if rows:
        terminalreporter.section("faults")
        terminalreporter.write_line(
            f"{'signal':8} {'moment':24} {'new epoch after':>15} {'job took':>9} {'pods':>5} {'lost':>5} "
            f"{'changes watched':>15} over-commits"
        )
        for number, moment, pause_s, job, pods, changes in rows:
            took_s = (job.completed_s or 0.0) - job.created_s
            lost = sum(pod.failed for pod in pods)
            terminalreporter.write_line(
                f"{number:8} {moment:24} {pause_s:13.1f} s {took_s:7.0f} s {len(pods):5} {lost:5} {changes:15} none"
            )


_FAULTS = pytest.StashKey[list[tuple[object, ...]]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep the call's report for the fixtures' ends, which save what to look at after a failure; show the least."""
    report = yield
    if report.when == "call":
        item.stash[_REPORT] = report
    place = getattr(item, "funcargs", {}).get("place")
    if report.when == "call" and report.failed and place is not None:
        report.sections.append(("its namespace", demo.glance(place.cluster, place.namespace)))
        report.sections.append(("more of it", str(_folder_of(place.namespace))))
    return report
