"""Commands that change objects, and those that read all of them, on the fake API server."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.builders import cli
from tests.builders.cli import said

FAILED = {"phase": "Failed", "queue": "gold"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "spec": {"unschedulable": True},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


async def test_jobs_are_suspended_and_resumed(api, run):
    api.add(cli.mrjob("a"))
    api.add(cli.sparkapp("b"))
    assert (await run("suspend", "mrjob/a", "sapp/b")).stdout == "mrjob/a suspended\nsparkapp/b suspended\n"
    assert api.get("mrjobs", "demo/a")["spec"] == {"output": "s3://books/out", "suspend": True}
    assert (await run("resume", "sparkapp/b")).stdout == "sparkapp/b resumed\n"
    assert [api.get(*key)["spec"]["suspend"] for key in (("mrjobs", "demo/a"), ("sparkapps", "demo/b"))] == [
        True,
        False,
    ]


async def test_objects_are_deleted_and_clusters_only_on_request(api, run):
    api.add(cli.mrjob("a"))
    api.add(cli.mrcluster("etl"))
    refused = await run("delete", "mrjob/a", "mrcluster/etl")
    assert (refused.exception.code, len(api.objects("mrjobs"))) == (2, 1)
    assert (
        await run("delete", "--yes", "mrjob/a", "mrcluster/etl")
    ).stdout == "mrjob/a deleted\nmrcluster/etl deleted\n"
    assert (api.objects("mrjobs"), api.objects("mrclusters")) == ({}, {})


async def test_a_failed_job_is_retried_as_a_new_object_with_its_spec_labels_and_annotations(api, run):
    failed = cli.sparkapp("pi-x7", **FAILED)
    failed["spec"] |= {"queue": "gold", "suspend": False}
    failed["metadata"] |= {
        "generateName": "pi-",
        "labels": {"team": "a"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "owner": "ann"},
    }
    api.add(failed)
    result = await run("retry", "sparkapp/pi-x7")
    assert "kubectl boathouse watch sparkapp/pi-" in result.stdout, said(result)
    (made,) = [application for key, application in api.objects("sparkapps").items() if key != "demo/pi-x7"]
    assert made["metadata"]["name"].startswith("pi-")
    assert (made["metadata"]["labels"], made["metadata"]["annotations"]) == ({"team": "a"}, {"owner": "ann"})
    assert made["spec"] == {key: value for key, value in failed["spec"].items() if key != "suspend"}
    assert "status" not in made or not made["status"]


async def test_a_dry_run_of_retry_prints_the_object_and_takes_a_name(api, run):
    api.add(cli.mrjob("wc", **FAILED))
    printed = yaml.safe_load((await run("retry", "wc", "--name", "wc-2", "--dry-run")).stdout)
    assert (printed["kind"], printed["metadata"], printed["spec"]) == (
        "MRJob",
        {"name": "wc-2"},
        {"output": "s3://books/out"},
    )
    assert len(api.objects("mrjobs")) == 1


@pytest.mark.parametrize(
    ("words", "phase", "code", "message"),
    [
        (["retry", "mrjob/wc"], "Map", 2, "mrjob/wc has not failed (phase Map)"),
        (["retry", "mrjob/wc"], "Succeeded", 2, "mrjob/wc has not failed (phase Succeeded)"),
        (["suspend", "mrjob/wc"], "Failed", 2, "mrjob/wc has ended (Failed): use `boathouse retry`"),
        (["suspend", "mrcluster/etl"], "Map", 2, "is not a job"),
        (["suspend", "mrjob/other"], "Map", 3, "mrjobs/other does not exist in namespace demo"),
        (["delete", "mrjob/other"], "Map", 3, "mrjobs/other does not exist in namespace demo"),
        (["retry", "mrjob/other"], "Map", 3, "mrjobs/other does not exist in namespace demo"),
        (["explain", "mrjob/other"], "Map", 3, "mrjobs/other does not exist in namespace demo"),
        (["watch", "mrjob/wc", "--timeout", "0"], "Map", 5, "mrjob/wc has not ended after 0 s"),
    ],
)
async def test_what_cannot_be_done_has_the_exit_code_of_all_commands(api, run, words, phase, code, message):
    api.add(cli.mrjob("wc", phase=phase))
    result = await run(*words)
    assert message in said(result)
    assert result.exception.code == code


async def test_a_change_that_is_not_permitted_names_the_role_that_permits_it(api, run):
    api.add(cli.mrjob("wc"))
    api.fail_next("delete mrjobs", status=403, reason="Forbidden")
    assert "does not delete mrjobs/wc in namespace demo" in said(await run("delete", "mrjob/wc"))


async def test_list_filters_and_prints_names_wide_tables_and_objects(api, run):
    condition = cli.condition("Failed", "True", "ApplicationFailed", "the driver ended with 1")
    times = {"startTime": cli.time(1), "completionTime": cli.time(91)}
    api.add(cli.sparkapp("bad", **FAILED, **times, conditions=[condition]))
    api.add(cli.sparkapp("good", phase="Running", queue="etl"))
    api.add(cli.mrjob("wc", phase="Failed", queue="etl"))
    assert (await run("list", "--state", "failed", "-o", "name")).stdout == "sparkapp/bad\nmrjob/wc\n"
    assert (await run("list", "-k", "sapp", "-q", "etl", "-o", "name")).stdout == "sparkapp/good\n"
    wide = (await run("list", "-q", "gold", "-o", "wide")).stdout
    assert "the driver ended with 1" in wide
    assert "1m30s" in wide
    (printed,) = json.loads((await run("list", "-q", "gold", "-o", "json")).stdout)
    assert printed["metadata"]["name"] == "bad"
    assert "No such jobs in namespace demo." in said(await run("list", "-q", "none"))
    assert (await run("list", "--state", "faild")).exception.code == 2


async def test_top_shows_nodes_queues_and_unfinished_jobs_once_where_there_is_no_terminal(api, run):
    api.add(NODE)
    pod = cli.task_pod(node="n1")
    pod["spec"]["containers"] = [{"name": "task", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
    api.add(pod)
    api.add(cli.mrjob("wc", phase="Map", queue="default"))
    api.add(cli.sparkapp("old", **FAILED))
    shown = (await run("top")).stdout
    assert "Ready, cordoned" in shown
    assert "0.5 of 4" in shown
    assert "1.0 GiB of 8.0 GiB" in shown
    assert "mrjob/wc" in shown
    assert "sparkapp/old" not in shown
    assert "configmap/boathouse-config does not exist" in shown.replace(
        "\n", " "
    )  # a part that cannot be read is a note


async def test_top_fails_where_nothing_may_be_read(api, run):
    for call in ("list nodes", "list mrjobs", "get configmaps"):
        api.fail_next(call, status=403, reason="Forbidden")
    result = await run("top", "--once")
    assert "you lack permission to read nodes" in said(result)
    assert result.exception.code == 4


async def test_a_submission_owns_the_config_map_of_its_files_and_so_does_its_retry(api, run, tmp_path):
    (program := tmp_path / "main.py").write_text("print(1)")
    result = await run("submit", "--name", "pi", "--", "spark-submit", str(program))
    assert result.exit_code == 0, said(result)
    made = api.get("sparkapps", "demo/pi")
    ((key, config_map),) = api.objects("configmaps").items()
    assert config_map["data"] == {"main.py": "print(1)"}
    assert [owner["uid"] for owner in config_map["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert made["spec"]["volumes"][0]["configMapName"] == config_map["metadata"]["name"]
    assert made["spec"]["suspend"] is False
    api.change("sparkapps", "demo/pi", {"status": FAILED})
    assert (await run("retry", "sparkapp/pi", "--name", "again")).exit_code == 0
    owners = api.get("configmaps", key)["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["pi", "again"]


async def test_a_config_map_that_is_refused_leaves_no_object(api, run, tmp_path):
    (program := tmp_path / "main.py").write_text("print(1)")
    api.fail_next("create configmaps", status=403, reason="Forbidden")
    result = await run("submit", "--", "spark-submit", str(program))
    assert result.exception.code == 4, said(result)
    assert (api.objects("sparkapps"), api.objects("configmaps")) == ({}, {})
