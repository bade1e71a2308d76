"""The fields of a manifest that are not converted yet, and the versions of Spark that it may name."""

from collections.abc import Mapping
from typing import Any, Final

from boathouse_cli.conversion.draft import Draft

_TRUE_BY_DEFAULT: Final = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds")
"""Fields of pods in which false or 0 says something."""
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


class Fields:
    """A mapping at a path of a manifest whose keys are taken one by one; anything else has no fields."""

    def __init__(self, given: object, path: str) -> None:
        self._left = dict(_mapping(given))
        self._path = path

    def path(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self._path}.{key}" if self._path else key

    def names(self) -> list[str]:
        """Return the names of the fields that are not taken."""
        return list(self._left)

    def take(self, key: str) -> Any:
        """Return a field, which is then converted; None if it is absent."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str | None:
        """Return a field as text: YAML may have made a number or a boolean of it."""
        value = self.take(key)
        return None if value is None else _text(value)

    def texts(self, key: str) -> dict[str, str]:
        """Return a field that is a mapping of texts."""
        return {name: _text(value) for name, value in self._mapping(key).items() if value is not None}

    def items(self, key: str) -> list[Any]:
        """Return a field that is a list; another value is not taken."""
        return self.take(key) if isinstance(self._left.get(key), list) else []

    def mappings(self, key: str) -> list[Mapping[str, Any]]:
        """Return a field that is a list of mappings; other items are not taken."""
        items = self.items(key)
        if others := [item for item in items if not isinstance(item, dict) and item is not None]:
            self._left[key] = others
        return [_mapping(item) for item in items if isinstance(item, dict)]

    def inner(self, key: str) -> "Fields":
        """Return a field that is a mapping, to be taken in turn; another value is not taken."""
        return Fields(self._mapping(key), self.path(key))

    def note_left(self, draft: Draft, special: Mapping[str, str] | None = None, *, advice: str = _POD) -> None:
        """Note what was not taken and says something, with what to do about it; first what has special advice."""
        special = special or {}
        for key in sorted(self._left, key=lambda key: key not in special):
            value = self._left[key]
            if value or (value is not None and key in _TRUE_BY_DEFAULT):
                draft.note(self.path(key), special.get(key) or _ADVICE.get(key, advice))

    def _mapping(self, key: str) -> dict[str, Any]:
        return _mapping(self.take(key)) if isinstance(self._left.get(key), dict) else {}


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): field for key, field in value.items()} if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


VERSIONS: Final = ("3.5", "4.0", "4.1", "4.2", "4.3")
NEWEST: Final = VERSIONS[-1]
"""That of the chart's image."""
SINCE: Final[Mapping[str, str]] = {"driver.minMemoryOverhead": "4.0", "executor.minMemoryOverhead": "4.0"}
"""Fields of a SparkApp that some versions do not know; a test compares with the versions' own definitions."""


def put_version(draft: Draft, path: str, version: str) -> None:
    """Leave out what the version does not know, and note that, and which image the application needs."""
    minor = ".".join(version.split(".")[:2])
    if minor not in VERSIONS:
        known = f"{', '.join(VERSIONS[:-1])} and {NEWEST}"
        draft.note(path, f"{version}: Spark {known} are supported: use an image of one of them")
        return
    if minor != NEWEST and draft.get("image") is None:
        draft.note(path, f"{version}: the chart's image has Spark {NEWEST}: set image to one of Spark {minor}")
    for field, since in SINCE.items():
        if VERSIONS.index(minor) < VERSIONS.index(since) and draft.get(field) is not None:
            role, _, name = field.partition(".")
            del draft.spec[role][name]
            draft.note(path, f"Spark {minor} ignores {field}, which is new in {since}: it is left out")
