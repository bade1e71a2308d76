"""The progress client against a server with a certificate of its own."""

import contextlib
import gzip

import msgspec
import pytest

from boathouse_task import contract, progress
from boathouse_task.contract import Orders, Plan, Reason, Split, TaskReport
from boathouse_task.errors import TaskError
from boathouse_task.progress import Client, Unavailable
from tests.unit.task.endpoints import Endpoint, credentials, serving

PLAN = Plan(splits=[Split(url="s3://b/k", offset_bytes=0, length_bytes=1, size_bytes=1)], bytes_total=1)


@pytest.fixture
def connect(workshop):
    """Starts an endpoint with answers; returns it and a client of it whose sleeps are only noted."""
    with contextlib.ExitStack() as stack:

        def start(*answers: tuple[int, bytes]) -> tuple[Endpoint, Client, list[float]]:
            endpoint = Endpoint(list(answers))
            url = stack.enter_context(serving(workshop.folder, endpoint))
            slept: list[float] = []
            environment = workshop.environment(**credentials(workshop.folder), pod_name="wc-m-00001-a1")
            spec = workshop.spec(progress_url=url, namespace="demo", job_uid="uid-1")
            return endpoint, Client(spec, environment, sleep=slept.append, monotonic=lambda: sum(slept)), slept

        yield start


def test_a_report_is_posted_for_its_pod_with_the_token(connect):
    endpoint, client, _ = connect((200, b"{}"))
    client.report(TaskReport(phase="read", progress=0.5, records_in=7))
    ((method, path, headers, body),) = endpoint.asked
    assert (method, path) == ("POST", "/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/report")
    assert headers["Authorization"] == "Bearer token-1"
    assert msgspec.json.decode(body, type=TaskReport).records_in == 7


@pytest.mark.parametrize(
    ("answer", "next_s"), [(b'{"next_s":30}', 30.0), (b"{}", 0.0), (b"", 0.0), (b'{"next_s":86400}', 60.0)]
)
def test_a_task_reports_as_seldom_as_the_endpoint_wants(connect, answer, next_s):
    _, client, _ = connect((200, answer))
    assert client.report(TaskReport(phase="read")) == next_s


def test_a_report_that_would_be_too_large_goes_without_counters(connect):
    endpoint, client, _ = connect((200, b"{}"))
    client.report(TaskReport(phase="read", counters={"g": {f"counter {number}": number for number in range(900)}}))
    ((_, _, _, body),) = endpoint.asked
    assert len(body) <= contract.REPORT_MAX_BYTES
    assert msgspec.json.decode(body, type=TaskReport).counters == {}


def test_token_and_authority_are_read_for_each_request(connect, workshop):
    endpoint, client, _ = connect((200, b"{}"))
    client.report(TaskReport(phase="a"))
    (workshop.folder / "token").write_text("token-2")
    client.report(TaskReport(phase="b"))
    assert [headers["Authorization"] for _, _, headers, _ in endpoint.asked] == ["Bearer token-1", "Bearer token-2"]
    (workshop.folder / "ca.crt").write_text("")
    with pytest.raises(Unavailable):
        client.report(TaskReport(phase="c"))


def test_the_plan_is_posted_until_it_is_taken(connect):
    digest = contract.plan_digest(PLAN)
    taken = msgspec.json.encode({"digest": digest, "shards": 1})
    endpoint, client, slept = connect((503, b"away"), (404, b"not yet"), (200, taken))
    client.post_plan(PLAN, digest)
    assert len(endpoint.asked) == 3
    assert len(slept) == 2
    _, path, headers, body = endpoint.asked[-1]
    assert path == "/v1/jobs/demo/uid-1/plan"
    assert headers["Content-Encoding"] == "gzip"
    assert contract.plan_digest(msgspec.json.decode(gzip.decompress(body), type=Plan)) == digest


def test_the_plan_is_posted_again_when_the_endpoint_wants_it(connect):
    taken = msgspec.json.encode({"digest": contract.plan_digest(PLAN), "shards": 1})
    endpoint, client, slept = connect((503, b"busy"), (200, taken))
    endpoint.headers["Retry-After"] = "40"
    client.post_plan(PLAN, contract.plan_digest(PLAN))
    assert slept == [40.0]


def test_a_plan_beyond_the_endpoints_limit_is_not_sent(connect, monkeypatch):
    monkeypatch.setattr(progress, "PLAN_MAX_BYTES", 10)
    endpoint, client, _ = connect((200, b"{}"))
    with pytest.raises(TaskError, match=r"PlanTooLarge: .*splitMaxSize"):
        client.post_plan(PLAN, contract.plan_digest(PLAN))
    assert endpoint.asked == []


def test_a_plan_that_nobody_takes_is_given_up_as_infrastructure(connect):
    _, client, slept = connect((503, b"away"))
    with pytest.raises(TaskError, match=r"ProgressUnavailable: .*status 503: away") as failed:
        client.post_plan(PLAN, "digest")
    assert not failed.value.user_error
    assert progress.PLAN_PATIENCE_S < sum(slept) < progress.PLAN_PATIENCE_S * 1.1


def test_a_plan_that_is_too_large_is_the_users_to_change(connect):
    _, client, _ = connect((413, b""))
    with pytest.raises(TaskError, match=r"PlanTooLarge: .*spec.splitMaxSize") as failed:
        client.post_plan(PLAN, "digest")
    assert failed.value.user_error


def test_a_plan_taken_with_another_digest_is_refused(connect):
    _, client, _ = connect((200, b'{"digest": "other"}'))
    with pytest.raises(TaskError, match=r"got another plan"):
        client.post_plan(PLAN, "digest")


def test_orders_are_asked_for_until_they_come(connect):
    orders = msgspec.json.encode(Orders(version=4, maps_total=2, maps_done=contract.encode_bitmap([1], 2)))
    endpoint, client, slept = connect((429, b""), (200, b"no json"), (200, orders))
    assert client.orders(3).version == 4
    assert endpoint.asked[-1][1] == "/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/orders?since=3&order=&wait_s=30"
    assert len(slept) == 2


@pytest.mark.parametrize("url", ["http://host", "host:443", "https://"])
def test_a_progress_url_without_tls_is_refused(workshop, url):
    with pytest.raises(TaskError, match=r"is not https"):
        Client(workshop.spec(progress_url=url), workshop.environment())


def reduce_order(workshop, url: str):
    order = workshop.map_spec(b"x\t1\n", reducer=["cat"], attempt=2)
    assert workshop.run(order).succeeded
    return msgspec.structs.replace(order, task_type="reduce", attempt=1, progress_url=url)


def test_a_reduce_takes_the_attempts_that_its_orders_name(workshop):
    waiting = Orders(version=1, maps_total=1)
    ready = Orders(version=2, maps_total=1, maps_done=contract.encode_bitmap([0], 1), winners={0: 2})
    endpoint = Endpoint([(200, msgspec.json.encode(orders)) for orders in (waiting, ready)])
    with serving(workshop.folder, endpoint) as url:
        assert workshop.run(reduce_order(workshop, url), **credentials(workshop.folder)).succeeded
    assert [path.rpartition("/")[2] for _, path, _, _ in endpoint.asked[:2]] == [
        "orders?since=0&order=&wait_s=30", "orders?since=1&order=&wait_s=30",
    ]  # fmt: skip


def test_a_reduce_that_is_cancelled_ends(workshop):
    endpoint = Endpoint([(200, msgspec.json.encode(Orders(version=1, maps_total=1, cancel=True)))])
    with serving(workshop.folder, endpoint) as url:
        result = workshop.run(reduce_order(workshop, url), **credentials(workshop.folder))
    assert (result.reason, result.user_error) == (Reason.CANCELLED, False)


def test_a_setup_without_its_endpoint_fails_as_infrastructure(workshop, monkeypatch):
    monkeypatch.setattr(progress, "PLAN_PATIENCE_S", -1)
    workshop.given("a", b"x")
    result = workshop.run(workshop.spec(progress_url="https://localhost:9"))
    assert (result.reason, result.user_error) == (Reason.PROGRESS_UNAVAILABLE, False)


def answered(state: str) -> tuple[int, bytes]:
    return 200, msgspec.json.encode({"state": state, "detail": "its pods have not ended"})


def test_what_became_of_an_outputs_owner_is_asked_until_it_is_known(connect):
    endpoint, client, slept = connect((503, b"away"), (404, b"not yet"), answered("unknown"), answered("ended"))
    assert client.owner(job_uid="uid-2", namespace="demo", cluster="c 1") is contract.OwnerState.ENDED
    method, path, _, _ = endpoint.asked[-1]
    query = "uid=uid-2&namespace=demo&cluster=c+1"
    assert (method, path) == ("GET", f"/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/owner?{query}")
    assert len(slept) == 3


@pytest.mark.parametrize("answer", [(404, b"an older operator knows no such page"), answered("unknown")])
def test_an_owner_whose_state_stays_unknown_is_another_attempts_matter(connect, answer):
    _, client, slept = connect(answer)
    with pytest.raises(TaskError) as failed:
        client.owner(job_uid="uid-2", namespace="demo", cluster="c")
    assert (failed.value.reason, failed.value.user_error) == (Reason.PROGRESS_UNAVAILABLE, False)
    assert sum(slept) > progress.OWNER_PATIENCE_S
