"""What an MRJob may name, by the rights of its author; and which queues accept it."""

from typing import Any

import pytest

from tests.contract.chart.builders import KUEUE, SPARK_AND_QUEUES, mrjob, object_, pod, reads

pytestmark = pytest.mark.apiserver

CREATES_PODS = ("", ["pods"], ["create"], [])


VALUES = SPARK_AND_QUEUES


def new_mrjob(namespace: str = "demo", **fields: Any) -> dict[str, Any]:
    """A job that is not there yet."""
    return mrjob(namespace, name="new", **fields)


@pytest.fixture(scope="module")
def author(as_user):
    """Reads the Secret that each job here names, and nothing else."""
    return as_user("author", reads("secrets", "s3-credentials"))


@pytest.fixture(scope="module")
def pod_creator(as_user):
    return as_user("pod-creator", CREATES_PODS)


def with_secrets(*names: str) -> dict[str, Any]:
    env = [{"name": f"E{i}", "valueFrom": {"secretKeyRef": {"name": n, "key": "k"}}} for i, n in enumerate(names)]
    return new_mrjob(env=env)


def test_who_reads_the_secret_may_name_it(author):
    assert author.creates(new_mrjob()) == "admitted"


NAMED = {
    "a secret of a variable": (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]},
        "spec names the Secret other, and you may neither create pods nor get that Secret in this namespace: name",
    ),
    "a secret as a whole": ({"envFrom": [{"secretRef": {"name": "other"}}]}, "spec names the Secret other"),
    "a secret for images": ({"imagePullSecrets": [{"name": "other"}]}, "spec names the Secret other"),
    "a config map of a variable": (
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "other", "key": "k"}}}]},
        "spec names the ConfigMap other, and you may neither create pods nor get that ConfigMap",
    ),
    "a config map as a whole": ({"envFrom": [{"configMapRef": {"name": "other"}}]}, "spec names the ConfigMap other"),
    "a file of a config map": (
        {"files": [{"name": "f", "configMapKeyRef": {"name": "other", "key": "k"}}]},
        "spec names the ConfigMap other",
    ),
    "a priority class": (
        {"podTemplate": {"priorityClassName": "batch-low"}},
        "you may neither create pods in this namespace nor use the PriorityClass batch-low; remove the field",
    ),
    "a claim": (
        {"storage": {"volume": {"claimName": "c"}}, "input": ["file:///data/i"], "output": "file:///data/o"},
        "spec.storage.volume.claimName: only who may create pods in this namespace may name a claim",
    ),
    "a service account": (
        {"serviceAccountName": "builder"},
        "spec.serviceAccountName: only who may create pods in this namespace may name a service account",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_the_author_has_no_right_to_is_refused(author, case):
    fields, complaint = NAMED[case]
    assert complaint in author.creates(new_mrjob(**fields))


@pytest.mark.parametrize("case", NAMED)
def test_who_may_create_pods_may_name_all_of_it(pod_creator, case):
    assert pod_creator.creates(new_mrjob(**NAMED[case][0])) == "admitted"


@pytest.mark.parametrize("case", NAMED)
def test_an_exempt_controller_is_not_asked(as_user, case):
    assert as_user(KUEUE).creates(new_mrjob(**NAMED[case][0])) == "admitted"


def test_rights_to_the_objects_named_are_enough(as_user):
    user = as_user(
        "reader",
        reads("secrets", "s3-credentials", "a"),
        reads("configmaps", "b"),
        ("scheduling.k8s.io", ["priorityclasses"], ["use"], ["batch-low"]),
    )
    named = new_mrjob(
        envFrom=[{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "b"}}],
        podTemplate={"priorityClassName": "batch-low"},
    )
    user.until(lambda: user.creates(named), "admitted")


def test_names_are_counted_once_and_beyond_20_of_them_are_refused_in_words(as_user):
    names = [f"s{i}" for i in range(19)]
    user = as_user("many", reads("secrets", "s3-credentials", *names, "s19", "s20"))
    user.until(lambda: user.creates(with_secrets(*names, *names, *names)), "admitted")
    assert "spec names 22 Secrets" in user.creates(with_secrets(*names, "s19", "s20"))
    assert "may name 20: put their keys into fewer Secrets" in user.creates(with_secrets(*names, "s19", "s20"))


def test_the_last_of_20_names_is_checked_too(as_user):
    names = [f"s{i}" for i in range(18)]
    user = as_user("nearly", reads("secrets", "s3-credentials", *names))
    user.until(lambda: user.creates(with_secrets(*names)), "admitted")
    assert "spec names the Secret zz" in user.creates(with_secrets(*names, "zz"))


def test_who_reads_all_secrets_may_name_any_number(as_user):
    user = as_user("librarian", reads("secrets"))
    user.until(lambda: user.creates(with_secrets(*(f"s{i}" for i in range(120)))), "admitted")


# Updates


@pytest.fixture
def suspended(installed):
    """A job that names what the author may not, and is suspended."""
    manifest = mrjob(
        name="suspended", suspend=True, serviceAccountName="builder", envFrom=[{"secretRef": {"name": "other"}}]
    )
    installed.apply(manifest)
    yield "mrjob/suspended"
    installed.delete(manifest)


def test_on_an_update_only_what_changes_is_checked(author, suspended):
    assert author.patches(suspended, {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": False}}) == "admitted"
    assert author.patches(suspended, {"spec": {"nodeSelector": {"a": "b"}}}) == "admitted"


def test_a_priority_class_that_is_set_later_is_checked(author, suspended):
    assert "nor use the PriorityClass" in author.patches(
        suspended, {"spec": {"podTemplate": {"priorityClassName": "batch-low"}}}
    )


# Queues


def test_a_queue_that_does_not_exist_is_refused(alice):
    refusal = alice.creates(new_mrjob(queue="none"))
    assert "spec.queue: the queue none does not exist; there are default, elsewhere, nightly" in refusal
    labelled = pod(schedulerName="boathouse", meta={"labels": {"boathouse.dev/queue": "none"}})
    assert "metadata.labels[boathouse.dev/queue]: the queue none does not exist" in alice.creates(labelled)


def test_a_queue_that_does_not_accept_the_namespace_is_refused(alice):
    complaint = "the queue elsewhere does not accept this namespace; name another queue"
    assert f"spec.queue: {complaint}" in alice.creates(new_mrjob(queue="elsewhere"))
    labelled = pod(schedulerName="boathouse", meta={"labels": {"boathouse.dev/queue": "elsewhere"}})
    assert f"metadata.labels[boathouse.dev/queue]: {complaint}" in alice.creates(labelled)
    assert "spec.queue: the queue nightly does not accept" in alice.creates(new_mrjob("unguarded", queue="nightly"))


@pytest.fixture(scope="module")
def classes(installed):
    """Two PriorityClasses, which the API server must know before it admits a pod that names one."""
    made = [object_("PriorityClass", name, api="scheduling.k8s.io/v1", value=1) for name in ("batch-low", "batch-high")]
    installed.apply(*made)
    yield
    installed.delete(*made)


@pytest.mark.usefixtures("classes")
def test_a_queue_accepts_its_priority_classes_only(alice):
    accepted, refused = ({"podTemplate": {"priorityClassName": f"batch-{name}"}} for name in ("low", "high"))
    labels = {"labels": {"boathouse.dev/queue": "nightly"}}
    complaint = "the queue nightly accepts the PriorityClasses batch-low only; name one of them"
    assert alice.creates(new_mrjob(queue="nightly")) == "admitted"
    assert alice.creates(new_mrjob(queue="nightly", **accepted)) == "admitted"
    assert f"spec.podTemplate.priorityClassName: {complaint}" in alice.creates(new_mrjob(queue="nightly", **refused))
    assert alice.creates(new_mrjob(**refused)) == "admitted"
    asked = {"meta": labels, "schedulerName": "boathouse"}
    alice.until(lambda: alice.creates(pod(priorityClassName="batch-low", **asked)), "admitted")
    assert f"spec.priorityClassName: {complaint}" in alice.creates(pod(priorityClassName="batch-high", **asked))


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_the_clusters_own_classes_are_refused(alice, name):
    assert "the classes system-* are" in alice.creates(new_mrjob(podTemplate={"priorityClassName": name}))
    assert "places no pods of the classes system-*" in alice.creates(
        pod(schedulerName="boathouse", priorityClassName=name)
    )
    assert alice.creates(pod(priorityClassName=name)) == "admitted"


def test_the_label_of_a_namespace_cannot_name_a_queue_that_does_not_accept_it(installed, alice):
    label = ("label", "namespace", "unguarded")
    installed.kubectl(*label, "boathouse.dev/queue=elsewhere", "--overwrite")
    try:
        complaint = "the queue elsewhere does not accept this namespace"
        alice.until(lambda: alice.creates(new_mrjob("unguarded")), complaint)
        assert complaint in alice.creates(pod(namespace="unguarded", schedulerName="boathouse"))
        assert alice.creates(new_mrjob("unguarded", queue="default")) == "admitted"
        installed.kubectl(*label, "boathouse.dev/queue=none", "--overwrite")
        alice.until(
            lambda: alice.creates(new_mrjob("unguarded")), "correct the namespace's label boathouse.dev/queue, or name"
        )
    finally:
        installed.kubectl(*label, "boathouse.dev/queue-")


def test_a_job_of_a_queue_that_was_taken_away_can_still_be_changed(installed, chart, alice):
    """Its queue is judged when the job is created or changes it, not whenever a label is set."""
    behind = mrjob(name="left-behind", queue="nightly")
    installed.apply(behind)
    without = [manifest for manifest in chart.render(rights=VALUES["rights"]) if "Policy" in manifest["kind"]]
    try:
        installed.apply(*without)
        alice.until(lambda: alice.creates(new_mrjob(queue="nightly")), "the queue nightly does not exist")
        assert alice.patches("mrjob/left-behind", {"metadata": {"labels": {"a": "b"}}}) == "admitted"
    finally:
        installed.apply(*(manifest for manifest in chart.render(**VALUES) if "Policy" in manifest["kind"]))
        alice.until(lambda: alice.creates(new_mrjob(queue="nightly")), "admitted")
        installed.delete(behind)


def test_the_api_server_finds_nothing_wrong_with_the_policies_for_jobs(installed):
    names = [f"boathouse-guard-{name}" for name in ("jobs", "rights", "secrets", "configmaps")]
    installed.until(
        lambda: (
            installed.kubectl(
                "get", "validatingadmissionpolicy", *names, "--output=jsonpath={.items[*].status.typeChecking}"
            ).stdout
        ),
        "{} {} {} {}",
    )
