"""What the chart grants the operator's account, against what the operator used: `python -m boathouse_e2e.rights`.

Test sessions that run an operator under that account write what the API server's audit log says of it into
`build/reports/rights`. A right that no session used must have its reason in `rights.yaml` beside this module.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from typing_extensions import override

from boathouse_e2e import install, paths, shell, tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

REPORTS: Final = paths.REPOSITORY / "build" / "reports" / "rights"
REASONS: Final = Path(__file__).with_name("rights.yaml")
ACCOUNT: Final = {"kind": "ServiceAccount", "name": install.RELEASE, "namespace": install.NAMESPACE}
SESSIONS: Final = frozenset({"e2e", "faults"})
"""Without these too little was used for a comparison."""
USER: Final = f"system:serviceaccount:{install.NAMESPACE}:{install.RELEASE}"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource.

    Attributes:
        role: Where it holds: `cluster`, `jobs` (where jobs run), or `own` (in the release's namespace).
        resource: With group and subresource: `pods/status`, `mrjobs.boathouse.dev`.
        verb: Of the API server's authorizer.
    """

    role: str
    resource: str
    verb: str

    @override
    def __str__(self) -> str:
        return f"{self.role}: {self.verb} {self.resource}"


def used(events: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Return the rights with which the operator's account was allowed what audit events record."""
    found = set()
    for event in events:
        reference = event.get("objectRef") or {}
        allowed = (event.get("annotations") or {}).get("authorization.k8s.io/decision") == "allow"
        if event["user"]["username"] == USER and allowed and "resource" in reference:
            group, part = reference.get("apiGroup", ""), reference.get("subresource", "")
            resource = _name(reference["resource"] + (f"/{part}" if part else ""), group)
            own = reference.get("namespace") == install.NAMESPACE
            found.add(Right("own" if own else "jobs", resource, event["verb"]))
    return found


def record(audit_log: Path, session: str) -> None:
    """Write the rights that an audit log shows into a report of the session; rights of earlier logs stay."""
    report = REPORTS / f"{session}.json"
    REPORTS.mkdir(parents=True, exist_ok=True)
    with audit_log.open() as lines:
        rights = used(json.loads(line) for line in lines if USER in line)
    with paths.locked(report.with_suffix(".lock"), remove=True):  # workers of one session end at the same time
        rights |= set(read(report)) if report.exists() else set()
        report.write_text(json.dumps([dataclasses.astuple(right) for right in sorted(rights)], indent=1))


def read(report: Path) -> Iterator[Right]:
    """Yield the rights of a report."""
    for fields in json.loads(report.read_text()):
        yield Right(*fields)


def granted(manifests: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Return the rights that manifests give the operator's account."""
    manifests = list(manifests)
    roles = {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one["rules"]
        for one in manifests
        if one["kind"] in ("ClusterRole", "Role")
    }
    found = set()
    for binding in manifests:
        if not binding["kind"].endswith("RoleBinding") or ACCOUNT not in binding["subjects"]:
            continue
        reference, namespace = binding["roleRef"], binding["metadata"].get("namespace")
        rules = roles[reference["kind"], namespace if reference["kind"] == "Role" else None, reference["name"]]
        role = "own" if namespace == install.NAMESPACE else "jobs" if reference["name"] == "boathouse" else "cluster"
        found |= {
            Right(role, _name(resource, group), verb)
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
    return found


def unused(given: Iterable[Right], seen: Iterable[Right]) -> list[Right]:
    """Return the rights given that nobody was seen to use; a cluster-wide right is used in any namespace."""
    everywhere = {(right.resource, right.verb) for right in seen}
    at_home = {(right.resource, right.verb) for right in seen if right.role == "own"}
    return sorted(
        right for right in given if (right.resource, right.verb) not in (at_home if right.role == "own" else everywhere)
    )


def reasons() -> dict[str, str]:
    """Return why rights are granted that tests need not use, by the right's text."""
    table: dict[str, str] = yaml.safe_load(REASONS.read_text()) or {}
    return table


def rendered() -> list[dict[str, Any]]:
    """Return the chart's manifests with its default values."""
    text = shell.run(
        *(tools.ensure(["helm"])["helm"], "template", install.RELEASE, install.CHART),
        *("--namespace", install.NAMESPACE, "--skip-tests"),
    )
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def _name(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def main() -> int:
    """Compare, and name each right that is granted without being used or explained."""
    reports = sorted(REPORTS.glob("*.json"))
    missing = SESSIONS - {report.stem for report in reports}
    if missing:
        print(f"not compared: no audit log of the sessions {', '.join(sorted(missing))} is in {REPORTS}")
        print("  run make test-contract, and make test-e2e with PROVIDER=local: other clusters have no audit log")
        return 0
    given = granted(rendered())
    left = unused(given, {right for report in reports for right in read(report)})
    explained = reasons()
    wrong = [right for right in left if str(right) not in explained]
    stale = sorted(set(explained) - set(map(str, given)))
    sessions = ", ".join(report.stem for report in reports)
    print(
        f"granted: {len(given)} rights; used by {sessions}: {len(given) - len(left)}; "
        f"explained: {len(left) - len(wrong)}"
    )
    for right in left:
        print(
            f"  {right}: {explained.get(str(right), 'granted, used by no test: remove it, or say why in rights.yaml')}"
        )
    for text in stale:
        print(f"  {text}: explained in rights.yaml, and not granted: remove the line")
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main())
