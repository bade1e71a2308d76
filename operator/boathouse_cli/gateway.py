"""Read and change objects of the cluster, as decoded JSON, with kubectl's settings: kubeconfig, contexts, plugins."""

import contextlib
import http
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from boathouse.cluster import blocking, catalogue, config, errors
from boathouse.resources import names
from boathouse_cli import model
from boathouse_cli.errors import (
    AlreadyExistsError,
    CommandError,
    ExitCode,
    ExpiredError,
    ForbiddenError,
    StartingError,
    UnknownKindError,
)

PAGE = 500
"""Objects of a page of a list."""
WATCH_S: Final = 240
"""How long a watch is open; it goes on where it was."""
CONFIG: Final = ("boathouse-config", "config.json")
"""The ConfigMap of the operator's configuration, and its key there."""
_OURS: Final = f"/apis/{names.GROUP}/{names.VERSION}"
_APIS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("configmaps", "events", "nodes", "pods", "serviceaccounts"), "/api/v1"),
    **dict.fromkeys(("clusterroles", "rolebindings"), "/apis/rbac.authorization.k8s.io/v1"),
}
"""Where kinds are that are not Boathouse's."""
_OF_CLUSTER: Final = frozenset({"nodes", "clusterroles"})
"""Kinds whose objects are in no namespace."""


class Gateway:
    """Client of one kubeconfig context."""

    def __init__(self, session: blocking.Session, namespace: str) -> None:
        self._session, self.namespace = session, namespace
        """Namespace of names that are given without one."""

    @classmethod
    def connect(cls, *, kubeconfig: str | None, context: str | None, namespace: str | None) -> "Gateway":
        """Read the kubeconfig, without a request to the cluster."""
        try:
            found = config.of_user(Path(kubeconfig) if kubeconfig else None, context)
        except errors.ConfigError as error:
            raise CommandError(
                f"the kubeconfig is unusable: {error}: set KUBECONFIG or pass --kubeconfig and --context"
            ) from error
        return cls(blocking.Session(found), namespace or found.namespace)

    def get(self, plural: str, name: str, *, namespace: str | None = None) -> model.Raw:
        """Return the object of this name, of the gateway's namespace or of another."""
        return self._requested("read", "GET", plural, name, namespace=namespace)

    def data(self, namespace: str, config_map: str, key: str) -> model.Raw:
        """Return the JSON of a key of a ConfigMap."""
        with _explained(f"configmap/{config_map}", namespace):
            return _decoded(self.get("configmaps", config_map, namespace=namespace)["data"][key])

    def objects(self, plural: str, *, all_namespaces: bool = False, **query: str) -> list[model.Raw]:
        """Return the objects of a kind, of the namespace or of all namespaces."""
        with self._listed(plural, all_namespaces=all_namespaces) as path:
            return list(_decoded(self._session.request("GET", path, query=query))["items"])

    def pods(self, selector: str, *, all_namespaces: bool = False) -> list[model.Raw]:
        """Return the pods that match a label selector, of the namespace or of all namespaces."""
        return self.objects("pods", all_namespaces=all_namespaces, labelSelector=selector)

    def events(self, **fields: str) -> list[model.Raw]:
        """Return the namespace's events with these fields, such as `involvedObject__name="p"`."""
        selector = ",".join(f"{name.replace('__', '.')}={value}" for name, value in fields.items())
        return self.objects("events", fieldSelector=selector)

    def create(self, plural: str, manifest: model.Raw) -> model.Raw:
        """Create an object in the namespace; return it as the API server has it."""
        name = manifest["metadata"].get("name") or f"{manifest['metadata'].get('generateName')}…"
        return self._requested("create", "POST", plural, name, body=msgspec.json.encode(manifest))

    def patch(self, plural: str, name: str, patch: model.Raw) -> None:
        """Apply a JSON merge patch to an object."""
        body, content_type = msgspec.json.encode(patch), "application/merge-patch+json"
        self._requested("change", "PATCH", plural, name, body=body, content_type=content_type)

    def delete(self, plural: str, name: str) -> None:
        """Delete an object; the pods of a job go with it."""
        self._requested("delete", "DELETE", plural, name)

    def _requested(
        self, verb: str, method: str, plural: str, name: str, *, namespace: str | None = None, **more: Any
    ) -> model.Raw:
        where = None if plural in _OF_CLUSTER else namespace or self.namespace
        what = plural.removesuffix("s") if plural in _APIS else plural
        with _explained(f"{what}/{name}", where, verb=verb):
            path = _path(plural, where, "" if method == "POST" else name)
            return _decoded(self._session.request(method, path, **more))

    def pages(self, plural: str, *, all_namespaces: bool) -> Iterator[tuple[list[model.Raw], str]]:
        """Yield pods, nodes or jobs of a kind in pages, each with the revision from which they can be watched."""
        query = {"limit": str(PAGE)}
        while True:
            with self._listed(plural, all_namespaces=all_namespaces) as path:
                page = _decoded(self._session.request("GET", path, query=query))
            yield list(page.get("items") or ()), page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                return
            query["continue"] = token

    def changes(self, plural: str, revision: str, *, all_namespaces: bool) -> Iterator[tuple[str, model.Raw]]:
        """Yield changes and bookmarks of the objects of a kind for some minutes: their type and the object.

        Raises ExpiredError if the revision, after which they begin, is too old.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_S)}
        query["resourceVersion"] = revision
        with self._listed(plural, all_namespaces=all_namespaces) as path:
            answer = self._session.stream(path, query=query, idle_s=WATCH_S + blocking.REQUEST_TIMEOUT_S)
            for line in split_lines(answer):
                event = _decoded(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise errors.from_status(status["code"], status.get("reason", ""), status.get("message", ""))
                yield event["type"], event["object"]

    def proxied(self, pod: str, port: int, path: str) -> Iterator[bytes]:
        """Yield the answer of a pod's web server in parts, through the API server and with the user's own rights.

        Redirects are not followed: the pod's image would choose what this user reads next.
        """
        what = f"port {port} of pod/{pod}"
        with _explained(what, self.namespace):
            try:
                pod_path = _path("pods", self.namespace, f"http:{pod}:{port}")
                yield from self._session.stream(f"{pod_path}/proxy/{path}", idle_s=blocking.REQUEST_TIMEOUT_S)
            except errors.ApiError as error:
                raise _refused_by_proxy(error.status, what, self.namespace) from error

    def log(
        self, pod: str, container: str, *, tail: int | None, follow: bool = False, prefix: str = ""
    ) -> Iterator[str]:
        """Yield the lines of a container's log after a prefix; with `follow`, until it ends."""
        query = {"container": container} | ({"tailLines": str(tail)} if tail is not None else {})
        if follow:
            query["follow"] = "true"
        with _explained(f"pod/{pod}", self.namespace):
            for line in split_lines(self._session.stream(f"{_path('pods', self.namespace, pod)}/log", query=query)):
                yield f"{prefix}{line.decode(errors='replace')}"

    @contextlib.contextmanager
    def _listed(self, plural: str, *, all_namespaces: bool) -> Iterator[str]:
        """Yield the path of the objects of a kind, and explain errors."""
        where = None if all_namespaces or plural in _OF_CLUSTER else self.namespace
        with _explained(plural, where):
            yield _path(plural, where)


def _path(plural: str, namespace: str | None, name: str = "") -> str:
    parts = [*(("namespaces", namespace) if namespace is not None else ()), plural, *((name,) if name else ())]
    return "/".join((_APIS.get(plural, _OURS), *(quote(part, safe=":") for part in parts)))


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of an answer that comes in parts, without newlines."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _decoded(text: bytes | str) -> model.Raw:
    try:
        decoded: model.Raw = msgspec.json.decode(text)
    except catalogue.MALFORMED as error:
        raise errors.DecodeError(str(error)) from error
    return decoded


@contextlib.contextmanager
def _explained(what: str, namespace: str | None, *, verb: str = "read") -> Iterator[None]:
    """Raise the client's errors as a `CommandError` that says what to do."""
    where = "" if namespace is None else f" in namespace {namespace}"
    try:
        yield
    except errors.Gone as error:
        raise ExpiredError(f"the cluster no longer knows this revision of {what}{where}: list it anew") from error
    except errors.ApiError as error:
        if isinstance(error, errors.Conflict) and verb != "read":
            raise AlreadyExistsError(f"{what}{where} exists already: delete it, or choose another name") from error
        raise _from_status(error, what, where, verb) from error
    except errors.DecodeError as error:
        raise CommandError(f"the cluster's answer for {what}{where} is no JSON ({error}): retry later") from error
    except errors.ConfigError as error:
        raise CommandError(str(error)) from error
    except errors.ConnectionLost as error:
        cause = str(error).partition(": ")[2]
        raise CommandError(f"the cluster does not answer ({cause}): check `kubectl cluster-info`") from error


def _refused_by_proxy(status: int, what: str, namespace: str) -> CommandError:
    if status == http.HTTPStatus.FORBIDDEN:
        return CommandError(
            f"you lack permission to read {what} in namespace {namespace} (pods/proxy): request the role edit there"
        )
    missing = {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.INTERNAL_SERVER_ERROR}  # Hadoop's answers for no such logs
    code = ExitCode.NOT_FOUND if status in missing else ExitCode.CLUSTER
    kind = StartingError if status == http.HTTPStatus.SERVICE_UNAVAILABLE else CommandError
    return kind(f"{what} in namespace {namespace} answered {status}: retry later", code)


def _from_status(error: errors.ApiError, what: str, where: str, verb: str) -> CommandError:
    if verb != "read" and error.status != http.HTTPStatus.NOT_FOUND and error.is_status and error.message:
        return CommandError(f"the cluster does not {verb} {what}{where}: {error.message}")
    match error.status:
        case 404 if not error.is_status:  # the server has no such path: the kind is unknown
            plural = what.split("/", maxsplit=1)[0]
            return UnknownKindError(
                f"the cluster does not know {plural}: install or upgrade Boathouse there, with helm"
            )
        case 404:
            return CommandError(f"{what} does not exist{where}: check the name, or pass -n", ExitCode.NOT_FOUND)
        case 401:
            return CommandError("the cluster rejects your credentials: check the kubeconfig's user")
        case 403:
            role = "view" if verb == "read" else "edit"
            return ForbiddenError(f"you lack permission to {verb} {what}{where}: request the role {role} there")
        case _:
            phrase = next((status.phrase for status in http.HTTPStatus if status == error.status), "")
            return CommandError(f"the cluster answered {error.status} {phrase} for {what}{where}: retry later")
