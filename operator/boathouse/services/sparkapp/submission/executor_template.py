"""The template of the executors' pods, which a driver adds Spark's fields to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import SPARKAPP_KIND, TASK_TYPE_EXECUTOR
from boathouse.resources.sparkapp.roles import Role
from boathouse.services.frame import manifests
from boathouse.services.sparkapp.submission import attempt_properties as attempts
from boathouse.services.sparkapp.submission import pod_parts

if TYPE_CHECKING:
    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.submission.naming import AttemptNames


OF_TRIALS: Final = frozenset({names.LABEL_JOB_UID, names.LABEL_KIND})
"""Labels of `build_like_spark` that executors do not have."""


def build(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Return the template: Spark sets names, owner, image, arguments, ports, CPU and memory."""
    role = app.spec.executor or Role()
    # The account is a property: Spark would replace it in a template.
    return pod_parts.pod(app, attempt, role, "", {"labels": _labels(app, role)}, _container(app, role))


def build_like_spark(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Return an executor with the fields that Spark sets, as far as admission looks at them, owned by the application.

    It is only tried, in the name of the operator, which may create pods of its own resources only.
    """
    manifest, requests = build(app, attempt), app.executor
    own = labels(app, attempt) | {names.LABEL_JOB_UID: app.uid, names.LABEL_KIND: SPARKAPP_KIND}
    manifest["metadata"] |= pod_parts.metadata(app, f"{attempt.executor_prefix}-exec-0", own)
    container = manifest["spec"]["containers"][0]
    memory = {"memory": f"{requests.memory_mib}Mi"}
    limit = {"cpu": requests.cpu_limit} if requests.cpu_limit else {}
    extended = {name: str(count) for name, count in requests.extended}
    container |= {"image": app.image, "imagePullPolicy": app.spec.image_pull_policy, "args": ["executor"]}
    container["resources"]["requests"] |= {"cpu": requests.cpu, **memory}
    container["resources"]["limits"] |= {**limit, **memory, **extended}
    if app.spec.service_account_name:
        manifest["spec"]["serviceAccountName"] = app.spec.service_account_name
    return manifest


def _labels(app: App, role: Role) -> dict[str, str]:
    return {**pod_parts.labels(app, role), names.APP_COMPONENT: TASK_TYPE_EXECUTOR}


def labels(app: App, attempt: AttemptNames) -> dict[str, str]:
    """Return the labels that executors will have, but for those that Spark gives each of them."""
    spark = {"spark-role": TASK_TYPE_EXECUTOR, "spark-app-selector": attempt.application_id}
    return _labels(app, app.spec.executor or Role()) | spark


def _container(app: App, role: Role) -> dict[str, Any]:
    storage, extended = pod_parts.ephemeral_storage(app, role), pod_parts.extended_resources(role)
    return {
        "name": attempts.EXECUTOR_CONTAINER,
        "env": pod_parts.environment(app, role),
        "resources": {"requests": storage["requests"], "limits": {**storage["limits"], **extended}},
        "securityContext": manifests.container_security(read_only=False),
        "volumeMounts": [*pod_parts.mounts(app), pod_parts.files_mount()],
    }
