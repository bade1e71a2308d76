"""The agent's own code reports to the progress endpoint of leaders, and others try to."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.progress import limits
from boathouse_task.cluster_contract import (
    MOST_APPLICATIONS,
    MOST_NODES,
    MOST_TAGS,
    REPORT_MAX_BYTES,
    AgentReport,
    ApplicationFigures,
    HdfsFigures,
    NodeFigures,
    Version,
    YarnFigures,
    encode_report,
)
from tests.builders import manifests
from tests.builders.operators.agents import DOMAIN, JOB, MASTER, PATH, UID, Cluster, Pods, encoded, leading

APPLICATION = ApplicationFigures(id="application_1_0001", state="RUNNING")


@pytest.fixture(autouse=True)
def _report_at_once(monkeypatch):
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 0.0)


@pytest.fixture
def pods(api):
    return Pods(api)


@pytest.fixture
def token(pods):
    return pods.add(MASTER, Role.MASTER)


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


@pytest.fixture
async def leader(client, pods):
    async with leading(client, pods) as serving:
        yield serving


def reviews(api):
    return len(api.called("create tokenreviews"))


# Orders


async def test_orders_arrive_and_their_version_is_reported_once_they_are_carried_out(leader, cluster, token):
    agent = cluster.agent(leader, token)
    leader.publish(17, "c3", "t1")
    await cluster.step(agent)
    assert cluster.excluded == [f"c3.{DOMAIN}.cluster.local"]
    await cluster.step(agent)
    report = leader.reports.last(UID)
    assert (report.version, report.refreshed, report.error) == (Version(3, 17), False, "")
    cluster.refresh()
    await cluster.step(agent)
    assert leader.reports.last(UID).refreshed
    assert leader.reports.age_s(UID) < 60
    assert UID in leader.marked


async def test_a_leader_without_a_status_takes_nothing_back(leader, client, pods, cluster, token):
    leader.publish(17, "c3")
    await cluster.step(cluster.agent(leader, token))
    async with leading(client, pods, epoch=4) as successor:
        await cluster.step(cluster.agent(successor, token), times=2)
        assert successor.reports.last(UID).version == Version(3, 17)
        assert cluster.excluded
        successor.publish(5)
        await cluster.step(cluster.agent(successor, token))
        assert cluster.excluded == []


async def test_a_former_leader_that_resumes_has_no_effect(leader, client, pods, cluster, token):
    leader.publish(900, "c2", "c3")
    leader.applications.follow(UID, "uid-1", JOB)
    async with leading(client, pods, epoch=4) as successor:
        successor.publish(901, "c3")
        await cluster.step(cluster.agent(successor, token))
    leader.leads = False
    agent = cluster.agent(leader, token)
    await cluster.step(agent, times=2)
    assert cluster.excluded == [f"c3.{DOMAIN}.cluster.local"]
    assert leader.reports.last(UID).version == Version(4, 901)
    assert leader.reports.last(UID).tags == {}


async def test_after_a_restore_of_etcd_one_report_is_enough(leader, client, pods, cluster, token):
    leader.publish(900, "c2", "c3")
    await cluster.step(cluster.agent(leader, token))
    async with leading(client, pods, epoch=2) as restored:
        agent = cluster.agent(restored, token)
        restored.publish(40, "c3")
        await cluster.step(agent)
        assert cluster.excluded == [f"c3.{DOMAIN}.cluster.local"]
        restored.publish(41)
        await cluster.step(agent, times=2)
        assert cluster.excluded == []
        assert restored.reports.last(UID).version == Version(4, 41)


async def test_an_endpoint_that_is_away_leaves_the_orders_as_they_are(client, pods, cluster, token):
    async with leading(client, pods) as leader:
        leader.publish(17, "c3")
        agent = cluster.agent(leader, token)
        await cluster.step(agent)
    await cluster.step(agent)
    assert cluster.excluded == [f"c3.{DOMAIN}.cluster.local"]


# Applications


async def test_a_job_gets_the_applications_of_its_tag(leader, cluster, token):
    agent = cluster.agent(leader, token)
    leader.publish(17)
    await cluster.step(agent)
    leader.applications.follow(UID, "uid-1", JOB)
    cluster.found["uid-1"] = [APPLICATION]
    await cluster.step(agent)
    assert leader.applications.view("uid-1") is None
    await cluster.step(agent)
    view = leader.applications.view("uid-1")
    assert list(view.applications) == [APPLICATION]
    assert view.rm_started_s == pytest.approx(view.began_s - 60)
    assert leader.jobs == [JOB]


async def test_an_answer_about_a_question_of_another_leader_does_not_count(leader, client, pods, cluster, token):
    leader.publish(17)
    leader.applications.follow(UID, "uid-1", JOB)
    agent = cluster.agent(leader, token)
    await cluster.step(agent)
    async with leading(client, pods, epoch=4) as successor:
        successor.publish(18)
        successor.applications.follow(UID, "uid-1", JOB)
        agent._client = cluster.agent(successor, token)._client
        await cluster.step(agent)
        assert list(successor.reports.last(UID).tags) == ["uid-1"]
        assert successor.applications.view("uid-1") is None
        await cluster.step(agent)
        assert successor.applications.view("uid-1").applications == ()


async def test_an_application_is_killed_by_order(leader, cluster, token):
    leader.publish(17)
    leader.applications.follow(UID, "uid-1", JOB)
    leader.applications.request_kill(UID, APPLICATION.id)
    await cluster.step(cluster.agent(leader, token))
    assert cluster.killed == [APPLICATION.id]


# Who may report


async def test_a_core_pod_cannot_report(leader, cluster, pods, api, token):
    agent = cluster.agent(leader, pods.add("etl-c0", Role.CORE), name="etl-c0")
    await cluster.step(agent)
    assert (leader.reports.last(UID), leader.rejections("UnknownPod"), reviews(api)) == (None, 1, 0)
    assert token


async def test_a_core_pod_cannot_report_for_the_master(leader, pods, api, token):
    assert token
    status, _ = await leader.post(pods.add("etl-c0", Role.CORE), encoded())
    assert (status, leader.rejections("AnotherPod"), reviews(api)) == (403, 1, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"life": PodLife.FAILED}, "UnknownPod", id="ended"),
        pytest.param({"uid": "another"}, "AnotherPod", id="replaced"),
    ],
)
async def test_a_former_master_cannot_report(leader, pods, token, change, reason):
    pods.known[MASTER] = dataclasses.replace(pods.known[MASTER], **change)
    await leader.post(token, encoded())
    assert (leader.reports.last(UID), leader.rejections(reason)) == (None, 1)


async def test_a_master_cannot_report_for_another_cluster(leader, token):
    status, _ = await leader.post(token, encoded(), path=PATH.replace(UID, "cluster-2"))
    assert (status, leader.rejections("UnknownPod")) == (404, 1)


async def test_a_pod_of_another_namespace_is_no_pod_of_the_cluster(leader, api, token):
    api.add(manifests.pod(MASTER, namespace="other", node="n1"))
    status, _ = await leader.post(api.issue_token(f"other/{MASTER}"), encoded(), path=PATH.replace("demo", "other"))
    assert (status, leader.rejections("UnknownPod")) == (404, 1)
    assert token


async def test_a_master_may_not_report_at_any_rate(leader, token, monkeypatch):
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 60.0)
    answers = [(await leader.post(token, encoded()))[0] for _ in range(3)]
    assert answers == [200, 429, 429]


# What is reported


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{" * 60_000, id="nested"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(encoded(version=["1", 2]), id="version of another type"),
        pytest.param(encoded(version=[1, -1]), id="negative version"),
        pytest.param(encoded(nodes=[["c0"]] * (MOST_NODES + 1)), id="too many nodes"),
        pytest.param(encoded(nodes=[["../etc"]]), id="host"),
        pytest.param(encoded(nodes=[["c0", "?"]]), id="state"),
        pytest.param(encoded(hdfs={"cluster_id": "CID 1", "started_s": 1, "safe_mode": False}), id="ID with a space"),
        pytest.param(encoded(yarn={"started_s": 2**63}), id="figure"),
        pytest.param(encoded(tags={"UID-1": []}), id="tag"),
        pytest.param(encoded(tags={"a": [{"id": "../kill", "state": "RUNNING"}]}), id="application"),
        pytest.param(encoded(tags={f"a-{number}": [] for number in range(MOST_TAGS + 1)}), id="too many tags"),
        pytest.param(encoded(error="x" * 301), id="error"),
    ],
)
async def test_a_malformed_report_changes_nothing(leader, token, body):
    await leader.post(token, encoded(canary=True))
    status, _ = await leader.post(token, body)
    assert (status, leader.rejections("Malformed")) == (400, 1)
    assert leader.reports.last(UID) == AgentReport(canary=True)


async def test_a_report_that_is_too_large_is_not_read(leader, token, api):
    status, _ = await leader.post(token, b" " * (REPORT_MAX_BYTES + 1))
    assert (status, leader.rejections("TooLarge"), reviews(api)) == (413, 1, 0)


async def test_a_report_of_unknown_length_is_refused(leader, token):
    async def body():
        yield b"{}"

    status, _ = await leader.post(token, body())
    assert (status, leader.rejections("Malformed")) == (411, 1)


async def test_a_report_that_a_later_one_overtook_is_refused(leader, token, eventually):
    go_on = asyncio.Event()

    async def slowly():
        yield b"{"
        await go_on.wait()
        yield b"}"

    slow = asyncio.create_task(leader.post(token, slowly(), headers={"Content-Length": "2"}))
    await eventually(lambda: leader.routes._limits._bodies.held == 1)
    assert (await leader.post(token, encoded(canary=True)))[0] == 200
    go_on.set()
    assert ((await slow)[0], leader.rejections("OutOfOrder")) == (409, 1)
    assert leader.reports.last(UID).canary


async def test_the_report_of_the_largest_cluster_is_taken(leader, token):
    nodes = [NodeFigures(f"t{number}", "-", "R", number % 2, 4096) for number in range(MOST_NODES)]
    tags = {
        f"uid-{number}": [
            ApplicationFigures(id=f"application_{number}_{index}", state="RUNNING", diagnostics="x" * 500)
            for index in range(MOST_APPLICATIONS)
        ]
        for number in range(MOST_TAGS)
    }
    hdfs = HdfsFigures(cluster_id="CID-1", started_s=1, safe_mode=False)
    body = encode_report(AgentReport(hdfs=hdfs, yarn=YarnFigures(started_s=1), nodes=nodes, tags=tags))
    assert (await leader.post(token, body))[0] == 200
    taken = leader.reports.last(UID)
    assert len(taken.nodes) + taken.idle_nodes == MOST_NODES


async def test_a_version_that_no_leader_gave_hurts_only_its_own_cluster(leader, token):
    leader.publish(17)
    status, text = await leader.post(token, encoded(version=[2**62, 2**62]))
    assert status == 200
    assert f"[{2**62},17]" in text


async def test_a_report_of_a_cluster_that_was_deleted_while_the_body_arrived_is_not_kept(leader, token):
    namespaces = iter(["demo", None])  # when the request came, and when its body was there
    leader.routes.namespace_of = lambda _: next(namespaces)
    status, _ = await leader.post(token, encoded())
    assert (status, leader.reports.last(UID)) == (404, None)
