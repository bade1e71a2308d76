"""A driver's pod that is there, and a client with the token that is bound to it. No kubelet runs it."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.contract.chart.builders import driver_pod, object_, sparkapp

if TYPE_CHECKING:
    from tests.contract.chart.api_server import ApiServer

ACCOUNT = "boathouse-spark"
RECORDED = Path(__file__).resolve().parents[2] / "spark" / "recorded" / "4.3" / "executors.json"

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A driver.

    Attributes:
        api: The API server, by the driver's token.
        application: The SparkApp's manifest.
        uid: That of the pod.
    """

    api: "ApiServer"
    application: Json
    name: str
    namespace: str
    uid: str

    @property
    def pod(self) -> str:
        """Return the pod as kubectl names it."""
        return f"pod/{self.name}"

    def owner(self, **fields: Any) -> Json:
        """Return the ownerReference that Spark gives executors, with some fields replaced."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            **fields,
        }

    def executor(self, meta: Json | None = None, *, number: int = 1, of: str = "python", **spec: Any) -> Json:
        """Return an executor as Spark made it of Boathouse's properties, with fields of metadata and spec replaced."""
        pod = next(dict(executor_pod) for executor_pod in recorded(of))
        pod["metadata"] = {
            **pod["metadata"],
            "name": f"{self.name.removesuffix('-driver')}-exec-{number}",
            "namespace": self.namespace,
            "labels": {**pod["metadata"]["labels"], "spark-app-selector": self.name},
            "ownerReferences": [self.owner()],
            **(meta or {}),
        }
        return pod | {"spec": {**pod["spec"], **spec}}

    def config_map(self, name: str = "spark-exec-conf-map", **meta: Any) -> Json:
        """Return the ConfigMap that a driver creates for its executors."""
        return object_("ConfigMap", name, self.namespace, metadata={"ownerReferences": [self.owner()], **meta})


def recorded(configuration: str) -> Iterator[Json]:
    """Return the executors that Spark made of the properties of a configuration."""
    yield from json.loads(RECORDED.read_text())["configurations"][configuration]["executors"]


def configurations() -> list[str]:
    """Return the names of all recorded configurations."""
    return list(json.loads(RECORDED.read_text())["configurations"])


def start(cluster: "ApiServer", operator: "ApiServer", name: str, namespace: str = "demo") -> Driver:
    """Apply a SparkApp, create its driver as the operator does, and take the token that a kubelet would mount."""
    application = sparkapp(namespace, name=name)
    cluster.apply(application)
    uid = cluster.get(f"sparkapp/{name}", namespace)["metadata"]["uid"]
    pod = driver_pod(namespace, name=name, uid=uid)
    created = operator.kubectl("create", "-f", "-", body=[pod])
    assert created.returncode == 0, created.stderr
    pod_name = pod["metadata"]["name"]
    pod_uid = cluster.get(f"pod/{pod_name}", namespace)["metadata"]["uid"]
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod_name}", f"--bound-object-uid={pod_uid}")
    token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={namespace}", *bound)
    assert token.returncode == 0, token.stderr
    api = cluster.with_token(token.stdout.strip())
    driver = Driver(api=api, application=application, name=pod_name, namespace=namespace, uid=pod_uid)
    api.until(lambda: api.creates(driver.executor()), "admitted")  # its role holds
    api.until(lambda: api.creates(driver.executor({"ownerReferences": []})), "boathouse-driver:")
    api.until(lambda: api.creates(driver.executor(schedulerName="other")), "boathouse-driver:")
    return driver
