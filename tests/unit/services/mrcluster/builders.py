"""MRClusters as the API server has them, and as the services see them."""

from boathouse.resources.config import HadoopDefaults, OperatorConfig
from boathouse.resources.mrcluster.status import MRCluster
from boathouse.services.frame.kind import Refusal
from boathouse.services.mrcluster import cluster as mrcluster

UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
DEFAULTS = HadoopDefaults(image="localhost/hadoop:test")
CONFIG = OperatorConfig()


def body(name="etl", uid=UID, metadata=None, status=None, **spec):
    """An MRCluster with the CRD's defaults, and other fields of its spec."""
    known = {
        "name": name,
        "namespace": "demo",
        "uid": uid,
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": {**known, **(metadata or {})}, "spec": spec, "status": status or {}}


def resource(**spec):
    """An MRCluster as a user writes it."""
    return MRCluster.model_validate({"spec": spec})


def cluster(defaults=DEFAULTS, **fields):
    found = mrcluster.from_resource(body(**fields), CONFIG, defaults)
    assert not isinstance(found, Refusal), found
    return found


def refusal(defaults=DEFAULTS, **fields):
    found = mrcluster.from_resource(body(**fields), CONFIG, defaults)
    assert isinstance(found, Refusal)
    return found
