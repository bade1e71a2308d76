"""The API server as its users reach it: by kubectl for what it alone does, by plain requests for what is sent often.

A request takes some milliseconds. A kubectl takes 200 ms of CPU time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import yaml

from boathouse.cluster import blocking, config, errors
from boathouse_e2e import tools
from tests.contract.chart.discovery import Discovery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PATIENCE_S = 100
MERGES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}
IN_DRY_RUN = (("dryRun", "All"), ("fieldValidation", "Strict"))
ADMITTED = "admitted"

Manifest = dict[str, Any]


class ApiServer:
    """The API server for one user: the administrator of its kubeconfig, or somebody whom the administrator acts as."""

    def __init__(self, kubeconfig: Path, cache: Path, user: str = "", discovery: Discovery | None = None) -> None:
        self._kubeconfig, self._cache, self._user = kubeconfig, cache, user
        self._program = tools.ensure(["kubectl"])["kubectl"]
        settings = config.of_user(kubeconfig)
        acting = (f"Impersonate-User: {user}",) if user else ()
        self._session = blocking.Session(dataclasses.replace(settings, headers=acting))
        self._discovery = discovery or Discovery(self._session)

    def acting_as(self, user: str) -> ApiServer:
        """Return the API server for another user."""
        return ApiServer(self._kubeconfig, self._cache, user, self._discovery)

    def with_token(self, token: str) -> ApiServer:
        """Return the API server for the bearer of a token."""
        content = yaml.safe_load(self._kubeconfig.read_text())
        content["users"] = [{"name": user["name"], "user": {"token": token}} for user in content["users"]]
        kubeconfig = self._cache.parent / f"{hashlib.sha256(token.encode()).hexdigest()[:16]}.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(content))
        return ApiServer(kubeconfig, self._cache, discovery=self._discovery)

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests as a user of the rendered chart would."""
        done = self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", body=manifests)
        assert done.returncode == 0, done.stderr

    def delete(self, *manifests: Manifest) -> None:
        """Delete what the manifests name, if it is there."""
        done = self.kubectl("delete", "--ignore-not-found", "--now", "--wait=false", "-f", "-", body=manifests)
        assert done.returncode == 0, done.stderr

    def uninstall(self, *manifests: Manifest) -> None:
        """Delete what `helm uninstall` deletes: all but what is marked to be kept."""
        kept = ("annotations", {"helm.sh/resource-policy": "keep"})
        self.delete(*(manifest for manifest in manifests if kept not in manifest["metadata"].items()))

    def kubectl(self, *arguments: str, body: Sequence[Manifest] = ()) -> subprocess.CompletedProcess[str]:
        """Run kubectl, with manifests as its input."""
        user = [f"--as={self._user}"] if self._user else []
        command = [self._program, f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._cache}", *user]
        whole = body[0] if len(body) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(body)}
        return subprocess.run(
            [*command, *arguments], input=json.dumps(whole), capture_output=True, text=True, check=False
        )

    @staticmethod
    def until(answer: Callable[[], str], expected: str) -> None:
        """Wait for an answer: the API server's own caches take some milliseconds to learn of a change."""
        deadline = time.monotonic() + PATIENCE_S
        while expected not in (last := answer()):
            assert time.monotonic() < deadline, f"in {PATIENCE_S} s not {expected!r}, but {last!r}"
            time.sleep(0.02)

    def has_field(self, path: str) -> bool:
        """Return whether the schema of the API server has a field (`pod.spec.nodeName`)."""
        return self.kubectl("explain", path).returncode == 0

    def get(self, what: str, namespace: str = "demo") -> Manifest:
        """Return an object (`pod/p`)."""
        status, answer = self._request("GET", self._path(what, namespace))
        assert status == 200, answer
        return answer

    # What follows is a dry run: admitted or not, and nothing is left behind. Each returns `admitted`, or the refusal.

    def creates(self, manifest: Manifest) -> str:
        """Create an object."""
        resource = self._discovery.of_kind(manifest["apiVersion"], manifest["kind"])
        if resource is None:
            return f"not served: {manifest['apiVersion']} {manifest['kind']}"
        return self._answer("POST", resource.path(manifest["metadata"].get("namespace", "default")), manifest)

    def binds(self, pod: str, namespace: str = "demo", **metadata: Any) -> str:
        """Bind a pod to a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **metadata}, "target": target}
        return self._answer("POST", self._path(f"pod/{pod}", namespace) + "/binding", binding)

    def patches(
        self,
        what: str,
        patch: Manifest,
        namespace: str = "demo",
        *,
        subresource: str = "",
        merge: str = "merge",
        manager: str = "kubectl",
    ) -> str:
        """Merge a patch into an object (`pod/p`), or into a part of it."""
        path = self._path(what, namespace) + (f"/{subresource}" if subresource else "")
        return self._answer("PATCH", path, patch, ("fieldManager", manager), media_type=MERGES[merge])

    def deletes(self, what: str, namespace: str = "demo") -> str:
        """Delete an object (`pod/p`)."""
        return self._answer("DELETE", self._path(what, namespace))

    def deletes_all(self, resource: str, labels: str = "", namespace: str = "demo") -> str:
        """Delete a collection (`pods`), by one request."""
        return self._answer("DELETE", self._path(resource, namespace), None, ("labelSelector", labels))

    def may(self, verb: str, resource: str, namespace: str = "", *, name: str = "") -> str:
        """Ask the API server's authorizer: `yes` or `no`; `resource` may have a group and a subresource."""
        plural, _, part = resource.partition("/")
        plural, _, group = plural.partition(".")
        attributes = {"verb": verb, "resource": plural, "subresource": part, "namespace": namespace, "name": name}
        attributes["group"] = group or self._discovery.named(plural).group
        spec = {"resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        status, answer = self._request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        assert status == 200, answer
        return "yes" if answer["status"]["allowed"] else "no"

    def _path(self, what: str, namespace: str) -> str:
        """Return the path of an object (`pod/p`), or of all objects of a resource (`pods`) in a namespace."""
        kind, _, name = what.partition("/")
        return self._discovery.named(kind).path(namespace, name)

    def _answer(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *parameters: tuple[str, str],
        media_type: str = "application/json",
    ) -> str:
        status, answer = self._request(method, path, body, (*IN_DRY_RUN, *parameters), media_type)
        return ADMITTED if status < 300 else f"({answer['reason']}): {answer['message']}"

    def _request(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        parameters: Sequence[tuple[str, str]] = (),
        media_type: str = "application/json",
    ) -> tuple[int, Manifest]:
        """Send a request; return 200 and the answer, or the status of an error and its reason and message."""
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._session.request(method, path, query=dict(parameters), body=data, content_type=media_type)
        except errors.ApiError as error:
            return error.status, {"reason": error.reason, "message": error.message}
        return 200, json.loads(answer)
