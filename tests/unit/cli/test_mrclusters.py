"""What the commands print of an MRCluster."""

import dataclasses

import pytest

from boathouse_cli import explain, kinds, model, mrclusters, tables
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.printing_logs import Selection
from tests.builders import cli
from tests.builders.cli import condition, printed

NOW_S = cli.START_S + 600
ADMITTED = condition("Admitted", "True")
READY = condition("Ready", "True", "Available")
CORE = {"wanted": 3, "ready": 3}
HDFS = {"capacityBytes": 30 << 30, "usedBytes": 12 << 30, "files": 7, "liveDataNodes": 3}


def cluster(*conditions, **status):
    return mrclusters.read(cli.mrcluster(conditions=list(conditions), **status))


def explained(*conditions, pods=(), others=(), **status):
    found = cluster(*conditions, **status)
    pods = [model.task_pod(pod) for pod in pods]
    return explain.explain_cluster(found, pods, None, others, now_s=NOW_S)


def headline(*conditions, **status):
    return explained(*conditions, **status).headline


def test_a_ready_cluster_says_how_large_and_how_loaded_it_is():
    line = headline(ADMITTED, READY, phase="Ready", core=CORE, transient={"wanted": 5, "ready": 2}, loadPercent=212)
    assert line == "mrcluster/etl is Ready (core 3/3, transient 2/5, load 212%)"


@pytest.mark.parametrize(
    ("conditions", "phase", "expected"),
    [
        ((), "", "was created 10m ago and no operator has reconciled it"),
        ([condition("Admitted", "False", "QueueNotFound", "no queue x")], "", "was not admitted: QueueNotFound"),
        ([condition("Ready", "False", "SafeMode", "in safe mode")], "Starting", "is Starting: SafeMode: in safe mode"),
        (
            [
                condition("Ready", "False", "Starting"),
                condition("Degraded", "True", "CoreNodeLost", "the volume of c1"),
            ],
            "Degraded",
            "is Degraded: CoreNodeLost: the volume of c1",
        ),
        ([READY, condition("Scheduled", "False", "InsufficientCPU", "0/2")], "Ready", "is Ready: InsufficientCPU: 0/2"),
        (
            [condition("Ready", "False", "TTLExpired", "the cluster was not used for 60 s")],
            "Expired",
            "has expired: the cluster was not used for 60 s",
        ),
    ],
)
def test_the_headline_has_the_worst_problem(conditions, phase, expected):
    assert expected in headline(*conditions, phase=phase)


def test_problems_precede_figures_and_are_printed_once():
    degraded = condition("Degraded", "True", "MissingBlocks", "2 blocks have no replica")
    hdfs = condition("HDFSAvailable", "False", "MissingBlocks", "2 blocks have no replica")
    room = condition("Scheduled", "False", "InsufficientMemory", "mrjob/demo/nightly holds 6Gi")
    resizing = condition("Resizing", "True", "NoRoom", "mrjob/demo/nightly holds 6Gi")
    open_ = condition("NetworkUnverified", "True", "NotEnforced", "no plugin")
    rows = explained(ADMITTED, degraded, hdfs, room, resizing, open_, phase="Degraded", core=CORE, hdfs=HDFS).details
    assert [subject for subject, _ in rows[:4]] == ["room", "network", "phase", "core"]
    assert rows[0][1] == "InsufficientMemory: mrjob/demo/nightly holds 6Gi"


def test_the_size_has_its_reason_its_offer_and_the_weight_among_clusters_that_can_grow():
    static = mrclusters.read(cli.mrcluster() | {"spec": {"resizing": {"policy": "Static"}, "weight": 9}})
    rival = mrclusters.read(cli.mrcluster("b") | {"spec": {"resizing": {"policy": "GGP"}, "weight": 2}})
    size = {"time": cli.time(570), "reason": "GSP: F = 2.31 is above 1.5; 3 of 6 idle nodes", "offer": 3}
    others = [dataclasses.replace(static, uid="s"), dataclasses.replace(rival, uid="r"), cluster()]
    rows = dict(explained(ADMITTED, READY, phase="Ready", size=size, others=others).details)
    assert rows["size"] == "decided 30s ago: GSP: F = 2.31 is above 1.5; 3 of 6 idle nodes"
    assert rows["offer"] == "3 more nodes"
    assert rows["policy"] == "GSP: core 3, transient 0 to 8 nodes"
    assert rows["weight"] == "2 of 4 among 2 clusters that can grow"


def test_nodes_that_leave_say_how_long_they_may_run_on():
    leaving = [
        {"host": "t3", "since": cli.time(560), "deadline": cli.time(860), "reason": "Shrinking"},
        {"host": "c3", "since": cli.time(300), "reason": "Rolling"},
    ]
    rows = [text for what, text in explained(ADMITTED, READY, leaving=leaving).details if what == "leaving"]
    assert rows == [
        "t3 for 40s (Shrinking), at most 4m20s more",
        "c3 for 5m (Rolling), no timeout: it leaves when its blocks are copied",
    ]


def test_figures_are_those_of_the_report():
    status = {"containers": {"running": 5, "pending": 12}, "slots": 8, "applications": 2, "loadPercent": 212}
    rows = dict(explained(ADMITTED, READY, hdfs=HDFS, pods=[cli.host_pod("c0")], **status).details)
    assert rows["yarn"] == "load 212%: 5 containers running and 12 pending, 8 slots; 2 applications"
    assert rows["hdfs"].startswith("12.0 GiB of 30.0 GiB used, 7 files, 3 DataNodes live")
    assert rows["pods"] == "1 Running on node-0"


def test_a_cluster_that_is_not_used_says_when_it_is_deleted():
    raw = cli.mrcluster(conditions=[condition("Idle", "True", "NoApplications")], lastActiveTime=cli.time(590))
    raw["spec"]["ttlSecondsAfterIdle"] = 60
    rows = dict(explain.explain_cluster(mrclusters.read(raw), [], None, [], now_s=NOW_S).details)
    assert rows["idle"] == "is deleted in 50s unless it is used"


def test_the_table_of_clusters_has_size_load_and_reason():
    degraded = condition("Degraded", "True", "MissingBlocks")
    found = cluster(ADMITTED, degraded, phase="Degraded", core=CORE, loadPercent=40, hdfs=HDFS, queue="etl")
    table = printed(tables.clusters([found], namespaces=True))
    heads, row = (line.split() for line in table.splitlines() if "demo" in line or "NAME" in line)
    assert heads == ["NAMESPACE", "NAME", "PHASE", "CORE", "TRANSIENT", "LOAD", "QUEUE", "POLICY", "USED", "REASON"]
    assert row == ["demo", "etl", "Degraded", "3/3", "0/0", "40%", "etl", "GSP", "12.0", "GiB", "MissingBlocks"]


def test_the_list_of_jobs_has_clusters_with_their_nodes():
    cluster = kinds.read(cli.mrcluster(conditions=[ADMITTED, READY], phase="Ready", core=CORE))
    assert "core 3/3, transient 0/0" in printed(tables.jobs([cluster], namespaces=False, now_s=NOW_S))


@pytest.mark.parametrize("host", ["master", "c0", "t17"])
def test_a_pod_of_a_cluster_is_named_by_its_host(host):
    pod = model.task_pod(cli.host_pod(host))
    assert (pod.task, pod.started_s) == (host, cli.START_S + 6)


def test_a_daemon_that_was_restarted_has_run_since_its_pod_started():
    raw = cli.host_pod("c0")
    raw["status"]["startTime"] = cli.time(3)
    raw["status"]["containerStatuses"][0]["restartCount"] = 2
    assert model.task_pod(raw).started_s == cli.START_S + 3


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        (kinds.MRCLUSTER, Selection(task="m-00000")),
        (kinds.MRCLUSTER, Selection(follow=True)),
        (kinds.MRJOB, Selection(host="c0")),
        (kinds.SPARKAPP, Selection(container="namenode")),
    ],
)
def test_an_option_of_another_kind_is_refused(kind, selection):
    with pytest.raises(CommandError) as caught:
        selection.check(kind)
    assert caught.value.code is ExitCode.USAGE


def test_a_cluster_is_no_job_to_watch():
    with pytest.raises(CommandError, match=r'"mrcluster/etl" is not a job: write mrjob/NAME or sparkapp/NAME'):
        kinds.job_target("mrcluster/etl")
