"""The driver's pod, and the template of the executors' pods, which a driver adds Spark's fields to. Pure."""

from collections.abc import Mapping
from typing import Final

from boathouse.resources import names, quantity
from boathouse.resources.pod_environment import literal
from boathouse.resources.sparkapp.names import (
    LABEL_ATTEMPT,
    LABEL_TASK_TYPE,
    SPARKAPP_KIND,
    TASK_TYPE_DRIVER,
    TASK_TYPE_EXECUTOR,
)
from boathouse.resources.sparkapp.program import Volume
from boathouse.resources.sparkapp.roles import Role
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.sparkapp import sizing, user_properties
from boathouse.services.sparkapp.model import SPARKAPPS, App, AttemptNames

USER: Final = 185
"""That of Spark's own images."""
CONF_PATH: Final = "/opt/spark/conf"
"""Where Spark's own submission mounts the properties, and images expect them."""
PROPERTIES_FILE: Final = "spark.properties"
TEMPLATE_FILE: Final = "executor.yaml"
FILES_PATH: Final = "/opt/boathouse"
DECOMMISSION_FILE: Final = "decom.sh"
EXECUTOR_CONTAINER: Final = "spark-kubernetes-executor"
USERS_FILE: Final = "passwd"
APP: Final = "spark"
_LOCAL_DIR: Final = "/var/data/spark-local"
_LOCAL_VOLUME: Final = "spark-local-dir-1"
_FILES_VOLUME: Final = "boathouse-files"
_STORAGE_VOLUME: Final = "boathouse-storage"
DRIVER_CONTAINER: Final = "spark-kubernetes-driver"
_CONF_VOLUME: Final = "spark-conf-volume-driver"
OF_TRIALS: Final = frozenset({names.LABEL_JOB_UID, names.LABEL_KIND})
"""Labels of `trial_executor` that executors do not have."""


def _pod(
    app: App,
    attempt: AttemptNames,
    role: Role,
    account: str,
    metadata: manifests.Manifest,
    container: manifests.Manifest,
    *,
    is_protected: bool = False,
) -> manifests.Manifest:
    """Return a pod of either role with this container and, in addition to those of the role, this metadata."""
    return manifests.pod(
        {**metadata, "annotations": {**(role.annotations or {}), **metadata.get("annotations", {})}},
        app.spec,
        user_id=USER,
        account=account,
        containers=[container],
        volumes=_volumes(app, attempt, role),
        tolerations=(*(app.spec.tolerations or ()), *(role.tolerations or ())),
        patience_s=app.defaults.not_ready_toleration_seconds,
        node_selector={**(app.spec.node_selector or {}), **(role.node_selector or {})},
        image_pull_secrets=app.defaults.image_pull_secrets,
        is_protected=is_protected,
    )


def _labels(app: App, role: Role, component: str) -> dict[str, str]:
    shared = (app.template.metadata.labels if app.template.metadata else None) or {}
    return {**shared, **(role.labels or {}), **manifests.labels(APP, app), names.APP_COMPONENT: component}


def metadata(app: App, name: str, labels: Mapping[str, str]) -> manifests.Manifest:
    """Return the metadata of an object that goes with the application."""
    return {
        "name": name,
        "namespace": app.namespace,
        "labels": dict(labels),
        "ownerReferences": [manifests.owner_reference(SPARKAPPS, app)],
    }


def users(app: App) -> str:
    """Return a passwd file that knows the user of the pods: Hadoop does not start without a name for it."""
    security = app.template.security_context
    uid = (security.run_as_user if security else None) or USER
    gid = (security.run_as_group if security else None) or USER
    return f"root:x:0:0:root:/root:/bin/sh\nspark:x:{uid}:{gid}:spark:/opt/spark/work-dir:/bin/sh\n"


def _environment(app: App, role: Role) -> list[manifests.Manifest]:
    variables = {variable.name: manifests.as_json(variable) for variable in (*(app.spec.env or ()), *(role.env or ()))}
    if app.hadoop_clusters:
        variables.setdefault(hadoop.USER_ENV, {"name": hadoop.USER_ENV, "value": hadoop.USER})
    if app.spec.storage and app.spec.storage.s3:
        variables |= {variable["name"]: variable for variable in app.spec.storage.s3.variables(variables)}
    return list(variables.values())


def _resources(app: App, role: Role, requests: sizing.Requests | None = None) -> manifests.Manifest:
    """Return what a container requests: by the fields of its role, and by Spark's properties, which win, as in Spark.

    Without `requests`, which follow from the properties, it is that of a template: a driver adds them.
    """
    storage = _ephemeral_storage(app, role)
    extended = {name: str(quantity.units(value)) for name, value in (role.extended_resources or {}).items()}
    return {
        "requests": {**storage["requests"], **(requests.requests if requests else {})},
        "limits": {**extended, **storage["limits"], **(requests.limits if requests else {})},
    }


def _ephemeral_storage(app: App, role: Role) -> dict[str, dict[str, str]]:
    """Return request and limit of local files, by `requests` and `limits`; empty for none."""
    default = app.defaults.ephemeral_storage
    request = quantity.units(role.ephemeral_storage) if role.ephemeral_storage is not None else default.request_bytes
    limit = max(default.limit_bytes, request) if default.limit_bytes else 0
    return {
        "requests": {"ephemeral-storage": quantity.format_bytes(request)} if request else {},
        "limits": {"ephemeral-storage": quantity.format_bytes(limit)} if limit else {},
    }


def _mounts(app: App) -> list[manifests.Manifest]:
    storage = app.spec.storage.volume if app.spec.storage else None
    return [
        {"name": _LOCAL_VOLUME, "mountPath": _LOCAL_DIR},
        {"name": _FILES_VOLUME, "mountPath": "/etc/passwd", "subPath": USERS_FILE, "readOnly": True},
        *([{"name": _STORAGE_VOLUME, "mountPath": storage.mount_path}] if storage else []),
        *(
            {"name": volume.name, "mountPath": volume.mount_path, **({"readOnly": True} if volume.read_only else {})}
            for volume in app.spec.volumes or ()
        ),
    ]


def _volumes(app: App, attempt: AttemptNames, role: Role) -> list[manifests.Manifest]:
    size = _ephemeral_storage(app, role)["limits"].get("ephemeral-storage")
    storage = app.spec.storage.volume if app.spec.storage else None
    items = [
        {"key": USERS_FILE, "path": USERS_FILE, "mode": 0o444},
        {"key": DECOMMISSION_FILE, "path": DECOMMISSION_FILE, "mode": 0o555},
    ]
    claim = {"persistentVolumeClaim": {"claimName": storage.claim_name}} if storage else {}
    return [
        {"name": _LOCAL_VOLUME, "emptyDir": {"sizeLimit": size} if size else {}},
        {"name": _FILES_VOLUME, "configMap": {"name": attempt.config_map, "items": items}},
        *([{"name": _STORAGE_VOLUME, **claim}] if storage else []),
        *({"name": volume.name, **_source(volume)} for volume in app.spec.volumes or ()),
    ]


def _source(volume: Volume) -> manifests.Manifest:
    if volume.claim_name:
        return {"persistentVolumeClaim": {"claimName": volume.claim_name}}
    if volume.config_map_name:
        return {"configMap": {"name": volume.config_map_name}}
    if volume.secret_name:
        return {"secret": {"secretName": volume.secret_name}}
    return {"emptyDir": {"sizeLimit": str(volume.empty_dir_size)}}


def driver(app: App, attempt: AttemptNames) -> manifests.Manifest:
    """Return the manifest, without a node."""
    role, monitoring = app.spec.driver or Role(), app.spec.monitoring
    labels = {
        **_labels(app, role, TASK_TYPE_DRIVER),
        names.LABEL_JOB_UID: app.uid,
        names.LABEL_KIND: SPARKAPP_KIND,
        LABEL_TASK_TYPE: TASK_TYPE_DRIVER,
        LABEL_ATTEMPT: str(attempt.attempt),
        names.LABEL_QUEUE: app.queue,
        "spark-app-name": app.name[: manifests.MAX_NAME].rstrip("-."),
        "spark-app-selector": attempt.application_id,
        "spark-role": TASK_TYPE_DRIVER,
    }
    scraping = {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": "/metrics/executors/prometheus",
        "prometheus.io/port": str(user_properties.ports(app.conf)[user_properties.UI]),
    }
    annotations = {
        **(scraping if monitoring and monitoring.prometheus else {}),
        **(_chosen(app.executor, app.ideal_executor) if app.ideal_executor is not None else {}),
    }
    described = metadata(app, attempt.driver_pod, labels) | {"annotations": annotations}
    manifest = _pod(
        app, attempt, role, app.account, described, _driver_container(app, attempt, role), is_protected=True
    )
    items = [{"key": name, "path": name} for name in (PROPERTIES_FILE, TEMPLATE_FILE)]
    conf = {"name": _CONF_VOLUME, "configMap": {"name": attempt.config_map, "items": items}}
    manifest["spec"]["volumes"].append(conf)
    manifest["spec"]["automountServiceAccountToken"] = True
    return manifest


def _driver_container(app: App, attempt: AttemptNames, role: Role) -> manifests.Manifest:
    ports = user_properties.ports(app.conf).items()
    return {
        "name": DRIVER_CONTAINER,
        "image": app.image,
        "imagePullPolicy": app.spec.image_pull_policy,
        "args": _arguments(app),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports if port],
        "env": _driver_environment(app, attempt, role),
        "resources": _resources(app, role, app.driver),
        "securityContext": manifests.container_security(read_only=False),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": _CONF_VOLUME, "mountPath": CONF_PATH}, *_mounts(app)],
    }


def _chosen(executor: sizing.Requests, ideal: sizing.Requests) -> dict[str, str]:
    """Return the annotations that say how much memory was chosen for executors, and why."""
    less, all_ = (quantity.format_bytes(requests.memory_bytes) for requests in (executor, ideal))
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
        f"{CONF_PATH}/{PROPERTIES_FILE}",
        *(("--conf", f"{sizing.HEAP}={app.conf[sizing.HEAP]}") if app.ideal_executor else ()),
        "--class",
        *map(literal, (app.spec.main_class or "org.apache.spark.deploy.PythonRunner", *written)),
    ]


def _driver_environment(app: App, attempt: AttemptNames, role: Role) -> list[manifests.Manifest]:
    """Return the variables. Executors act as the driver's SPARK_USER, whatever their own HADOOP_USER_NAME is.

    SPARK_LOCAL_HOSTNAME is the driver's address for executors: without it, Spark before 4.1, which does not know
    `useDriverPodIP`, names the pod, and no Service makes that a name.
    """
    address = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    given = _environment(app, role)
    of_hadoop = [variable for variable in given if variable["name"] == hadoop.USER_ENV]
    return [
        *of_hadoop,
        {"name": "SPARK_USER", "value": f"$({hadoop.USER_ENV})" if of_hadoop else "spark"},
        {"name": "SPARK_APPLICATION_ID", "value": attempt.application_id},
        *(variable for variable in given if variable not in of_hadoop),
        {"name": "SPARK_DRIVER_BIND_ADDRESS", **address},
        {"name": "SPARK_LOCAL_HOSTNAME", **address},
        {"name": "SPARK_LOCAL_DIRS", "value": _LOCAL_DIR},
        {"name": "SPARK_CONF_DIR", "value": CONF_PATH},
    ]


def executor_template(app: App, attempt: AttemptNames) -> manifests.Manifest:
    """Return the template: Spark sets names, owner, image, arguments, ports, CPU and memory."""
    role = app.spec.executor or Role()
    script = {"name": _FILES_VOLUME, "mountPath": FILES_PATH, "readOnly": True}  # it ends an executor
    container = {
        "name": EXECUTOR_CONTAINER,
        "env": _environment(app, role),
        "resources": _resources(app, role),
        "securityContext": manifests.container_security(read_only=False),
        "volumeMounts": [*_mounts(app), script],
    }
    # The account is a property: Spark would replace it in a template.
    return _pod(app, attempt, role, "", {"labels": _labels(app, role, TASK_TYPE_EXECUTOR)}, container)


def trial_executor(app: App, attempt: AttemptNames) -> manifests.Manifest:
    """Return an executor with the fields that Spark sets, as far as admission looks at them, owned by the application.

    It is only tried, in the name of the operator, which may create pods of its own resources only.
    """
    manifest, role = executor_template(app, attempt), app.spec.executor or Role()
    labels = {
        **_labels(app, role, TASK_TYPE_EXECUTOR),
        "spark-role": TASK_TYPE_EXECUTOR,
        "spark-app-selector": attempt.application_id,
        names.LABEL_JOB_UID: app.uid,
        names.LABEL_KIND: SPARKAPP_KIND,
    }
    manifest["metadata"] |= metadata(app, f"{attempt.executor_prefix}-exec-0", labels)
    manifest["spec"]["containers"][0] |= {
        "image": app.image,
        "imagePullPolicy": app.spec.image_pull_policy,
        "args": ["executor"],
        "resources": _resources(app, role, app.executor),
    }
    if app.spec.service_account_name:
        manifest["spec"]["serviceAccountName"] = app.spec.service_account_name
    return manifest
