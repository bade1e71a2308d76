"""What must hold whatever breaks, checked over what the API server recorded: its audit log and the changes of pods.

Pure functions over lists of JSON objects; each returns its violations, none is an empty list. The numbers are those of
the list that people ask by:

====  =====================================================================================
I1    At no moment do the pods of a node request, or still hold, more than it has.
I2    A pod is bound once, a task's pod made once, and never by a leader whose epoch was over.
I6    A job's status never goes back: tasks done, generation observed, a final phase.
I11   A secret's value stands in no log, event or status.
I13   No task stays suspended without a reason.
I14   The CPU of a suspended task is lent to one pod at a time (`model_kubelet`).
I15   A host of a Hadoop cluster has one pod at a time (`hadoop_pods`).
I16   HDFS loses no last replica with a node that leaves (`hadoop_pods`).
I17   The file system of a cluster is formatted once (`hadoop_pods`).
I18   No transient node has the name of an earlier one.
I19   A job has one application at a time on a Hadoop cluster (`hadoop_pods`).
====  =====================================================================================

A task is suspended while its container has the CPU of a suspended one, which it did not have when it was created.

(I3, I5 and I7, each output once, an end for every job and bounded attempts, are judged where the job's own model is
known: by the tests that run it.)
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from boathouse.resources import names, quantity
from boathouse.resources.mrcluster.names import LABEL_HOST
from boathouse.suspension import stages as suspension_record
from boathouse_task import contract

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


Json = dict[str, Any]

LATE_S = 15.0
"""How long after its deadline a task may still be suspended while an operator leads."""
LATE_WITHOUT_OPERATOR_S = 60.0
_SIZE = (contract.SUSPENDED_REQUEST_MILLI, contract.SUSPENDED_LIMIT_MILLI)


def cpu(pod: Json) -> tuple[int, int] | None:
    """Return CPU request and limit of a task's container in thousandths, as a spec or a patch has them."""
    for container in pod.get("spec", {}).get("containers", ()):
        resources = container.get("resources", {})
        if container.get("name") == names.CONTAINER and "cpu" in resources.get("limits", {}):
            request = quantity.milli(resources.get("requests", {}).get("cpu", "0"))
            return request, quantity.milli(resources["limits"]["cpu"])
    return None


def without_record(changes: Iterable[Json]) -> list[Violation]:
    """Return every moment at which a task was suspended and its pod did not say why (I13)."""
    created: dict[str, tuple[int, int] | None] = {}
    found = []
    for change in changes:
        pod = change["object"]
        metadata, size = pod["metadata"], cpu(pod)
        original = created.setdefault(metadata["uid"], size)
        text = metadata.get("annotations", {}).get(names.ANNOTATION_SUSPENSION, "")
        if size == _SIZE != original and not has_ended(pod) and suspension_record.parse(text) is None:
            found.append(Violation(invariant="I13", what=f"{metadata['name']} is suspended, its record is {text!r}"))
    return found


def too_long(audit: Iterable[Json], now_s: float, late_s: float = LATE_S) -> list[Violation]:
    """Return the tasks that were suspended for longer than `late_s` after the deadline in their record (I13).

    Args:
        audit: The audit log, in order.
        now_s: Its end, in epoch seconds.
        late_s: How late a task may be resumed.
    """
    until_s: dict[str, float] = {}
    suspended: dict[str, float] = {}
    found: list[Violation] = []

    def end(pod: str, at_s: float) -> None:
        over_s = at_s - suspended.pop(pod, at_s)
        if over_s > late_s:
            found.append(Violation(invariant="I13", what=f"{pod} stayed suspended {over_s:.0f} s after its deadline"))

    for event in done(audit, "pods"):
        reference, body = event["objectRef"], event.get("requestObject") or {}
        pod, part = f"{reference.get('namespace')}/{reference.get('name')}", reference.get("subresource")
        text = ((body.get("metadata") or {}).get("annotations") or {}).get(names.ANNOTATION_SUSPENSION)
        record = suspension_record.parse(text or "")
        size = cpu(body) if part == "resize" else None
        if part == "status" and record is not None:
            until_s[pod] = record.until_s
        if size == _SIZE:
            suspended[pod] = until_s.get(pod, _time_s(event))
        elif size is not None or _ends(event, body):
            end(pod, _time_s(event))
    for pod in list(suspended):
        end(pod, now_s)
    return found


def _ends(event: Json, body: Json) -> bool:
    """Return whether a pod ended or was deleted."""
    part = event["objectRef"].get("subresource")
    return (event["verb"] == "delete" and not part) or (part == "status" and has_ended(body))


def _time_s(event: Json) -> float:
    return dt.datetime.fromisoformat(event["stageTimestamp"]).timestamp()


def counted_twice(changes: Iterable[Json], nodes: Mapping[str, Json]) -> list[Violation]:
    """Return the placements of tasks on nodes that had no room left, by what their pods still held (I14).

    Other than I1, this holds too where another scheduler takes the room that a suspended task will need again.
    """
    placed: set[str] = set()
    found: list[Violation] = []
    for change, pods in moments(changes):
        pod = change["object"]
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        is_task = names.LABEL_JOB_UID in metadata.get("labels", {})
        if node in nodes and metadata["uid"] not in placed and change["type"] != "DELETED":
            placed.add(metadata["uid"])
            if is_task:
                found += over_committed(pods.values(), {node: nodes[node]}, "I14")
    return found


_ENDED = ("Succeeded", "Failed")
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
_FIRST_ERROR = 300


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that did not hold.

    Attributes:
        invariant: Its number, as `I1`.
        what: Who did what, for people.
    """

    invariant: str
    what: str


def audit_events(log: Path) -> list[Json]:
    """Return the whole lines of an audit log, in the order in which the API server had answered."""
    lines = log.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


# I1


def over_commits(changes: Iterable[Json], nodes: Mapping[str, Json]) -> list[Violation]:
    """Return every moment at which a node was asked for more than it has; the sums are made after each change.

    Args:
        changes: Watch events of all pods, in order.
        nodes: Allocatable quantities by node.
    """
    return [violation for _, pods in moments(changes) for violation in over_committed(pods.values(), nodes)]


def moments(changes: Iterable[Json]) -> Iterator[tuple[Json, dict[str, Json]]]:
    """Yield each change with all pods after it, by UID."""
    pods: dict[str, Json] = {}
    for change in changes:
        pod = change["object"]
        pods[pod["metadata"]["uid"]] = pod
        if change["type"] == "DELETED":
            del pods[pod["metadata"]["uid"]]
        yield change, pods


def over_committed(pods: Iterable[Json], nodes: Mapping[str, Json], invariant: str = "I1") -> Iterator[Violation]:
    """Yield each resource of a node of which these pods hold more than it has."""
    asked: dict[tuple[str, str], int] = defaultdict(int)
    holders: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in nodes and not has_ended(pod):
            holders[node].append(pod["metadata"]["name"])
            asked[node, "pods"] += 1000
            for resource, amount in requests(pod).items():
                asked[node, resource] += amount
    for (node, resource), amount in asked.items():
        has = quantity.milli(nodes[node].get(resource, "0"))
        if amount > has:
            text = f"{node} has {has / 1000:g} {resource}, asked for {amount / 1000:g} by {sorted(holders[node])}"
            yield Violation(invariant=invariant, what=text)


def has_ended(pod: Json) -> bool:
    """Return whether a pod holds nothing any more."""
    return pod.get("status", {}).get("phase") in _ENDED


def requests(pod: Json) -> dict[str, int]:
    """Return what a pod holds, in thousandths: containers and sidecars together, or its largest start-up step.

    Each holds the largest of what its spec requests, what its node has allocated, and what is in force.
    """
    spec, status = pod["spec"], pod.get("status", {})
    conditions = status.get("conditions", ())
    never = any(one["type"] == "PodResizePending" and one.get("reason") == "Infeasible" for one in conditions)
    statuses = {one["name"]: one for one in status.get("containerStatuses", ())}
    if "resources" in spec:
        return _held(spec, status, never=never)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers", ()):
        own = _milli(container.get("resources", {}).get("requests", {}))
        if container.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, own])
            own = {}
        peak = _largest([peak, _sum([sidecars, own])])
    running = [
        _held(container, statuses.get(container.get("name"), {}), never=never) for container in spec["containers"]
    ]
    needed = _largest([peak, _sum([sidecars, *running])])
    return _sum([needed, _milli(spec.get("overhead", {}))])


def _held(spec: Json, status: Json, *, never: bool) -> dict[str, int]:
    """Return what a container, or a pod with resources of its own, holds; an infeasible resize does not count."""
    requested = _milli(spec.get("resources", {}).get("requests", {}))
    if not status.get("resources"):
        return requested
    shown = [status["resources"].get("requests", {}), status.get("allocatedResources", {})]
    return _largest([*map(_milli, shown), *([] if never else [requested])])


def _milli(amounts: Mapping[str, str]) -> dict[str, int]:
    return {resource: quantity.milli(amount) for resource, amount in amounts.items()}


def _sum(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(part.get(name, 0) for part in parts) for name in sorted({*itertools.chain(*parts)})}


def _largest(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: max(part.get(name, 0) for part in parts) for name in sorted({*itertools.chain(*parts)})}


# I2


def bound_twice(audit: Iterable[Json]) -> list[Violation]:
    """Pods that were bound again, and names under which a pod was made again while the first was not deleted."""
    made: set[str] = set()
    bound: set[str] = set()
    found = []
    for event in done(audit, "pods"):
        reference, verb = event["objectRef"], event["verb"]
        pod = f"{reference.get('namespace')}/{reference.get('name') or _body_name(event)}"
        binding = reference.get("subresource") == "binding"
        if verb == "create" and (pod in bound if binding else pod in made):
            found.append(Violation(invariant="I2", what=f"{pod} was {'bound' if binding else 'created'} twice"))
        if verb == "create":
            (bound if binding else made).add(pod)
        elif verb == "delete" and not reference.get("subresource"):
            made.discard(pod)
            bound.discard(pod)
    return found


def stale_epochs(audit: Iterable[Json]) -> list[Violation]:
    """Write of a former leader that were taken after a write of its successor."""
    newest, found = 0, []
    for event in done(audit, "pods"):
        annotations = (event.get("requestObject") or {}).get("metadata", {}).get("annotations") or {}
        epoch = int(annotations.get(names.ANNOTATION_EPOCH, 0))
        if event["verb"] != "create" or not epoch:
            continue
        if epoch < newest:
            text = f"{_body_name(event)}: a write of epoch {epoch} was taken after one of epoch {newest}"
            found.append(Violation(invariant="I2", what=text))
        newest = max(newest, epoch)
    return found


# I6


def status_went_back(audit: Iterable[Json]) -> list[Violation]:
    """Objects whose status lost what it had: tasks that had succeeded, attempts, the generation, a final phase.

    Of clusters also the number of the next transient node, and the ID of HDFS.
    """
    last: dict[str, Json] = {}
    found = []
    events = list(audit)
    for event in (event for kind in ("mrjobs", "sparkapps", "mrclusters") for event in done(events, kind)):
        if event["objectRef"].get("subresource") != "status":
            continue
        job = f"{event['objectRef']['namespace']}/{event['objectRef']['name']}/{event['objectRef'].get('uid', '')}"
        status = (event.get("requestObject") or {}).get("status") or {}
        before = last.get(job, {})
        found += [Violation(invariant="I6", what=f"{job}: {what}") for what in _lost(before, status)]
        last[job] = {**before, **status}
    return found


def _lost(before: Json, after: Json) -> Iterator[str]:
    for name in ("observedGeneration", "succeededMaps", "succeededReduces", "attempt", "nextTransient"):
        was, now = before.get(name) or 0, after.get(name, before.get(name)) or 0
        if isinstance(was, int) and isinstance(now, int) and now < was:
            yield f"{name} fell from {was} to {now}"
    if before.get("clusterID") and after.get("clusterID", before["clusterID"]) != before["clusterID"]:
        yield f"clusterID {before['clusterID']} became {after['clusterID']}"
    if before.get("phase") in _ENDED and after.get("phase", before["phase"]) != before["phase"]:
        yield f"phase {before['phase']} became {after['phase']}"


# I18


def hosts_used_twice(changes: Iterable[Json]) -> list[Violation]:
    """Return the transient nodes of Hadoop clusters that have the name of an earlier one."""
    uids: dict[str, str] = {}
    found = {}
    for change in changes:
        metadata = change["object"]["metadata"]
        labels = metadata.get("labels") or {}
        host = f"{labels.get(LABEL_HOST, '')} of cluster {labels.get(names.LABEL_JOB_UID)}"
        if host.startswith("t") and uids.setdefault(host, metadata["uid"]) != metadata["uid"]:
            found[host] = Violation(invariant="I18", what=f"{host} was created twice")
    return list(found.values())


# I10 and I11


def writes_of(user: str, audit: Iterable[Json]) -> int:
    """Return how many writes of an account the API server took, Leases and events aside."""
    return sum(
        event["user"]["username"] == user
        and event["verb"] in _WRITES
        and event["objectRef"]["resource"] not in ("leases", "events")
        for event in _taken(audit)
    )


def leaks(canary: str, texts: Mapping[str, str]) -> list[Violation]:
    """Return the texts, by their names, in which a secret's value stands."""
    return [Violation(invariant="I11", what=f"the secret stands in {name}") for name in texts if canary in texts[name]]


def done(audit: Iterable[Json], resource: str) -> Iterator[Json]:
    """Yield the accepted requests of a resource and its subresources."""
    return (event for event in _taken(audit) if event["objectRef"]["resource"] == resource)


def _taken(audit: Iterable[Json]) -> Iterator[Json]:
    for event in audit:
        code = (event.get("responseStatus") or {}).get("code", 0)
        dry = "dryRun" in event.get("requestURI", "")
        if event["stage"] == "ResponseComplete" and event.get("objectRef") and code < _FIRST_ERROR and not dry:
            yield event


def _body_name(event: Json) -> str:
    return str((event.get("requestObject") or {}).get("metadata", {}).get("name", ""))
