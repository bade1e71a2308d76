"""The progress endpoint over TLS, asked by the task runtime's own client and by others who should not."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip

import msgspec
import pytest

from boathouse.resources import names
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import task_orders
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.progress import certificates, limits
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders.operators.endpoints import JOB, NOW, serving_endpoint, state
from tests.builders.operators.mrjobs import split_plan


@pytest.fixture
async def endpoint(api, client, tmp_path):
    async with serving_endpoint(api, client, tmp_path) as running:
        yield running


async def test_the_runtime_reports_and_the_leader_remembers_the_last(endpoint):
    runtime = endpoint.runtime("p", endpoint.add("p"))
    await asyncio.to_thread(runtime.report, contract.TaskReport(phase="read", progress=0.5))
    assert endpoint.orders.reports(JOB)["p"].progress == 0.5


async def test_the_runtime_gets_its_orders_at_once_when_they_are_new_to_it(endpoint):
    endpoint.update(state(1, 3))
    orders = await asyncio.to_thread(endpoint.runtime("p", endpoint.add("p")).orders, 0)
    assert (orders.maps_total, orders.winners) == (2, {1: 3})
    assert contract.decode_bitmap(orders.maps_done, 2) == {0, 1}


async def test_a_poll_is_answered_when_another_map_is_done(endpoint, eventually):
    runtime = endpoint.runtime("p", endpoint.add("p"))
    first = await asyncio.to_thread(runtime.orders, 0)
    waiting = asyncio.create_task(asyncio.to_thread(runtime.orders, first.version))
    await eventually(lambda: endpoint.orders._jobs[JOB].polls)
    endpoint.update(state(1, 0))
    assert contract.decode_bitmap((await waiting).maps_done, 2) == {0}


async def test_a_poll_without_news_ends_with_the_same_orders(endpoint):
    token = endpoint.add("p")
    _, first = await endpoint.ask("GET", "demo/job-1/tasks/p/orders?since=0", token)
    version = msgspec.json.decode(first)["version"]
    status, second = await endpoint.ask("GET", f"demo/job-1/tasks/p/orders?since={version}&wait_s=0.05", token)
    assert (status, first) == (200, second)


async def test_another_leader_gives_the_same_version_to_the_same_orders(endpoint):
    successor = task_orders.TaskOrders()
    for leader_orders in (endpoint.orders, successor):
        leader_orders.update(JOB, "demo", state(1, 2))
    poll = task_orders.Poll(uid=JOB, pod="p")
    assert await endpoint.orders.orders(poll, 0) == await successor.orders(poll, 0)


async def test_the_setup_task_posts_the_plan(endpoint):
    runtime = endpoint.runtime("s", endpoint.add("s", TaskType.SETUP))
    plan = split_plan(3000)
    await asyncio.to_thread(runtime.post_plan, plan, contract.plan_digest(plan))
    assert endpoint.plans.posted(JOB).plan == plan
    assert endpoint.posted == [JOB]


async def test_only_setup_may_post_a_plan(endpoint):
    status, _ = await endpoint.ask(
        "POST", "demo/job-1/plan", endpoint.add("p"), data=msgspec.json.encode(split_plan(1))
    )
    assert (status, endpoint.plans.posted(JOB)) == (403, None)


async def test_a_job_that_has_its_plan_takes_no_other(endpoint, monkeypatch):
    monkeypatch.setattr(endpoint.orders, "wants_plan", lambda _: False)
    token = endpoint.add("s", TaskType.SETUP)
    status, _ = await endpoint.ask("POST", "demo/job-1/plan", token, data=msgspec.json.encode(split_plan(1)))
    assert status == 409


async def test_a_plan_for_a_job_that_is_forgotten_meanwhile_is_not_kept(endpoint, eventually):
    plan = msgspec.json.encode(split_plan(1))

    async def body():
        yield plan[:10]
        await eventually(lambda: endpoint.routes._intake._places.held)
        endpoint.orders.forget(JOB)
        yield plan[10:]

    sent = {"data": body(), "headers": {"Content-Length": str(len(plan))}}
    status, _ = await endpoint.ask("POST", "demo/job-1/plan", endpoint.add("s", TaskType.SETUP), **sent)
    assert (status, endpoint.plans.posted(JOB), endpoint.posted) == (409, None, [])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("demo/job-1/tasks/other/orders", 403),
        ("elsewhere/job-1/tasks/p/orders", 403),
        ("demo/job-2/tasks/p/orders", 404),
        ("demo/job-1/tasks/p/orders?since=x", 400),
        ("demo/job-1/tasks/p/nonsense", 404),
    ],
)
async def test_a_pod_speaks_for_itself_and_its_job_only(endpoint, path, status):
    endpoint.add("other")
    token = endpoint.add("p")
    assert (await endpoint.ask("GET", path, token))[0] == status


async def test_a_token_of_a_former_pod_of_the_same_name_is_refused(endpoint):
    token = endpoint.add("p")
    endpoint.pods.known["p"] = AttemptPod(
        name="p", uid="new", task_type=TaskType.MAP, index=0, attempt=1, state=PodLife.RUNNING, placed_s=0.0
    )
    assert (await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token))[0] == 403


async def test_a_task_whose_pod_this_replica_does_not_know_gets_404(endpoint):
    token = endpoint.add("p")
    del endpoint.pods.known["p"]
    assert (await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token))[0] == 404


async def test_without_a_good_token_nobody_is_answered(endpoint, api):
    endpoint.add("p")
    foreign = api.issue_token("demo/p", audience="https://kubernetes.default.svc")
    for token in ("nonsense", foreign, ""):
        assert (await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token))[0] == 401


async def test_a_token_is_reviewed_once_for_many_requests(endpoint, api):
    token = endpoint.add("p")
    for _ in range(3):
        await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token)
    assert len(api.called("create tokenreviews")) == 1


async def test_while_tokens_cannot_be_reviewed_tasks_get_503(endpoint, api):
    token = endpoint.add("p")
    api.fail_next("create tokenreviews", status=500)
    assert (await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token))[0] == 503
    assert (await endpoint.ask("GET", "demo/job-1/tasks/p/orders", token))[0] == 200


async def test_a_report_that_is_too_large_is_refused(endpoint):
    body = b" " * (contract.REPORT_MAX_BYTES + 1)
    status, _ = await endpoint.ask("POST", "demo/job-1/tasks/p/report", endpoint.add("p"), data=body)
    assert status == 413


async def test_a_small_body_that_becomes_large_is_refused(endpoint):
    bomb = gzip.compress(b" " * (contract.PLAN_MAX_BYTES + 1))
    headers = {"Content-Encoding": "gzip"}
    token = endpoint.add("s", TaskType.SETUP)
    status, _ = await endpoint.ask("POST", "demo/job-1/plan", token, data=bomb, headers=headers)
    assert status == 413


async def test_a_task_that_reports_too_often_gets_429(endpoint, monkeypatch):
    monkeypatch.setattr(limits, "REPORT_DISTANCE_S", 3600.0)
    token = endpoint.add("p")
    body = msgspec.json.encode(contract.TaskReport(phase="read"))
    answers = [(await endpoint.ask("POST", "demo/job-1/tasks/p/report", token, data=body))[0] for _ in range(2)]
    assert answers == [200, 429]


async def test_what_is_no_report_is_refused(endpoint):
    bodies = {"p": b"[]", "q": b'{"phase":"p","x":' + b"[" * 5000}
    for name, body in bodies.items():
        status, _ = await endpoint.ask("POST", f"demo/job-1/tasks/{name}/report", endpoint.add(name), data=body)
        assert status == 400


# --- certificates


def test_an_authority_outlives_a_restart_of_its_container(tmp_path):
    first = certificates.authority(tmp_path, "op-1", NOW)
    assert certificates.authority(tmp_path, "op-1", NOW).pem == first.pem
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


def test_an_authority_that_is_old_or_damaged_is_replaced(tmp_path):
    first = certificates.authority(tmp_path, "op-1", NOW)
    old = certificates.authority(tmp_path, "op-1", NOW + certificates.LIFETIME * 0.6)
    assert old.pem != first.pem
    (tmp_path / "ca.key").write_text("nonsense")
    assert certificates.authority(tmp_path, "op-1", NOW).pem not in {first.pem, old.pem}


def test_a_process_is_unhealthy_before_its_authority_ends():
    assert certificates.expiry_probe(certificates.authority(None, "op-1", NOW))() is None
    assert (
        "expires"
        in certificates.expiry_probe(
            certificates.authority(None, "op-1", NOW - certificates.LIFETIME + dt.timedelta(days=7))
        )()
    )


def bundles(client, replica="op-1", now=NOW):
    return certificates.Bundles(client, namespace="boathouse-system", replica=replica, now=lambda: now)


def authorities(api, namespace):
    return api.get("configmaps", f"{namespace}/{names.PROGRESS_CA_CONFIG_MAP}")["data"]


async def test_tasks_trust_the_leader_and_whoever_stands_by(api, client):
    ours, theirs = (certificates.authority(None, name, NOW).pem for name in ("op-1", "op-2"))
    leader = bundles(client)
    await leader.add(ours)
    await bundles(client, "op-2").add(theirs)
    await leader.ensure("demo")
    assert authorities(api, "demo") == {"ca.crt": ours + theirs}


async def test_a_new_replicas_authority_reaches_the_namespaces_with_jobs(api, client):
    leader = bundles(client)
    await leader.add(certificates.authority(None, "op-1", NOW).pem)
    await leader.ensure("demo")
    late = certificates.authority(None, "op-2", NOW).pem
    await bundles(client, "op-2").add(late)
    await leader.refresh()
    assert late in authorities(api, "demo")["ca.crt"]


async def test_authorities_that_ended_are_dropped(api, client):
    await bundles(client, "old").add(certificates.authority(None, "old", NOW - certificates.LIFETIME).pem)
    await bundles(client).add(certificates.authority(None, "op-1", NOW).pem)
    assert set(authorities(api, "boathouse-system")) == {"op-1.crt"}


async def test_of_many_replicas_the_youngest_authorities_stay_and_always_ones_own(api, client):
    await bundles(client).add(certificates.authority(None, "op-1", NOW - dt.timedelta(days=9)).pem)
    for number in range(certificates.MAX_AUTHORITIES + 2):
        made = certificates.authority(None, "x", NOW - dt.timedelta(hours=100 - number))
        await bundles(client, f"new-{number}").add(made.pem)
    await bundles(client).add(certificates.authority(None, "op-1", NOW - dt.timedelta(days=9)).pem)
    kept = set(authorities(api, "boathouse-system"))
    assert len(kept) == certificates.MAX_AUTHORITIES
    assert {"op-1.crt", f"new-{certificates.MAX_AUTHORITIES + 1}.crt"} <= kept


async def test_the_bundle_is_written_once_to_a_namespace(api, client):
    leader = bundles(client)
    await leader.add(certificates.authority(None, "op-1", NOW).pem)
    for _ in range(3):
        await leader.ensure("demo")
    assert len(api.called("patch configmaps")) == 1


async def test_a_setup_task_learns_what_became_of_an_outputs_owner(endpoint):
    runtime = endpoint.runtime("setup", endpoint.add("setup", TaskType.SETUP))
    answer = await asyncio.to_thread(runtime.owner, job_uid="job-0", namespace="other", cluster="c")
    assert answer is contract.OwnerState.ENDED
    assert endpoint.marks == [("job-0", "other", "c")]


async def test_other_tasks_learn_nothing_of_other_jobs(endpoint):
    token = endpoint.add("m")
    assert (await endpoint.ask("GET", "demo/job-1/tasks/m/owner?uid=job-0", token))[0] == 403
    assert endpoint.marks == []
