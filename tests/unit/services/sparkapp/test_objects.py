"""The objects of an attempt: owned, restricted, and the same whenever they are created."""

import json
import subprocess

import pytest

from tests.builders.mrclusters import cluster_facts
from tests.builders.sparkapps import UID, app, only_container, submission

USER = "HADOOP_USER_NAME"
FIELDS = {
    "driver": {"labels": {"team": "blue", "spark-role": "executor"}, "annotations": {"a": "b"}},
    "executor": {"env": [{"name": "X", "value": "role"}]},
    "env": [{"name": "X", "value": "both"}],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
    "imagePullSecrets": [{"name": "registry"}],
    "podTemplate": {
        "priorityClassName": "low",
        "metadata": {"labels": {"team": "red", "cost": "1"}},
        "securityContext": {"runAsUser": 1234, "runAsGroup": 77},
    },
    "volumes": [
        {"name": "c", "mountPath": "/c", "claimName": "claim"},
        {"name": "m", "mountPath": "/m", "configMapName": "map", "readOnly": True},
        {"name": "s", "mountPath": "/s", "secretName": "secret"},
        {"name": "e", "mountPath": "/e", "emptyDirSize": "1Gi"},
    ],
}
SOURCES = {
    "c": {"persistentVolumeClaim": {"claimName": "claim"}},
    "m": {"configMap": {"name": "map"}},
    "s": {"secret": {"secretName": "secret"}},
    "e": {"emptyDir": {"sizeLimit": "1Gi"}},
}


def submission_of(attempt=1, **fields):
    return submission(app(**fields), attempt)


@pytest.fixture
def pods():
    """Return the driver's pod and the template of the executors."""
    found = submission_of(**FIELDS)
    return found.driver, json.loads(found.config_map["data"]["executor.yaml"])


def test_everything_is_owned_by_the_application():
    found = submission_of()
    for manifest in (found.config_map, found.service, found.driver):
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("SparkApp", UID, True)
        assert manifest["metadata"]["namespace"] == "team"


def test_the_same_attempt_has_the_same_objects():
    assert submission_of(**FIELDS) == submission_of(**FIELDS)
    assert submission_of(2).driver["metadata"]["name"] != submission_of(1).driver["metadata"]["name"]
    assert submission_of(2).service == submission_of(1).service


def test_the_config_map_cannot_be_changed():
    assert submission_of().config_map["immutable"] is True


def test_a_stopping_driver_does_not_delete_the_service():
    assert not any(key.startswith("spark-") for key in submission_of().service["metadata"]["labels"])
    assert submission_of(ui={"service": False}).service is None


def test_the_service_selects_drivers_of_the_application_and_follows_the_port():
    service = submission_of(sparkConf={"spark.ui.port": "4050"}).service["spec"]
    assert service["selector"].items() <= submission_of().driver["metadata"]["labels"].items()
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(4040, 4050)]


def test_the_driver_has_a_token_and_executors_have_none(pods):
    driver, executor = pods
    assert driver["spec"]["automountServiceAccountToken"] is True
    assert driver["spec"]["serviceAccountName"] == "boathouse-spark"
    assert executor["spec"]["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in executor["spec"]


def test_executors_have_no_labels_of_boathouse(pods):
    _, executor = pods
    assert not any(key.startswith("boathouse.dev/") for key in executor["metadata"]["labels"])


def test_labels_of_the_role_win_over_the_templates_and_ours_over_both(pods):
    labels = pods[0]["metadata"]["labels"]
    assert (labels["team"], labels["cost"], labels["spark-role"]) == ("blue", "1", "driver")


def test_both_roles_have_the_fields_of_the_spec(pods):
    for pod in pods:
        assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["spec"]["priorityClassName"] == "low"
        assert pod["spec"]["securityContext"]["runAsUser"] == 1234
        assert only_container(pod)["envFrom"] == [{"configMapRef": {"name": "settings"}}]


def test_both_roles_mount_the_volumes(pods):
    for pod in pods:
        volumes = {
            volume["name"]: {k: v for k, v in volume.items() if k != "name"} for volume in pod["spec"]["volumes"]
        }
        assert {name: volumes[name] for name in SOURCES} == SOURCES
        mounts = {mount["name"]: mount for mount in only_container(pod)["volumeMounts"]}
        assert mounts["m"] == {"name": "m", "mountPath": "/m", "readOnly": True}


def test_a_variable_of_the_role_replaces_that_of_the_spec(pods):
    values = [[variable["value"] for variable in only_container(pod)["env"] if variable["name"] == "X"] for pod in pods]
    assert values == [["both"], ["role"]]


def test_the_user_of_the_pods_has_a_name():
    assert "spark:x:1234:77:" in submission_of(**FIELDS).config_map["data"]["passwd"]
    assert "spark:x:185:185:" in submission_of().config_map["data"]["passwd"]


def test_the_script_that_ends_an_executor_is_a_shell_script(tmp_path):
    path = tmp_path / "decom.sh"
    path.write_text(submission_of().config_map["data"]["decom.sh"])
    subprocess.run(["sh", "-n", str(path)], check=True)


def test_both_roles_are_restricted(pods):
    for pod in pods:
        security = only_container(pod)["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "nodeName"} & set(pod["spec"])


def test_metrics_are_announced_where_they_are_served():
    driver = submission_of(monitoring={"prometheus": True}, sparkConf={"spark.ui.port": "4050"}).driver
    assert driver["metadata"]["annotations"]["prometheus.io/port"] == "4050"
    assert "prometheus.io/port" not in submission_of().driver["metadata"]["annotations"]


def test_an_attempt_says_which_clusters_its_properties_name():
    found = submission(app(hadoopClusters=["lake"]), 1, [cluster_facts(name="lake", uid="u-1")])
    assert found.config_map["metadata"]["annotations"] == {"boathouse.dev/hadoop-clusters": "lake=u-1"}
    assert "spark.hadoop.dfs.nameservices" in found.config_map["data"]["spark.properties"]
    assert "annotations" not in submission_of().config_map["metadata"]


@pytest.mark.parametrize(("fields", "user"), [({}, None), ({"hadoopClusters": ["lake"]}, "hadoop")])
def test_pods_that_see_a_cluster_are_its_user(fields, user):
    found = submission_of(**fields)
    template = json.loads(found.config_map["data"]["executor.yaml"])
    for pod in (found.driver, template):
        found = {variable["name"]: variable.get("value") for variable in only_container(pod)["env"]}
        assert found.get(USER) == user


def test_executors_act_as_the_user_that_the_driver_is_in_hadoop():
    def users(fields):
        return [
            variable
            for variable in only_container(submission_of(**fields).driver)["env"]
            if variable["name"] in {USER, "SPARK_USER"}
        ]

    assert users({}) == [{"name": "SPARK_USER", "value": "spark"}]
    of_driver = {"name": "SPARK_USER", "value": f"$({USER})"}
    assert users({"hadoopClusters": ["lake"]}) == [{"name": USER, "value": "hadoop"}, of_driver]
    own = {"name": USER, "valueFrom": {"secretKeyRef": {"name": "who", "key": "user"}}}
    assert users({"env": [own]}) == [own, of_driver]


def test_the_application_may_be_another_user_of_hadoop():
    found = submission_of(hadoopClusters=["lake"], env=[{"name": USER, "value": "ann"}])
    found = [variable for variable in only_container(found.driver)["env"] if variable["name"] == USER]
    assert found == [{"name": USER, "value": "ann"}]


def test_the_session_token_is_that_of_the_user_or_of_the_secret():
    def token(**fields):
        found = submission_of(storage={"s3": {"secretRef": {"name": "keys"}}}, **fields)
        return [variable for variable in only_container(found.driver)["env"] if variable["name"] == "AWS_SESSION_TOKEN"]

    own = {"name": "AWS_SESSION_TOKEN", "value": "mine"}
    of_secret = {"secretKeyRef": {"name": "keys", "key": "AWS_SESSION_TOKEN", "optional": True}}
    assert token() == [{"name": "AWS_SESSION_TOKEN", "valueFrom": of_secret}]
    assert token(env=[own]) == [own]
