"""Read the cluster with the official client and kubectl's settings: kubeconfig, contexts, exec plugins.

Returns decoded JSON.
"""

from __future__ import annotations

import contextlib
import functools
import http
import json
from typing import TYPE_CHECKING, Any, Final

import urllib3
from kubernetes import client, config, watch

from boathouse.resources import names
from boathouse_cli.errors import (
    AlreadyExistsError,
    CommandError,
    ExitCode,
    ExpiredError,
    ForbiddenError,
    UnknownKindError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boathouse_cli import model

REQUEST_TIMEOUT_S = 30
CHUNK_BYTES = 65_536
PAGE = 500
"""Objects of a page of a list."""
WATCH_S: Final = 240
"""How long a watch is open; it goes on where it was."""
CONFLICT = 409
CONFIG_MAP = "boathouse-config"
CONFIG_KEY = "config.json"


class Gateway:
    """Client of one kubeconfig context."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        # The client's annotations say models, but every request here returns raw JSON.
        self._core: Any = client.CoreV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)
        self._rights: Any = client.RbacAuthorizationV1Api(api)
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

    def job(self, plural: str, name: str) -> model.Raw:
        """Return the job of this name."""
        with _explained(f"{plural}/{name}", self.namespace):
            found: model.Raw = self._custom.get_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, plural, name, _request_timeout=REQUEST_TIMEOUT_S
            )
            return found

    def jobs(self, plural: str, *, all_namespaces: bool) -> list[model.Raw]:
        """Return the jobs of a kind, of the namespace or of all namespaces."""
        with _explained(plural, None if all_namespaces else self.namespace):
            where = (names.GROUP, names.VERSION)
            if all_namespaces:
                found = self._custom.list_cluster_custom_object(*where, plural, _request_timeout=REQUEST_TIMEOUT_S)
            else:
                found = self._custom.list_namespaced_custom_object(
                    *where, self.namespace, plural, _request_timeout=REQUEST_TIMEOUT_S
                )
            return list(found["items"])

    def create_job(self, plural: str, manifest: model.Raw) -> model.Raw:
        """Create a job in the namespace; return it as the API server has it."""
        name = manifest["metadata"].get("name") or f"{manifest['metadata'].get('generateName')}…"
        with _explained(f"{plural}/{name}", self.namespace, verb="create"):
            made: model.Raw = self._custom.create_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, plural, manifest, _request_timeout=REQUEST_TIMEOUT_S
            )
            return made

    def patch_job(self, plural: str, name: str, patch: model.Raw) -> None:
        """Apply a JSON merge patch to a job."""
        with _explained(f"{plural}/{name}", self.namespace, verb="change"):
            self._custom.patch_namespaced_custom_object(
                *(names.GROUP, names.VERSION, self.namespace, plural, name, patch),
                _content_type="application/merge-patch+json",
                _request_timeout=REQUEST_TIMEOUT_S,
            )

    def delete_job(self, plural: str, name: str) -> None:
        """Delete a job; its pods go with it."""
        with _explained(f"{plural}/{name}", self.namespace, verb="delete"):
            self._custom.delete_namespaced_custom_object(
                *(names.GROUP, names.VERSION, self.namespace, plural, name), _request_timeout=REQUEST_TIMEOUT_S
            )

    def config_map(self, name: str) -> model.Raw:
        """Return the ConfigMap of this name."""
        with _explained(f"configmap/{name}", self.namespace):
            return _json(
                self._core.read_namespaced_config_map(
                    name, self.namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
                )
            )

    def create_config_map(self, manifest: model.Raw) -> None:
        """Create a ConfigMap."""
        with _explained(f"configmap/{manifest['metadata']['name']}", self.namespace, verb="create"):
            self._core.create_namespaced_config_map(
                self.namespace, manifest, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
            )

    def patch_config_map(self, name: str, patch: model.Raw) -> None:
        """Apply a JSON merge patch to a ConfigMap."""
        with _explained(f"configmap/{name}", self.namespace, verb="change"):
            self._core.patch_namespaced_config_map(
                *(name, self.namespace, patch),
                _content_type="application/merge-patch+json",
                _preload_content=False,
                _request_timeout=REQUEST_TIMEOUT_S,
            )

    def create_account(self, manifest: model.Raw) -> model.Raw:
        """Create a service account."""
        with _explained(f"serviceaccount/{manifest['metadata']['name']}", self.namespace, verb="create"):
            return _json(
                self._core.create_namespaced_service_account(
                    self.namespace, manifest, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
                )
            )

    def create_role_binding(self, manifest: model.Raw) -> model.Raw:
        """Create a role binding."""
        with _explained(f"rolebinding/{manifest['metadata']['name']}", self.namespace, verb="create"):
            return _json(
                self._rights.create_namespaced_role_binding(
                    self.namespace, manifest, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
                )
            )

    def role_binding(self, name: str) -> model.Raw:
        """A role binding of the namespace."""
        with _explained(f"rolebinding/{name}", self.namespace):
            return _json(
                self._rights.read_namespaced_role_binding(
                    name, self.namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
                )
            )

    def has_cluster_role(self, name: str) -> bool | None:
        """Whether there is a ClusterRole of this name; None if the user may not know."""
        try:
            with _explained(f"clusterrole/{name}", None):
                self._rights.read_cluster_role(name, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S)
        except CommandError as error:
            return False if error.code is ExitCode.NOT_FOUND else None
        return True

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

    def pages(self, plural: str, *, all_namespaces: bool) -> Iterator[tuple[list[model.Raw], str]]:
        """Yield the objects of a kind in pages, each with the revision from which they can be watched.

        Args:
            plural: pods, nodes, or a kind of Boathouse.
            all_namespaces: Whether those of all namespaces, or of this one. Nodes are in none.
        """
        read, where = self._lister(plural, all_namespaces=all_namespaces)
        token = ""
        while True:
            with _explained(plural, where):
                more = {"_continue": token} if token else {}
                answer = read(limit=PAGE, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S, **more)
                page = _json(answer)
            yield list(page.get("items") or ()), page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    def changes(self, plural: str, revision: str, *, all_namespaces: bool) -> Iterator[tuple[str, model.Raw]]:
        """Yield changes of the objects of a kind after a revision, for some minutes: their type and the object.

        Bookmarks are yielded too.

        Raises:
            ExpiredError: The revision is too old.
        """
        read, where = self._lister(plural, all_namespaces=all_namespaces)
        with _explained(plural, where):
            stream = watch.Watch("object").stream(  # type: ignore[no-untyped-call]
                read,
                resource_version=revision,
                allow_watch_bookmarks=True,
                timeout_seconds=WATCH_S,
                _request_timeout=(REQUEST_TIMEOUT_S, WATCH_S + REQUEST_TIMEOUT_S),
            )
            for event in filter(None, stream):  # None: a line that is no JSON
                yield event["type"], event["raw_object"]

    def _lister(self, plural: str, *, all_namespaces: bool) -> tuple[Callable[..., Any], str | None]:
        """Return the client's function that lists a kind, and the namespace for messages."""
        core, where = self._core, None if all_namespaces or plural == "nodes" else self.namespace
        if plural == "nodes":
            return core.list_node, None
        if plural == "pods":
            partial = functools.partial(core.list_namespaced_pod, self.namespace)
            return (core.list_pod_for_all_namespaces if all_namespaces else partial), where
        kind = names.GROUP, names.VERSION
        if all_namespaces:
            return functools.partial(self._custom.list_cluster_custom_object, *kind, plural), where
        return functools.partial(self._custom.list_namespaced_custom_object, *kind, self.namespace, plural), where

    def operator_config(self, namespace: str) -> model.Raw:
        """Return the operator's configuration file, from its ConfigMap."""
        with _explained(f"configmap/{CONFIG_MAP}", namespace):
            found = self._core.read_namespaced_config_map(
                CONFIG_MAP, namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT_S
            )
            decoded: model.Raw = json.loads(_json(found)["data"][CONFIG_KEY])
            return decoded

    def proxied(self, pod: str, port: int, path: str) -> Iterator[bytes]:
        """Yield the answer of a pod's web server in parts, through the API server and with the user's own rights.

        Redirects are not followed: the pod's image would choose what this user reads next.
        """
        settings = self._core.api_client.configuration
        headers = {each["key"]: each["value"] for each in settings.auth_settings().values() if each["value"]}
        url = f"{settings.host}/api/v1/namespaces/{self.namespace}/pods/http:{pod}:{port}/proxy/{path}"
        with _explained(f"port {port} of pod/{pod}", self.namespace):
            answer = self._core.api_client.rest_client.pool_manager.request(
                "GET", url, headers=headers, redirect=False, preload_content=False, timeout=REQUEST_TIMEOUT_S
            )
            with contextlib.closing(answer):
                if answer.status != http.HTTPStatus.OK:
                    raise _refused_by_proxy(answer.status, f"port {port} of pod/{pod}", self.namespace)
                yield from answer.stream(CHUNK_BYTES, decode_content=True)

    def log(self, pod: str, container: str, *, tail: int | None, follow: bool) -> Iterator[str]:
        """Yield the lines of a container's log; with `follow`, until it ends."""
        options: dict[str, Any] = {"tail_lines": tail} if tail is not None else {}
        with _explained(f"pod/{pod}", self.namespace):
            stream = self._core.read_namespaced_pod_log(
                pod, self.namespace, container=container, follow=follow, _preload_content=False, **options
            )
            yield from lines(stream.stream(amt=None if not follow else 1024, decode_content=True))


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a text that comes in parts."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")


def _json(response: Any) -> model.Raw:
    decoded: model.Raw = json.loads(response.data)
    return decoded


def _items(response: Any) -> list[model.Raw]:
    return list(_json(response)["items"])


@contextlib.contextmanager
def _explained(what: str, namespace: str | None, *, verb: str = "read") -> Iterator[None]:
    """Raise the client's errors as a `CommandError` that says what to do."""
    where = "" if namespace is None else f" in namespace {namespace}"
    try:
        yield
    except client.ApiException as error:
        if error.status == http.HTTPStatus.GONE:
            raise ExpiredError(f"the cluster no longer knows this revision of {what}{where}: list it anew") from error
        raise _from_status(error, what, where, verb) from error
    except urllib3.exceptions.HTTPError as error:
        cause = str(getattr(error, "reason", error)).rpartition(": ")[2]
        raise CommandError(f"the cluster does not answer ({cause}): check `kubectl cluster-info`") from error


def _refused_by_proxy(status: int, what: str, namespace: str) -> CommandError:
    if status == http.HTTPStatus.FORBIDDEN:
        return CommandError(
            f"you lack permission to read {what} in namespace {namespace} (pods/proxy): request the role edit there"
        )
    missing = {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.INTERNAL_SERVER_ERROR}  # Hadoop's answers for no such logs
    code = ExitCode.NOT_FOUND if status in missing else ExitCode.CLUSTER
    return CommandError(f"{what} in namespace {namespace} answered {status}: retry later", code)


def _status(error: client.ApiException) -> model.Raw:
    """Return the answer as a Kubernetes Status, which is about an object; empty for other answers."""
    try:
        found: model.Raw = json.loads(error.body or "")
        return found if found["kind"] == "Status" else {}
    except (ValueError, TypeError, KeyError):
        return {}


def _from_status(error: client.ApiException, what: str, where: str, verb: str) -> CommandError:
    status = _status(error)
    if (
        verb != "read"
        and error.status != http.HTTPStatus.NOT_FOUND
        and (refusal := _refusal(error, status.get("message", ""), f"{what}{where}", verb))
    ):
        return refusal
    match error.status:
        case 404 if not status:  # the server has no such path: the kind is unknown
            plural = what.split("/", maxsplit=1)[0]
            return UnknownKindError(
                f"the cluster does not know {plural}: install or upgrade Boathouse there, with helm"
            )
        case 404:
            return CommandError(f"{what} does not exist{where}: check the name, or pass -n", ExitCode.NOT_FOUND)
        case 401:
            return CommandError("the cluster rejects your credentials: check the kubeconfig's user")
        case 403:
            return ForbiddenError(f"you lack permission to {verb} {what}{where}: request the role {_ROLES[verb]} there")
        case _:
            return CommandError(f"the cluster answered {error.status} {error.reason} for {what}{where}: retry later")


_ROLES: Final = {"read": "view", "create": "edit", "change": "edit", "delete": "edit"}
"""The built-in role that has a right."""


def _refusal(error: client.ApiException, message: str, what: str, verb: str) -> CommandError | None:
    """Return the error of a write that the API server rejects."""
    if error.status == CONFLICT:
        return AlreadyExistsError(f"{what} exists already: delete it, or choose another name", ExitCode.USAGE)
    return CommandError(f"the cluster does not {verb} {what}: {message}") if message else None
