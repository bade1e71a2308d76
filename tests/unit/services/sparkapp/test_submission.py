"""The driver's pod and its properties, field by field beside those of Spark's own submission."""

import json

import javaproperties

from tests.builders.differences import declaration, differences, leaves
from tests.builders.sparkapps import SUBMISSIONS, app, of_each_submission, submission

POD = {
    r"metadata\.(name|namespace|ownerReferences.*)": "names from the application's; the SparkApp is the owner",
    r"metadata\.labels\.(app\.kubernetes\.io|boathouse\.dev)/.*": "labels of Boathouse",
    r"metadata\.annotations\.(karpenter\.sh|cluster-autoscaler\.kubernetes\.io)/.*": "autoscalers leave its node alone",
    r"metadata\.labels\.spark-version": "the operator does not know the version of the image",
    r"spec\.(automountServiceAccountToken|enableServiceLinks|terminationGracePeriodSeconds)": "set, not defaulted",
    r"spec\.serviceAccount": "the old name of serviceAccountName",
    r"spec\.tolerations.*": "a driver leaves an unreachable node sooner than after 300 s",
    r"spec\.securityContext.*": "Pod Security restricted",
    r"C\.securityContext\.(capabilities|runAsNonRoot|seccompProfile).*": "Pod Security restricted",
    r"C\.securityContext\.allowPrivilegeEscalation": "the same, which Spark sets since 4.1",
    r"C\.terminationMessagePolicy": "the last lines of a driver that fails are in the status",
    r"C\.ports\.spark-connect.*": "Spark Connect is not served",
    r"C\.resources\.(requests|limits)\.ephemeral-storage": "the chart's bounds for local files",
    r"C\.env\.SPARK_DRIVER_BIND_ADDRESS\.valueFrom\.fieldRef\.apiVersion": "the default",
    r"C\.env\.SPARK_LOCAL_HOSTNAME\..*": "executors of Spark before 4.1 reach the driver there, without a Service",
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
    r"spark\.kubernetes\.container\.image\.pull(Policy|Secrets)": "always set, or in the template",
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


def pod_fields(pod, text):
    """Return the fields of a pod by path; `text` replaces other names."""
    plain = json.loads(text(json.dumps(pod, ensure_ascii=False)))
    (container,) = plain["spec"].pop("containers")
    return dict([*leaves(plain), *leaves(container, "C")])


def submission_of(configuration):
    return submission(app(**configuration.spec))


def driver_fields(configuration, recording):
    found = submission_of(configuration)
    application_id = found.names.application_id
    ours = pod_fields(found.driver, lambda text: text.replace(application_id, "APPLICATION-ID").replace("$$(", "$("))
    return ours, pod_fields(recording["driver"], str)


def property_fields(configuration, recording):
    ours = javaproperties.loads(submission_of(configuration).config_map["data"]["spark.properties"])
    return ours, recording["properties"]


@of_each_submission
def test_a_drivers_pod_differs_from_sparks_only_where_that_is_declared(configuration, recording):
    ours, theirs = driver_fields(configuration, recording)
    assert [path for path in sorted(differences(ours, theirs)) if not declaration(path, POD)] == []


@of_each_submission
def test_the_properties_differ_from_sparks_only_where_that_is_declared(configuration, recording):
    ours, theirs = property_fields(configuration, recording)
    found = {key for key in differences(ours, theirs) if str(ours.get(key)).lower() != str(theirs.get(key)).lower()}
    trimmed = {key for key in found if ours.get(key, "").strip() == theirs.get(key, "?").strip()}
    assert [key for key in sorted(found - trimmed) if not declaration(key, PROPERTIES)] == []


def test_kubernetes_does_not_replace_variables_in_arguments():
    driver = submission(app(arguments=["$(HOME)", "$HOME"])).driver
    assert driver["spec"]["containers"][0]["args"][-2:] == ["$$(HOME)", "$HOME"]


def test_every_declared_difference_occurs():
    pods, keys = set(), set()
    for configuration, recording in SUBMISSIONS:
        pods |= {declaration(path, POD) for path in differences(*driver_fields(configuration, recording))}
        keys |= {declaration(key, PROPERTIES) for key in differences(*property_fields(configuration, recording))}
    assert [pattern for pattern in POD if pattern not in pods] == []
    assert [pattern for pattern in PROPERTIES if pattern not in keys] == []
