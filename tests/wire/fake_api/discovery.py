"""What clients ask an API server before they ask for objects: its groups, versions and resources (for Kopf)."""

from __future__ import annotations

from typing import Any

from boathouse.resources import names

_GROUPS = {
    names.GROUP: (names.VERSION, {"mrjobs": "MRJob", "sparkapps": "SparkApp", "mrclusters": "MRCluster"}),
    "apiextensions.k8s.io": ("v1", {"customresourcedefinitions": "CustomResourceDefinition"}),
}
_CORE = {"namespaces": "Namespace", "events": "Event"}
_OF_CLUSTER = {"namespaces", "customresourcedefinitions"}


def answer(path: str) -> dict[str, Any] | None:
    """Return the answer to a request for discovery; None for other requests."""
    return _ANSWERS.get(path.rstrip("/"))


def _resources(kinds: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "resources": [
            {
                "name": plural,
                "kind": kind,
                "singularName": kind.lower(),
                "namespaced": plural not in _OF_CLUSTER,
                "verbs": ["list", "watch", "patch", "get"],
            }
            for plural, kind in kinds.items()
        ],
    }


def _group(name: str, version: str) -> dict[str, Any]:
    found = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [found], "preferredVersion": found}


_ANSWERS: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "36"},
    "/api": {"versions": ["v1"]},
    "/api/v1": _resources(_CORE),
    "/apis": {"groups": [_group(name, version) for name, (version, _) in _GROUPS.items()]},
} | {f"/apis/{name}/{version}": _resources(kinds) for name, (version, kinds) in _GROUPS.items()}
