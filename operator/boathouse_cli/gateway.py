"""Read the cluster with the official client and kubectl's settings: kubeconfig, contexts, exec plugins.

Returns decoded JSON.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import urllib3
from kubernetes import client, config

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_cli import model

REQUEST_TIMEOUT_S = 30
CONFIG_MAP = "boathouse-config"
CONFIG_KEY = "config.json"


class Gateway:
    """Client of one kubeconfig context."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        # The client's annotations say models, but every request here returns raw JSON.
        self._core: Any = client.CoreV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)
        self.namespace = namespace
        """Namespace of names that are given without one."""

    @classmethod
    def connect(cls, *, kubeconfig: str | None, context: str | None, namespace: str | None) -> Gateway:
        """Read the kubeconfig, without a request to the cluster.

        Raises:
            CommandError: No kubeconfig exists, or it lacks the context.
        """
        try:
            api = config.new_client_from_config(config_file=kubeconfig, context=context)  # type: ignore[no-untyped-call]
            contexts, active = config.list_kube_config_contexts(config_file=kubeconfig)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            raise CommandError(
                f"the kubeconfig is unusable: {error}: set KUBECONFIG or pass --kubeconfig and --context"
            ) from error
        chosen = next((each for each in contexts if each["name"] == context), active)
        return cls(api, namespace or chosen["context"].get("namespace") or "default")

    def job(self, name: str) -> model.Raw:
        """Return the MRJob of this name."""
        with _explained(f"mrjob/{name}", self.namespace):
            found: model.Raw = self._custom.get_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, mrjob_names.PLURAL, name, _request_timeout=REQUEST_TIMEOUT_S
            )
            return found

    def jobs(self, *, all_namespaces: bool) -> list[model.Raw]:
        """Return the MRJobs of the namespace, or of all namespaces."""
        with _explained("mrjobs", None if all_namespaces else self.namespace):
            where = (names.GROUP, names.VERSION)
            if all_namespaces:
                found = self._custom.list_cluster_custom_object(
                    *where, mrjob_names.PLURAL, _request_timeout=REQUEST_TIMEOUT_S
                )
            else:
                found = self._custom.list_namespaced_custom_object(
                    *where, self.namespace, mrjob_names.PLURAL, _request_timeout=REQUEST_TIMEOUT_S
                )
            return list(found["items"])

    def pod(self, name: str) -> model.Raw:
        """Return the pod of this name."""
        with _explained(f"pod/{name}", self.namespace):
            return _json(
                self._core.read_namespaced_pod(
                    name, self.namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
                )
            )

    def pods(self, selector: str, *, all_namespaces: bool = False) -> list[model.Raw]:
        """Return the pods that match a label selector, of the namespace or of all namespaces."""
        options: dict[str, Any] = {
            "label_selector": selector,
            "_preload_content": False,
            "_request_timeout": REQUEST_TIMEOUT_S,
        }
        with _explained("pods", None if all_namespaces else self.namespace):
            if all_namespaces:
                return _items(self._core.list_pod_for_all_namespaces(**options))
            return _items(self._core.list_namespaced_pod(self.namespace, **options))

    def events(self, **fields: str) -> list[model.Raw]:
        """Return the namespace's events with these fields, such as `involvedObject__name="p"`."""
        selector = ",".join(f"{name.replace('__', '.')}={value}" for name, value in fields.items())
        with _explained("events", self.namespace):
            return _items(
                self._core.list_namespaced_event(
                    self.namespace,
                    field_selector=selector,
                    _preload_content=False,
                    _request_timeout=REQUEST_TIMEOUT_S,
                )
            )

    def nodes(self) -> list[model.Raw]:
        """Return the cluster's nodes."""
        with _explained("nodes", None):
            return _items(self._core.list_node(_preload_content=False, _request_timeout=REQUEST_TIMEOUT_S))

    def operator_config(self, namespace: str) -> model.Raw:
        """Return the operator's configuration file, from its ConfigMap."""
        with _explained(f"configmap/{CONFIG_MAP}", namespace):
            found = self._core.read_namespaced_config_map(
                CONFIG_MAP, namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
            )
            decoded: model.Raw = json.loads(_json(found)["data"][CONFIG_KEY])
            return decoded

    def log(self, pod: str, *, tail: int | None, follow: bool) -> Iterator[str]:
        """Yield the lines of a task pod's log; with `follow`, until its container ends."""
        options: dict[str, Any] = {"tail_lines": tail} if tail is not None else {}
        with _explained(f"pod/{pod}", self.namespace):
            stream = self._core.read_namespaced_pod_log(
                pod, self.namespace, container=names.CONTAINER, follow=follow, _preload_content=False, **options
            )
            rest = b""
            for chunk in stream.stream(amt=None if not follow else 1024, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            if rest:
                yield rest.decode(errors="replace")


def _json(response: Any) -> model.Raw:
    decoded: model.Raw = json.loads(response.data)
    return decoded


def _items(response: Any) -> list[model.Raw]:
    return list(_json(response)["items"])


@contextlib.contextmanager
def _explained(what: str, namespace: str | None) -> Iterator[None]:
    """Raise the client's errors as a `CommandError` that says what to do."""
    where = "" if namespace is None else f" in namespace {namespace}"
    try:
        yield
    except client.ApiException as error:
        raise _from_status(error, what, where) from error
    except urllib3.exceptions.HTTPError as error:
        cause = str(getattr(error, "reason", error)).rpartition(": ")[2]
        raise CommandError(f"the cluster does not answer ({cause}): check `kubectl cluster-info`") from error


def _is_status(error: client.ApiException) -> bool:
    """Return whether the response body is a Kubernetes Status."""
    try:
        return bool(json.loads(error.body or "")["kind"] == "Status")
    except (ValueError, TypeError, KeyError):
        return False


def _from_status(error: client.ApiException, what: str, where: str) -> CommandError:
    match error.status:
        case 404 if not _is_status(error):  # The server does not serve this path: the CRD is missing.
            return CommandError("the cluster has no MRJob CRD: install Boathouse with helm install")
        case 404:
            return CommandError(f"{what} does not exist{where}: check the name, or pass -n", ExitCode.NOT_FOUND)
        case 401:
            return CommandError("the cluster rejects your credentials: check the kubeconfig's user")
        case 403:
            return CommandError(f"you lack permission to read {what}{where}: request the role view there")
        case _:
            return CommandError(f"the cluster answered {error.status} {error.reason} for {what}{where}: retry later")
