"""What the end-to-end tests say about jobs: builders, running them, and looking at what happened."""

import dataclasses
import functools
import pathlib
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import obstore
from obstore.store import S3Store

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_cli import gateway, kinds, model, mrjobs
from boathouse_e2e import demo, storage, waiting
from boathouse_e2e.spec import Cluster

T = TypeVar("T")

BUCKET = "tests"
TIMEOUT_S = 300  # for a busy machine; a job takes ten seconds on one that is not
STORAGE = {"s3": {"endpointURL": storage.ENDPOINT, "secretRef": {"name": storage.SECRET}}}
SMALL = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1"}}

MAPPER = """#!/usr/bin/env python3
import re, sys
for line in sys.stdin.buffer:
    for word in re.findall(rb"[a-z]+", line.lower()):
        sys.stdout.buffer.write(word + b"\\t1\\n")
"""
REDUCER = """#!/usr/bin/env python3
import itertools, sys
pairs = (line.rstrip(b"\\n").split(b"\\t", 1) for line in sys.stdin.buffer)
for word, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
    sys.stdout.buffer.write(b"%b\\t%d\\n" % (word, sum(int(count) for _, count in group)))
"""


def text(size_bytes: int) -> bytes:
    """Real text that every machine with Python has: its standard library's sources, in order of their names."""
    parts: list[bytes] = []
    size = 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        parts.append(path.read_bytes() + b"\n")
        size += len(parts[-1])
        if size >= size_bytes:
            return b"".join(parts)
    raise AssertionError(f"the standard library's sources are only {size} bytes")


def counted(data: bytes) -> dict[bytes, int]:
    """Return the word count that a job must find."""
    return dict(Counter(re.findall(rb"[a-z]+", data.lower())))


def pairs(parts: dict[str, bytes]) -> dict[bytes, int]:
    """Return the KEY<TAB>NUMBER lines of a job's parts; a key that comes twice is an error."""
    lines = [line.split(b"\t") for data in parts.values() for line in data.splitlines()]
    found = {key: int(number) for key, number in lines}
    assert len(found) == len(lines), "a key is in the output twice"
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """A namespace with the storage's secret and the scripts, and a folder of its own in the bucket."""

    cluster: Cluster
    store: S3Store
    namespace: str

    @functools.cached_property
    def gateway(self) -> gateway.Gateway:
        """Reads the namespace, as the command line does."""
        return gateway.Gateway.connect(
            kubeconfig=str(self.cluster.kubeconfig), context=self.cluster.context, namespace=self.namespace
        )

    def url(self, name: str) -> str:
        """Return where a file or folder of this test lies."""
        return f"s3://{BUCKET}/{self.namespace}/{name}"

    def put(self, name: str, data: bytes) -> str:
        """Store a file; return its URL."""
        obstore.put(self.store, f"{self.namespace}/{name}", data)
        return self.url(name)

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files below a folder, by name."""
        folder = f"{self.namespace}/{name}"
        return {key.removeprefix(f"{folder}/"): demo.read(self.store, key) for key in demo.sizes(self.store, folder)}

    def parts(self, job: str) -> dict[str, bytes]:
        """Return a job's output; there must be `_SUCCESS`, the parts and nothing else."""
        found = self.files(f"out-{job}")
        assert b"job_uid" in found.pop("_SUCCESS")
        assert all(re.fullmatch(r"part-\d{5}", name) for name in found), sorted(found)
        return found

    def job(self, name: str, **spec: Any) -> dict[str, Any]:
        """Return an MRJob that counts words; `spec` replaces fields, None removes them."""
        default = {
            "input": [self.url("in")],
            "output": self.url(f"out-{name}"),
            "mapper": {"command": ["python3", "mapper.py"], "resources": SMALL},
            "reducer": {"command": ["python3", "reducer.py"], "resources": SMALL},
            "numReduceTasks": 2,
            "splitMaxSize": "1Mi",
            "files": [script("mapper.py"), script("reducer.py")],
            "storage": STORAGE,
        }
        fields = {key: value for key, value in (default | spec).items() if value is not None}
        return {
            "apiVersion": names.API_VERSION,
            "kind": mrjob_names.KIND,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": fields,
        }

    def start(self, name: str, **spec: Any) -> str:
        """Apply a job; return its name."""
        self.cluster.apply(self.job(name, **spec))
        return name

    def look(self, name: str) -> mrjobs.MRJob:
        """Return the job now."""
        return mrjobs.read(self.gateway.get(kinds.MRJOB.plural, name))

    def finish(self, name: str, timeout_s: float = TIMEOUT_S) -> mrjobs.MRJob:
        """Wait until a job ends, whichever way."""

        def ended() -> mrjobs.MRJob | None:
            found = self.look(name)
            return found if found.finished else None

        return until(ended, f"mrjob/{name} ends", timeout_s=timeout_s)

    def succeed(self, name: str, timeout_s: float = TIMEOUT_S) -> mrjobs.MRJob:
        """Wait until a job ends, and be sure that it succeeded."""
        job = self.finish(name, timeout_s)
        assert job.phase == "Succeeded", f"{job.phase}: {job.conditions}, {job.failures}"
        return job

    def raw_pods(self, name: str) -> list[model.Raw]:
        """Return the job's pods as the API has them."""
        return self.gateway.pods(f"{names.LABEL_JOB_UID}={self.look(name).uid}")

    def pods(self, name: str) -> list[model.TaskPod]:
        """Return the job's pods."""
        return [model.task_pod(raw) for raw in self.raw_pods(name)]


def make(
    cluster: Cluster,
    credentials: storage.Credentials,
    store: S3Store,
    namespace: str,
    *,
    labels: Mapping[str, str],
) -> Place:
    """Make a namespace with the storage's secret and the scripts."""
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": dict(labels)}},
        storage.secret(credentials, namespace=namespace),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "scripts", "namespace": namespace},
            "data": {"mapper.py": MAPPER, "reducer.py": REDUCER},
        },
    )
    return Place(cluster=cluster, store=store, namespace=namespace)


def script(name: str) -> dict[str, Any]:
    """Return a file of the ConfigMap `scripts`."""
    return {"name": name, "configMapKeyRef": {"name": "scripts", "key": name}}


def until(look: Callable[[], T | None], what: str, *, timeout_s: float = TIMEOUT_S, every_s: float | None = None) -> T:
    """Ask again until the answer is true; fail when the time is up."""
    return waiting.until(look, what, within_s=timeout_s, every_s=every_s)
