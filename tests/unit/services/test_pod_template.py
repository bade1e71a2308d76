"""What a job may want of its pods beside what they need."""

import pytest

from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.placement import pod_builder, submission
from boathouse_policies import model
from boathouse_task.contract import TaskType

SETTINGS = pod_builder.PodSettings(progress_url="https://p", scratch_bytes=1 << 30, image_pull_secrets=("chart",))
SETUP = Attempt(task_type=TaskType.SETUP, index=0, number=1)
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [SSD]}]}
    }
}


@pytest.fixture
def pod(build):
    def make(**spec):
        job = build.job(**spec)
        return pod_builder.PodBuilder(job=job, settings=SETTINGS).build(
            SETUP, job.stage(TaskType.SETUP).resources, "n1"
        )

    return make


def test_labels_and_annotations_are_added_and_ours_win(pod):
    mine = {"labels": {"team": "a", "boathouse.dev/queue": "other"}, "annotations": {"note": "x"}}
    metadata = pod(podTemplate={"metadata": mine})["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["labels"]["boathouse.dev/queue"] == "default"
    assert metadata["annotations"]["note"] == "x"


def test_pull_secrets_come_beside_those_of_the_chart(pod):
    spec = pod(imagePullSecrets=[{"name": "mine"}, {"name": "chart"}])["spec"]
    assert spec["imagePullSecrets"] == [{"name": "chart"}, {"name": "mine"}]


def test_a_service_account_is_named_and_its_token_still_not_mounted(pod):
    spec = pod(serviceAccountName="reader")["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("reader", False)


def test_whole_secrets_become_variables(pod):
    sources = [{"prefix": "DB_", "secretRef": {"name": "db"}}]
    assert pod(envFrom=sources)["spec"]["containers"][0]["envFrom"] == sources


def test_the_user_may_be_chosen_and_the_rest_of_restricted_stays(pod):
    context = pod(podTemplate={"securityContext": {"runAsUser": 2000}})["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsNonRoot"], context["fsGroup"]) == (2000, True, 10001)


def test_node_affinity_and_priority_are_in_the_pod_and_known_to_the_scheduler(pod, build):
    template = {"affinity": AFFINITY, "priorityClassName": "urgent"}
    spec = pod(podTemplate=template)["spec"]
    assert (spec["affinity"], spec["priorityClassName"]) == (AFFINITY, "urgent")
    job = build.job(podTemplate=template)
    (one,) = submission.classes_in_use(job, [SETUP])
    ssd = model.Expression(key="disk", operator=model.Operator.IN, values=("ssd",))
    assert one.constraints.affinity == (model.AffinityTerm(expressions=(ssd,)),)
    assert submission.scheduler_job(job, 7).priority == 7


def test_a_pending_task_has_the_labels_that_its_stage_shares(pod, build):
    template = {"metadata": {"labels": {"team": "a"}}}
    labels = pod(podTemplate=template)["metadata"]["labels"]
    (one,) = submission.classes_in_use(build.job(podTemplate=template), [SETUP])
    assert one.labels["team"] == "a"
    assert labels.keys() - one.labels.keys() == {"boathouse.dev/task-index", "boathouse.dev/attempt"}


def test_classes_whose_tasks_all_run_are_known_to_the_scheduler_in_the_order_of_the_stages(build):
    waiting = [Attempt(task_type=TaskType.REDUCE, index=0, number=2)]
    found = submission.classes_in_use(build.job(), [*waiting, build.pod("r-1"), build.pod("m-0")])
    assert [one.stage for one in found] == [model.Stage.MAP, model.Stage.REDUCE]


def test_a_job_that_wants_nothing_has_no_empty_fields(pod):
    assert not [name for name, value in pod()["spec"].items() if value in (None, "", [], {})]
