"""The template of the executors' pods, which a driver adds Spark's fields to. Pure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse.resources import names
from boathouse.resources.sparkapp.names import TASK_TYPE_EXECUTOR
from boathouse.resources.sparkapp.roles import Role
from boathouse.services.frame import pod_template
from boathouse.services.sparkapp.submission import attempt_properties as attempts
from boathouse.services.sparkapp.submission import pod_parts

if TYPE_CHECKING:
    from boathouse.services.sparkapp.app import App
    from boathouse.services.sparkapp.submission.naming import AttemptNames


def build(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Return the template: Spark sets names, owner, image, arguments, ports, CPU and memory."""
    role = app.spec.executor or Role()
    manifest = pod_parts.pod(app, attempt, role, _container(app, role))
    manifest["spec"]["automountServiceAccountToken"] = False
    manifest["metadata"]["labels"] = _labels(app, role)
    # The account is a property: Spark would replace it in a template.
    return pod_template.apply(manifest, dataclasses.replace(app.template, service_account=""))


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
        "securityContext": pod_parts.container_security(),
        "volumeMounts": [*pod_parts.mounts(app), pod_parts.files_mount()],
    }
