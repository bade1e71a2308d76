"""What to do about fields that have no counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_cli.conversion.draft import Draft
    from boathouse_cli.conversion.fields import Fields

SCHEDULE: Final = "there are no schedules: create the SparkApp from a CronJob that runs `kubectl create`, or a workflow"
_INGRESS: Final = "there is no Ingress: use `boathouse ui`, or write an Ingress for the Service of status.driver"
_POD: Final = "has no counterpart in the pods of a SparkApp: remove it"
_SUBMISSION: Final = "submissions are not retried one by one, because Boathouse creates the pod itself: remove it"
_ADVICE: Final[Mapping[str, str]] = {
    "sidecars": "sidecars have no counterpart: run them as a DaemonSet or Deployment of their own",
    "initContainers": "init containers have no counterpart: prepare files in the image, on a volume, or in deps",
    "hostNetwork": "pods do not share the network of their node: remove it",
    "lifecycle": "hooks have no counterpart: Boathouse sets Spark's own, for decommissioning",
    "ports": "ports have no counterpart: write a Service that selects the driver's labels",
    "schedulerName": "Boathouse schedules its own pods: remove it",
    "driverIngressOptions": _INGRESS,
    "sparkUIOptions": _INGRESS,
    "proxyUser": "a driver cannot act for another user: remove it",
    "kerberos": "Kerberos is not supported: remove it",
    "onSubmissionFailureRetries": _SUBMISSION,
    "onSubmissionFailureRetryInterval": _SUBMISSION,
    "failureRetries": "set restartPolicy.onFailureRetries",
    "retryInterval": "set restartPolicy.onFailureRetryInterval",
    "metricsProperties": "set spark.metrics.conf.* in sparkConf",
    "metricsPropertiesFile": "set spark.metrics.conf in sparkConf, to a file of the image",
    "resources": "requests are of the driver and its minimum of executors: remove it",
    "kubernetesMaster": "the driver uses the API server of its cluster: remove it",
    "serviceAnnotations": "the driver has no Service of its own: remove it",
    "serviceLabels": "the driver has no Service of its own: remove it",
}


def note_left(draft: Draft, fields: Fields) -> None:
    """Note what was not taken of a part of a manifest."""
    for key, path in fields.left():
        draft.note(path, _ADVICE.get(key, _POD))
