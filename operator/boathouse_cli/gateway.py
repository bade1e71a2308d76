"""Read and change objects of the cluster with kubectl's settings: kubeconfig, contexts, plugins.

Returns decoded JSON.
"""

from __future__ import annotations

import contextlib
import http
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from boathouse.cluster import blocking, catalogue, config, errors
from boathouse.resources import names
from boathouse_cli.errors import (
    AlreadyExistsError,
    CommandError,
    ExitCode,
    ExpiredError,
    ForbiddenError,
    StartingError,
    UnknownKindError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boathouse_cli import model

PAGE = 500
"""Objects of a page of a list."""
WATCH_S: Final = 240
"""How long a watch is open; it goes on where it was."""
CONFIG_MAP = "boathouse-config"
CONFIG_KEY = "config.json"
_MERGE: Final = "application/merge-patch+json"
_CORE: Final = "/api/v1"
_RIGHTS: Final = "/apis/rbac.authorization.k8s.io/v1"
_OURS: Final = f"/apis/{names.GROUP}/{names.VERSION}"
_OF_CLUSTER: Final = frozenset({"nodes", "clusterroles"})
"""Kinds whose objects are in no namespace."""


class Gateway:
    """Client of one kubeconfig context."""

    def __init__(self, session: blocking.Session, namespace: str) -> None:
        self._session = session
        self.namespace = namespace
        """Namespace of names that are given without one."""

    @classmethod
    def connect(cls, *, kubeconfig: str | None, context: str | None, namespace: str | None) -> Gateway:
        """Read the kubeconfig, without a request to the cluster.

        Raises:
            CommandError: No kubeconfig exists, or it lacks the context.
        """
        try:
            found = config.of_user(Path(kubeconfig) if kubeconfig else None, context)
        except errors.ConfigError as error:
            raise CommandError(
                f"the kubeconfig is unusable: {error}: set KUBECONFIG or pass --kubeconfig and --context"
            ) from error
        return cls(blocking.Session(found), namespace or found.namespace)

    def job(self, plural: str, name: str) -> model.Raw:
        """Return the job of this name."""
        return self._get(_OURS, plural, name)

    def jobs(self, plural: str, *, all_namespaces: bool) -> list[model.Raw]:
        """Return the jobs of a kind, of the namespace or of all namespaces."""
        return self._list(_OURS, plural, all_namespaces=all_namespaces)

    def create_job(self, plural: str, manifest: model.Raw) -> model.Raw:
        """Create a job in the namespace; return it as the API server has it."""
        return self._create(_OURS, plural, manifest)

    def patch_job(self, plural: str, name: str, patch: model.Raw) -> None:
        """Apply a JSON merge patch to a job."""
        self._patch(_OURS, plural, name, patch)

    def delete_job(self, plural: str, name: str) -> None:
        """Delete a job; its pods go with it."""
        with _explained(f"{plural}/{name}", self.namespace, verb="delete"):
            self._session.request("DELETE", _path(_OURS, plural, self.namespace, name))

    def config_map(self, name: str) -> model.Raw:
        """Return the ConfigMap of this name."""
        return self._get(_CORE, "configmaps", name)

    def create_config_map(self, manifest: model.Raw) -> None:
        """Create a ConfigMap."""
        self._create(_CORE, "configmaps", manifest)

    def patch_config_map(self, name: str, patch: model.Raw) -> None:
        """Apply a JSON merge patch to a ConfigMap."""
        self._patch(_CORE, "configmaps", name, patch)

    def create_account(self, manifest: model.Raw) -> model.Raw:
        """Create a service account."""
        return self._create(_CORE, "serviceaccounts", manifest)

    def create_role_binding(self, manifest: model.Raw) -> model.Raw:
        """Create a role binding."""
        return self._create(_RIGHTS, "rolebindings", manifest)

    def role_binding(self, name: str) -> model.Raw:
        """A role binding of the namespace."""
        return self._get(_RIGHTS, "rolebindings", name)

    def has_cluster_role(self, name: str) -> bool | None:
        """Whether there is a ClusterRole of this name; None if the user may not know."""
        try:
            self._get(_RIGHTS, "clusterroles", name)
        except CommandError as error:
            return False if error.code is ExitCode.NOT_FOUND else None
        return True

    def pod(self, name: str) -> model.Raw:
        """Return the pod of this name."""
        return self._get(_CORE, "pods", name)

    def pods(self, selector: str, *, all_namespaces: bool = False) -> list[model.Raw]:
        """Return the pods that match a label selector, of the namespace or of all namespaces."""
        return self._list(_CORE, "pods", all_namespaces=all_namespaces, labelSelector=selector)

    def events(self, **fields: str) -> list[model.Raw]:
        """Return the namespace's events with these fields, such as `involvedObject__name="p"`."""
        selector = ",".join(f"{name.replace('__', '.')}={value}" for name, value in fields.items())
        return self._list(_CORE, "events", all_namespaces=False, fieldSelector=selector)

    def nodes(self) -> list[model.Raw]:
        """Return the cluster's nodes."""
        return self._list(_CORE, "nodes", all_namespaces=True)

    def pages(self, plural: str, *, all_namespaces: bool) -> Iterator[tuple[list[model.Raw], str]]:
        """Yield the objects of a kind in pages, each with the revision from which they can be watched.

        Args:
            plural: pods, nodes, or a kind of Boathouse.
            all_namespaces: Whether those of all namespaces, or of this one. Nodes are in none.
        """
        path, where = self._listed(plural, all_namespaces=all_namespaces)
        query = {"limit": str(PAGE)}
        while True:
            with _explained(plural, where):
                page = _decoded(self._session.request("GET", path, query=query))
            yield list(page.get("items") or ()), page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue")
            if not token:
                return
            query["continue"] = token

    def changes(self, plural: str, revision: str, *, all_namespaces: bool) -> Iterator[tuple[str, model.Raw]]:
        """Yield changes of the objects of a kind after a revision, for some minutes: their type and the object.

        Bookmarks are yielded too.

        Raises:
            ExpiredError: The revision is too old.
        """
        path, where = self._listed(plural, all_namespaces=all_namespaces)
        query = {
            "watch": "true",
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        with _explained(plural, where):
            for line in byte_lines(
                self._session.stream(path, query=query, idle_s=WATCH_S + blocking.REQUEST_TIMEOUT_S)
            ):
                event = _decoded(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise errors.from_status(status["code"], status.get("reason", ""), status.get("message", ""))
                yield event["type"], event["object"]

    def operator_config(self, namespace: str) -> model.Raw:
        """Return the operator's configuration file, from its ConfigMap."""
        with _explained(f"configmap/{CONFIG_MAP}", namespace):
            found = _decoded(self._session.request("GET", _path(_CORE, "configmaps", namespace, CONFIG_MAP)))
            return _decoded(found["data"][CONFIG_KEY])

    def shadow(self, namespace: str) -> model.Raw:
        """Return what the operator's shadow profile has decided otherwise, from its ConfigMap."""
        with _explained(f"configmap/{names.SHADOW}", namespace):
            found = _decoded(self._session.request("GET", _path(_CORE, "configmaps", namespace, names.SHADOW)))
            return _decoded(found["data"][names.SHADOW_KEY])

    def proxied(self, pod: str, port: int, path: str) -> Iterator[bytes]:
        """Yield the answer of a pod's web server in parts, through the API server and with the user's own rights.

        Redirects are not followed: the pod's image would choose what this user reads next.
        """
        what = f"port {port} of pod/{pod}"
        with _explained(what, self.namespace):
            try:
                yield from self._session.stream(
                    f"{_path(_CORE, 'pods', self.namespace, f'http:{pod}:{port}')}/proxy/{path}",
                    idle_s=blocking.REQUEST_TIMEOUT_S,
                )
            except errors.ApiError as error:
                raise _refused_by_proxy(error.status, what, self.namespace) from error

    def log(self, pod: str, container: str, *, tail: int | None, follow: bool) -> Iterator[str]:
        """Yield the lines of a container's log; with `follow`, until it ends."""
        query = {"container": container} | ({"tailLines": str(tail)} if tail is not None else {})
        if follow:
            query["follow"] = "true"
        with _explained(f"pod/{pod}", self.namespace):
            path = f"{_path(_CORE, 'pods', self.namespace, pod)}/log"
            for line in byte_lines(self._session.stream(path, query=query)):
                yield line.decode(errors="replace")

    def _get(self, api: str, plural: str, name: str) -> model.Raw:
        namespace = None if plural in _OF_CLUSTER else self.namespace
        with _explained(f"{_SINGULAR.get(plural, plural)}/{name}", namespace):
            return _decoded(self._session.request("GET", _path(api, plural, namespace, name)))

    def _list(self, api: str, plural: str, *, all_namespaces: bool, **query: str) -> list[model.Raw]:
        where = None if all_namespaces else self.namespace
        with _explained(plural, where):
            return list(_decoded(self._session.request("GET", _path(api, plural, where), query=query))["items"])

    def _create(self, api: str, plural: str, manifest: model.Raw) -> model.Raw:
        meta = manifest["metadata"]
        name = meta.get("name") or f"{meta.get('generateName')}…"
        with _explained(f"{_SINGULAR.get(plural, plural)}/{name}", self.namespace, verb="create"):
            body = msgspec.json.encode(manifest)
            return _decoded(self._session.request("POST", _path(api, plural, self.namespace), body=body))

    def _patch(self, api: str, plural: str, name: str, patch: model.Raw) -> None:
        with _explained(f"{_SINGULAR.get(plural, plural)}/{name}", self.namespace, verb="change"):
            path = _path(api, plural, self.namespace, name)
            self._session.request("PATCH", path, body=msgspec.json.encode(patch), content_type=_MERGE)

    def _listed(self, plural: str, *, all_namespaces: bool) -> tuple[str, str | None]:
        """Return the path of the objects of a kind, and their namespace."""
        where = None if all_namespaces or plural in _OF_CLUSTER else self.namespace
        return _path(_CORE if plural in {"pods", "nodes"} else _OURS, plural, where), where


_SINGULAR: Final[Mapping[str, str]] = {
    "clusterroles": "clusterrole",
    "configmaps": "configmap",
    "pods": "pod",
    "rolebindings": "rolebinding",
    "serviceaccounts": "serviceaccount",
}
"""Names of kinds in messages, where they are not the plural."""


def _path(api: str, plural: str, namespace: str | None, name: str = "") -> str:
    """Return the quoted path of the objects of a kind, or of one of them."""
    parts = [*(("namespaces", namespace) if namespace is not None else ()), plural, *((name,) if name else ())]
    return "/".join((api, *(quote(part, safe=":") for part in parts)))


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a text that comes in parts."""
    for line in byte_lines(chunks):
        yield line.decode(errors="replace")


def byte_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
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
    if (
        verb != "read"
        and error.status != http.HTTPStatus.NOT_FOUND
        and (refusal := _refusal(error, f"{what}{where}", verb))
    ):
        return refusal
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
            return ForbiddenError(f"you lack permission to {verb} {what}{where}: request the role {_ROLES[verb]} there")
        case _:
            phrase = next((status.phrase for status in http.HTTPStatus if status == error.status), "")
            return CommandError(f"the cluster answered {error.status} {phrase} for {what}{where}: retry later")


_ROLES: Final = {"read": "view", "create": "edit", "change": "edit", "delete": "edit"}
"""The built-in role that has a right."""


def _refusal(error: errors.ApiError, what: str, verb: str) -> CommandError | None:
    """Return the error of a write that the API server rejects."""
    if isinstance(error, errors.Conflict):
        return AlreadyExistsError(f"{what} exists already: delete it, or choose another name", ExitCode.USAGE)
    if not error.is_status or not error.message:
        return None
    return CommandError(f"the cluster does not {verb} {what}: {error.message}")
