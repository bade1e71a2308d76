"""How patches are merged, and what selectors match: the parts of the API's arithmetic that need no state."""

from __future__ import annotations

import copy
from typing import Any

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "conditions": "type",
    "ownerReferences": "uid",
    "resizePolicy": "resourceName",
}
"""Lists that a strategic merge patch merges by a key; all others are replaced."""


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic_merge(target: Any, patch: Any, key: str = "") -> Any:
    """Apply a strategic merge patch (without directives)."""
    if isinstance(patch, list) and key in MERGE_KEYS:
        return _merge_list(target or [], patch, MERGE_KEYS[key])
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_merge(merged.get(name), value, name)
    return merged


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    merged = {item.get(key): item for item in target}
    for item in patch:
        merged[item.get(key)] = strategic_merge(merged.get(item.get(key)), item)
    return list(merged.values())


def matches_labels(manifest: dict[str, Any], selector: str) -> bool:
    """Say whether the labels satisfy `a=b,c!=d,e,!f`."""
    labels = manifest["metadata"].get("labels") or {}
    return all(_matches(term, labels.get, term.lstrip("!") in labels) for term in _terms(selector))


def matches_fields(manifest: dict[str, Any], selector: str) -> bool:
    """Say whether the fields satisfy `status.phase!=Failed,spec.nodeName=`; others match nothing."""
    return all(_matches(term, lambda path: _field(manifest, path), present=False) for term in _terms(selector))


def _terms(selector: str) -> list[str]:
    return [term.strip() for term in selector.split(",") if term.strip()]


def _matches(term: str, value_of: Any, present: bool) -> bool:
    if "!=" in term:
        name, wanted = term.split("!=")
        return bool(value_of(name) != wanted)
    if "=" in term:
        name, wanted = term.replace("==", "=").split("=")
        return bool(value_of(name) == wanted)
    return present != term.startswith("!")


def _field(manifest: dict[str, Any], path: str) -> Any:
    value: Any = manifest
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if value is not None else ""


def qos_class(spec: dict[str, Any]) -> str:
    """Return Guaranteed, Burstable or BestEffort, by the containers' cpu and memory."""
    wanted: list[tuple[Any, Any]] = []
    for container in spec.get("containers", []) + spec.get("initContainers", []):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        wanted += [(requests.get(name), limits.get(name)) for name in ("cpu", "memory")]
    if all(request is None and limit is None for request, limit in wanted):
        return "BestEffort"
    guaranteed = all(limit is not None and request == limit for request, limit in wanted)
    return "Guaranteed" if guaranteed else "Burstable"
