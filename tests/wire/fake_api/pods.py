"""What the API server does for pods only: bind, resize, graceful deletion (`pkg/registry/core/pod` of 1.36.3)."""

from __future__ import annotations

import copy
import datetime as dt
from typing import TYPE_CHECKING, Any

from tests.wire.fake_api import merging
from tests.wire.fake_api.world import Manifest, Refused

if TYPE_CHECKING:
    from tests.wire.fake_api.world import World


def bind(world: World, key: str, binding: Manifest) -> None:
    """Set `spec.nodeName` once. Neither the node's existence nor its room is checked, as in the real one."""
    old = world.find("pods", key)
    wanted = binding.get("metadata") or {}
    for name in ("uid", "resourceVersion"):
        if wanted.get(name) and wanted[name] != old["metadata"][name]:
            raise Refused(409, "Conflict", f"Precondition failed: {name} {wanted[name]} is not the pod's")
    if old["metadata"].get("deletionTimestamp"):
        raise Refused(409, "Conflict", f"pod {key} is being deleted, cannot be assigned to a host")
    if old["spec"].get("nodeName"):
        raise Refused(409, "Conflict", f"pod {key} is already assigned to node {old['spec']['nodeName']!r}")
    if old["spec"].get("schedulingGates"):
        raise Refused(409, "Conflict", f"pod {key} has non-empty .spec.schedulingGates")
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = binding["target"]["name"]
    for field in ("annotations", "labels"):
        if wanted.get(field):
            new["metadata"][field] = {**(new["metadata"].get(field) or {}), **wanted[field]}
    scheduled = {"type": "PodScheduled", "status": "True"}
    new["status"] = merging.strategic_merge(new.get("status"), {"conditions": [scheduled]})
    new["status"].pop("nominatedNodeName", None)
    world.update("pods", key, new)


def resize(world: World, key: str, patch: Manifest) -> Manifest:
    """Change containers' cpu and memory; everything else of the patch is dropped."""
    old = world.find("pods", key)
    if (patch.get("metadata") or {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
        raise Refused(422, "Invalid", "metadata.uid: Invalid value: field is immutable")
    new = copy.deepcopy(old)
    kept = [{"name": c["name"], "resources": c.get("resources", {})} for c in patch["spec"].get("containers", [])]
    new["spec"] = merging.strategic_merge(new["spec"], {"containers": kept})
    for before, after in zip(old["spec"]["containers"], new["spec"]["containers"], strict=True):
        _check_resize(before.get("resources") or {}, after.get("resources") or {})
    if merging.qos_class(old["spec"]) != merging.qos_class(new["spec"]):
        raise Refused(422, "Invalid", "Pod QOS Class may not change as a result of resizing")
    return world.update("pods", key, new)


def _check_resize(before: Manifest, after: Manifest) -> None:
    for part in ("requests", "limits"):
        was, wanted = before.get(part) or {}, after.get(part) or {}
        if {k: v for k, v in was.items() if k not in {"cpu", "memory"}} != {
            k: v for k, v in wanted.items() if k not in {"cpu", "memory"}
        }:
            raise Refused(422, "Invalid", "only cpu and memory resources are mutable")
        if was.keys() - wanted.keys():
            raise Refused(422, "Invalid", f"resource {part} cannot be removed")


def actuate(world: World, key: str) -> None:
    """Do a kubelet's part of a resize: the status shows what the spec asks."""
    pod = copy.deepcopy(world.find("pods", key))
    pod["status"]["containerStatuses"] = [
        {
            "name": container["name"],
            "resources": container["resources"],
            "allocatedResources": container["resources"].get("requests", {}),
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
        for container in pod["spec"]["containers"]
    ]
    world.update("pods", key, pod)


def delete(world: World, key: str, options: Manifest) -> Manifest:
    """Delete a pod: one that runs on a node stays until its kubelet says so, unless the grace period is 0."""
    pod = world.find("pods", key)
    uid = (options.get("preconditions") or {}).get("uid")
    runs = bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in {"Succeeded", "Failed"}
    if not runs or options.get("gracePeriodSeconds") == 0 or (uid and uid != pod["metadata"]["uid"]):
        return world.delete("pods", key, uid)
    marked = copy.deepcopy(pod)
    marked["metadata"].setdefault("deletionTimestamp", after(world.date, 30))
    return world.update("pods", key, marked)


def after(date: str, seconds: float) -> str:
    """Return a date later."""
    return (dt.datetime.fromisoformat(date) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def review(tokens: dict[str, tuple[Manifest, list[str]]], request: Manifest) -> Manifest:
    """Answer a TokenReview from the tokens that were issued: token to (user, audiences)."""
    spec = request["spec"]
    user, audiences = tokens.get(spec["token"], ({}, []))
    common = [audience for audience in spec.get("audiences", []) if audience in audiences]
    status: dict[str, Any] = {"authenticated": bool(common)}
    status |= {"user": user, "audiences": common} if common else {"error": "invalid bearer token"}
    return {**request, "status": status}
