"""What the end-to-end tests say about Spark applications: SparkApps, their inputs, and what they counted."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import yaml

from boathouse.resources import names
from boathouse.resources.sparkapp.names import SPARKAPP_KIND
from boathouse_cli import changing, kinds, model, sparkapps
from boathouse_e2e import demo, images, paths, storage
from e2e.tests import harness

FOLDER = paths.REPOSITORY / "examples" / "spark"
TEXT = harness.text(1_000_000)
COUNTED = harness.counted(TEXT)
TIMEOUT_S = 900  # on a busy machine; 30 to 110 where little else runs
ENFORCED = "pod-security.kubernetes.io/enforce=restricted"
PROGRAMS = "/opt/app"
STORAGE = {"s3": {"endpointURL": storage.ENDPOINT, "secretRef": {"name": storage.SECRET}}}
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # these processes live for seconds
SMALL_DRIVER = {"coreRequest": "200m", "memory": "512m", "javaOptions": JAVA_OPTIONS}
SMALL_EXECUTOR = {"coreRequest": "200m", "memory": "512m", "javaOptions": JAVA_OPTIONS}


def prepare(place: harness.Place) -> None:
    """Refuse pods with privileges in the namespace, and have Spark's image on the nodes."""
    images.load(place.cluster, [images.SPARK])
    place.cluster.run("label", "namespace", place.namespace, ENFORCED)


def s3a(place: harness.Place, name: str) -> str:
    """Where Spark finds a file or folder of this test."""
    return place.url(name).replace("s3://", "s3a://")


def files(place: harness.Place, folder: str) -> dict[str, bytes]:
    """The files of a folder by name; folders in it are objects of no bytes, and left out."""
    sizes = demo.sizes(place.store, f"{place.namespace}/{folder}")
    return {key.rpartition("/")[2]: demo.read(place.store, key) for key, size in sizes.items() if size}


def output(place: harness.Place, folder: str) -> tuple[dict[str, object], dict[bytes, int]]:
    """What `_SUCCESS` says of a word count, and its words."""
    found = files(place, folder)
    success = found.pop("_SUCCESS", b"")
    return json.loads(success) if success else {}, harness.pairs(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Applications:
    """The SparkApps of a namespace whose drivers may create executors."""

    place: harness.Place

    def enable(self) -> None:
        """Give drivers their account, as users do."""
        cluster = self.place.cluster
        kubeconfig = str(cluster.kubeconfig)
        changing.enable_spark(namespace=self.place.namespace, context=cluster.context, kubeconfig=kubeconfig)

    def program(self, text: str, name: str = "main.py") -> str:
        """Have a single program in the applications' pods; return its URI."""
        self.programs({name: text})
        return f"local://{PROGRAMS}/{name}"

    def programs(self, files: Mapping[str, str]) -> None:
        """Put programs into the ConfigMap that applications mount."""
        metadata = {"name": "programs", "namespace": self.place.namespace}
        self.place.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(files)})

    def manifest(self, name: str, **spec: Any) -> dict[str, Any]:
        """A SparkApp; `spec` replaces fields, None removes them."""
        default = {
            "type": "Python",
            "driver": SMALL_DRIVER,
            "executor": {"instances": 2, **SMALL_EXECUTOR},
            "volumes": [{"name": "programs", "mountPath": PROGRAMS, "readOnly": True, "configMapName": "programs"}],
            "storage": STORAGE,
        }
        return {
            "apiVersion": names.API_VERSION,
            "kind": SPARKAPP_KIND,
            "metadata": {"name": name, "namespace": self.place.namespace},
            "spec": {key: value for key, value in (default | spec).items() if value is not None},
        }

    def start(self, name: str, **spec: Any) -> str:
        """Apply an application; return its name."""
        self.place.cluster.apply(self.manifest(name, **spec))
        return name

    def example(self, name: str, **spec: Any) -> None:
        """Apply the file of an example with the storage of the tests; `spec` replaces fields."""
        config_map, application = yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text())
        application["spec"] |= {"driver": SMALL_DRIVER, "storage": STORAGE, **spec}
        for manifest in (config_map, application):
            manifest["metadata"]["namespace"] = self.place.namespace
            self.place.cluster.apply(manifest)

    def look(self, name: str) -> sparkapps.SparkApp:
        """The application now."""
        return sparkapps.read(self.raw(name))

    def raw(self, name: str) -> model.Raw:
        """The application as the API has it."""
        return self.place.gateway.get(kinds.SPARKAPP.plural, name)

    def finish(self, name: str) -> sparkapps.SparkApp:
        """Wait until an application ends, whichever way."""

        def ended() -> sparkapps.SparkApp | None:
            found = self.look(name)
            return found if found.finished else None

        return harness.until(ended, f"sparkapp/{name} ends", timeout_s=TIMEOUT_S)

    def succeed(self, name: str) -> sparkapps.SparkApp:
        """Wait until an application ends, and be sure that it succeeded."""
        app = self.finish(name)
        assert app.phase == "Succeeded", f"{app.phase}: {app.conditions}, {app.attempts}\n{app.last_log}"
        return app

    def raw_pods(self, name: str) -> list[model.Raw]:
        """The application's drivers and executors as the API has them."""
        app = self.look(name)
        return sparkapps.own_pods(app, self.place.gateway.pods(sparkapps.selector(app)))

    def running(self, name: str, role: str) -> list[model.Raw]:
        """The pods of a role that run."""
        return [
            pod
            for pod in self.raw_pods(name)
            if pod["metadata"]["labels"][model.SPARK_ROLE] == role and pod["status"]["phase"] == "Running"
        ]

    def until_running(self, name: str, role: str) -> model.Raw:
        """Wait for a pod of a role."""
        found = harness.until(lambda: self.running(name, role), f"{role} of {name} runs", timeout_s=TIMEOUT_S)
        return found[0]
