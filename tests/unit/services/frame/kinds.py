"""A kind that only the tests of the frame know."""

from boathouse.cluster import catalogue, wire
from boathouse.services.frame.kind import KindDefinition

KIND = KindDefinition(
    resource=catalogue.Resource(group="example.org", plural="boats", kind="Boat", view=wire.Manifest),
    noun="boat",
    phases=("Pending", "Succeeded", "Failed"),
    terminal_phases=frozenset({"Succeeded", "Failed"}),
    urgent_fields=("berth",),
)
KEY = "demo/wc"


def body(revision=1, uid="u1", name="wc", **metadata):
    """Return an object as the API server has it."""
    known = {"namespace": "demo", "name": name, "uid": uid, "resourceVersion": str(revision)}
    return {"metadata": known | metadata}


def unfinished(name, revision=1, created="2026-01-01T00:00:00Z", **status):
    """Return an object that has this status."""
    return body(revision, f"uid-{name}", name, creationTimestamp=created) | {"status": status}
