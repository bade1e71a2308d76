"""What the end-to-end tests say about Hadoop clusters: small MRClusters, jobs on them, their files and daemons."""

import dataclasses
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from boathouse.resources import names
from boathouse.resources.mrcluster.names import KIND, LABEL_HOST
from boathouse_cli import kinds, model, mrclusters, mrjobs
from boathouse_e2e import hadoop_web
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.hadoop_web import WebHdfs
from boathouse_e2e.spec import Cluster
from e2e.tests import harness

TIMEOUT_S = 900  # on a busy machine; a cluster comes up in 60 to 90 where little else runs
CORES = 3
MAP_MB = 320
"""With the daemons' 640 MiB a core node has two slots, a transient node one."""
SMALL: dict[str, Any] = {
    "master": {"resources": {"cpu": "750m", "memory": "1344Mi"}, "volume": {"size": "512Mi"}},
    "core": {"count": CORES, "resources": {"cpu": "750m", "memory": "1280Mi"}, "volume": {"size": "1Gi"}},
    "transient": {"resources": {"cpu": "400m", "memory": "768Mi"}, "scratch": "1Gi"},
    "hdfs": {"replication": 2, "blockSize": "1Mi"},
    # These JVMs live for minutes: better code would not pay for its compilation.
    "env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-XX:TieredStopAtLevel=1"}],
    "mapreduce": {
        "settings": {
            "mapreduce.map.memory.mb": str(MAP_MB),
            "mapreduce.reduce.memory.mb": str(MAP_MB),
            # On a busy machine all attempts are slow.
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
        }
    },
    "dataPolicy": "Delete",
}
EXAMPLES = "local:///opt/hadoop/lib/hadoop-mapreduce-examples-3.4.2.jar"
NOT_STREAMING: dict[str, Any] = dict.fromkeys(
    ("input", "output", "mapper", "reducer", "numReduceTasks", "splitMaxSize", "files", "storage")
)
TEXT = b"\n".join(b" ".join(re.findall(rb"[a-z]+", line.lower())) for line in harness.text(6_000_000).splitlines())
"""Small letters and spaces: Hadoop's example and the tests' scripts find the same words in it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clusters:
    """The MRClusters of a namespace.

    Attributes:
        storage_class: That of their claims; None: the default one.
    """

    place: harness.Place
    storage_class: str | None

    @property
    def cluster(self) -> Cluster:
        """The cluster of Kubernetes."""
        return self.place.cluster

    def manifest(self, name: str, **spec: Any) -> dict[str, Any]:
        """A small MRCluster; `spec` replaces fields, None removes them."""
        fields = merged(SMALL, spec)
        for role in ("master", "core"):
            if self.storage_class is not None and not fields[role]["volume"].get("emptyDir"):
                fields = merged(fields, {role: {"volume": {"storageClassName": self.storage_class}}})
        metadata = {"name": name, "namespace": self.place.namespace}
        return {"apiVersion": names.API_VERSION, "kind": KIND, "metadata": metadata, "spec": fields}

    def start(self, name: str, **spec: Any) -> str:
        """Apply a small cluster; return its name."""
        self.cluster.apply(self.manifest(name, **spec))
        return name

    def patch(self, name: str, **spec: Any) -> None:
        """Change fields of a cluster."""
        patch = json.dumps({"spec": spec})
        self.cluster.run("patch", "mrcluster", name, "-n", self.place.namespace, "--type=merge", "-p", patch)

    def raw(self, name: str) -> model.Raw:
        """The cluster as the API has it."""
        return self.place.gateway.get(kinds.MRCLUSTER.plural, name)

    def look(self, name: str) -> mrclusters.MRCluster:
        """The cluster now."""
        return mrclusters.read(self.raw(name))

    def ready(self, name: str) -> mrclusters.MRCluster:
        """Wait until a cluster is ready with all its nodes."""

        def is_ready() -> mrclusters.MRCluster | None:
            found = self.look(name)
            is_whole = not found.status.core.pending and not found.status.transient.pending
            return found if found.phase == "Ready" and is_whole else None

        return harness.until(is_ready, f"mrcluster/{name} is ready", timeout_s=TIMEOUT_S)

    def until_transient(self, name: str, count: int) -> mrclusters.MRCluster:
        """Wait until a cluster has so many transient nodes, and none that leaves."""

        def has() -> mrclusters.MRCluster | None:
            found = self.look(name)
            sizes = found.status.transient
            return found if sizes.ready == sizes.wanted == count and not found.status.leaving else None

        return harness.until(has, f"mrcluster/{name} has {count} transient nodes", timeout_s=TIMEOUT_S)

    def pods(self, name: str) -> dict[str, model.Raw]:
        """The pods of a cluster by host."""
        found = self.place.gateway.pods(f"{names.LABEL_JOB_UID}={self.look(name).uid},{LABEL_HOST}")
        return {pod["metadata"]["labels"][LABEL_HOST]: pod for pod in found}

    def kill(self, name: str, *hosts: str) -> None:
        """Delete pods of hosts without time to end; return when the objects are gone."""
        pods = self.pods(name)
        which = [pods[host]["metadata"]["name"] for host in hosts]
        self.cluster.run("delete", "pods", *which, "-n", self.place.namespace, "--now", "--wait")

    # What runs in it

    def ask(self, name: str) -> hadoop_web.Proxy:
        """The web servers of its daemons."""
        return hadoop_web.connect(self.cluster, self.place.namespace, functools.partial(self._pod_names, name))

    def hdfs(self, name: str) -> WebHdfs:
        """Its HDFS."""
        return WebHdfs(self.ask(name))

    def applications(self, name: str) -> list[dict[str, Any]]:
        """What its ResourceManager knows of applications."""
        found = self.ask(name)("GET", hadoop_web.MASTER, hadoop_web.RESOURCE_MANAGER_PORT, "ws/v1/cluster/apps")
        return list(json.loads(found)["apps"].get("app", []))

    def history(self, name: str, job: mrjobs.MRJob) -> dict[str, Any]:
        """What its JobHistoryServer knows of the one application of a job that has ended."""
        (application,) = job.applications
        ask, path = self.ask(name), f"jobs/{application.id.replace('application', 'job')}"

        def record() -> dict[str, Any] | None:
            try:
                found = ask("GET", hadoop_web.MASTER, hadoop_web.HISTORY_PORT, f"ws/v1/history/mapreduce/{path}")
            except ClusterError:  # it reads what the application left some seconds later
                return None
            return dict(json.loads(found)["job"])

        return harness.until(record, f"the history has {path}")

    def _pod_names(self, name: str) -> Mapping[str, str]:
        return {host: pod["metadata"]["name"] for host, pod in self.pods(name).items()}

    # Jobs

    def streaming(self, on: str, name: str, **spec: Any) -> str:
        """Start a word count of /in by Hadoop Streaming on a cluster; return its name."""
        default: dict[str, Any] = {
            "clusterRef": {"name": on},
            "input": ["/in"],
            "output": f"/out-{name}",
            "mapper": {"command": ["python3", "mapper.py"]},
            "reducer": {"command": ["python3", "reducer.py"]},
            "numReduceTasks": 1,
            "splitMaxSize": None,
            "storage": None,
        }
        return self.place.start(name, **default | spec)

    def example(self, on: str, name: str, *arguments: str) -> str:
        """Start a program of Hadoop's examples on a cluster; return the job's name."""
        return self.program(on, name, EXAMPLES, *arguments)

    def program(self, on: str, name: str, url: str, *arguments: str, **spec: Any) -> str:
        """Start the program of a jar on a cluster; return the job's name."""
        jar = {"url": url, "arguments": list(arguments)}
        return self.place.start(name, **NOT_STREAMING | {"clusterRef": {"name": on}, "jar": jar} | spec)

    def running(self, name: str) -> mrjobs.MRJob:
        """Wait until the ApplicationMaster of a job says how many maps there are."""

        def begun() -> mrjobs.MRJob | None:
            found = self.place.look(name)
            return found if found.maps.total else None

        return harness.until(begun, f"mrjob/{name} runs", timeout_s=TIMEOUT_S)

    def succeed(self, name: str) -> mrjobs.MRJob:
        """Wait until a job ends, and be sure that it succeeded."""
        return self.place.succeed(name, TIMEOUT_S)

    def words(self, on: str, folder: str) -> dict[bytes, int]:
        """The counts that a job wrote to a folder of a cluster's HDFS; `_SUCCESS` must be there."""
        found = self.hdfs(on).files(folder)
        found.pop("_SUCCESS")
        return harness.pairs(found)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with others in their places, at any depth; None removes."""
    found = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = merged(found[key], value) if both else value
    return {key: value for key, value in found.items() if value is not None}


def fill(clusters: Clusters, name: str, data: bytes = TEXT) -> bytes:
    """Store a text as two files in /in; return it."""
    hdfs, middle = clusters.hdfs(name), data.index(b"\n", len(data) // 2) + 1
    hdfs.write("/in/a.txt", data[:middle])
    hdfs.write("/in/b.txt", data[middle:])
    return data


def restarts(pods: Mapping[str, model.Raw]) -> dict[str, tuple[str, int]]:
    """The UID of each pod with the restarts of its containers: equal if nothing happened to them."""
    return {
        host: (
            pod["metadata"]["uid"],
            sum(container_status["restartCount"] for container_status in pod["status"].get("containerStatuses", ())),
        )
        for host, pod in pods.items()
    }
