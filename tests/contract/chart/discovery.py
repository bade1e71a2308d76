"""What an API server serves: the paths of its resources by kind and by the names that kubectl takes."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boathouse.cluster.blocking import Session


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a version of a group."""

    prefix: str
    api_version: str
    facts: dict[str, Any]

    @property
    def group(self) -> str:
        """The group, empty for the core's."""
        return self.api_version.rpartition("/")[0]

    @property
    def names(self) -> set[str]:
        """The names that kubectl takes."""
        return {self.facts["name"], self.facts["singularName"], *self.facts.get("shortNames", ())}

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or of all objects in a namespace."""
        where = f"/namespaces/{namespace}" if self.facts["namespaced"] else ""
        return f"{self.prefix}/{self.api_version}{where}/{self.facts['name']}" + (f"/{name}" if name else "")


class Discovery:
    """The resources of an API server, read when one is first missed: a CRD may come later."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._resources: list[Resource] = []

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind, or None."""
        return self._find(lambda resource: resource.api_version == api_version and resource.facts["kind"] == kind)

    def named(self, name: str) -> Resource:
        """Return a resource by one of its names, of the core group rather than of others."""
        found = self._find(lambda resource: name in resource.names)
        assert found is not None, f"the API server has no resource {name!r}"
        return found

    def _find(self, matches: Callable[[Resource], bool]) -> Resource | None:
        if not any(map(matches, self._resources)):
            self._resources = list(self._read())
        return next(filter(matches, self._resources), None)

    def _read(self) -> Iterator[Resource]:
        groups = sorted(self._get("/apis")["groups"], key=lambda group: group["name"])
        versions = [
            group_version["groupVersion"]
            for group in groups
            for group_version in group["versions"]  # the preferred one first
        ]
        for prefix, version in (("/api", "v1"), *(("/apis", group_version) for group_version in versions)):
            for facts in self._get(f"{prefix}/{version}")["resources"]:
                if "/" not in facts["name"]:
                    yield Resource(prefix, version, facts)

    def _get(self, path: str) -> dict[str, Any]:
        return json.loads(self._session.request("GET", path))
