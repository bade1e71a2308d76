"""The objects of an attempt beside its driver: the ConfigMap with its properties, the Service of the UI. Pure."""

import json
from collections.abc import Sequence
from typing import Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ANNOTATION_HADOOP_CLUSTERS, LABEL_TASK_TYPE, TASK_TYPE_DRIVER
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.sparkapp import pods, user_properties
from boathouse.services.sparkapp.model import App, AttemptNames

_HADOOP: Final = "spark.hadoop."
_K8S: Final = "spark.kubernetes"
_API_SERVER: Final = "https://kubernetes.default.svc"
DECOMMISSION: Final = """\
#!/bin/sh
# Tells the executor that it will end, and returns when it has moved its blocks and ended.
for process in /proc/[0-9]*; do
  if [ "$(cat "$process/comm" 2>/dev/null)" = java ]; then
    kill -s PWR "${process#/proc/}" && executor="$process"
  fi
done
while [ -n "$executor" ] && [ -d "$executor" ]; do sleep 1; done
"""


def properties(app: App, attempt: AttemptNames, clusters: Sequence[hadoop.ClusterFacts] = ()) -> dict[str, str]:
    """Return all properties of an attempt; those that Boathouse sets win.

    The application sees the HDFS of the clusters as hdfs://NAME/, beside nameservices that it names itself.
    """
    hdfs = hadoop.name_services(clusters, app.conf.get(f"{_HADOOP}{hadoop.NAMESERVICES}", ""))
    return {
        **app.conf,
        **{f"{_HADOOP}{key}": value for key, value in hdfs.items()},
        # Its identity
        "spark.app.id": attempt.application_id,
        "spark.app.name": app.name,
        "spark.master": f"k8s://{_API_SERVER}",
        "spark.submit.deployMode": "client",
        f"{_K8S}.driver.master": _API_SERVER,
        f"{_K8S}.driver.pod.name": attempt.driver_pod,
        f"{_K8S}.executor.podNamePrefix": attempt.executor_prefix,
        f"{_K8S}.executor.useDriverPodIP": "true",
        f"{_K8S}.namespace": app.namespace,
        f"{_K8S}.resource.type": "python" if app.is_python else "java",
        f"{_K8S}.submitInDriver": "true",
        # Its executors: without an account of its own an executor would get the driver's, with the driver's token
        f"{_K8S}.authenticate.driver.serviceAccountName": app.account,
        f"{_K8S}.authenticate.executor.serviceAccountName": app.spec.service_account_name or "default",
        f"{_K8S}.container.image": app.image,
        f"{_K8S}.container.image.pullPolicy": app.spec.image_pull_policy,
        f"{_K8S}.decommission.script": f"{pods.FILES_PATH}/{pods.DECOMMISSION_FILE}",
        f"{_K8S}.executor.podTemplateContainerName": pods.EXECUTOR_CONTAINER,
        f"{_K8S}.executor.podTemplateFile": f"{pods.CONF_PATH}/{pods.TEMPLATE_FILE}",
        f"{_K8S}.executor.scheduler.name": names.SCHEDULER_NAME,
        f"{_K8S}.scheduler.name": names.SCHEDULER_NAME,
        # Security; Spark uses no Services and claims, to which drivers have no access
        "spark.authenticate": "true",
        "spark.jars.ivy": "/tmp/.ivy2",  # noqa: S108 - inside the pod
        "spark.ui.killEnabled": "false",
        f"{_K8S}.driver.ownPersistentVolumeClaim": "false",
        f"{_K8S}.driver.reusePersistentVolumeClaim": "false",
        f"{_K8S}.driver.service.deleteOnTermination": "false",
        f"{_K8S}.driver.waitToReusePersistentVolumeClaim": "false",
    }


def config_map(app: App, attempt: AttemptNames, clusters: Sequence[hadoop.ClusterFacts] = ()) -> manifests.Manifest:
    """Return the ConfigMap of an attempt, the same for the same application, number and clusters; the driver needs it.

    The attempt sees the HDFS of the clusters. Annotations say which they are: a cluster that is created again under the
    name of one of them has other addresses. Raises a ValueError if a property has a line end or a NUL.
    """
    metadata = _metadata(app, attempt.config_map)
    if clusters:
        uids = ",".join(f"{cluster.name}={cluster.uid}" for cluster in clusters)
        metadata["annotations"] = {ANNOTATION_HADOOP_CLUSTERS: uids}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "immutable": True,
        "data": {
            pods.PROPERTIES_FILE: user_properties.render(properties(app, attempt, clusters)),
            pods.TEMPLATE_FILE: json.dumps(pods.executor_template(app, attempt), indent=1),
            pods.DECOMMISSION_FILE: DECOMMISSION,
            pods.USERS_FILE: pods.users(app),
        },
    }


def service(app: App, attempt: AttemptNames) -> manifests.Manifest:
    """Return the Service of the UI, the same for all attempts.

    It does not have Spark's labels: a driver deletes the Services that have them when it stops.
    """
    number = user_properties.ports(app.conf)[user_properties.UI]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(app, attempt.service),
        "spec": {
            "selector": {names.LABEL_JOB_UID: app.uid, LABEL_TASK_TYPE: TASK_TYPE_DRIVER},
            "ports": [
                {"name": user_properties.UI, "port": user_properties.UI_PORT, "targetPort": number, "protocol": "TCP"}
            ],
        },
    }


def _metadata(app: App, name: str) -> manifests.Manifest:
    return pods.metadata(app, name, {**manifests.labels(pods.APP, app), names.LABEL_JOB_UID: app.uid})
