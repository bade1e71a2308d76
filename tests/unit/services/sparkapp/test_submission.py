"""The driver's pod and its properties, field by field beside those of Spark's own submission."""

import json
import re

import pytest

from boathouse.services.sparkapp.submission import objects
from boathouse_cli.conversion import properties_files
from tests.unit.services.sparkapp.builders import app
from tests.unit.services.sparkapp.recordings import NAMES, PAIRS

POD = {
    r"metadata\.(name|namespace|ownerReferences.*)": "names from the application's; the SparkApp is the owner",
    r"metadata\.labels\.(app\.kubernetes\.io|boathouse\.dev)/.*": "labels of Boathouse",
    r"metadata\.labels\.spark-version": "the operator does not know the version of the image",
    r"spec\.(automountServiceAccountToken|enableServiceLinks|terminationGracePeriodSeconds)": "said, not defaulted",
    r"spec\.serviceAccount": "the old name of serviceAccountName",
    r"spec\.tolerations.*": "a driver leaves an unreachable node sooner than after 300 s",
    r"spec\.securityContext.*": "Pod Security restricted",
    r"C\.securityContext\.(capabilities|runAsNonRoot|seccompProfile).*": "Pod Security restricted",
    r"C\.terminationMessagePolicy": "the last lines of a driver that fails are in the status",
    r"C\.ports\.spark-connect.*": "Spark Connect is not served",
    r"C\.resources\.(requests|limits)\.ephemeral-storage": "the chart's bounds for local files",
    r"C\.env\.SPARK_DRIVER_BIND_ADDRESS\.valueFrom\.fieldRef\.apiVersion": "the default",
    r"C\.env\.SPARK_LOCAL_DIRS\.value": "Spark chooses a random name",
    r"C\.volumeMounts\.(spark-local-dir-1\.mountPath|boathouse-files.*)": "local files; a passwd entry for any user",
    r"spec\.volumes\.(spark-local-dir-1\.emptyDir.*|boathouse-files.*)": "local files; a passwd entry for any user",
    r"spec\.volumes\.spark-conf-volume-driver\.configMap\.(name|items.*)": "the template of executors is in it as well",
    r"(spec\.volumes|C\.volumeMounts)\.(boathouse-)?storage\..*": "the volume of spec.storage has a name of its own",
}
"""Where a driver's pod differs from Spark's, by path (`C` is the container), and why."""

PROPERTIES = {
    r"spark\.app\.(id|name)": "names from the application's",
    r"spark\.(authenticate|ui\.killEnabled|jars\.ivy)": "security, and a folder that any user may write to",
    r"spark\.driver\.host": "executors reach the driver by its pod's address, without a Service",
    r"spark\.kubernetes\.executor\.useDriverPodIP": "the same",
    r"spark\.(master|submit\.deployMode)": "what the driver would do with them; no submitter needs them",
    r"spark\.kubernetes\.driver\.(master|pod\.name)": "names from the application's",
    r"spark\.kubernetes\.executor\.podNamePrefix": "names from the application's",
    r"spark\.kubernetes\.submission\..*": "there is no submitter",
    r"spark\.submit\.pyFiles": "empty, which is the default",
    r"spark\.kubernetes\.container\.image\.pull(Policy|Secrets)": "said always, or in the template",
    r"spark\.kubernetes\.executor\.(podTemplate(File|ContainerName)|scheduler\.name)": "executors from a template",
    r"spark\.kubernetes\.authenticate\.executor\.serviceAccountName": "or executors would have the driver's",
    r"spark\.kubernetes\.(driver|executor)\.volumes\..*": "in the pod and in the template",
    r"spark\.kubernetes\.(node\.selector|driverEnv)\..*": "in the pod and in the template",
    r"spark\.executorEnv\..*": "in the template",
    r"spark\.kubernetes\.decommission\.script": "a script that every image has, by the ConfigMap",
    r"spark\.(storage\.)?decommission\.enabled": "on with dynamic allocation",
    r"spark\.kubernetes\.driver\.(own|reuse|waitToReuse)PersistentVolumeClaim": "a driver has no rights on claims",
    r"spark\.kubernetes\.driver\.service\.deleteOnTermination": "a driver has no rights on Services",
    r"spark\.kubernetes\.allocation\.maxPendingPods": "no more executors pending than can be placed",
}
"""Where the properties differ, by key, and why."""


def flat(value, path=""):
    """The leaves of a JSON value by path; lists of named values by name."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from flat(child, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            name = child.get("name", number) if isinstance(child, dict) else number
            rest = {k: v for k, v in child.items() if k != "name"} if isinstance(child, dict) else child
            yield from flat(rest, f"{path}.{name}")
    else:
        yield path, value


def pod_fields(pod, text):
    """The fields of a pod; `text` replaces what is called otherwise."""
    plain = json.loads(text(json.dumps(pod, ensure_ascii=False)))
    (container,) = plain["spec"].pop("containers")
    return dict([*flat(plain), *flat(container, "C")])


def replaced(text, known):
    for each, replacement in known.items():
        text = text.replace(each, replacement)
    return text


def differences(ours, theirs):
    return {path for path in {*ours, *theirs} if ours.get(path, ...) != theirs.get(path, ...)}


def declared(path, reasons):
    return next((pattern for pattern in reasons if re.fullmatch(pattern, path)), None)


def submission_of(configuration):
    return objects.of(app(**configuration.spec), 1)


def driver_fields(configuration, recording):
    submission = submission_of(configuration)
    known = {submission.names.application_id: "APPLICATION-ID", "$$(": "$("}
    ours = pod_fields(submission.driver, lambda text: replaced(text, known))
    return ours, pod_fields(recording["driver"], str)


def property_fields(configuration, recording):
    ours = properties_files.parse(submission_of(configuration).config_map["data"]["spark.properties"])
    return ours, recording["properties"]


@pytest.mark.parametrize(("configuration", "recording"), PAIRS, ids=NAMES)
def test_a_drivers_pod_differs_from_sparks_only_where_that_is_declared(configuration, recording):
    ours, theirs = driver_fields(configuration, recording)
    assert [path for path in sorted(differences(ours, theirs)) if not declared(path, POD)] == []


@pytest.mark.parametrize(("configuration", "recording"), PAIRS, ids=NAMES)
def test_the_properties_differ_from_sparks_only_where_that_is_declared(configuration, recording):
    ours, theirs = property_fields(configuration, recording)
    found = {key for key in differences(ours, theirs) if str(ours.get(key)).lower() != str(theirs.get(key)).lower()}
    trimmed = {key for key in found if ours.get(key, "").strip() == theirs.get(key, "?").strip()}
    assert [key for key in sorted(found - trimmed) if not declared(key, PROPERTIES)] == []


def test_kubernetes_does_not_replace_variables_in_arguments():
    driver = objects.of(app(arguments=["$(HOME)", "$HOME"]), 1).driver
    assert driver["spec"]["containers"][0]["args"][-2:] == ["$$(HOME)", "$HOME"]


def test_every_declared_difference_occurs():
    pods, keys = set(), set()
    for configuration, recording in PAIRS:
        pods |= {declared(path, POD) for path in differences(*driver_fields(configuration, recording))}
        keys |= {declared(key, PROPERTIES) for key in differences(*property_fields(configuration, recording))}
    assert [pattern for pattern in POD if pattern not in pods] == []
    assert [pattern for pattern in PROPERTIES if pattern not in keys] == []
