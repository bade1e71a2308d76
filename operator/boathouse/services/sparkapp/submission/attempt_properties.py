"""The properties that Boathouse sets for an attempt, such as master, templates, accounts. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse.resources import names
from boathouse.services.hadoop import clients

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse.services.hadoop.directory import ClusterFacts
    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.submission.naming import AttemptNames

CONF_PATH: Final = "/opt/spark/conf"
"""Where Spark's own submission mounts the properties, and images expect them."""
PROPERTIES_FILE: Final = "spark.properties"
TEMPLATE_FILE: Final = "executor.yaml"
FILES_PATH: Final = "/opt/boathouse"
DECOMMISSION_FILE: Final = "decom.sh"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
_HADOOP: Final = "spark.hadoop."
_K8S: Final = "spark.kubernetes"
_API_SERVER: Final = "https://kubernetes.default.svc"


def of(app: App, attempt: AttemptNames, clusters: Sequence[ClusterFacts] = ()) -> dict[str, str]:
    """Return all properties of an attempt; those that Boathouse sets win.

    Args:
        app: The application.
        attempt: The names of the attempt's objects.
        clusters: Hadoop clusters whose HDFS the application sees as hdfs://NAME/.
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
        f"{_K8S}.decommission.script": f"{FILES_PATH}/{DECOMMISSION_FILE}",
        f"{_K8S}.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        f"{_K8S}.executor.podTemplateFile": f"{CONF_PATH}/{TEMPLATE_FILE}",
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
    settings = clients.name_services(clusters, conf.get(f"{_HADOOP}{clients.NAMESERVICES}", ""))
    return {f"{_HADOOP}{key}": value for key, value in settings.items()}
