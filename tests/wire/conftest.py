"""The fake API server, a client of it, and patience, as fixtures."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from tests.builders.operators import mrclusters, sparkapps
from tests.wire import fake_api, waiting

LAST_CALLS = 40
logging.getLogger("boathouse").setLevel(logging.ERROR)  # these tests break things on purpose


def pytest_collection_modifyitems(items):
    """Let pytest's limit of wall time be the last resort on a busy machine: tests wait for turns of the event loop."""
    for item in items:
        if "/tests/wire/" in str(item.path) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture
async def api():
    async with fake_api.FakeApi() as server:
        yield server


@pytest.fixture
def run(api, tmp_path):
    """Run a command in a thread, as a process beside the server."""
    kubeconfig = {
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me", "namespace": "demo"}}],
        "clusters": [{"name": "fake", "cluster": {"server": api.url}}],
        "users": [{"name": "me", "user": {}}],
    }
    (path := tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))

    def call(*words):
        return asyncio.to_thread(CliRunner().invoke, commands.app, ["--kubeconfig", str(path), *words])

    return call


@pytest.fixture
async def client(api):
    async with api.client() as connected:
        yield connected


@pytest.fixture
async def hadoop(api):
    """A leader of MRClusters with the nodes of one cluster."""
    async with mrclusters.RunningMRCluster(api).running() as running:
        yield running


@pytest.fixture
async def spark(api):
    """A leader of SparkApps with the nodes of one application."""
    api.add(sparkapps.account())
    async with sparkapps.RunningSparkApp(api).running() as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Put what the server held and was asked into the report of a failed test."""
    report = yield
    server = getattr(item, "funcargs", {}).get("api")
    if report.when == "call" and report.failed and server is not None:
        report.sections.append(("the fake API server", "\n".join(_server_state(server))))
    return report


def _server_state(server):
    for key, pod in server.objects("pods").items():
        why = [f"{one['type']}: {one.get('message', '')}" for one in pod["status"].get("conditions", ())]
        yield f"pod {key} on {pod['spec'].get('nodeName') or 'no node'}, {pod['status'].get('phase')}; {why}"
    for plural in ("mrjobs", "mrclusters"):
        for key, found in server.objects(plural).items():
            yield f"{plural} {key}: {found.get('status')}"
    yield from (f"call {call.name} {call.key}" for call in server.calls[-LAST_CALLS:])


@pytest.fixture
def eventually():
    return waiting.eventually
