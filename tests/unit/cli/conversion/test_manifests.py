import pytest
import yaml

from boathouse_cli.conversion import manifests
from tests.builders.bombs import yaml_bomb
from tests.builders.conversions import APPLICATION, both_roles, converted_application, spark_application

SPEC = {
    "type": "Python",
    "mainApplicationFile": "local:///opt/app/main.py",
    "driver": {"cores": 1, "memory": "1g"},
    "executor": {"cores": 2, "instances": 3, "memory": "2g"},
}


def note_paths(found):
    return [note.path for note in found.notes]


def test_an_application_that_has_all_counterparts_is_converted_without_a_note():
    found = converted_application()
    assert found.notes == ()
    assert found.manifest["metadata"] == {"name": "pi", "namespace": "team"}
    assert found.manifest["spec"] == SPEC


def test_the_number_of_executors_is_the_other_operators_default():
    assert converted_application(executor={"cores": 2}).manifest["spec"]["executor"] == {"cores": 2, "instances": 1}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"image": "spark:1"}, {"image": "spark:1"}),
        ({"imagePullPolicy": "Always"}, {"imagePullPolicy": "Always"}),
        ({"imagePullSecrets": ["one"]}, {"imagePullSecrets": [{"name": "one"}]}),
        ({"arguments": [10, "a b", True]}, {"arguments": ["10", "a b", "True"]}),
        ({"sparkConf": {"spark.a": "b"}}, {"sparkConf": {"spark.a": "b"}}),
        ({"hadoopConf": {"fs.defaultFS": "s3a://b"}}, {"hadoopConf": {"fs.defaultFS": "s3a://b"}}),
        ({"memoryOverheadFactor": "0.2"}, {"memoryOverheadFactor": "0.2"}),
        ({"deps": {"jars": ["s3a://b/a.jar"]}}, {"deps": {"jars": ["s3a://b/a.jar"]}}),
        ({"deps": {"packages": ["g:a:1"]}}, {"deps": {"packages": ["g:a:1"]}}),
        ({"timeToLiveSeconds": 60}, {"ttlSecondsAfterFinished": 60}),
        ({"suspend": True}, {"suspend": True}),
        ({"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}),
        ({"batchSchedulerOptions": {"queue": "analytics"}}, {"queue": "analytics"}),
        (
            {"batchSchedulerOptions": {"priorityClassName": "high"}},
            {"podTemplate": {"priorityClassName": "high"}},
        ),
        ({"restartPolicy": {"type": "Never", "onFailureRetries": 3}}, {}),
        (
            {"restartPolicy": {"type": "OnFailure", "onFailureRetries": 3, "onFailureRetryInterval": 10}},
            {"restartPolicy": {"type": "OnFailure", "onFailureRetries": 3, "onFailureRetryInterval": 10}},
        ),
        (
            {"restartPolicy": {"type": "Always", "onFailureRetryInterval": 600}},
            {
                "restartPolicy": {
                    "type": "Always",
                    "onFailureRetries": 1000,
                    "onFailureRetryInterval": 600,
                    "maxRetryIntervalSeconds": 600,
                }
            },
        ),
        (
            {"hadoopConfigMap": "hadoop"},
            {
                "env": [{"name": "HADOOP_CONF_DIR", "value": "/mnt/hadoop-conf"}],
                "volumes": [{"name": "hadoop-conf", "mountPath": "/mnt/hadoop-conf", "configMapName": "hadoop"}],
            },
        ),
    ],
    ids=lambda fields: next(iter(fields), "") if isinstance(fields, dict) else None,
)
def test_a_field_with_a_counterpart_is_converted_without_a_note(theirs, ours):
    found = converted_application(**theirs)
    assert found.notes == ()
    assert found.manifest["spec"] == {**SPEC, **ours}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"coreRequest": "500m"}, {"coreRequest": "500m"}),
        ({"coreLimit": "2"}, {"coreLimit": "2"}),
        ({"memoryOverhead": "512m"}, {"memoryOverhead": "512m"}),
        ({"javaOptions": "-XX:+UseG1GC"}, {"javaOptions": "-XX:+UseG1GC"}),
        ({"labels": {"version": 4.3}}, {"labels": {"version": "4.3"}}),
        ({"annotations": {"a": "b"}}, {"annotations": {"a": "b"}}),
        ({"gpu": {"name": "nvidia.com/gpu", "quantity": 2}}, {"extendedResources": {"nvidia.com/gpu": 2}}),
        ({"envVars": {"A": "b"}}, {"env": [{"name": "A", "value": "b"}]}),
        (
            {"envSecretKeyRefs": {"A": {"name": "keys", "key": "a"}}},
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a"}}}]},
        ),
        (
            {"tolerations": [{"key": "spot", "operator": "Exists"}]},
            {"tolerations": [{"key": "spot", "operator": "Exists"}]},
        ),
        ({"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}),
        ({"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}, {}),
        ({"sidecars": [], "hostNetwork": False}, {}),
        (
            {
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {
                        "containers": [
                            {
                                "name": "any",
                                "resources": {"requests": {"cpu": 1, "ephemeral-storage": "5Gi"}},
                                "env": [{"name": "A", "value": "b"}],
                            }
                        ],
                    },
                }
            },
            {"labels": {"a": "b"}, "ephemeralStorage": "5Gi", "env": [{"name": "A", "value": "b"}]},
        ),
    ],
    ids=lambda fields: next(iter(fields), "") if isinstance(fields, dict) else None,
)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_a_field_of_a_role_is_converted_without_a_note(role, theirs, ours):
    found = converted_application(**{role: {**APPLICATION[role], **theirs}})
    assert found.notes == ()
    assert found.manifest["spec"] == {**SPEC, role: {**SPEC[role], **ours}}


@pytest.mark.parametrize(
    ("theirs", "path"),
    [
        ({"proxyUser": "alice"}, "spec.proxyUser"),
        ({"mode": "client"}, "spec.mode"),
        ({"mainClass": "org.example.Main"}, "spec.mainClass"),
        ({"sparkVersion": "3.4.4"}, "spec.sparkVersion"),
        ({"pythonVersion": "2"}, "spec.pythonVersion"),
        ({"sparkUIOptions": {"serviceType": "NodePort"}}, "spec.sparkUIOptions"),
        ({"driverIngressOptions": [{"servicePort": 80}]}, "spec.driverIngressOptions"),
        ({"batchScheduler": "volcano"}, "spec.batchScheduler"),
        ({"failureRetries": 3}, "spec.failureRetries"),
        ({"kerberos": {"principal": "p"}}, "spec.kerberos"),
        ({"noSuchField": 1}, "spec.noSuchField"),
        ({"monitoring": {"metricsProperties": "a=b"}}, "spec.monitoring.metricsProperties"),
        (
            {"restartPolicy": {"type": "Never", "onSubmissionFailureRetries": 3}},
            "spec.restartPolicy.onSubmissionFailureRetries",
        ),
        ({"sparkConf": {"spark.driver.memory": "2g"}}, 'spec.sparkConf["spark.driver.memory"]'),
        ({"sparkConf": {"spark.master": "local"}}, 'spec.sparkConf["spark.master"]'),
        ({"hadoopConf": {"fs.s3a.secret.key": "x"}}, 'spec.hadoopConf["fs.s3a.secret.key"]'),
    ],
)
def test_a_field_without_counterpart_is_noted_with_its_path(theirs, path):
    found = converted_application(**theirs)
    assert note_paths(found) == [path]
    assert found.manifest["spec"] == SPEC


@pytest.mark.parametrize(
    "field",
    [
        {"sidecars": [{"name": "proxy"}]},
        {"initContainers": [{"name": "fetch"}]},
        {"hostNetwork": True},
        {"lifecycle": {"preStop": {"exec": {}}}},
        {"dnsConfig": {"searches": ["example.com"]}},
        {"hostAliases": [{"ip": "10.0.0.1"}]},
        {"shareProcessNamespace": True},
        {"terminationGracePeriodSeconds": 60},
        {"schedulerName": "volcano"},
        {"ports": [{"name": "jmx", "containerPort": 8090}]},
    ],
)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_a_field_of_a_role_without_counterpart_is_noted_with_its_path(role, field):
    found = converted_application(**{role: {**APPLICATION[role], **field}})
    assert note_paths(found) == [f"spec.{role}.{next(iter(field))}"]
    assert found.manifest["spec"] == SPEC


def test_parts_of_a_template_without_counterpart_are_noted():
    spec = {
        "containers": [{"name": "spark-kubernetes-driver", "command": ["sh"]}, {"name": "proxy"}],
        "initContainers": [{"name": "fetch"}],
        "runtimeClassName": "gvisor",
    }
    found = converted_application(driver={**APPLICATION["driver"], "template": {"spec": spec}})
    prefix = "spec.driver.template.spec"
    assert sorted(note_paths(found)) == [
        f"{prefix}.containers",
        f"{prefix}.containers[0].command",
        f"{prefix}.initContainers",
        f"{prefix}.runtimeClassName",
    ]


def test_fields_of_both_roles_that_a_spec_has_once_are_noted_where_they_differ():
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            }
        }
    }
    alike = converted_application(
        **both_roles(affinity=affinity, podSecurityContext={"fsGroup": 2000}, priorityClassName="high")
    )
    assert alike.notes == ()
    assert alike.manifest["spec"]["podTemplate"] == {
        "affinity": affinity,
        "securityContext": {"fsGroup": 2000},
        "priorityClassName": "high",
    }
    alone = converted_application(driver={**APPLICATION["driver"], "affinity": affinity})
    assert note_paths(alone) == ["spec.driver.affinity.nodeAffinity"]
    assert alone.manifest["spec"]["podTemplate"] == {"affinity": affinity}


def test_volumes_of_both_roles_are_mounted():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "books"}},
        {"name": "conf", "configMap": {"name": "settings"}},
        {"name": "spark-local-dir-1", "emptyDir": {}},
    ]
    mounts = [
        {"name": "data", "mountPath": "/data"},
        {"name": "conf", "mountPath": "/mnt/conf", "readOnly": True},
    ]
    local = {"name": "spark-local-dir-1", "mountPath": "/mnt/disk1"}
    roles = both_roles(volumeMounts=mounts)
    roles["executor"]["volumeMounts"] = [*mounts, local]
    found = converted_application(volumes=volumes, mainApplicationFile="file:///data/main.py", **roles)
    assert note_paths(found) == ["spec.executor.volumeMounts.spark-local-dir-1"]
    spec = found.manifest["spec"]
    assert spec["mainApplicationFile"] == "file:///data/main.py"
    assert spec["storage"] == {"volume": {"claimName": "books"}}
    assert spec["volumes"] == [
        {"name": "conf", "mountPath": "/mnt/conf", "readOnly": True, "configMapName": "settings"}
    ]


def test_secrets_with_a_type_name_their_file():
    secret = {"name": "gcp", "path": "/mnt/secrets", "secretType": "GCPServiceAccount"}
    found = converted_application(**both_roles(secrets=[secret]))
    assert found.notes == ()
    spec = found.manifest["spec"]
    assert spec["volumes"] == [{"name": "gcp", "mountPath": "/mnt/secrets", "secretName": "gcp"}]
    variable = {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/mnt/secrets/key.json"}
    assert spec["driver"]["env"] == spec["executor"]["env"] == [variable]


def test_a_files_folder_that_pods_have_already_is_noted():
    found = converted_application(**both_roles(configMaps=[{"name": "c", "path": "/etc/spark"}]))
    assert note_paths(found) == ["spec.driver.configMaps.c", "spec.executor.configMaps.c"]


def test_dynamic_allocation_has_its_timeout_in_seconds():
    allocation = {"enabled": True, "minExecutors": 1, "maxExecutors": 9, "shuffleTrackingTimeout": 1500}
    found = converted_application(dynamicAllocation=allocation, executor={"cores": 2})
    assert found.notes == ()
    assert found.manifest["spec"]["dynamicAllocation"] == {
        "enabled": True,
        "minExecutors": 1,
        "maxExecutors": 9,
        "shuffleTrackingTimeoutSeconds": 2,
    }


def test_a_schedule_is_noted_and_its_application_converted():
    found = manifests.convert(spark_application("ScheduledSparkApplication", schedule="@daily", template=APPLICATION))
    assert note_paths(found) == ["spec.schedule"]
    assert "CronJob" in found.notes[0].advice
    assert found.manifest["spec"] == SPEC


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"type": "R"}, "spec.type"),
        ({"mainApplicationFile": None}, "spec.mainApplicationFile"),
        ({"mainApplicationFile": "ftp://b/a.py"}, "spec.mainApplicationFile"),
        ({"type": "Java"}, "spec.mainClass"),
        ({"timeToLiveSeconds": -1}, "spec.ttlSecondsAfterFinished"),
    ],
)
def test_what_cannot_be_a_sparkapp_is_refused(wrong, path):
    found = manifests.convert(spark_application(**{**APPLICATION, **wrong}))
    assert found.has_failed
    assert found.manifest is None
    assert found.notes[-1].path == path


def test_another_version_is_refused_and_another_kind_left_out():
    old = manifests.convert(spark_application(version="v1beta1", **APPLICATION))
    assert (old.has_failed, note_paths(old)) == (True, ["apiVersion"])
    other = manifests.convert({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}})
    assert (other.has_failed, note_paths(other), other.manifest) == (False, ["kind"], None)


def test_a_list_counts_as_its_items():
    items = [spark_application(**APPLICATION), spark_application(name="other", **APPLICATION)]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    assert [application.manifest["metadata"]["name"] for application in manifests.convert_text(text)] == ["pi", "other"]


def test_what_kubectl_and_the_api_server_added_is_left_out():
    stored = spark_application(**APPLICATION)
    stored["metadata"] |= {
        "uid": "u",
        "labels": {"team": "a"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    found = manifests.convert({**stored, "status": {"applicationState": {"state": "COMPLETED"}}})
    assert found.notes == ()
    assert found.manifest["metadata"] == {"name": "pi", "namespace": "team", "labels": {"team": "a"}}


def test_a_small_text_that_stands_for_an_endless_one_is_refused():
    with pytest.raises(ValueError, match="those that aliases repeat counted each time"):
        list(manifests.convert_text(yaml_bomb()))
