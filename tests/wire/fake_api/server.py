"""The HTTP side of the fake API server."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import email.utils
import itertools
import json
import time
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from boathouse.cluster import client, config
from tests.wire.fake_api import discovery, faults, merging, pods, tokens, world
from tests.wire.fake_api.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.wire.fake_api.world import Manifest

_MERGES = {
    "application/merge-patch+json": merging.merge,
    "application/strategic-merge-patch+json": merging.strategic_merge,
    "application/apply-patch+yaml": merging.strategic_merge,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that arrived."""

    name: str
    namespace: str | None
    object_name: str | None
    subresource: str | None
    plural: str
    body: Any
    query: dict[str, str]
    content_type: str

    @property
    def key(self) -> str:
        """`namespace/name` of the object."""
        return f"{self.namespace}/{self.object_name}" if self.namespace else str(self.object_name)


class FakeApi:
    """The server; an async context manager.

    Attributes:
        world: The objects.
        watches: The watches that are open, and what may go wrong with them.
        calls: Every request that arrived, in order.
        chaos: Asked for each call whether it goes wrong; for random runs.
        refuse: Admission: called with the call and the object it would create; raises `Refused`.
        mutate: Admission that changes a pod before it is created, in place; also in a dry run.
        tokens: What TokenReview knows: token to (user, audiences).
        logs: What pods wrote, by key.
        proxied: What web servers of pods answer, by what follows `pods/` in the path; else a redirect.
        clock: The server's clock, by which its responses are dated: epoch seconds.
    """

    def __init__(self, *, latency_s: float = 0.0) -> None:
        self.world = world.World()
        self.watches = Watches(self.world)
        self.calls: list[Call] = []
        self.chaos: Callable[[Call], faults.Fault | None] = lambda _: None
        self.refuse: Callable[[Call, Manifest], None] = lambda *_: None
        self.mutate: Callable[[Manifest], None] = lambda _: None
        self.tokens: dict[str, tuple[Manifest, list[str]]] = {}
        self.logs: dict[str, str] = {}
        self.proxied: dict[str, str] = {}
        self.latency_s = latency_s
        self.clock: Callable[[], float] = time.time
        self.url = ""
        self._faults = faults.Faults()
        self._pages: dict[str, tuple[int, list[Manifest]]] = {}
        self._page_numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=8 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_response_prepare.append(self._date)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.watches.end()
        if self._runner:
            await self._runner.cleanup()

    def client(self, **options: Any) -> client.ApiClient:
        """Return a client of this server; use it as a context manager."""
        return client.ApiClient(config.ClusterConfig(server=self.url, namespace="boathouse-system"), **options)

    # State, as a test or a pretended kubelet sees and changes it

    def add(self, manifest: Manifest) -> Manifest:
        """Create an object."""
        return self.world.create(_plural_of(manifest), manifest)

    def get(self, plural: str, key: str) -> Manifest | None:
        """Return an object by `namespace/name`, None when there is none."""
        return self.world.objects(plural).get(key)

    def objects(self, plural: str) -> dict[str, Manifest]:
        """Return the objects of a kind."""
        return self.world.objects(plural)

    def change(self, plural: str, key: str, patch: Manifest) -> Manifest:
        """Merge a patch into an object, status included (lists with a merge key by that key)."""
        return self.world.update(plural, key, merging.strategic_merge(self.world.find(plural, key), patch))

    def set_phase(self, key: str, phase: str, **status: Any) -> Manifest:
        """Do a kubelet's part: set a pod's phase, and more of its status."""
        return self.change("pods", key, {"status": {"phase": phase, **status}})

    def end_pod(
        self,
        key: str,
        *,
        exit_code: int = 0,
        message: str = "",
        reason: str = "",
        container: str = "task",
        **status: Any,
    ) -> Manifest:
        """Let a container that ran for 10 s end with that exit code and termination message."""
        terminated = {
            "exitCode": exit_code,
            "message": message,
            "reason": reason or ("Error" if exit_code else "Completed"),
            "startedAt": self.world.date,
            "finishedAt": pods.after(self.world.date, 10),
        }
        statuses = [{"name": container, "state": {"terminated": terminated}}]
        return self.set_phase(key, "Failed" if exit_code else "Succeeded", containerStatuses=statuses, **status)

    def actuate_resize(self, key: str) -> None:
        """Do a kubelet's part of a resize."""
        pods.actuate(self.world, key)

    def remove(self, plural: str, key: str) -> None:
        """Remove an object at once."""
        self.world.delete(plural, key)

    def restore(self, backup: tuple[int, dict[str, dict[str, Manifest]]]) -> None:
        """Restore etcd from a backup (`world.backup()`), and start anew: every watch breaks off."""
        self.world.restore(backup)
        self._pages.clear()
        self.watches.end()

    def issue_token(self, key: str, *, audience: str = "boathouse.dev") -> str:
        """Return a token projected into that pod."""
        pod = self.world.find("pods", key)
        token = tokens.token(pod, audience)
        self.tokens[token] = (tokens.token_user(pod), [audience])
        return token

    def called(self, name: str) -> list[Call]:
        """Return the calls of that name."""
        return [call for call in self.calls if call.name == name]

    # Faults

    def fail_next(self, call: str, *, times: int = 1, **fault: Any) -> None:
        """Let the next calls of that name (or pattern) go wrong; keywords are `Fault`'s."""
        self._faults.add(call, faults.Fault(**fault), times)

    def hold_next(self, call: str) -> asyncio.Event:
        """Let the next call of that name wait until the event is set."""
        released = asyncio.Event()
        self.fail_next(call, released=released)
        return released

    def heal(self) -> None:
        """From here on all goes well."""
        self._faults.clear()
        self.chaos = lambda _: None
        self.latency_s = 0.0

    def forget(self, keep: int = 1000) -> None:
        """Forget calls and old changes, so that a long run fits into memory.

        As etcd's compaction it follows a bookmark on each watch, and later ones from before are refused.
        """
        self.calls.clear()
        for plural in list(self.world.histories):
            self.watches.bookmark(plural)
        self.world.compact(keep)

    def expire_pages(self) -> None:
        """Forget the continue tokens: their next use is 410."""
        self._pages.clear()

    def fence_by(self, lease_key: str) -> None:
        """Refuse pods, bindings and resizes whose epoch is not the lease's leaseTransitions, as the chart's policy."""

        def refuse(call: Call, manifest: Manifest) -> None:
            epoch = (manifest["metadata"].get("annotations") or {}).get("boathouse.dev/epoch")
            if call.subresource == "resize":
                epoch = call.query["fieldManager"].partition("boathouse-")[2]
            lease = self.get("leases", lease_key)
            if call.name in {"create pods", "create pods/binding", "patch pods/resize"} and (
                lease is None or epoch != str(lease["spec"].get("leaseTransitions", 0))
            ):
                raise world.Refused(403, "Forbidden", f"fence: epoch {epoch} is not the leader's")

        self.refuse = refuse

    # Requests

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = email.utils.formatdate(self.clock(), usegmt=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if (known := discovery.answer(request.path)) is not None:
            return web.json_response(known)
        call = await _parse(request)
        self.calls.append(call)
        fault = self._faults.take(call.name) or self.chaos(call) or faults.Fault()
        if delay_s := fault.delay_s or self.latency_s:
            await asyncio.sleep(delay_s)
        if fault.released:
            await fault.released.wait()
        goes_wrong = fault.reset or bool(fault.status)
        answer: web.StreamResponse | None = None
        if not goes_wrong or fault.after_commit:
            answer = await self._answer(request, call)
        if fault.reset and request.transport is not None:
            request.transport.abort()
        if goes_wrong or answer is None:
            return _failure(fault.status or 500, fault.reason, "a fault on order", fault.retry_after_s)
        return answer

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        try:
            if call.name.startswith("watch "):
                return await self.watches.serve(request, self._watcher(call), call.query)
            if call.name == "get pods/log":
                return web.Response(text=self.logs.get(call.key, ""))
            if call.name == "get pods/proxy":
                text = self.proxied.get(request.path.partition("/pods/")[2])
                elsewhere = web.Response(status=302, headers={"Location": "/api/v1/secrets"})
                return elsewhere if text is None else web.Response(text=text)
            status, body = self._do(call)
        except world.Refused as no:
            return _failure(no.status, no.reason, str(no))
        return web.json_response(body, status=status)

    def _do(self, call: Call) -> tuple[int, Manifest]:
        verb = call.name.split()[0]
        actions: dict[str, Callable[[Call], Manifest]] = {
            "list": self._list,
            "get": lambda call: self.world.find(call.plural, call.key),
            "create": self._create,
            "update": lambda call: self.world.update(call.plural, call.key, call.body),
            "patch": self._patch,
            "delete": self._delete,
        }
        return 201 if verb == "create" else 200, actions[verb](call)

    def _delete(self, call: Call) -> Manifest:
        options = call.body or {}
        if call.plural == "pods":
            return pods.delete(self.world, call.key, options)
        return self.world.begin_deletion(call.plural, call.key, (options.get("preconditions") or {}).get("uid"))

    def _create(self, call: Call) -> Manifest:
        if call.plural == "tokenreviews":
            return pods.review(self.tokens, call.body)
        if call.subresource == "token":
            return {"kind": "TokenRequest", "status": {"token": f"token-of-{call.key}"}}
        self.refuse(call, call.body)
        if call.subresource == "binding":
            pods.bind(self.world, call.key, call.body)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
        manifest = copy.deepcopy(call.body)
        if call.namespace:
            manifest["metadata"]["namespace"] = call.namespace
        if call.plural == "pods":
            self.mutate(manifest)
        if call.query.get("dryRun"):
            return manifest
        return self.world.create(call.plural, manifest)

    def _patch(self, call: Call) -> Manifest:
        if call.subresource == "resize":
            self.refuse(call, call.body)
            return pods.resize(self.world, call.key, call.body)
        merge = _MERGES.get(call.content_type)
        if merge is None:
            raise world.Refused(415, "UnsupportedMediaType", call.content_type)
        if call.content_type.startswith("application/apply") and call.key not in self.world.objects(call.plural):
            return self.world.create(call.plural, call.body)
        old = self.world.find(call.plural, call.key)
        new = merge(old, call.body)
        if call.subresource == "status":
            new = {**old, "metadata": new["metadata"], "status": new.get("status", {})}
        elif "status" in old and call.plural in {"pods", "nodes", "mrjobs", "sparkapps", "mrclusters"}:
            new = {**new, "status": old["status"]}
        return self.world.update(call.plural, call.key, _with_preconditions(new, old, call.body))

    def _list(self, call: Call) -> Manifest:
        token, limit = call.query.get("continue"), int(call.query.get("limit", "0"))
        if token and token not in self._pages:
            raise world.Refused(410, "Expired", "The provided continue parameter is too old")
        found = (self.world.revision, self.world.selected(self._watcher(call)))
        revision, items = self._pages.pop(token) if token else found
        metadata = {"resourceVersion": str(revision)}
        if limit and len(items) > limit:
            items, rest = items[:limit], items[limit:]
            metadata["continue"] = f"page-{next(self._page_numbers)}"
            self._pages[metadata["continue"]] = (revision, rest)
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}

    def _watcher(self, call: Call) -> world.Watcher:
        labels, fields = call.query.get("labelSelector", ""), call.query.get("fieldSelector", "")
        return world.Watcher(
            plural=call.plural, namespace=call.namespace, labels=labels, fields=fields, send=lambda _: None
        )


def _plural_of(manifest: Manifest) -> str:
    kind = manifest["kind"]
    return world.PLURALS.get(kind, f"{kind.lower()}s")


async def _parse(request: web.Request) -> Call:
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = None
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = (*parts, None, None)[:3]
    body = await request.read()
    query = dict(request.query)
    return Call(
        name=f"{_verb(request.method, name, query)} {plural}" + (f"/{subresource}" if subresource else ""),
        namespace=namespace,
        object_name=name,
        subresource=subresource,
        plural=str(plural),
        body=json.loads(body) if body else None,
        query=query,
        content_type=request.content_type,
    )


def _verb(method: str, name: str | None, query: dict[str, str]) -> str:
    if method == "GET":
        return "get" if name else ("watch" if query.get("watch") else "list")
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]


def _with_preconditions(new: Manifest, old: Manifest, patch: Manifest) -> Manifest:
    wanted = patch.get("metadata") or {}
    if wanted.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
        raise world.Refused(422, "Invalid", f"metadata.uid: Invalid value: {wanted['uid']!r}: field is immutable")
    metadata = {**new["metadata"], "uid": old["metadata"]["uid"]}
    metadata["resourceVersion"] = wanted.get("resourceVersion", old["metadata"]["resourceVersion"])
    return {**new, "metadata": metadata}


def _failure(status: int, reason: str, message: str, retry_after_s: float | None = None) -> web.Response:
    body: Manifest = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status}
    headers = {} if retry_after_s is None else {"Retry-After": str(int(retry_after_s))}
    return web.json_response(body, status=status, headers=headers)
