"""The objects of an attempt: the ConfigMap with its properties, the Service of the UI, the driver; their creation."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.cluster import catalogue, errors
from boathouse.resources import names
from boathouse.resources.sparkapp.names import ANNOTATION_HADOOP_CLUSTERS, LABEL_TASK_TYPE, TASK_TYPE_DRIVER, Reason
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.frame.pod_life import Problem
from boathouse.services.frame.writes import Writes
from boathouse.services.hadoop import ClusterFacts
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


def properties(app: App, attempt: AttemptNames, clusters: Sequence[ClusterFacts] = ()) -> dict[str, str]:
    """Return all properties of an attempt; those that Boathouse sets win.

    The application sees the HDFS of the clusters as hdfs://NAME/.
    """
    hdfs = _hdfs(clusters, app.conf)
    return {**app.conf, **hdfs, **_identity(app, attempt), **_executor_pods(app), **_security()}


def _identity(app: App, attempt: AttemptNames) -> dict[str, str]:
    return {
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
    }


def _executor_pods(app: App) -> dict[str, str]:
    """Without an account of its own an executor would get the driver's, with the driver's token."""
    return {
        f"{_K8S}.authenticate.driver.serviceAccountName": app.account,
        f"{_K8S}.authenticate.executor.serviceAccountName": app.spec.service_account_name or "default",
        f"{_K8S}.container.image": app.image,
        f"{_K8S}.container.image.pullPolicy": app.spec.image_pull_policy,
        f"{_K8S}.decommission.script": f"{pods.FILES_PATH}/{pods.DECOMMISSION_FILE}",
        f"{_K8S}.executor.podTemplateContainerName": pods.EXECUTOR_CONTAINER,
        f"{_K8S}.executor.podTemplateFile": f"{pods.CONF_PATH}/{pods.TEMPLATE_FILE}",
        f"{_K8S}.executor.scheduler.name": names.SCHEDULER_NAME,
        f"{_K8S}.scheduler.name": names.SCHEDULER_NAME,
    }


def _security() -> dict[str, str]:
    """Properties that keep Spark from using Services and claims, to which drivers have no access."""
    return {
        "spark.authenticate": "true",
        "spark.jars.ivy": "/tmp/.ivy2",  # noqa: S108 - inside the pod
        "spark.ui.killEnabled": "false",
        f"{_K8S}.driver.ownPersistentVolumeClaim": "false",
        f"{_K8S}.driver.reusePersistentVolumeClaim": "false",
        f"{_K8S}.driver.service.deleteOnTermination": "false",
        f"{_K8S}.driver.waitToReusePersistentVolumeClaim": "false",
    }


def _hdfs(clusters: Sequence[ClusterFacts], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by which these clusters are hdfs://NAME/, beside nameservices that `conf` has already."""
    settings = hadoop.name_services(clusters, conf.get(f"{_HADOOP}{hadoop.NAMESERVICES}", ""))
    return {f"{_HADOOP}{key}": value for key, value in settings.items()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What an attempt consists of.

    Attributes:
        config_map: Immutable; the driver's pod needs it.
        service: Of the UI, the same for all attempts; None if there is none.
        driver: The pod, without a node: the scheduler creates it.
    """

    names: AttemptNames
    config_map: dict[str, Any]
    service: dict[str, Any] | None
    driver: dict[str, Any]


def of(app: App, attempt: int, clusters: Sequence[ClusterFacts] = ()) -> Submission:
    """Return the objects of an attempt: the same for the same application, number and clusters.

    The attempt sees the HDFS of the clusters. Its ConfigMap says which they are: a cluster that is created again under
    the name of one of them has other addresses.

    Raises:
        ValueError: A property has a line end or a NUL.
    """
    attempt_names = AttemptNames(application=app.name, uid=app.uid, attempt=attempt)
    return Submission(
        names=attempt_names,
        config_map=_config_map(app, attempt_names, clusters),
        service=_service(app, attempt_names) if app.has_service else None,
        driver=pods.driver(app, attempt_names),
    )


def _config_map(app: App, attempt: AttemptNames, clusters: Sequence[ClusterFacts]) -> dict[str, Any]:
    metadata = _metadata(app, attempt.config_map)
    if clusters:
        metadata["annotations"] = {
            ANNOTATION_HADOOP_CLUSTERS: ",".join(f"{cluster.name}={cluster.uid}" for cluster in clusters)
        }
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


def _service(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Not labelled with Spark's labels: a driver deletes the Services that have them when it stops."""
    port = {
        "name": "spark-ui",
        "port": user_properties.UI_PORT,
        "targetPort": user_properties.ports(app.conf).ui,
        "protocol": "TCP",
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(app, attempt.service),
        "spec": {
            "selector": {names.LABEL_JOB_UID: app.uid, LABEL_TASK_TYPE: TASK_TYPE_DRIVER},
            "ports": [port],
        },
    }


def _metadata(app: App, name: str) -> dict[str, Any]:
    return pods.metadata(app, name, {**manifests.labels(pods.APP, app), names.LABEL_JOB_UID: app.uid})


async def ensure(submission: Submission, writes: Writes) -> Problem | None:
    """Create what does not exist; returns why the driver's pod must not be created yet, or None."""
    try:
        existing = await writes.ensure(catalogue.CONFIG_MAPS, submission.config_map, "config-map")
    except (errors.Forbidden, errors.Invalid) as error:  # a quota, a policy
        return Problem(reason=Reason.CONFIG_MAP_REFUSED, message=error.message)
    return None if existing is None else taken("ConfigMap", existing["metadata"]["name"])


async def ensure_service(submission: Submission, writes: Writes) -> str:
    """Create the Service of the UI; returns why there is none, or an empty text. A driver runs without it."""
    if submission.service is None:
        return ""
    try:
        existing = await writes.ensure(catalogue.SERVICES, submission.service, "service")
    except (errors.Forbidden, errors.Invalid) as error:
        return f"Spark's UI has no Service: {error.message}"
    return (
        ""
        if existing is None
        else f"Spark's UI has no Service: {taken('Service', existing['metadata']['name']).message}"
    )


def taken(kind: str, name: str) -> Problem:
    """Return the problem if an object of another owner has a name that an attempt needs."""
    message = f'there is a {kind} "{name}" that does not belong to this application: delete it'
    return Problem(reason=Reason.NAME_TAKEN, message=message)
