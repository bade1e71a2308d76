"""The fields of a job that its pods get beside those that every task pod has."""

from boathouse.services.mrjob import pod_builder, submission
from boathouse_policies import model
from boathouse_task.contract import TaskType
from tests.builders import mrjobs

SETTINGS = pod_builder.PodSettings(progress_url="https://p", scratch_bytes=1 << 30, image_pull_secrets=("chart",))
SETUP = mrjobs.attempt(TaskType.SETUP)
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [SSD]}]}
    }
}


def setup_manifest(**spec):
    return mrjobs.task_manifest(mrjobs.job(**spec), TaskType.SETUP, settings=SETTINGS)


def test_labels_and_annotations_are_added_and_those_of_boathouse_win():
    template = {"labels": {"team": "a", "boathouse.dev/queue": "other"}, "annotations": {"note": "x"}}
    metadata = setup_manifest(podTemplate={"metadata": template})["metadata"]
    assert metadata["labels"]["team"] == "a"
    assert metadata["labels"]["boathouse.dev/queue"] == "default"
    assert metadata["annotations"]["note"] == "x"


def test_pull_secrets_come_beside_those_of_the_chart():
    spec = setup_manifest(imagePullSecrets=[{"name": "mine"}, {"name": "chart"}])["spec"]
    assert spec["imagePullSecrets"] == [{"name": "chart"}, {"name": "mine"}]


def test_a_service_account_is_named_and_its_token_still_not_mounted():
    spec = setup_manifest(serviceAccountName="reader")["spec"]
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("reader", False)


def test_whole_secrets_become_variables():
    sources = [{"prefix": "DB_", "secretRef": {"name": "db"}}]
    assert setup_manifest(envFrom=sources)["spec"]["containers"][0]["envFrom"] == sources


def test_the_user_may_be_chosen_and_the_rest_of_restricted_stays():
    context = setup_manifest(podTemplate={"securityContext": {"runAsUser": 2000}})["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsNonRoot"], context["fsGroup"]) == (2000, True, 10001)


def test_node_affinity_and_priority_are_in_the_pod_and_known_to_the_scheduler():
    template = {"affinity": AFFINITY, "priorityClassName": "urgent"}
    spec = setup_manifest(podTemplate=template)["spec"]
    assert (spec["affinity"], spec["priorityClassName"]) == (AFFINITY, "urgent")
    job = mrjobs.job(podTemplate=template)
    (task_class,) = submission.classes_in_use(job, [SETUP])
    ssd = model.Expression(key="disk", operator=model.Operator.IN, values=("ssd",))
    assert task_class.constraints.affinity == (model.AffinityTerm(expressions=(ssd,)),)
    assert submission.scheduler_job(job, 7).priority == 7


def test_a_pending_task_has_the_labels_that_its_stage_shares():
    template = {"metadata": {"labels": {"team": "a"}}}
    labels = setup_manifest(podTemplate=template)["metadata"]["labels"]
    (task_class,) = submission.classes_in_use(mrjobs.job(podTemplate=template), [SETUP])
    assert task_class.labels["team"] == "a"
    assert labels.keys() - task_class.labels.keys() == {"boathouse.dev/task-index", "boathouse.dev/attempt"}


def test_the_scheduler_knows_the_cpu_limit_of_a_pods_container():
    mapper = {"command": ["cat"], "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1500m"}}}
    (task_class,) = submission.classes_in_use(mrjobs.job(mapper=mapper), [mrjobs.attempt(TaskType.MAP)])
    assert (task_class.resources.cpu_milli, task_class.cpu_limit_milli) == (500, 1500)


def test_classes_whose_tasks_all_run_are_known_to_the_scheduler_in_the_order_of_the_stages():
    pending = [mrjobs.attempt(TaskType.REDUCE, number=2)]
    classes = submission.classes_in_use(mrjobs.job(), [*pending, mrjobs.attempt_pod("r-1"), mrjobs.attempt_pod("m-0")])
    assert [task_class.stage for task_class in classes] == [model.Stage.MAP, model.Stage.REDUCE]


def test_classes_of_a_step_come_before_those_of_the_next():
    step = {"mapper": {"command": ["cat"]}, "reducer": {"command": ["cat"]}, "numReduceTasks": 1}
    job = mrjobs.job(mapper=None, reducer=None, numReduceTasks=None, steps=[step, step])
    classes = submission.classes_in_use(job, [mrjobs.attempt_pod("1/m-0"), mrjobs.attempt_pod("r-0")])
    assert [task_class.stage for task_class in classes] == [model.Stage.REDUCE, model.Stage.MAP]


def test_a_job_without_these_fields_has_no_empty_fields_in_its_pods():
    assert not [name for name, value in setup_manifest()["spec"].items() if value in (None, "", [], {})]
