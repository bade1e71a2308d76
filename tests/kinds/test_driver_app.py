"""A second kind beside MRJob, with the same frame and scheduler."""

import pytest

from boathouse.cluster.boundary import Reason
from tests.builders.operators.mrjobs import KEY, mrjob
from tests.kinds.driver_app import planner
from tests.kinds.two_kinds import APP, driver_app_manifest, executor_manifest, leading


@pytest.fixture
def create_running(api, kinds, eventually):
    """Return a function that creates an app and waits for its two executors; its driver does not end."""
    kinds.nodes.holds = True

    async def create(**spec):
        api.add(driver_app_manifest(**spec))
        await eventually(lambda: kinds.status().get("executors") == 2)

    return create


async def test_an_app_and_an_mrjob_succeed_beside_one_another_in_one_queue(api, kinds, eventually):
    api.add(mrjob())
    api.add(driver_app_manifest())
    await eventually(lambda: (kinds.phase(), kinds.phase("mrjobs", KEY)) == ("Succeeded", "Succeeded"))
    holders = kinds.leader.scheduling.scheduler.state.queue.queues
    assert len(kinds.drivers()) == 1
    assert set(holders) == {"default"}


async def test_pods_that_a_driver_creates_are_found_by_their_owner_and_scheduled(api, create_running):
    await create_running()
    children = [pod for key, pod in api.objects("pods").items() if "/exec-" in key]
    assert [pod["spec"]["nodeName"] for pod in children] == ["n1", "n1"]


async def test_a_pod_of_another_namespace_that_names_a_driver_as_owner_is_no_child(
    api, kinds, create_running, eventually
):
    await create_running()
    driver = api.get("pods", kinds.drivers()[0])
    api.add(executor_manifest(driver, 7, namespace="elsewhere"))
    api.add(executor_manifest(driver, 8, controller=False))
    api.change("driverapps", APP, {"spec": {"suspend": True}})
    await eventually(lambda: kinds.phase() == "Suspended" and not kinds.drivers())
    assert max(status["executors"] for status in kinds.statuses()) == 2


async def test_a_suspended_app_has_no_pods_and_gets_another_driver_when_it_is_resumed(
    api, kinds, create_running, eventually
):
    await create_running()
    first = kinds.drivers()
    api.change("driverapps", APP, {"spec": {"suspend": True}})
    await eventually(lambda: kinds.phase() == "Suspended" and not api.objects("pods"))
    condition = kinds.condition("Suspended")
    assert (condition["status"], condition["observedGeneration"]) == ("True", 2)
    api.change("driverapps", APP, {"spec": {"suspend": False}})
    await eventually(lambda: kinds.phase() == "Running")
    condition = kinds.condition("Suspended")
    assert (condition["status"], condition["observedGeneration"]) == ("False", 3)
    assert kinds.drivers() != first


async def test_an_app_whose_time_to_live_is_over_is_deleted(api, kinds, eventually):
    api.add(driver_app_manifest(ttlSecondsAfterFinished=0))
    await eventually(lambda: api.get("driverapps", APP) is None)
    assert kinds.statuses()[-1]["phase"] == "Succeeded"


async def test_a_successor_continues_with_the_pods_that_it_finds(api, eventually):
    async with leading(api) as first:
        first.nodes.holds = True
        api.add(driver_app_manifest())
        await eventually(lambda: first.status().get("executors") == 2)
        drivers = first.drivers()
    async with leading(api) as second:
        await eventually(lambda: second.phase() == "Succeeded")
        assert second.drivers() == drivers


async def test_an_app_that_is_created_again_gets_another_driver(api, kinds, create_running, eventually):
    await create_running()
    first = kinds.drivers()[0]
    api.remove("driverapps", APP)
    api.add(driver_app_manifest())
    await eventually(lambda: kinds.drivers() != [first] and kinds.status().get("executors") == 2)
    uid = api.get("driverapps", APP)["metadata"]["uid"]
    assert any(uid in key for key in kinds.drivers())


async def test_a_conflict_is_followed_by_another_reconcile(api, kinds, eventually):
    api.fail_next("patch driverapps/status", status=409, reason="Conflict")
    api.add(driver_app_manifest())
    await eventually(lambda: kinds.phase() == "Succeeded")
    assert len(kinds.drivers()) == 1


async def test_an_app_whose_planner_raises_is_set_aside_and_the_mrjob_succeeds(api, kinds, eventually, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(planner, "plan", lambda _: 1 / 0)
        api.add(driver_app_manifest())
        api.add(mrjob())
        await eventually(lambda: kinds.phase("mrjobs", KEY) == "Succeeded" and kinds.condition("Admitted"))
    condition = kinds.condition("Admitted")
    assert (condition["status"], condition["reason"], condition["observedGeneration"]) == ("False", "SetAside", 1)
    assert kinds.leader.scheduling.aside.counts["DriverApp", Reason.RECONCILING] == 1
    await eventually(lambda: kinds.phase() == "Succeeded")


async def test_an_invalid_app_is_refused_in_its_condition(api, kinds, eventually):
    api.add(driver_app_manifest(executors=-1))
    await eventually(lambda: kinds.condition("Admitted"))
    assert kinds.condition("Admitted")["reason"] == "InvalidSpec"


async def test_a_status_that_changes_in_figures_only_is_written_at_most_once_a_second(
    api, kinds, create_running, eventually
):
    await create_running()
    written, driver = len(kinds.statuses()), api.get("pods", kinds.drivers()[0])
    for number in range(10, 20):
        key = "demo/" + api.add(executor_manifest(driver, number))["metadata"]["name"]
        await eventually(lambda key=key: api.get("pods", key)["spec"].get("nodeName"))
    await eventually(lambda: kinds.status()["executors"] == 12)
    assert len(kinds.statuses()) - written <= 2
