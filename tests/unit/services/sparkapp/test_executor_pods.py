"""The executors that Spark creates from our properties and template, beside those of its own submission."""

import json
import re

from tests.builders.differences import declaration, differences, leaves
from tests.builders.sparkapps import SUBMISSIONS, of_each_submission, only_container
from tests.spark import ours

EXECUTOR = {
    r"metadata\.(name|ownerReferences.*)|spec\.hostname": "names from the application's",
    r"metadata\.labels\.spark-app-selector|C\.env\.SPARK_APPLICATION_ID\.value": "the same",
    r"metadata\.labels\.app\.kubernetes\.io/.*": "labels of Boathouse",
    r"spec\.serviceAccount(Name)?": "or executors would have the driver's",
    r"spec\.(automountServiceAccountToken|enableServiceLinks)": "no token for executors",
    r"spec\.(securityContext|tolerations).*": "Pod Security restricted; nodes that do not answer",
    r"C\.securityContext\.(capabilities|runAsNonRoot|seccompProfile).*": "Pod Security restricted",
    r"C\.securityContext\.allowPrivilegeEscalation": "the same, which Spark sets since 4.1",
    r"spec\.terminationGracePeriodSeconds": "set, not defaulted",
    r"C\.resources\.(requests|limits)\.ephemeral-storage": "the chart's bounds for local files",
    r"C\.env\._SPARK_AUTH_SECRET.*": "executors and driver authenticate each other",
    r"C\.env\.SPARK_JAVA_OPT=-Dspark\.authenticate=true\.value": "the same",
    r"C\.env\.SPARK_LOCAL_DIRS\.value": "Spark chooses a random name",
    r"C\.volumeMounts\.(spark-local-dir-1\.mountPath|boathouse-files.*)": "local files; a passwd entry for any user",
    r"spec\.volumes\.(spark-local-dir-1\.emptyDir.*|boathouse-files.*)": "local files; a passwd entry for any user",
    r"metadata\.labels\.spark-exec-resourceprofile-id|C\.env\.SPARK_RESOURCE_PROFILE_ID\.value": "in order of creation",
    r"(spec\.volumes|C\.volumeMounts)\.(boathouse-)?storage\..*": "the volume of spec.storage has a name of its own",
    r"C\.lifecycle\..*": "decommissioning is on with dynamic allocation, and by a script that every image has",
}
"""Where an executor differs from that of Spark's own submission, by path (`C` is the container), and why."""


def executor_fields(pod):
    """Return the fields of a pod; options for Java by their value, because Spark numbers them at random."""
    plain = json.loads(json.dumps(pod))
    (inner,) = plain["spec"].pop("containers")
    inner["env"] = [
        {"name": f"SPARK_JAVA_OPT={variable['value']}", "value": True}
        if variable["name"] == "SPARK_JAVA_OPT"
        else variable
        for variable in inner["env"]
    ]
    return dict([*leaves(plain), *leaves(inner, "C")])


def by_profile(pods):
    return {pod["metadata"]["labels"]["spark-exec-resourceprofile-id"] == "0": pod for pod in pods}


def pairs_of(recording):
    mine, theirs = by_profile(recording["ours"]["executors"]), by_profile(recording["executors"])
    assert mine.keys() == theirs.keys()
    return [(mine[key], theirs[key]) for key in mine]


@of_each_submission
def test_the_recording_is_of_these_properties_and_this_template(configuration, recording):
    assert recording["ours"]["digest"] == ours.digest(configuration), "run `make record-spark`"


@of_each_submission
def test_executors_differ_from_sparks_only_where_that_is_declared(configuration, recording):
    for mine, theirs in pairs_of(recording):
        found = differences(executor_fields(mine), executor_fields(theirs))
        assert [path for path in sorted(found) if not declaration(path, EXECUTOR)] == [], configuration.name


@of_each_submission
def test_executors_request_what_they_would_request_of_sparks_own_submission(configuration, recording):
    assert configuration.name
    for mine, theirs in pairs_of(recording):
        resources = only_container(mine)["resources"]
        computed = {
            kind: {name: value for name, value in amounts.items() if name != "ephemeral-storage"}
            for kind, amounts in resources.items()
        }
        assert computed == only_container(theirs)["resources"]


def test_no_executor_has_a_token_or_the_drivers_account():
    pods = [pod for _, recording in SUBMISSIONS for pod in recording["ours"]["executors"]]
    assert len(pods) >= 50
    for pod in pods:
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["serviceAccountName"] == "default"
        assert pod["spec"]["schedulerName"] == "boathouse"
        assert not any(key.startswith("boathouse.dev/") for key in pod["metadata"]["labels"])
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("Pod", True)


def test_every_executor_is_restricted():
    for _, recording in SUBMISSIONS:
        for pod in recording["ours"]["executors"]:
            security = only_container(pod)["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
            assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_every_declared_difference_occurs():
    occurring = set()
    for _, recording in SUBMISSIONS:
        for mine, theirs in pairs_of(recording):
            occurring |= {
                declaration(path, EXECUTOR) for path in differences(executor_fields(mine), executor_fields(theirs))
            }
    assert [pattern for pattern in EXECUTOR if pattern not in occurring] == []


def test_no_path_is_declared_twice():
    paths = {
        path for _, recording in SUBMISSIONS for pod in recording["ours"]["executors"] for path in executor_fields(pod)
    }
    assert [path for path in sorted(paths) if sum(bool(re.fullmatch(p, path)) for p in EXECUTOR) > 1] == []
