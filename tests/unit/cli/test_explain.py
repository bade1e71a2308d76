import pytest

from boathouse.resources import names
from boathouse_cli import explain, model, mrjobs, usage
from tests.builders import cli

NOW_S = cli.START_S + 90


def job_headline(*conditions, pods=(), **status):
    job = mrjobs.read(cli.mrjob(conditions=list(conditions), **status))
    return explain.explain_job(job, [model.task_pod(pod) for pod in pods], None, now_s=NOW_S).headline


def test_a_pending_job_has_the_schedulers_reason():
    why = cli.condition("Scheduled", "False", "InsufficientCPU", "5 maps wait: cpu 4 of 4 is held by mrjob/other")
    assert (
        job_headline(why, phase="Map") == "mrjob/wordcount is pending: 5 maps wait: cpu 4 of 4 is held by mrjob/other"
    )


def test_a_job_with_running_and_pending_tasks_has_both():
    why = cli.condition("Scheduled", "False", "InsufficientCPU", "3 maps wait for cpu")
    line = job_headline(why, phase="Map", progress="maps 2/7, reduces 0/1", maps={"total": 7, "running": 2})
    assert line == (
        "mrjob/wordcount is in phase Map (maps 2/7, reduces 0/1, 2 tasks running) and is pending: 3 maps wait for cpu"
    )


def test_a_failed_job_says_why():
    failed = cli.condition("Failed", "True", "OutputExists", "s3://books/out exists: remove it")
    assert (
        job_headline(failed, phase="Failed") == "mrjob/wordcount failed: OutputExists: s3://books/out exists: remove it"
    )


def test_a_job_that_cannot_start_its_pods_names_the_reason():
    stuck = cli.condition("Running", "False", "SecretNotFound", 'm-00000 on node a: secret "keys" not found')
    assert "is blocked: SecretNotFound" in job_headline(stuck, phase="Setup")


def test_a_finished_job_says_how_long_it_took_and_where_the_output_is():
    done = cli.condition("Succeeded", "True", "Succeeded")
    line = job_headline(done, phase="Succeeded", progress="maps 3/3, reduces 1/1", completionTime=cli.time(75))
    assert line == "mrjob/wordcount succeeded in 1m15s (maps 3/3, reduces 1/1); the output is in s3://books/out"


def test_a_job_that_is_not_reconciled_sends_the_user_to_the_operator():
    assert "kubectl get pods -n boathouse-system" in job_headline()


def test_failures_tell_whose_fault_they_were():
    failure = {"task": "m-00001", "attempt": 2, "reason": "PodLost", "message": "node gone", "userError": False}
    details = explain.explain_job(mrjobs.read(cli.mrjob(lastFailures=[failure])), [], None, now_s=NOW_S).details
    assert ("failure", "m-00001 attempt 2: PodLost: node gone (infrastructure error, retried)") in details


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(cli.task_pod(node=None), "is pending; no scheduler has reported a reason yet", id="unseen"),
        pytest.param(cli.task_pod(), "is starting on node-0", id="starting"),
        pytest.param(cli.running_pod(cli.task_pod(), since_s=60), "has run on node-0 for 30s", id="running"),
        pytest.param(cli.ended_task_pod(cli.task_pod(), ("read", 1, 4)), "succeeded after 4s", id="succeeded"),
        pytest.param(
            cli.ended_task_pod(cli.task_pod(), ("read", 1, 4), reason="OutOfDisk"),
            "failed: OutOfDisk: it broke",
            id="failed",
        ),
        pytest.param(
            cli.terminated_pod(cli.task_pod(), start_s=1, end_s=3, exit_code=137),
            "failed: its container was killed",
            id="killed",
        ),
    ],
)
def test_a_pod_says_where_it_stands(pod, expected):
    explanation = explain.explain_pod(pod, [], now_s=NOW_S)
    assert explanation.headline == f"pod/{pod['metadata']['name']} {expected}"


def test_a_pod_of_another_scheduler_is_said_to_be_so():
    pod = cli.task_pod()
    pod["spec"]["schedulerName"] = "default-scheduler"
    assert ("scheduler", "default-scheduler (not Boathouse)") in explain.explain_pod(pod, [], now_s=NOW_S).details


def cluster_node(cpu="4", memory="8Gi"):
    return {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}


def running_pod_of(queue, cpu, memory="1Gi", phase="Running"):
    pod = cli.running_pod(cli.task_pod(), since_s=1)
    pod["metadata"]["labels"] = {names.LABEL_QUEUE: queue}
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    pod["spec"]["containers"] = [{"name": names.CONTAINER, "resources": requests}]
    return pod | {"status": {"phase": phase}}


def test_a_queues_share_is_that_of_its_scarcest_resource():
    (queue,) = usage.of_queues(
        {"a": usage.Configured()},
        [],
        [running_pod_of("a", "500m", "4Gi"), running_pod_of("a", "500m", "2Gi")],
        [cluster_node()],
    )
    assert (queue.cpu_milli, queue.share) == (1000, 0.75)


def test_pods_that_ended_hold_nothing():
    (queue,) = usage.of_queues(
        {"a": usage.Configured()}, [], [running_pod_of("a", "1", phase="Succeeded")], [cluster_node()]
    )
    assert (queue.pods, queue.share) == (0, 0.0)


CONFIG = {
    "queues": [{"name": "a", "weight": 3.0, "limits": {"cpu": "8"}}, {"name": "b"}, {"name": "idle", "weight": 4.0}]
}


def test_a_queues_limits_are_shown_as_they_were_configured():
    found = usage.of_queues(usage.configured(CONFIG), [], [], [cluster_node()])
    assert {queue.name: queue.limits for queue in found} == {"a": {"cpu": "8"}, "b": {}, "idle": {}}


def test_fair_shares_are_by_weight_among_queues_with_unfinished_jobs():
    jobs = [mrjobs.read(cli.mrjob(queue="a")), mrjobs.read(cli.mrjob(queue="b"))]
    found = usage.of_queues(usage.configured(CONFIG), jobs, [], [cluster_node()])
    assert {queue.name: queue.fair_share for queue in found} == {"a": 0.75, "b": 0.25, "idle": None}


def test_executors_are_in_the_queue_of_their_driver():
    driver, executor = running_pod_of("a", "500m"), running_pod_of("a", "1")
    driver["metadata"]["uid"] = "uid-of-the-driver"
    executor["metadata"] |= {
        "uid": "e",
        "labels": {},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "d", "uid": "uid-of-the-driver", "controller": True}
        ],
    }
    (queue,) = usage.of_queues({"a": usage.Configured()}, [], [executor, driver], [cluster_node()])
    assert (queue.pods, queue.cpu_milli) == (2, 1500)


def test_a_few_nodes_of_a_jobs_pods_are_named_and_many_are_counted():
    pods = [cli.task_pod(node=f"node-{number}") for number in range(6)]
    told = [explain.describe_pods(map(model.task_pod, some)) for some in (pods[:2], [*pods, *pods])]
    assert told == ["1 Pending on node-0, 1 Pending on node-1", "12 Pending on 6 nodes"]
