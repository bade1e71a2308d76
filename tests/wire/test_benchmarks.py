"""What the benchmarks of scheduling share, against a server that fails for a while."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import support
from boathouse.cluster import catalogue, errors, retries
from tests.builders import manifests

BEHIND = {"status": 504, "reason": "Timeout"}  # as `Too large resource version`


@pytest.fixture
def pods(client, monkeypatch):
    monkeypatch.setattr(support, "PATIENCE", retries.Backoff(base_s=0.001, attempts=4))
    return support.Bulk(client)


def on_a_node(name):
    return manifests.pod(name, namespace=support.NAMESPACE, node="n1")


async def test_a_list_that_the_watch_cache_cannot_answer_yet_is_retried(api, pods):
    api.add(on_a_node("p"))
    api.fail_next("list pods", times=3, **BEHIND)
    assert [pod.metadata.name for pod in (await pods.read_all(catalogue.PODS)).items] == ["p"]
    assert len(api.called("list pods")) == 4


async def test_a_list_that_fails_for_good_ends_the_benchmark(api, pods):
    api.fail_next("list pods", times=4, **BEHIND)
    with pytest.raises(errors.ServerError, match="504 Timeout"):
        await pods.read_all(catalogue.PODS)


async def test_the_stopwatch_counts_on_after_lists_and_watches_that_failed(api, pods):
    api.fail_next("list pods", times=2, **BEHIND)
    api.fail_next("watch pods", times=2, **BEHIND)
    async with pods.stopwatch(2, limit_s=20) as watch:
        watch.start()
        api.add(on_a_node("p"))
        api.add(on_a_node("q"))
    assert watch.rate > 0


async def test_clearing_and_counting_go_on_after_lists_that_failed(api, pods):
    api.add(on_a_node("p"))
    api.fail_next("list *", times=2, **BEHIND)
    await pods.clear()
    api.fail_next("list *", times=2, **BEHIND)
    assert (await pods.count_events(), api.objects("pods")) == (0, {})


async def test_events_have_settled_when_their_number_stays_the_same(api, pods, monkeypatch):
    monkeypatch.setattr(support, "SETTLED_S", 0.001)
    api.fail_next("list events", times=2, **BEHIND)
    await pods.events_settled()
    assert len(api.called("list events")) == 4


def test_a_modelled_cluster_grows_and_shrinks_in_virtual_time():
    command = [sys.executable, "-m", "benchmarks.mrclusters", "core-nodes", "--core=2", "--added=1", "--blocks=20"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "0 blocks without a replica, 0 with too few; left: c0, c1" in ended.stdout
