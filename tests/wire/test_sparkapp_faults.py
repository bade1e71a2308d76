"""SparkApps while the operator dies, nodes are lost, names are taken, and answers are lost: one driver at a time."""

import pytest

from boathouse import failpoints
from boathouse.resources import statuses
from tests.builders import manifests
from tests.builders.operators.sparkapps import KEY, RunningSparkApp, Script, account, executor, sparkapp

ON_FAILURE = {"type": "OnFailure", "onFailureRetryInterval": 1}
WRITES = {"sparkapp.status": (1, 2, 3), "sparkapp.config-map": (1,), "sparkapp.service": (1,)}
WRITES |= {"sparkapp.submit": (1,), "scheduler.create": (1,)}
DEATHS = [
    (f"{moment}-{write}", count)
    for write, counts in WRITES.items()
    for count in counts
    for moment in ("before", "after")
]


@pytest.fixture
def running(api, spark, eventually):
    """Return a function that creates an application and waits for its executors; its driver does not end."""
    spark.nodes.scripts[0].ends = False

    async def create(**spec):
        api.add(sparkapp(**spec))
        await eventually(lambda: spark.status().get("executors", {}).get("running") == 2)

    return create


@pytest.mark.parametrize(("name", "count"), DEATHS)
async def test_an_operator_killed_beside_a_write_submits_once(api, eventually, monkeypatch, name, count):
    api.add(account())
    spark = RunningSparkApp(api)
    spark.kill_at(monkeypatch, name, count)
    spark.nodes.scripts[0].ends = False
    async with spark.running():
        api.add(sparkapp())
        await eventually(lambda: spark.phase() == "Running")
        spark.nodes.scripts[0].ends = True
        await eventually(lambda: spark.lives == 2 and spark.phase() == "Succeeded")
    assert list(spark.nodes.created.values()) == [1]
    assert (spark.status()["attempt"], len(spark.status()["pastAttempts"])) == (1, 1)
    assert len(api.objects("configmaps")) == len(api.objects("services")) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_operator_killed_while_it_deletes_a_driver_deletes_it(api, eventually, monkeypatch, moment):
    api.add(account())
    spark = RunningSparkApp(api)
    spark.nodes.scripts[0].ends = False
    spark.kill_at(monkeypatch, f"{moment}-sparkapp.delete-pod")
    async with spark.running():
        api.add(sparkapp())
        await eventually(lambda: spark.phase() == "Running")
        api.change("sparkapps", KEY, {"spec": {"suspend": True}})
        await eventually(lambda: spark.lives == 2 and spark.phase() == "Suspended" and not spark.drivers())
        api.change("sparkapps", KEY, {"spec": {"suspend": False}})
        await eventually(lambda: spark.phase() == "Running")
    assert spark.nodes.most_live == 1
    assert spark.status()["attempt"] == 2


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_operator_killed_while_an_application_expires_deletes_it(api, eventually, monkeypatch, moment):
    api.add(account())
    spark = RunningSparkApp(api)
    spark.kill_at(monkeypatch, f"{moment}-sparkapp.expire")
    async with spark.running():
        api.add(sparkapp(ttlSecondsAfterFinished=0))
        await eventually(lambda: spark.lives == 2 and not api.objects("sparkapps") and not api.objects("pods"))


def test_every_write_of_an_application_has_its_deaths():
    of_apps = {write for write in failpoints.WRITES if write.startswith("sparkapp.")}
    assert of_apps == {*WRITES, "sparkapp.delete-pod", "sparkapp.expire"} - {"scheduler.create"}


async def test_answers_that_are_lost_after_the_write_submit_once(api, spark, eventually):
    for call in ("create pods", "patch sparkapps/status", "create configmaps", "create services"):
        api.fail_next(call, status=504, after_commit=True, times=2)
    api.add(sparkapp())

    async def has_succeeded():
        await spark.reconciled()  # without the backoff of so many failures
        return spark.phase() == "Succeeded"

    await eventually(has_succeeded, turns=100)
    assert list(spark.nodes.created.values()) == [1]


async def test_a_config_map_of_the_name_that_belongs_to_nobody_holds_the_driver(api, eventually):
    api.add(account())
    spark = RunningSparkApp(api)
    async with spark.running():
        app = api.add(sparkapp(suspend=True))
        name = f"pi-{app['metadata']['uid'][:8]}-a1-conf"
        api.add(manifests.config_map(name))
        api.change("sparkapps", KEY, {"spec": {"suspend": False}})
        await eventually(lambda: spark.condition("Scheduled") == ("False", "NameTaken"))
        assert spark.drivers() == []
        api.remove("configmaps", f"demo/{name}")
        spark.later(20)
        await eventually(lambda: spark.phase() == "Succeeded")


async def test_a_pod_of_the_drivers_name_that_belongs_to_nobody_holds_the_driver(api, spark, eventually):
    app = api.add(sparkapp(suspend=True))
    name = f"pi-{app['metadata']['uid'][:8]}-a1-driver"
    api.add(manifests.pod(name, scheduler="other"))
    api.change("sparkapps", KEY, {"spec": {"suspend": False}})
    await eventually(lambda: spark.condition("Scheduled") == ("False", "NameTaken"))
    assert spark.nodes.created == {}
    api.remove("pods", f"demo/{name}")
    await eventually(lambda: spark.phase() == "Succeeded")


async def test_a_secret_that_a_volume_lacks_is_named(api, spark, eventually):
    spark.nodes.scripts[0].runs = False
    api.add(sparkapp(volumes=[{"name": "keys", "mountPath": "/keys", "secretName": "keys"}]))
    await eventually(lambda: spark.phase() == "Starting")
    uid = api.get("pods", spark.driver())["metadata"]["uid"]
    note = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
    metadata = {"name": "failed-mount", "namespace": "demo"}
    api.add({"kind": "Event", "metadata": metadata, "regarding": {"uid": uid}, "reason": "FailedMount", "note": note})
    spark.later(20)
    await eventually(lambda: spark.condition("Running") == ("False", "SecretNotFound"))
    spark.nodes.scripts[0].runs = True
    await eventually(lambda: spark.phase() == "Succeeded")


async def test_a_driver_runs_without_a_service_that_is_refused(api, spark, eventually):
    api.fail_next("create services", status=403, reason="Forbidden")
    api.add(sparkapp())
    await eventually(lambda: spark.phase() == "Succeeded")
    assert not api.objects("services")
    assert "uiAddress" not in spark.status()["driver"]


async def test_a_driver_whose_node_is_removed_is_followed_by_another(api, spark, running, eventually):
    await running(restartPolicy=ON_FAILURE)
    api.add(manifests.node("n2", cpu="16", memory="32Gi"))
    spark.nodes.lost.add("n1")
    api.remove("nodes", "n1")
    await eventually(lambda: spark.driver(2) and spark.phase() == "Running")
    past = spark.status()["pastAttempts"][0]
    assert (past["cause"], past["reason"], past["node"]) == ("Infrastructure", "DriverLost", "n1")
    assert api.get("pods", spark.driver(2))["spec"]["nodeName"] == "n2"


async def test_a_driver_on_a_silent_node_is_followed_by_another_only_after_driver_lost_seconds(
    api, spark, running, eventually
):
    await running(restartPolicy=ON_FAILURE, timeouts={"driverLostSeconds": 100})
    api.add(manifests.node("n2", cpu="16", memory="32Gi"))
    spark.nodes.lost.add("n1")
    api.change("nodes", "n1", {"spec": {"unschedulable": True}})
    api.change("pods", spark.driver(), {"metadata": {"deletionTimestamp": statuses.rfc3339(spark.now())}})
    spark.later(50)
    await eventually(lambda: spark.kind.drivers.of(api.get("sparkapps", KEY)["metadata"]["uid"])[0].deleting_since_s)
    await spark.reconciled()
    assert (spark.status()["attempt"], spark.status().get("pastAttempts")) == (1, None)
    spark.later(60)
    await eventually(lambda: spark.driver(2))
    await eventually(lambda: not [key for key in _undeleted(api) if "-a1-" in key])
    assert spark.status()["pastAttempts"][0]["reason"] == "DriverLost"


async def test_a_driver_deleted_while_the_operator_is_away_is_followed_by_another(api, eventually):
    api.add(account())
    spark = RunningSparkApp(api)
    spark.nodes.scripts[0].ends = False
    async with spark.running():
        api.add(sparkapp(restartPolicy=ON_FAILURE))
        await eventually(lambda: spark.phase() == "Running")
    api.remove("pods", spark.driver())
    async with spark.running():
        await eventually(lambda: spark.status()["attempt"] == 2 and spark.phase() == "Running")
    assert spark.status()["pastAttempts"][0]["cause"] == "Infrastructure"


async def test_a_suspended_application_has_no_pods_and_gets_another_attempt_when_it_is_resumed(
    api, spark, running, eventually
):
    await running()
    api.change("sparkapps", KEY, {"spec": {"suspend": True}})
    await eventually(lambda: spark.phase() == "Suspended" and not api.objects("pods"))
    assert spark.condition("Suspended") == ("True", "Suspended")
    await eventually(lambda: spark.leader.controllers._reconcilers["SparkApp"]._memories == {})
    api.change("sparkapps", KEY, {"spec": {"suspend": False}})
    await eventually(lambda: spark.driver(2) and spark.phase() == "Running")
    assert spark.status()["pastAttempts"][0]["cause"] == "Suspended"
    assert spark.status()["failures"]["application"] == 0
    assert len({service["metadata"]["name"] for service in api.objects("services").values()}) == 1


async def test_a_driver_that_fails_is_started_again_until_its_retries_are_used_up(api, spark, eventually):
    spark.nodes.scripts[0].exit_code = 3
    api.add(sparkapp(restartPolicy=ON_FAILURE | {"onFailureRetries": 2}))
    await eventually(lambda: spark.phase() == "Restarting")
    spark.later(1)
    await eventually(lambda: spark.status()["attempt"] == 2 and spark.phase() == "Restarting")
    spark.later(2)
    await eventually(lambda: spark.phase() == "Failed")
    assert [attempt["number"] for attempt in spark.status()["pastAttempts"]] == [1, 2, 3]
    assert spark.nodes.most_live == 1
    assert len(api.objects("configmaps")) == 3


async def test_executors_of_a_driver_that_ended_are_deleted(api, spark, running, eventually):
    await running()
    driver = api.get("pods", spark.driver())
    spark.nodes.lost.add("n1")  # they do not end by themselves
    spark.nodes.end(spark.driver(), 1)
    api.add(executor(driver, 7))
    await eventually(lambda: spark.phase() == "Failed" and not _undeleted(api))


async def test_pods_of_others_that_name_a_driver_as_owner_stay(api, spark, running, eventually):
    await running()
    driver = api.get("pods", spark.driver())
    api.add(executor(driver, 8, labels={}))
    api.add(executor(driver, 9, namespace="elsewhere"))
    spark.nodes.end(spark.driver(), 1)
    await eventually(lambda: spark.phase() == "Failed" and len(_undeleted(api)) <= 2)
    assert sorted(key[-1] for key in _undeleted(api)) == ["8", "9"]


def _undeleted(api):
    return [
        key
        for key, pod in api.objects("pods").items()
        if "-exec-" in key and not pod["metadata"].get("deletionTimestamp")
    ]


HOSTILE = [
    {"phase": "Succeeded-ish", "attempt": "many"},
    {"attempt": -7, "pastAttempts": [{"number": 10**30}, "x", None], "conditions": [{"type": 1}, "a"]},
    {"phase": "Running", "executors": {"running": "NaN"}, "driver": ["a"], "failures": {"application": -5}},
    {"startTime": "yesterday", "failures": {"retryTime": "never"}, "requests": "all", "lastLog": 7},
]


@pytest.mark.parametrize("status", HOSTILE)
async def test_whatever_a_status_says_the_application_runs_once(api, eventually, status):
    api.add(account())
    api.add(sparkapp(restartPolicy=ON_FAILURE) | {"status": status})
    spark = RunningSparkApp(api)
    async with spark.running():
        await eventually(lambda: spark.phase() == "Succeeded")
        spark.later(20)
        await spark.reconciled()
        assert spark.phase() == "Succeeded"
    assert list(spark.nodes.created.values()) == [1]


@pytest.mark.parametrize(
    "spec",
    [
        {"sparkConf": {"spark.executor.memory": "plenty"}},
        {"sparkConf": {"spark.master": "local"}},
        {"sparkConf": {"spark.a": "b\nspark.master=local"}},
        {"executor": {"instances": 10**9}},
        {"arguments": ["a\0b"]},
        {"type": "R"},
        {"mainApplicationFile": None},
    ],
)
async def test_a_spec_that_cannot_run_is_refused_in_its_condition(api, spark, eventually, spec):
    api.add(sparkapp(**spec))
    await eventually(lambda: spark.condition("Admitted") == ("False", "InvalidSpec"))
    assert spark.drivers() == []


async def test_an_image_that_cannot_be_pulled_is_named_and_the_application_fails(api, spark, eventually):
    spark.nodes.scripts[0] = Script(runs=False)
    api.add(sparkapp())
    await eventually(lambda: spark.phase() == "Starting")
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "spark:dev"'}
    spark.nodes.set_state(spark.driver(), "Pending", {"waiting": waiting})
    await eventually(lambda: spark.condition("Running") == ("False", "ImagePullFailed"))
    spark.later(400)
    await eventually(lambda: spark.phase() == "Failed")
    assert spark.status()["reason"] == "ImagePullFailed"
