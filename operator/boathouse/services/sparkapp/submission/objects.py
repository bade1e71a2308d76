"""All objects of an attempt, in the order in which they are created. Pure."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ANNOTATION_HADOOP_CLUSTERS, LABEL_TASK_TYPE, TASK_TYPE_DRIVER
from boathouse.services.frame import manifests
from boathouse.services.sparkapp.submission import attempt_properties as attempts
from boathouse.services.sparkapp.submission import driver_pod, executor_template, pod_parts, ports, user_properties
from boathouse.services.sparkapp.submission.naming import AttemptNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse.services.hadoop.directory import ClusterFacts
    from boathouse.services.sparkapp.app import App

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

    Args:
        app: The application.
        attempt: The number of the attempt.
        clusters: Hadoop clusters whose HDFS the attempt sees. Its ConfigMap says which they are: a cluster that is
            created again under the name of one of them has other addresses.

    Raises:
        ValueError: A property has a line end or a NUL.
    """
    attempt_names = AttemptNames(application=app.name, uid=app.uid, attempt=attempt)
    return Submission(
        names=attempt_names,
        config_map=_config_map(app, attempt_names, clusters),
        service=_service(app, attempt_names) if app.has_service else None,
        driver=driver_pod.build(app, attempt_names),
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
            attempts.PROPERTIES_FILE: user_properties.render(attempts.of(app, attempt, clusters)),
            attempts.TEMPLATE_FILE: json.dumps(executor_template.build(app, attempt), indent=1),
            attempts.DECOMMISSION_FILE: DECOMMISSION,
            pod_parts.USERS_FILE: pod_parts.users(app),
        },
    }


def _service(app: App, attempt: AttemptNames) -> dict[str, Any]:
    """Not labelled with Spark's labels: a driver deletes the Services that have them when it stops."""
    port = {"name": "spark-ui", "port": ports.UI, "targetPort": ports.of(app.conf).ui, "protocol": "TCP"}
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
    return pod_parts.metadata(app, name, {**manifests.labels(pod_parts.APP, app), names.LABEL_JOB_UID: app.uid})
