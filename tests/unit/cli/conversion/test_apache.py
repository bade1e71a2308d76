"""SparkApplications of Apache's operator become SparkApps."""

import pytest

from boathouse_cli.conversion import manifests

JAR = "local:///opt/spark/examples/jars/spark-examples.jar"
CLASS = "org.apache.spark.examples.SparkPi"
SPEC = {"type": "Scala", "mainApplicationFile": JAR, "mainClass": CLASS}


def convert(version="v1", **spec):
    given = {"mainClass": CLASS, "jars": JAR, "runtimeVersions": {"sparkVersion": "4.3.0"}, **spec}
    metadata = {"name": "pi", "namespace": "team"}
    return manifests.convert(
        {"apiVersion": f"spark.apache.org/{version}", "kind": "SparkApplication", "metadata": metadata, "spec": given}
    )


def tolerate(**fields):
    return convert(applicationTolerations=fields)


def restart(**fields):
    return tolerate(restartConfig=fields)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_an_application_that_has_all_counterparts_is_converted_without_a_note(version):
    found = convert(version)
    assert found.notes == ()
    assert found.manifest["metadata"] == {"name": "pi", "namespace": "team"}
    assert found.manifest["spec"] == SPEC


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"driverArgs": [1000, "a b"]}, {"arguments": ["1000", "a b"]}),
        ({"suspend": True}, {"suspend": True}),
        ({"files": "s3a://b/a.txt"}, {"deps": {"files": ["s3a://b/a.txt"]}}),
        ({"jars": f"{JAR},s3a://b/a.jar"}, {"deps": {"jars": ["s3a://b/a.jar"]}}),
        (
            {"sparkConf": {"spark.executor.instances": 3, "spark.a": "b"}},
            {"executor": {"instances": 3}, "sparkConf": {"spark.a": "b"}},
        ),
        ({"sparkConf": {"spark.kubernetes.container.image": "spark:{{SPARK_VERSION}}"}}, {"image": "spark:4.3.0"}),
        ({"sparkConf": {"spark.app.name": "pi", "spark.kubernetes.namespace": "team"}}, {}),
        ({"applicationTolerations": {"ttlAfterStopMillis": 10001}}, {"ttlSecondsAfterFinished": 11}),
        ({"applicationTolerations": {"ttlAfterStopMillis": -1, "resourceRetainPolicy": "Never"}}, {}),
        (
            {"applicationTolerations": {"applicationTimeoutConfig": {"driverStartTimeoutMillis": 90000}}},
            {"timeouts": {"driverStartSeconds": 90}},
        ),
    ],
)
def test_a_field_with_a_counterpart_is_converted_without_a_note(theirs, ours):
    found = convert(**theirs)
    assert found.notes == ()
    assert found.manifest["spec"] == {**SPEC, **ours}


def test_a_program_in_python_is_the_first_file():
    found = convert(jars=None, mainClass=None, pyFiles="local:///opt/pi.py,s3a://b/lib.zip")
    assert found.notes == ()
    expected = {"type": "Python", "mainApplicationFile": "local:///opt/pi.py", "deps": {"pyFiles": ["s3a://b/lib.zip"]}}
    assert found.manifest["spec"] == expected


def test_templates_become_fields_of_the_roles():
    template = {"podTemplateSpec": {"spec": {"priorityClassName": "high", "nodeSelector": {"disk": "ssd"}}}}
    found = convert(driverSpec=template, executorSpec=template)
    assert found.notes == ()
    role = {"nodeSelector": {"disk": "ssd"}}
    pods = {"driver": role, "executor": role, "podTemplate": {"priorityClassName": "high"}}
    assert found.manifest["spec"] == {**SPEC, **pods}


@pytest.mark.parametrize(
    ("given", "kind", "failures", "infrastructure", "interval"),
    [
        ({"restartPolicy": "OnFailure"}, "OnFailure", 3, 3, 30),
        ({"restartPolicy": "OnFailure", "maxRestartAttempts": 5, "maxRestartOnFailure": 2}, "OnFailure", 2, 2, 30),
        ({"restartPolicy": "OnFailure", "restartBackoffMillisForFailure": 500}, "OnFailure", 3, 3, 1),
        ({"restartPolicy": "OnInfrastructureFailure", "restartBackoffMillis": 600000}, "OnFailure", 0, 3, 600),
    ],
)
def test_restarts_have_the_same_counts_and_intervals(given, kind, failures, infrastructure, interval):
    found = restart(**given)
    assert found.notes == ()
    assert found.manifest["spec"]["restartPolicy"] == {
        "type": kind,
        "onFailureRetries": failures,
        "onInfrastructureFailureRetries": infrastructure,
        "onFailureRetryInterval": interval,
        "maxRetryIntervalSeconds": interval,
    }


def test_an_application_that_is_not_restarted_has_no_policy():
    assert "restartPolicy" not in restart(restartPolicy="Never", maxRestartAttempts=5).manifest["spec"]


@pytest.mark.parametrize(
    ("theirs", "path"),
    [
        ({"proxyUser": "ann"}, "spec.proxyUser"),
        ({"driverHttpRouteList": [{"a": 1}]}, "spec.driverHttpRouteList"),
        ({"configMapSpecs": [{"name": "a"}]}, "spec.configMapSpecs"),
        ({"deploymentMode": "ClientMode"}, "spec.deploymentMode"),
        ({"pyFiles": "local:///a.py"}, "spec.pyFiles"),
        ({"sparkConf": {"spark.app.name": "other"}}, 'spec.sparkConf["spark.app.name"]'),
        (
            {"applicationTolerations": {"instanceConfig": {"minExecutors": 2}}},
            "spec.applicationTolerations.instanceConfig",
        ),
        (
            {"applicationTolerations": {"resourceRetainPolicy": "OnFailure"}},
            "spec.applicationTolerations.resourceRetainPolicy",
        ),
        (
            {"applicationTolerations": {"restartConfig": {"restartPolicy": "Always"}}},
            "spec.applicationTolerations.restartConfig.restartPolicy",
        ),
        ({"anything": {"new": 1}}, "spec.anything"),
    ],
)
def test_what_has_no_counterpart_is_noted(theirs, path):
    found = convert(**theirs)
    assert [note.path for note in found.notes] == [path]
    assert found.manifest is not None


@pytest.mark.parametrize(
    ("theirs", "path"),
    [
        ({"jars": None}, "spec.jars"),
        ({"mainClass": None}, "spec.mainClass"),
        ({"jars": None, "sparkRFiles": "local:///a.R"}, "spec.sparkRFiles"),
    ],
)
def test_what_cannot_run_is_refused(theirs, path):
    found = convert(**theirs)
    assert (found.has_failed, found.notes[-1].path) == (True, path)


def test_a_cluster_of_that_operator_is_left_out():
    found = manifests.convert({"apiVersion": "spark.apache.org/v1", "kind": "SparkCluster", "metadata": {"name": "c"}})
    assert (found.manifest, found.has_failed) == (None, False)
