"""The progress client against a server with a certificate of its own."""

import contextlib
import gzip

import msgspec
import pytest

from boathouse_task import contract, progress
from boathouse_task.contract import Orders, Plan, Reason, Split, TaskReport
from boathouse_task.errors import TaskError
from boathouse_task.progress import Client, Unavailable
from tests.builders.task_servers import Endpoint, credentials

PLAN = Plan(splits=[Split(url="s3://b/k", offset_bytes=0, length_bytes=1, size_bytes=1)], bytes_total=1)


@pytest.fixture
def connect(job_folder, clock):
    """Start an endpoint with these responses; return it and a client of it, whose time is the clock's."""
    with contextlib.ExitStack() as stack:

        def start(*responses: tuple[int, bytes]) -> tuple[Endpoint, Client]:
            endpoint = Endpoint(*responses)
            url = stack.enter_context(endpoint.serving(job_folder.folder))
            environment = job_folder.environment(**credentials(job_folder.folder), pod_name="wc-m-00001-a1")
            spec = job_folder.setup_spec(progress_url=url, namespace="demo", job_uid="uid-1")
            return endpoint, Client(spec, environment, sleep=clock.sleep, monotonic=clock.monotonic)

        yield start


def test_a_report_is_posted_for_its_pod_with_the_token(connect):
    endpoint, client = connect((200, b"{}"))
    client.report(TaskReport(phase="read", progress=0.5, records_in=7))
    ((method, path, headers, body),) = endpoint.requests
    assert (method, path) == ("POST", "/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/report")
    assert headers["Authorization"] == "Bearer token-1"
    assert msgspec.json.decode(body, type=TaskReport).records_in == 7


@pytest.mark.parametrize(
    ("response", "next_s"), [(b'{"next_s":30}', 30.0), (b"{}", 0.0), (b"", 0.0), (b'{"next_s":86400}', 60.0)]
)
def test_a_task_reports_as_rarely_as_the_endpoint_requests(connect, response, next_s):
    _, client = connect((200, response))
    assert client.report(TaskReport(phase="read")) == next_s


def test_a_report_that_would_be_too_large_is_sent_without_counters(connect):
    endpoint, client = connect((200, b"{}"))
    client.report(TaskReport(phase="read", counters={"g": {f"counter {number}": number for number in range(900)}}))
    ((_, _, _, body),) = endpoint.requests
    assert len(body) <= contract.REPORT_MAX_BYTES
    assert msgspec.json.decode(body, type=TaskReport).counters == {}


def test_token_and_authority_are_read_for_each_request(connect, job_folder):
    endpoint, client = connect((200, b"{}"))
    client.report(TaskReport(phase="a"))
    (job_folder.folder / "token").write_text("token-2")
    client.report(TaskReport(phase="b"))
    assert [headers["Authorization"] for _, _, headers, _ in endpoint.requests] == ["Bearer token-1", "Bearer token-2"]
    (job_folder.folder / "ca.crt").write_text("")
    with pytest.raises(Unavailable):
        client.report(TaskReport(phase="c"))


def test_the_plan_is_posted_until_it_is_accepted(connect, clock):
    digest = contract.plan_digest(PLAN)
    taken = msgspec.json.encode({"digest": digest, "shards": 1})
    endpoint, client = connect((503, b"away"), (404, b"not yet"), (200, taken))
    client.post_plan(PLAN, digest)
    assert len(endpoint.requests) == 3
    assert len(clock.sleeps) == 2
    _, path, headers, body = endpoint.requests[-1]
    assert path == "/v1/jobs/demo/uid-1/plan"
    assert headers["Content-Encoding"] == "gzip"
    assert contract.plan_digest(msgspec.json.decode(gzip.decompress(body), type=Plan)) == digest


def test_the_plan_is_posted_again_when_the_endpoint_requests_it(connect, clock):
    taken = msgspec.json.encode({"digest": contract.plan_digest(PLAN), "shards": 1})
    endpoint, client = connect((503, b"busy"), (200, taken))
    endpoint.headers["Retry-After"] = "40"
    client.post_plan(PLAN, contract.plan_digest(PLAN))
    assert clock.sleeps == [40.0]


def test_a_plan_beyond_the_endpoints_limit_is_not_sent(connect, monkeypatch):
    monkeypatch.setattr(contract, "PLAN_MAX_BYTES", 10)
    endpoint, client = connect((200, b"{}"))
    with pytest.raises(TaskError, match=r"PlanTooLarge: .*splitMaxSize"):
        client.post_plan(PLAN, contract.plan_digest(PLAN))
    assert endpoint.requests == []


def test_a_plan_that_is_never_accepted_is_an_infrastructure_error(connect, clock):
    _, client = connect((503, b"away"))
    with pytest.raises(TaskError, match=r"ProgressUnavailable: .*status 503: away") as failed:
        client.post_plan(PLAN, "digest")
    assert not failed.value.user_error
    assert progress.PLAN_PATIENCE_S < clock.now_s < progress.PLAN_PATIENCE_S * 1.1


def test_a_plan_that_is_too_large_is_the_users_to_change(connect):
    _, client = connect((413, b""))
    with pytest.raises(TaskError, match=r"PlanTooLarge: .*spec.splitMaxSize") as failed:
        client.post_plan(PLAN, "digest")
    assert failed.value.user_error


def test_a_plan_accepted_with_another_digest_is_refused(connect):
    _, client = connect((200, b'{"digest": "other"}'))
    with pytest.raises(TaskError, match=r"got another plan"):
        client.post_plan(PLAN, "digest")


def test_orders_are_requested_until_they_arrive(connect, clock):
    orders = msgspec.json.encode(Orders(version=4, maps_total=2, maps_done=contract.encode_bitmap([1], 2)))
    endpoint, client = connect((429, b""), (200, b"no json"), (200, orders))
    assert client.orders(3).version == 4
    assert endpoint.requests[-1][1] == "/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/orders?since=3&order=&wait_s=30"
    assert len(clock.sleeps) == 2


@pytest.mark.parametrize("url", ["http://host", "host:443", "https://"])
def test_a_progress_url_without_tls_is_refused(job_folder, url):
    with pytest.raises(TaskError, match=r"is not https"):
        Client(job_folder.setup_spec(progress_url=url), job_folder.environment())


def reduce_order(job_folder, url: str):
    order = job_folder.map_spec(b"x\t1\n", reducer=["cat"], attempt=2)
    assert job_folder.run_task(order).succeeded
    return msgspec.structs.replace(order, task_type="reduce", attempt=1, progress_url=url)


def test_a_reduce_takes_the_attempts_that_its_orders_name(job_folder):
    waiting = Orders(version=1, maps_total=1)
    ready = Orders(version=2, maps_total=1, maps_done=contract.encode_bitmap([0], 1), winners={0: 2})
    endpoint = Endpoint(*[(200, msgspec.json.encode(orders)) for orders in (waiting, ready)])
    with endpoint.serving(job_folder.folder) as url:
        assert job_folder.run_task(reduce_order(job_folder, url), **credentials(job_folder.folder)).succeeded
    assert [path.rpartition("/")[2] for _, path, _, _ in endpoint.requests[:2]] == [
        "orders?since=0&order=&wait_s=30", "orders?since=1&order=&wait_s=30",
    ]  # fmt: skip


def test_a_reduce_that_is_cancelled_ends(job_folder):
    endpoint = Endpoint((200, msgspec.json.encode(Orders(version=1, maps_total=1, cancel=True))))
    with endpoint.serving(job_folder.folder) as url:
        result = job_folder.run_task(reduce_order(job_folder, url), **credentials(job_folder.folder))
    assert (result.reason, result.user_error) == (Reason.CANCELLED, False)


def test_a_setup_without_its_endpoint_fails_as_infrastructure(job_folder, monkeypatch):
    monkeypatch.setattr(progress, "PLAN_PATIENCE_S", -1)
    job_folder.write_input("a", b"x")
    result = job_folder.run_task(job_folder.setup_spec(progress_url="https://localhost:9"))
    assert (result.reason, result.user_error) == (Reason.PROGRESS_UNAVAILABLE, False)


def owner_state(state: str) -> tuple[int, bytes]:
    return 200, msgspec.json.encode({"state": state, "detail": "its pods have not ended"})


def test_the_state_of_an_outputs_owner_is_requested_until_it_is_known(connect, clock):
    endpoint, client = connect((503, b"away"), (404, b"not yet"), owner_state("unknown"), owner_state("ended"))
    assert client.owner(job_uid="uid-2", namespace="demo", cluster="c 1") is contract.OwnerState.ENDED
    method, path, _, _ = endpoint.requests[-1]
    query = "uid=uid-2&namespace=demo&cluster=c+1"
    assert (method, path) == ("GET", f"/v1/jobs/demo/uid-1/tasks/wc-m-00001-a1/owner?{query}")
    assert len(clock.sleeps) == 3


@pytest.mark.parametrize("response", [(404, b"an older operator knows no such page"), owner_state("unknown")])
def test_an_owner_whose_state_stays_unknown_is_another_attempts_matter(connect, response, clock):
    _, client = connect(response)
    with pytest.raises(TaskError) as failed:
        client.owner(job_uid="uid-2", namespace="demo", cluster="c")
    assert (failed.value.reason, failed.value.user_error) == (Reason.PROGRESS_UNAVAILABLE, False)
    assert clock.now_s > progress.OWNER_PATIENCE_S
