"""The command line beside an operator that runs applications, on the fake API server."""

from __future__ import annotations

import asyncio
import json
import shlex

import pytest
import structlog
import yaml

from tests.builders import cli
from tests.builders.cli import said
from tests.builders.operators.sparkapps import KEY, RunningSparkApp, Script, account, sparkapp

LINE = ("--", "spark-submit", "--name", "pi", "--num-executors", "2", "local:///opt/pi.py", "10")
KUBECTL = """#!/bin/sh
echo "$@" > {words}
echo "Forwarding from 127.0.0.1:45678 -> 4040"
echo "error: lost connection to pod" >&2
exit 1
"""


@pytest.fixture
async def world(api):
    api.add(account())
    with structlog.testing.capture_logs():  # the operator's, which is in the process of the commands
        async with RunningSparkApp(api).running() as made:
            yield made


@pytest.mark.usefixtures("world")
async def test_a_submission_runs_and_wait_returns_its_success(api, run):
    result = await run("submit", "--name", "pi", "--wait", *LINE)
    assert result.exit_code == 0, said(result)
    assert "sparkapp/pi succeeded" in result.stdout
    spec = api.get("sparkapps", KEY)["spec"]
    assert (spec["executor"], spec["arguments"]) == ({"instances": 2}, ["10"])


async def test_each_submission_has_a_name_of_its_own_and_says_what_to_do_next(api, run):
    results = [await run("submit", *LINE) for _ in range(2)]
    assert len(api.objects("sparkapps")) == 2
    for result in results:
        assert f"kubectl boathouse watch {shlex.split(result.stdout)[0]} -n demo" in result.stdout


async def test_a_taken_name_is_refused_with_what_to_do(api, run):
    api.add(sparkapp())
    result = await run("submit", "--name", "pi", *LINE)
    assert "sparkapps/pi in namespace demo exists already: delete it, or choose another name" in said(result)


async def test_a_dry_run_prints_what_would_be_created(api, run):
    result = await run("submit", "--dry-run", *LINE)
    assert yaml.safe_load(result.stdout)["metadata"] == {"generateName": "pi-"}
    assert api.objects("sparkapps") == {}


async def test_a_strict_submission_with_notes_creates_nothing(api, run):
    result = await run("submit", "--strict", "--", "spark-submit", "--proxy-user", "me", "local:///opt/pi.py")
    assert "--proxy-user: a driver cannot act for another user" in result.stderr
    assert result.exception.code == 3
    assert api.objects("sparkapps") == {}


async def test_what_the_api_server_refuses_is_reported_in_its_words(api, run):
    api.fail_next("create sparkapps", status=422, reason="Invalid")
    assert "the cluster does not create sparkapps/pi-… in namespace demo: a fault on order" in said(
        await run("submit", *LINE)
    )


async def test_followed_submissions_print_the_drivers_log_and_end_with_the_application(api, world, run, eventually):
    world.nodes.scripts[0] = Script(runs=False, exit_code=1)
    following = asyncio.ensure_future(run("submit", "--name", "pi", "--follow", *LINE))
    await eventually(lambda: world.phase() == "Starting")
    api.logs[world.driver()] = "counting\nPi is roughly 3.14\n"
    world.nodes.scripts[0].runs = True
    result = await following
    assert result.exit_code == 1, said(result)
    assert "sparkapp/pi failed: ApplicationFailed" in result.stderr
    assert result.stdout == "counting\nPi is roughly 3.14\n"


async def test_explain_list_and_timeline_know_an_application(api, world, run, eventually):
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: world.status().get("executors", {}).get("running") == 2)
    await eventually(lambda: world.condition("ExecutorsReady")[0] == "True")
    explained = (await run("explain", "sapp/pi")).stdout
    assert explained.startswith("sparkapp/pi is in phase Running (2 executors running)")
    assert "requests" in explained
    assert "3 Running on n1" in explained
    listed = (await run("list")).stdout
    assert "sparkapp/pi" in listed
    timed = await run("timeline", "sparkapp/pi")
    assert "driver running" in timed.stdout, said(timed)


async def test_an_application_that_is_not_admitted_names_the_command_that_helps(api, world, run, eventually):
    api.remove("serviceaccounts", "demo/boathouse-spark")
    api.add(sparkapp())
    await eventually(lambda: world.condition("Admitted")[0] == "False")
    explained = (await run("explain", "sparkapp/pi")).stdout
    assert "was not admitted: ServiceAccountNotFound" in explained
    assert "kubectl boathouse enable-spark -n demo" in explained
    api.add({"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": "boathouse-spark-driver"}})
    enabled = await run("enable-spark")
    assert enabled.exit_code == 0, said(enabled)
    watched = await run("watch", "sparkapp/pi", "--timeout", "30")
    assert watched.exit_code == 0, said(watched)


async def test_logs_are_the_drivers_or_an_executors(api, world, run, eventually):
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: len(world.executors()) == 2)
    api.logs = {key: f"I am {key}\n" for key in api.objects("pods")}
    assert (await run("logs", "sparkapp/pi")).stdout == f"I am {world.driver()}\n"
    (second,) = [key for key in world.executors() if key.endswith("-1")]
    assert (await run("logs", "sparkapp/pi", "--executor", "1")).stdout == f"I am {second}\n"
    containers = [call.query["container"] for call in api.called("get pods/log")]
    assert containers == ["spark-kubernetes-driver", "spark-kubernetes-executor"]
    absent = await run("logs", "sparkapp/pi", "--executor", "9")
    assert "sparkapp/pi has no pod of executor-9: see `boathouse explain sparkapp/pi`" in said(absent)


async def test_logs_of_a_driver_that_is_gone_are_the_last_lines_of_the_status(api, run):
    app = sparkapp() | {"status": {"phase": "Failed", "lastLog": "ValueError: no\n"}}
    api.add(app)
    result = await run("logs", "sparkapp/pi")
    assert result.stdout == "ValueError: no\n"
    assert "the driver's pod is gone" in result.stderr


async def test_enabling_a_namespace_twice_changes_nothing(api, run):
    api.add({"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": "boathouse-spark-driver"}})
    first, second = await run("enable-spark", "-n", "team"), await run("enable-spark", "-n", "team")
    assert "serviceaccount/boathouse-spark created\nrolebinding/boathouse-spark created" in first.stdout
    assert "serviceaccount/boathouse-spark unchanged\nrolebinding/boathouse-spark unchanged" in second.stdout
    binding = api.get("rolebindings", "team/boathouse-spark")
    assert binding["roleRef"]["name"] == "boathouse-spark-driver"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "boathouse-spark", "namespace": "team"}]
    assert api.get("serviceaccounts", "team/boathouse-spark")["automountServiceAccountToken"] is False


async def test_a_binding_to_another_role_is_not_taken_for_ours(api, run):
    await run("enable-spark")
    api.add({"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": "boathouse-spark-driver"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    api.add({"kind": "RoleBinding", "metadata": {"name": "boathouse-spark", "namespace": "demo"}, "roleRef": role})
    assert "binds ClusterRole admin, or another account: delete it" in said(await run("enable-spark"))


async def test_a_cluster_without_the_role_says_how_to_get_it(api, run):
    result = await run("enable-spark")
    assert "the cluster has no ClusterRole boathouse-spark-driver: install or upgrade Boathouse" in said(result)
    assert api.objects("serviceaccounts") == {}


async def test_accounts_of_other_names_are_refused(run):
    result = await run("enable-spark", "--name", "spark")
    assert '"spark" is no account for drivers: use boathouse-spark or boathouse-spark-NAME' in said(result)


async def test_the_address_of_the_ui_is_printed_until_the_driver_ends(
    api, world, run, eventually, tmp_path, monkeypatch
):
    (tmp_path / "kubectl").write_text(KUBECTL.format(words=tmp_path / "words"))
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: world.phase() == "Running")
    result = await run("ui", "sparkapp/pi", "--port", "4050")
    assert "Spark's UI of sparkapp/pi: http://127.0.0.1:45678/ (end with Ctrl-C)" in result.stdout
    assert "error: lost connection to pod" in said(result)
    words = (tmp_path / "words").read_text().split()
    pod = world.driver().removeprefix("demo/")
    assert words[-5:] == ["demo", "port-forward", "--address=127.0.0.1", f"pod/{pod}", "4050:4040"]


# Hadoop clusters


EXAMPLES = "/opt/hadoop/lib/hadoop-mapreduce-examples-3.4.2.jar"


async def test_a_line_of_hadoop_becomes_a_job_on_the_cluster(api, run):
    result = await run("submit", "--cluster", "etl", "--", "hadoop", "jar", EXAMPLES, "pi", "8", "100")
    assert "kubectl boathouse logs mrjob/hadoop-mapreduce-examples-3-4-2" in result.stdout, said(result)
    (job,) = api.objects("mrjobs").values()
    jar = {"url": f"local://{EXAMPLES}", "arguments": ["pi", "8", "100"]}
    assert job["spec"] == {"clusterRef": {"name": "etl"}, "jar": jar}


STREAMING = ("hadoop-streaming-3.4.2.jar", "-input", "hdfs://etl/in", "-output", "hdfs://etl/out", "-mapper", "cat")


async def test_a_line_of_hadoop_streaming_becomes_a_job_with_pods_of_its_own(api, run):
    result = await run("submit", "--", "hadoop", "jar", *STREAMING, "-numReduceTasks", "0", "-lazyOutput")
    assert "kubectl boathouse logs mrjob/streaming-" in result.stdout, said(result)
    (job,) = api.objects("mrjobs").values()
    urls = {"input": ["hdfs://etl/in"], "output": "hdfs://etl/out"}
    assert job["spec"] == {**urls, "mapper": {"command": ["cat"]}, "lazyOutput": True}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("hadoop", "jar", EXAMPLES), "pass --cluster NAME"),
        (("hadoop", "jar", *STREAMING, "-file", "absent.py"), "absent.py cannot be read on this machine"),
        (("--cluster", "etl", "hadoop", "jar", "app.jar"), "app.jar: it is a file of this machine"),
        (("--cluster", "etl", "hadoop", "fs", "-ls"), "only `hadoop jar URL ARGS...` can be submitted"),
        (("--cluster", "etl", "hadoop", "jar", "/opt/hadoop-streaming.jar"), "-input: is missing"),
        (("--cluster", "etl", "--follow", "hadoop", "jar", EXAMPLES), "--follow is for SparkApps"),
    ],
)
async def test_lines_that_cannot_run_on_a_cluster_say_what_to_do(api, run, words, complaint):
    assert complaint in said(await run("submit", *words))
    assert api.objects("mrjobs") == {}


HISTORY = "http:etl-master:19888/proxy/ws/v1/history"
CONTAINER = "container_1_0001_01_000002"


@pytest.fixture
def hadoop(api):
    """A cluster with a master and a node."""
    ready = cli.condition("Ready", "True", "Available")
    core = {"wanted": 1, "ready": 1}
    api.add(cli.mrcluster(conditions=[cli.condition("Admitted", "True"), ready], phase="Ready", core=core))
    for host in ("master", "c0"):
        api.add(cli.host_pod(host))
    uid = api.get("mrclusters", "demo/etl")["metadata"]["uid"]
    for host in ("master", "c0"):
        api.change("pods", f"demo/etl-{host}", {"metadata": {"labels": {"boathouse.dev/job-uid": uid}}})


@pytest.mark.usefixtures("hadoop")
async def test_clusters_explain_list_and_timeline_know_a_cluster(run):
    assert (await run("clusters")).stdout.splitlines()[-1].split() == ["etl", "Ready", "1/1", "0/0", "GSP"]
    assert json.loads((await run("clusters", "-o", "json")).stdout)[0]["metadata"]["name"] == "etl"
    explained = await run("explain", "mrc/etl")
    assert explained.stdout.startswith("mrcluster/etl is Ready (core 1/1, transient 0/0)"), said(explained)
    assert "2 Running on node-0" in explained.stdout
    assert "mrcluster/etl" in (await run("list")).stdout
    assert "starting pods" in (await run("timeline", "mrcluster/etl")).stdout
    watched = await run("watch", "mrcluster/etl")
    assert '"mrcluster/etl" is not a job' in said(watched)


async def test_a_namespace_without_clusters_says_so(run):
    assert "No clusters in namespace demo." in said(await run("clusters"))


@pytest.mark.usefixtures("hadoop")
async def test_logs_of_a_node_are_those_of_its_containers(api, run):
    api.logs = {"demo/etl-c0": "block received\n"}
    assert (await run("logs", "mrcluster/etl", "c0", "-c", "datanode")).stdout == "block received\n"
    assert (await run("logs", "mrcluster/etl", "c0")).stdout == "datanode: block received\n"


@pytest.mark.usefixtures("hadoop")
async def test_logs_of_a_job_on_a_cluster_are_read_through_the_api_server(api, run):
    applications = [{"id": "application_1_0001", "state": "FINISHED"}]
    api.add(cli.mrjob(hadoop={"applications": applications}) | {"spec": {"clusterRef": {"name": "etl"}}})
    files = {"containerId": CONTAINER, "containerLogInfo": [{"fileName": "stderr", "fileSize": "3"}]}
    api.proxied = {
        f"{HISTORY}/aggregatedlogs": json.dumps({"containerLogsInfo": [files]}),
        f"{HISTORY}/containerlogs/{CONTAINER}/stderr": "LogContents:\nboom\n\nEnd of LogType:stderr\n",
    }
    result = await run("logs", "mrjob/wordcount")
    assert result.stdout == f"{CONTAINER} stderr: boom\n{CONTAINER} stderr: \n", said(result)
    assert {call.query.get("appid") for call in api.called("get pods/proxy")} == {"application_1_0001", None}


@pytest.mark.usefixtures("hadoop")
async def test_a_redirect_of_a_cluster_is_not_followed(api, run):
    applications = [{"id": "application_1_0001", "state": "FINISHED"}]
    api.add(cli.mrjob(hadoop={"applications": applications}) | {"spec": {"clusterRef": {"name": "etl"}}})
    assert "answered 302" in said(await run("logs", "mrjob/wordcount"))
    assert api.called("list secrets") == []


@pytest.mark.usefixtures("hadoop")
async def test_the_ui_of_a_cluster_is_its_resource_managers_or_its_name_nodes(run, tmp_path, monkeypatch):
    (tmp_path / "kubectl").write_text(KUBECTL.format(words=tmp_path / "words"))
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    result = await run("ui", "mrcluster/etl", "--port", "9000")
    assert "The ResourceManager of mrcluster/etl: http://127.0.0.1:45678/" in result.stdout, said(result)
    assert (tmp_path / "words").read_text().split()[-2:] == ["pod/etl-master", "9000:8088"]
    await run("ui", "mrcluster/etl", "--port", "9000", "--hdfs")
    assert (tmp_path / "words").read_text().split()[-1] == "9000:9870"


async def test_an_application_without_a_driver_has_no_ui(api, run):
    api.add(sparkapp())
    assert "sparkapp/pi has no running driver (phase Pending)" in said(await run("ui", "sparkapp/pi"))
