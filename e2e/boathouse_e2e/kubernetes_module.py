"""Write the go.mod of a Kubernetes release: its programs as tools, its staging modules as they are published."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from boathouse_e2e import catalogue
from boathouse_e2e.gotoolchain import find_go
from boathouse_e2e.paths import TOOLS
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

_STAGING = "./staging/"
_TEMPLATE = """module boathouse.dev/tools/{family}

go {go}

tool (
{tools}
)

require k8s.io/kubernetes {version}

// The staging modules lie inside k8s.io/kubernetes as folders; their published twins stand in for them here.
replace (
{replaced}
)
"""


def write(version: str) -> Path:
    """Pin a release by its full version (`v1.35.4`): write go.mod and go.sum of its folder; returns go.mod.

    Raises:
        ClusterError: the catalogue has no folder for the release, or Go does not find the version.
    """
    family = catalogue.family_of(".".join(version.removeprefix("v").split(".")[:2]))
    go = find_go().command
    module = json.loads(run(go, "mod", "download", "-json", f"k8s.io/kubernetes@{version}"))
    upstream = json.loads(run(go, "mod", "edit", "-json", module["GoMod"]))
    packages = sorted(tool.package for tool in catalogue.TOOLS_BY_NAME.values() if tool.is_kubernetes)
    target = TOOLS / family / "go.mod"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text(family, version, upstream, packages))
    run(go, "mod", "tidy", cwd=target.parent, env={**os.environ, "GOWORK": "off"})
    return target


def text(family: str, version: str, upstream: Mapping[str, Any], packages: Sequence[str]) -> str:
    """Return a go.mod before `go mod tidy`; `upstream` is Kubernetes' own, as `go mod edit -json` prints it."""
    published = version.replace("v1.", "v0.", 1)
    staging = [one["Old"]["Path"] for one in upstream["Replace"] if one["New"]["Path"].startswith(_STAGING)]
    return _TEMPLATE.format(
        family=family,
        go=upstream["Go"],
        version=version,
        tools="\n".join(f"\t{package}" for package in packages),
        replaced="\n".join(f"\t{path} => {path} {published}" for path in staging),
    )
