"""What a SparkApp may name, by the rights of its author and of its drivers' account; and which queues accept it."""

from typing import Any

import pytest

from tests.contract.chart.builders import KUEUE, SPARK_AND_QUEUES, binding, object_, reads, sparkapp

pytestmark = pytest.mark.apiserver

CREATES_PODS = ("", ["pods"], ["create"], [])
USES_DRIVER = ("boathouse.dev", ["accounts"], ["use"], ["boathouse-spark"])
CLASS = {"podTemplate": {"priorityClassName": "batch-low"}}


VALUES = SPARK_AND_QUEUES


def new_sparkapp(**fields: Any) -> dict[str, Any]:
    """An application that is not there yet."""
    return sparkapp(name="new", **fields)


@pytest.fixture(scope="module")
def author(as_user):
    """May use the drivers' account, and nothing else."""
    return as_user("spark-author", USES_DRIVER)


@pytest.fixture(scope="module")
def pod_creator(as_user):
    return as_user("spark-pod-creator", CREATES_PODS)


# The drivers' account


def test_who_may_use_the_drivers_account_creates_applications(author):
    author.until(lambda: author.creates(new_sparkapp()), "admitted")


def test_who_may_create_pods_creates_applications(pod_creator):
    assert pod_creator.creates(new_sparkapp()) == "admitted"
    assert pod_creator.creates(new_sparkapp(driver={"serviceAccountName": "boathouse-spark-etl"})) == "admitted"


def test_the_refusal_names_the_missing_right(as_user):
    refusal = as_user("nobody-special").creates(new_sparkapp())
    assert "spec.driver.serviceAccountName: a SparkApp creates pods as the service account boathouse-spark" in refusal
    assert "ask the administrator for the role edit, or for the verb use on accounts.boathouse.dev/boathouse" in refusal


def test_a_right_to_one_account_says_nothing_of_another(author):
    other = {"serviceAccountName": "boathouse-spark-etl"}
    assert "as the service account boathouse-spark-etl" in author.creates(new_sparkapp(driver=other))


# What it names


def variable(**source: Any) -> list[dict[str, Any]]:
    return [{"name": "A", "valueFrom": source}]


def volume(**source: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "mountPath": "/v", **source}]}


OF_SECRET = variable(secretKeyRef={"name": "other", "key": "k"})
OF_CONFIG_MAP = variable(configMapKeyRef={"name": "other", "key": "k"})
SECRET, CONFIG_MAP = "spec names the Secret other, and you", "spec names the ConfigMap other, and you"
CLAIM = "only who may create pods in this namespace may name a claim"
NAMED = {
    "a secret of a variable": ({"env": OF_SECRET}, SECRET),
    "a secret of the driver's": ({"driver": {"env": OF_SECRET}}, SECRET),
    "a secret of the executors'": ({"executor": {"env": OF_SECRET}}, SECRET),
    "a secret as a whole": ({"envFrom": [{"secretRef": {"name": "other"}}]}, SECRET),
    "a secret for images": ({"imagePullSecrets": [{"name": "other"}]}, SECRET),
    "a secret in a volume": (volume(secretName="other"), SECRET),
    "the secret of the storage": ({"storage": {"s3": {"secretRef": {"name": "other"}}}}, SECRET),
    "a config map of a variable": ({"env": OF_CONFIG_MAP}, CONFIG_MAP),
    "a config map of the driver's": ({"driver": {"env": OF_CONFIG_MAP}}, CONFIG_MAP),
    "a config map of the executors'": ({"executor": {"env": OF_CONFIG_MAP}}, CONFIG_MAP),
    "a config map as a whole": ({"envFrom": [{"configMapRef": {"name": "other"}}]}, CONFIG_MAP),
    "a config map in a volume": (volume(configMapName="other"), CONFIG_MAP),
    "a claim of the storage": ({"storage": {"volume": {"claimName": "c"}}}, f"spec.storage.volume.claimName: {CLAIM}"),
    "a claim in a volume": (volume(claimName="c"), f"spec.volumes[].claimName: {CLAIM}"),
    "a priority class": (CLASS, "nor use the PriorityClass batch-low; remove the field"),
    "a service account": (
        {"serviceAccountName": "trusted"},
        "spec.serviceAccountName: only who may create pods in this namespace may name a service account",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def trusted(installed):
    """An account that executors may run as."""
    subject = {"kind": "ServiceAccount", "name": "trusted", "namespace": "demo"}
    permitted = binding("boathouse-run-as-trusted", "demo", "ClusterRole", "boathouse-run-as", subject)
    installed.apply(permitted)
    yield
    installed.delete(permitted)


@pytest.mark.parametrize("case", NAMED)
def test_what_the_author_has_no_right_to_is_refused(author, case):
    fields, complaint = NAMED[case]
    author.until(lambda: author.creates(new_sparkapp()), "admitted")
    assert complaint in author.creates(new_sparkapp(**fields))


@pytest.mark.parametrize("case", NAMED)
def test_who_may_create_pods_may_name_all_of_it(pod_creator, case):
    pod_creator.until(lambda: pod_creator.creates(new_sparkapp(**NAMED[case][0])), "admitted")


@pytest.mark.parametrize("case", NAMED)
def test_an_exempt_controller_is_not_asked(as_user, case):
    kueue = as_user(KUEUE)
    kueue.until(lambda: kueue.creates(new_sparkapp(**NAMED[case][0])), "admitted")


def test_rights_to_the_objects_named_are_enough(as_user):
    user = as_user(
        "spark-reader",
        USES_DRIVER,
        reads("secrets", "other"),
        reads("configmaps", "other"),
        ("scheduling.k8s.io", ["priorityclasses"], ["use"], ["batch-low"]),
    )
    named = new_sparkapp(env=OF_SECRET, driver={"env": OF_CONFIG_MAP}, **volume(secretName="other"), **CLASS)
    user.until(lambda: user.creates(named), "admitted")


def test_the_largest_number_of_names_is_judged(author, pod_creator):
    """The cost of an expression is bounded, and what is beyond it would be refused without a reason."""
    env = [
        [{"name": f"E{n}", "valueFrom": {"secretKeyRef": {"name": f"{role}{n}", "key": "k"}}} for n in range(128)]
        for role in "sde"
    ]
    whole = new_sparkapp(env=env[0], driver={"env": env[1]}, executor={"env": env[2]})
    author.until(lambda: author.creates(new_sparkapp()), "admitted")
    assert "spec names 384 Secrets; who may neither create pods nor read all" in author.creates(whole)
    assert pod_creator.creates(whole) == "admitted"


# What its executors could not be


def test_executors_of_an_account_that_is_not_permitted_are_refused_at_once(alice):
    refusal = alice.creates(new_sparkapp(serviceAccountName="builder"))
    assert "spec.serviceAccountName: Boathouse may not run pods as the service account builder" in refusal
    assert "kubectl create rolebinding boathouse-run-as-builder --clusterrole=boathouse-run-as" in refusal


def test_executors_of_a_class_that_the_drivers_account_may_not_use_are_refused_at_once(installed, alice):
    refusal = alice.creates(new_sparkapp(podTemplate={"priorityClassName": "batch-high"}))
    assert "the drivers' service account boathouse-spark of this namespace may not use the PriorityClass" in refusal
    other = new_sparkapp(driver={"serviceAccountName": "boathouse-spark-etl"}, **CLASS)
    assert "the drivers' service account boathouse-spark-etl" in alice.creates(other)
    etl = {"kind": "ServiceAccount", "name": "boathouse-spark-etl", "namespace": "demo"}
    bound = binding("boathouse-spark-etl", "demo", "ClusterRole", "boathouse-spark-driver", etl)
    installed.apply(bound)
    try:
        alice.until(lambda: alice.creates(other), "admitted")
    finally:
        installed.delete(bound)


# Updates


@pytest.fixture
def suspended(installed):
    """An application that names what the author may not, and is suspended."""
    named = {"serviceAccountName": "trusted", "envFrom": [{"secretRef": {"name": "other"}}]}
    driver = {"serviceAccountName": "boathouse-spark-etl"}
    manifest = sparkapp(name="suspended", suspend=True, driver=driver, **named)
    installed.apply(manifest)
    yield "sparkapp/suspended"
    installed.delete(manifest)


def test_on_an_update_only_what_changes_is_checked(author, suspended):
    assert author.patches(suspended, {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": False}}) == "admitted"
    assert author.patches(suspended, {"spec": {"nodeSelector": {"a": "b"}}}) == "admitted"


def test_what_is_set_later_is_checked(author, suspended):
    another = {"driver": {"serviceAccountName": "boathouse-spark-another"}}
    assert "as the service account boathouse-spark-another" in author.patches(suspended, {"spec": another})
    assert "use the PriorityClass batch-low" in author.patches(suspended, {"spec": CLASS})  # two policies refuse it
    assert SECRET.replace("other", "more") in author.patches(
        suspended, {"spec": {"driver": {"env": variable(secretKeyRef={"name": "more", "key": "k"})}}}
    )


# Queues


def test_a_queue_that_does_not_accept_the_application_is_refused(alice):
    assert "spec.queue: the queue none does not exist; there are default" in alice.creates(new_sparkapp(queue="none"))
    assert "the queue elsewhere does not accept this namespace" in alice.creates(new_sparkapp(queue="elsewhere"))
    assert alice.creates(new_sparkapp(queue="nightly", **CLASS)) == "admitted"
    other = {"podTemplate": {"priorityClassName": "batch-high"}}
    assert "the queue nightly accepts the PriorityClasses batch-low" in alice.creates(
        new_sparkapp(queue="nightly", **other)
    )


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_the_clusters_own_classes_are_refused(alice, name):
    assert "the classes system-* are" in alice.creates(new_sparkapp(podTemplate={"priorityClassName": name}))


@pytest.mark.parametrize("namespace", ["kube-system", "closed", "boathouse-system"])
def test_an_application_is_refused_where_boathouse_runs_nothing(alice, namespace):
    assert "runs nothing in kube-system" in alice.creates(sparkapp(namespace, name="new"))


# People


def test_the_built_in_roles_reach_applications(installed):
    given = [
        binding(f"spark-{role}", "demo", "ClusterRole", role, {"kind": "User", "name": f"spark-{role}"})
        for role in ("view", "edit", "admin")
    ]
    installed.apply(*given)
    try:
        viewer, editor, admin = (installed.acting_as(f"spark-{role}") for role in ("view", "edit", "admin"))
        viewer.until(lambda: viewer.may("get", "sparkapps.boathouse.dev", "demo"), "yes")
        assert "cannot create resource" in viewer.creates(new_sparkapp())
        editor.until(lambda: editor.creates(new_sparkapp()), "admitted")
        subject = {"kind": "ServiceAccount", "name": "boathouse-spark-etl", "namespace": "demo"}
        bound = binding("boathouse-spark-etl", "demo", "ClusterRole", "boathouse-spark-driver", subject)
        admin.until(lambda: admin.creates(bound), "admitted")
        assert "cannot create resource" in editor.creates(bound)
        assert admin.creates(object_("ServiceAccount", "boathouse-spark-etl", "demo")) == "admitted"
    finally:
        installed.delete(*given)
