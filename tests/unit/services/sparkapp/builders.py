"""SparkApps as the API server has them, and as the services see them."""

from boathouse.resources.config import OperatorConfig, SparkDefaults
from boathouse.services.frame.kind import Refusal
from boathouse.services.sparkapp import app as sparkapp
from tests.spark import configurations

UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
CONFIG = OperatorConfig(spark=SparkDefaults(image=configurations.IMAGE))


def body(name=configurations.NAME, uid=UID, metadata=None, status=None, **spec):
    """A SparkApp in Python, with other fields of its spec."""
    known = {
        "name": name,
        "namespace": configurations.NAMESPACE,
        "uid": uid,
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    given = {"type": "Python", "mainApplicationFile": configurations.PYTHON_FILE, **spec}
    return {"metadata": {**known, **(metadata or {})}, "spec": given, "status": status or {}}


def app(**fields):
    found = sparkapp.from_resource(body(**fields), CONFIG)
    assert not isinstance(found, Refusal), found
    return found


def refusal(**fields):
    found = sparkapp.from_resource(body(**fields), CONFIG)
    assert isinstance(found, Refusal)
    return found
