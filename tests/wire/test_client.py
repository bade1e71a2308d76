"""The client against a server that answers, refuses, and breaks off."""

from __future__ import annotations

import pytest

from boathouse.cluster import catalogue, config, errors, retries, server_time, transport
from boathouse.cluster.client import ApiClient, PatchStyle
from tests.builders import manifests


async def test_objects_come_as_their_kind_or_as_plain_json(api, client):
    api.add(manifests.pod("p", cpu="250m"))
    typed = await client.get(catalogue.PODS, "p", "demo")
    plain = await client.get(catalogue.PODS.untyped(), "p", "demo")
    assert typed.spec.containers[0].resources.requests["cpu"] == "250m"
    assert plain["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "250m"


async def test_a_list_is_read_page_by_page(api, client):
    for number in range(1203):
        api.add(manifests.config_map(f"c{number:04}"))
    page = await client.list(catalogue.CONFIG_MAPS)
    assert len(page.items) == 1203
    assert len(api.called("list configmaps")) == 3


async def test_selectors_choose(api, client):
    api.add(manifests.pod("ours", labels={"app": "x"}, node="n1"))
    api.add(manifests.pod("other", namespace="other", labels={"app": "x"}))
    api.add(manifests.pod("plain"))
    assert [p.metadata.name for p in (await client.list(catalogue.PODS, labels="app=x")).items] == ["ours", "other"]
    assert len((await client.list_page(catalogue.PODS)).items) == 3
    assert [p.metadata.name for p in (await client.list(catalogue.PODS, "other")).items] == ["other"]
    assert [p.metadata.name for p in (await client.list(catalogue.PODS, fields="spec.nodeName=n1")).items] == ["ours"]


async def test_a_pod_is_created_with_its_node_in_one_write(api, client):
    created = await client.create_pod("demo", manifests.pod("p", node="n1"))
    assert created.spec.node_name == "n1"
    assert api.get("pods", "demo/p")["spec"]["nodeName"] == "n1"


async def test_a_bind_sets_the_node_and_merges_the_annotations(api, client):
    pod = api.add(manifests.pod("p", annotations={"kept": "yes"}))
    await client.bind("demo", "p", pod["metadata"]["uid"], "n1", {"boathouse.dev/epoch": "3"})
    bound = api.get("pods", "demo/p")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"kept": "yes", "boathouse.dev/epoch": "3"}


@pytest.mark.parametrize(
    ("pod", "uid"),
    [
        pytest.param(manifests.pod("p", node="n1"), "uid-000001", id="bound already, to the same node"),
        pytest.param(manifests.pod("p"), "another", id="another pod of that name"),
        pytest.param(manifests.pod("p", schedulingGates=[{"name": "g"}]), "uid-000001", id="gated"),
    ],
)
async def test_a_bind_of_what_may_not_be_bound_is_a_conflict(api, client, pod, uid):
    api.add(pod)
    with pytest.raises(errors.Conflict):
        await client.bind("demo", "p", uid, "n1")


async def test_a_resize_changes_requests_and_limits_and_keeps_the_qos_class(api, client):
    api.add(manifests.pod("p", cpu="1", memory="64Mi", limits={"cpu": "2", "memory": "65Mi"}))
    small = {"requests": {"cpu": "1m"}, "limits": {"cpu": "10m"}}
    resized = await client.resize("demo", "p", {"task": small})
    assert resized.spec.containers[0].resources.requests == {"cpu": "1m", "memory": "64Mi"}
    with pytest.raises(errors.Invalid, match="QOS"):
        await client.resize("demo", "p", {"task": {"requests": {"cpu": "1", "memory": "65Mi"}, "limits": {"cpu": "1"}}})


async def test_a_status_patch_changes_the_status_only(api, client):
    api.add(manifests.pod("p"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    patched = await client.patch_status(
        catalogue.PODS, "p", {"conditions": [condition]}, "demo", style=PatchStyle.STRATEGIC, uid="uid-000001"
    )
    assert patched.condition("PodScheduled").reason == "Unschedulable"
    assert patched.status.phase == "Pending"


async def test_a_status_patch_of_another_object_is_a_conflict(api, client):
    api.add(manifests.pod("p"))
    with pytest.raises(errors.Conflict):
        await client.patch_status(catalogue.PODS, "p", {"phase": "Failed"}, "demo", uid="another")


async def test_an_apply_creates_and_then_merges(api, client):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "demo"}, "data": {"a": "1"}}
    await client.patch(catalogue.CONFIG_MAPS, "c", body, "demo", style=PatchStyle.APPLY)
    await client.patch(
        catalogue.CONFIG_MAPS, "c", {**body, "data": {"b": "2"}}, "demo", style=PatchStyle.APPLY, force=True
    )
    assert api.get("configmaps", "demo/c")["data"] == {"a": "1", "b": "2"}
    assert api.calls[-1].query == {"fieldManager": "boathouse", "force": "true"}


async def test_a_replace_of_a_changed_object_is_a_conflict(api, client):
    stale = await client.create(catalogue.CONFIG_MAPS, manifests.config_map("c"), "demo")
    api.change("configmaps", "demo/c", {"data": {"a": "1"}})
    with pytest.raises(errors.Conflict):
        await client.replace(catalogue.CONFIG_MAPS, "c", stale, "demo")


async def test_a_delete_with_another_uid_deletes_nothing(api, client):
    pod = api.add(manifests.pod("p"))
    with pytest.raises(errors.Conflict):
        await client.delete(catalogue.PODS, "p", "demo", uid="another")
    await client.delete(catalogue.PODS, "p", "demo", uid=pod["metadata"]["uid"])
    assert api.objects("pods") == {}


async def test_a_running_pod_lingers_until_its_kubelet_is_done(api, client):
    api.add(manifests.pod("p", node="n1", phase="Running"))
    await client.delete(catalogue.PODS, "p", "demo")
    assert (await client.get(catalogue.PODS, "p", "demo")).metadata.deletion_timestamp is not None


async def test_a_tokens_pod_is_known_and_its_audience_counts(api, client):
    pod = api.add(manifests.pod("p"))
    status = await client.token_review(api.issue_token("demo/p"), "boathouse.dev")
    assert (api.calls[-1].body["apiVersion"], api.calls[-1].body["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    assert (status.authenticated, status.user.pod_name, status.user.pod_uid) == (True, "p", pod["metadata"]["uid"])
    assert not (await client.token_review(api.issue_token("demo/p", audience="else"), "boathouse.dev")).authenticated


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param({"status": 401}, errors.Unauthorized, id="401"),
        pytest.param({"status": 403}, errors.Forbidden, id="403"),
        pytest.param({"status": 404}, errors.NotFound, id="404"),
        pytest.param({"status": 409}, errors.Conflict, id="409"),
        pytest.param({"status": 409, "reason": "AlreadyExists"}, errors.AlreadyExists, id="409 taken"),
        pytest.param({"status": 410}, errors.Gone, id="410"),
        pytest.param({"status": 422}, errors.Invalid, id="422"),
        pytest.param({"status": 429}, errors.TooManyRequests, id="429"),
        pytest.param({"status": 504}, errors.ServerError, id="504"),
        pytest.param({"reset": True}, errors.ConnectionLost, id="reset"),
    ],
)
async def test_every_answer_has_its_error(api, client, fault, kind):
    api.fail_next("create pods", **fault)
    with pytest.raises(kind):
        await client.create_pod("demo", manifests.pod("p"))


async def test_retry_after_is_handed_on(api, client):
    api.fail_next("list nodes", status=429, retry_after_s=3)
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.list(catalogue.NODES)
    assert caught.value.retry_after_s == 3.0


async def test_a_create_whose_answer_was_lost_is_there_when_tried_again(api, client):
    api.fail_next("create pods", reset=True, after_commit=True)
    with pytest.raises(errors.AlreadyExists):
        await retries.retrying(
            lambda: client.create_pod("demo", manifests.pod("p")), idempotent=True, backoff=retries.Backoff(base_s=0)
        )
    assert len(api.objects("pods")) == 1


async def test_a_server_that_is_not_there_surely_did_nothing():
    async with ApiClient(config.ClusterConfig(server="http://127.0.0.1:9")) as unconnected:
        with pytest.raises(errors.ConnectionLost) as caught:
            await unconnected.list(catalogue.NODES)
    assert caught.value.maybe_done is False


async def test_an_answer_that_takes_too_long_may_have_been_done(api):
    async with api.client(request_timeout_s=0.05) as impatient:
        api.fail_next("create pods", delay_s=1)
        with pytest.raises(errors.ConnectionLost) as caught:
            await impatient.create_pod("demo", manifests.pod("p"))
    assert caught.value.maybe_done is True


async def test_an_object_of_another_shape_is_named(api, client):
    api.add({"kind": "Pod", "metadata": {"name": "p", "namespace": "demo"}, "spec": {"nodeName": 5}, "status": {}})
    with pytest.raises(errors.DecodeError, match="PodView"):
        await client.get(catalogue.PODS, "p", "demo")


def test_a_rotated_token_is_read_again(tmp_path):
    now_s, file = [0.0], tmp_path / "token"
    file.write_text("old")
    settings = config.ClusterConfig(server="http://here", token_file=file)
    connection = transport.Transport(settings, clock=server_time.ServerTime(lambda: now_s[0]))
    assert connection._current_token() == "old"
    file.write_text("new")
    now_s[0] = 61.0
    assert connection._current_token() == "new"
