"""The driver's pod. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names, quantity
from boathouse.resources.pod_environment import literal
from boathouse.resources.sparkapp.names import LABEL_ATTEMPT, LABEL_TASK_TYPE, SPARKAPP_KIND, TASK_TYPE_DRIVER
from boathouse.resources.sparkapp.roles import Role
from boathouse.services.frame import manifests
from boathouse.services.hadoop import clients
from boathouse.services.sparkapp.submission import attempt_properties as attempts
from boathouse.services.sparkapp.submission import pod_parts, ports, sizing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.submission.naming import AttemptNames

CONTAINER: Final = "spark-kubernetes-driver"
_CONF_VOLUME: Final = "spark-conf-volume-driver"
_PYTHON_RUNNER: Final = "org.apache.spark.deploy.PythonRunner"


def build(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Return the manifest, without a node."""
    role = app.spec.driver or Role()
    metadata = pod_parts.metadata(app, attempt.driver_pod, labels(app, attempt))
    metadata["annotations"] = {
        **(_scraping(app.conf) if app.spec.monitoring and app.spec.monitoring.prometheus else {}),
        **(_chosen(app.executor, app.ideal_executor) if app.ideal_executor is not None else {}),
    }
    manifest = pod_parts.pod(
        app, attempt, role, app.account, metadata, _container(app, attempt, role), is_protected=True
    )
    items = [{"key": name, "path": name} for name in (attempts.PROPERTIES_FILE, attempts.TEMPLATE_FILE)]
    conf = {"name": _CONF_VOLUME, "configMap": {"name": attempt.config_map, "items": items}}
    manifest["spec"]["volumes"].append(conf)
    manifest["spec"]["automountServiceAccountToken"] = True
    return manifest


def _container(app: App, attempt: AttemptNames, role: Role) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": app.image,
        "imagePullPolicy": app.spec.image_pull_policy,
        "args": _arguments(app),
        "ports": _ports(app.conf),
        "env": _environment(app, attempt, role),
        "resources": _resources(app, role),
        "securityContext": manifests.container_security(read_only=False),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": _CONF_VOLUME, "mountPath": attempts.CONF_PATH},
            *pod_parts.mounts(app),
        ],
    }


def labels(app: App, attempt: AttemptNames) -> dict[str, str]:
    """Return the labels of the driver's pod."""
    return {
        **pod_parts.labels(app, app.spec.driver or Role()),
        names.APP_COMPONENT: TASK_TYPE_DRIVER,
        names.LABEL_JOB_UID: app.uid,
        names.LABEL_KIND: SPARKAPP_KIND,
        LABEL_TASK_TYPE: TASK_TYPE_DRIVER,
        LABEL_ATTEMPT: str(attempt.attempt),
        names.LABEL_QUEUE: app.queue,
        "spark-app-name": app.name[: manifests.MAX_NAME].rstrip("-."),
        "spark-app-selector": attempt.application_id,
        "spark-role": TASK_TYPE_DRIVER,
    }


def _scraping(conf: Mapping[str, str]) -> dict[str, str]:
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics/executors/prometheus",
        "prometheus.io/port": str(ports.of(conf).ui),
    }


def _chosen(executor: sizing.Requests, ideal: sizing.Requests) -> dict[str, str]:
    """Return the annotations that say how much memory was chosen for executors, and why."""
    less, all_ = (quantity.format_bytes(each.memory_bytes) for each in (executor, ideal))
    return {
        names.ANNOTATION_EXECUTOR_MEMORY: str(executor.memory_bytes),
        names.ANNOTATION_DECISION: f"executors have {less} of memory instead of {all_}: no nodes had more free memory "
        "for all of them, and this does not delay the application",
    }


def _arguments(app: App) -> list[str]:
    """As Spark's entrypoint takes them; Kubernetes would replace `$(NAME)` and `$$` in what the user wrote.

    Properties in arguments win over those in the file, which is written before the executors' memory is chosen.
    """
    written = (app.spec.main_application_file, *(app.spec.arguments or ()))
    return [
        "driver",
        "--properties-file",
        f"{attempts.CONF_PATH}/{attempts.PROPERTIES_FILE}",
        *(("--conf", f"{sizing.HEAP}={app.conf[sizing.HEAP]}") if app.ideal_executor else ()),
        "--class",
        *map(literal, (app.spec.main_class or _PYTHON_RUNNER, *written)),
    ]


def _ports(conf: Mapping[str, str]) -> list[dict[str, Any]]:
    found = ports.of(conf)
    numbers = {"driver-rpc-port": found.driver, "blockmanager": found.block_manager, "spark-ui": found.ui}
    return [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in numbers.items() if port]


def _environment(app: App, attempt: AttemptNames, role: Role) -> list[dict[str, Any]]:
    """Return the variables. Executors act as the driver's SPARK_USER, whatever their own HADOOP_USER_NAME is.

    SPARK_LOCAL_HOSTNAME is the driver's address for executors: without it, Spark before 4.1, which does not know
    `useDriverPodIP`, names the pod, and no Service makes that a name.
    """
    address = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    given = pod_parts.environment(app, role)
    of_hadoop = [each for each in given if each["name"] == clients.USER_ENV]
    return [
        *of_hadoop,
        {"name": "SPARK_USER", "value": f"$({clients.USER_ENV})" if of_hadoop else "spark"},
        {"name": "SPARK_APPLICATION_ID", "value": attempt.application_id},
        *(each for each in given if each not in of_hadoop),
        {"name": "SPARK_DRIVER_BIND_ADDRESS", **address},
        {"name": "SPARK_LOCAL_HOSTNAME", **address},
        {"name": "SPARK_LOCAL_DIRS", "value": pod_parts.LOCAL_DIR},
        {"name": "SPARK_CONF_DIR", "value": attempts.CONF_PATH},
    ]


def _resources(app: App, role: Role) -> dict[str, Any]:
    requests, storage = app.driver, pod_parts.ephemeral_storage(app, role)
    memory = {"memory": f"{requests.memory_mib}Mi"}
    limit = {"cpu": requests.cpu_limit} if requests.cpu_limit else {}
    extended = {name: str(count) for name, count in requests.extended}
    return {
        "requests": {"cpu": requests.cpu, **memory, **storage["requests"]},
        "limits": {**limit, **memory, **extended, **pod_parts.extended_resources(role), **storage["limits"]},
    }
