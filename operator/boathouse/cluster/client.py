"""Client of the API server's verbs, typed by kind. For retries see `boathouse.cluster.retries`."""

import contextlib
import enum
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Mapping
from typing import Any, Self, TypeVar, cast

import msgspec

from boathouse.cluster import catalogue, errors, transport, wire, written
from boathouse.cluster.config import ClusterConfig

T = TypeVar("T")
_FIELD_MANAGER, _JSON = "boathouse", "application/json"
PAGE_LIMIT = 500


class PatchStyle(enum.Enum):
    """Strategy by which a patch is merged into the object, as a content type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ApiClient:
    """Client of one API server, for one event loop.

    Every method raises `errors.ApiError`, `errors.ConnectionLost` without a complete response (the write may have been
    done), and `errors.DecodeError` if the response does not match the model.
    """

    def __init__(
        self, config: ClusterConfig, *, request_timeout_s: float = 30.0, user_agent: str = "boathouse"
    ) -> None:
        self.namespace = config.namespace
        self._transport = transport.Transport(config, request_timeout_s=request_timeout_s, user_agent=user_agent)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._transport.close()

    async def get(self, resource: catalogue.Resource[T], name: str, namespace: str | None = None) -> T:
        """Return an object."""
        return decode(await self._transport.request("GET", resource.path(namespace, name)), resource.view)

    async def list_page(
        self,
        resource: catalogue.Resource[T],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE_LIMIT,
        continue_token: str = "",
    ) -> catalogue.Page[T]:
        """Return a page of the newest state, everything with `limit` 0; raises `errors.Gone` for an old token."""
        query = _query(
            labelSelector=labels, fieldSelector=fields, limit=str(limit or ""), **{"continue": continue_token}
        )
        answer = await self._transport.request("GET", resource.path(namespace), query=query)
        return decode(answer, catalogue.Page[resource.view])  # type: ignore[name-defined] # at run time it is a type

    async def list(
        self, resource: catalogue.Resource[T], namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> catalogue.Page[T]:
        """Return all objects, read page by page at one resourceVersion."""
        page = await self.list_page(resource, namespace, labels=labels, fields=fields)
        items = page.items
        while token := page.metadata.continue_token:
            page = await self.list_page(resource, namespace, labels=labels, fields=fields, continue_token=token)
            items += page.items
        return catalogue.Page(items=items, metadata=page.metadata)

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: catalogue.Resource[Any],
        namespace: str | None = None,
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout_s: float = 290.0,
        idle_s: float = 90.0,
    ) -> AsyncIterator[AsyncGenerator[transport.Lines, None]]:
        """Open a WATCH with bookmarks from a `resource_version` on, and yield its lines, each of which is an event.

        The server ends it after `timeout_s`; after `idle_s` without data, also without bookmarks, the connection is
        lost.
        """
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(max(1, round(timeout_s))),
        )
        stream = self._transport.stream(resource.path(namespace), query=query, idle_s=idle_s)
        async with contextlib.aclosing(stream):
            yield stream

    async def create(
        self, resource: catalogue.Resource[T], manifest: object, namespace: str | None = None, *, dry_run: bool = False
    ) -> T:
        """Create an object from a dictionary or a Struct; raises `errors.AlreadyExists` if its name is in use."""
        query = _query(dryRun="All" if dry_run else "")
        return decode(await self._send("POST", resource.path(namespace), manifest, query=query), resource.view)

    async def replace(
        self, resource: catalogue.Resource[T], name: str, manifest: object, namespace: str | None = None
    ) -> T:
        """Replace an object (PUT), or only the version in its metadata: raises `errors.Conflict` if that is older."""
        return decode(await self._send("PUT", resource.path(namespace, name), manifest), resource.view)

    async def patch(
        self,
        resource: catalogue.Resource[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        style: PatchStyle = PatchStyle.MERGE,
        subresource: str | None = None,
        force: bool = False,
        manager: str = "",
        resource_version: str = "",
        uid: str = "",
    ) -> T:
        """Patch an object, or a subresource; raises `errors.Conflict` if it has another version or UID than given.

        With `APPLY` the patch has all fields that the operator owns, apiVersion and kind, and `force` takes over fields
        of other owners. Custom resources do not support the strategic merge. An empty `manager` is the client's.
        """
        query = _query(fieldManager=manager, force="true" if style is PatchStyle.APPLY and force else "")
        precondition = _query(resourceVersion=resource_version, uid=uid)
        body = {**patch, "metadata": {**patch.get("metadata", {}), **precondition}} if precondition else patch
        path = resource.path(namespace, name, subresource)
        try:
            return decode(await self._send("PATCH", path, body, query=query, content_type=style.value), resource.view)
        except errors.Invalid as error:  # the server's response to a patch with another UID: metadata.uid is immutable
            if uid and "metadata.uid" in error.message:
                raise errors.Conflict(error.status, error.reason, error.message) from error
            raise

    async def patch_status(
        self,
        resource: catalogue.Resource[T],
        name: str,
        status: Mapping[str, Any],
        namespace: str | None = None,
        **options: Any,
    ) -> T:
        """Merge `status` into an object's status, with the options of `patch`."""
        return await self.patch(resource, name, {"status": status}, namespace, subresource="status", **options)

    async def delete(
        self,
        resource: catalogue.Resource[Any],
        name: str,
        namespace: str | None = None,
        *,
        uid: str = "",
        grace_period_s: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete an object; raises `errors.Conflict` if it has another UID than given."""
        given = {
            "preconditions": {"uid": uid} if uid else None,
            "gracePeriodSeconds": grace_period_s,
            "propagationPolicy": propagation,
        }
        options = {field: value for field, value in given.items() if value is not None}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        await self._send("DELETE", resource.path(namespace, name), body)

    async def create_pod(self, namespace: str, manifest: Mapping[str, Any]) -> wire.PodView:
        """Create a pod. With `spec.nodeName` in the manifest, this write also binds it."""
        return await self.create(catalogue.PODS, manifest, namespace)

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Bind a pod, and merge into it; raises `errors.Conflict` if it is bound, gated, deleted or has another UID."""
        merged = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, **merged},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._send("POST", catalogue.PODS.path(namespace, name, "binding"), binding)

    async def resize(
        self, namespace: str, name: str, resources: wire.Sizes, *, manager: str = "", uid: str = ""
    ) -> wire.PodView:
        """Change containers' `requests` and `limits` in place (PATCH pods/resize); `resources` has both by container.

        It raises `errors.Invalid` if the QoS class would change or a limit would be removed, and `errors.Forbidden` if
        a quota or a LimitRange rejects it.
        """
        containers = [{"name": container, "resources": wanted} for container, wanted in resources.items()]
        patch, style = {"spec": {"containers": containers}}, PatchStyle.STRATEGIC
        return await self.patch(
            catalogue.PODS, name, patch, namespace, style=style, subresource="resize", manager=manager, uid=uid
        )

    async def end_pod(self, namespace: str, name: str, annotations: Mapping[str, str], *, uid: str) -> None:
        """Let a pod end at once by a deadline, which keeps its object and its logs; merge annotations into it."""
        patch = {"metadata": {"annotations": dict(annotations)}, "spec": {"activeDeadlineSeconds": 1}}
        await self.patch(catalogue.PODS, name, patch, namespace, uid=uid)

    async def annotate_status(
        self, namespace: str, name: str, annotations: Mapping[str, str], *, resource_version: str, uid: str
    ) -> wire.PodView:
        """Merge annotations into one version of a pod (PATCH pods/status, which keeps annotations)."""
        patch = {"metadata": {"annotations": dict(annotations)}}
        return await self.patch(
            catalogue.PODS, name, patch, namespace, subresource="status", resource_version=resource_version, uid=uid
        )

    async def create_token(self, namespace: str, account: str, seconds: int) -> str:
        """Return a token of a service account for the API server and the kubelets, valid for `seconds`."""
        request = {
            "apiVersion": catalogue.TOKEN_REVIEWS.api_version,
            "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": seconds},
        }
        path = catalogue.SERVICE_ACCOUNTS.path(namespace, account, "token")
        status = decode(await self._send("POST", path, request), wire.Manifest).get("status")
        token = status.get("token") if isinstance(status, dict) else None
        if not isinstance(token, str) or not token:
            raise errors.DecodeError(f"the response to a request for a token of {namespace}/{account} has none")
        return token

    async def token_review(self, token: str, audience: str) -> written.TokenReviewStatus:
        """Review a token for an audience; `authenticated` is also False if the token has another audience."""
        review = {
            "apiVersion": catalogue.TOKEN_REVIEWS.api_version,
            "kind": catalogue.TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [audience]},
        }
        status = (await self.create(catalogue.TOKEN_REVIEWS, review)).status
        if status.authenticated and audience not in status.audiences:  # an authenticator without support for audiences
            return written.TokenReviewStatus()
        return status

    async def _send(
        self, method: str, path: str, body: object, *, query: transport.Query | None = None, content_type: str = _JSON
    ) -> bytes:
        query = {"fieldManager": _FIELD_MANAGER, **(query or {})} if method != "DELETE" else query
        data = msgspec.json.encode(body)
        return await self._transport.request(method, path, query=query, body=data, content_type=content_type)


_decoder = functools.cache(msgspec.json.Decoder)


def decode(body: bytes | msgspec.Raw, shape: type[T], name: str = "") -> T:
    """Return what the API server sent; raises `errors.DecodeError` if it does not have the shape."""
    try:
        value: T = _decoder(cast("Hashable", shape)).decode(body)
    except catalogue.MALFORMED as error:
        said = f"{error}; {bytes(body)[:200]!r}"
        raise errors.DecodeError(f"not a {name or getattr(shape, '__name__', shape)}: {said}") from error
    return value


def _query(**parameters: str) -> transport.Query:
    return {name: value for name, value in parameters.items() if value}
