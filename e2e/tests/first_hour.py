"""`python -m e2e.tests.first_hour`: follow docs/getting-started.md on a new kind cluster, and write what took how long.

Enters the commands of the page as they are, from the build of the images to the uninstall, and compares the objects of
the cluster before and after. With `--from-zero` the cluster has no node for jobs: a provisioner adds real ones and
removes them. The times go into docs/first-hour.md, and what the commands print into build/first-hour.
"""

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from typing_extensions import override

from boathouse_e2e import autoscaling, builders, demo, dockerfiles, pages, paths, shell, tools, waiting
from boathouse_e2e.docker import Docker
from boathouse_e2e.kind import config
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.spec import Cluster, ClusterSpec
from e2e.tests import local_volumes
from e2e.tests.scaling.provisioner import Provisioner

NAME = "kind"  # kind's default, so that `kind load` finds it
PAGE = "docs/getting-started.md"
INSTALL, UNINSTALL = "Build the images", "Uninstall"
JOBS = ("Run a job", "Run a Spark application", "Run a Hadoop cluster")
LOG = paths.REPOSITORY / "docs" / "first-hour.md"
LIMIT_S = 1200
COLLECTED_S = 120
NODE_LEASES = "kube-node-lease"
"""Where a kubelet writes that it lives, even while its node is removed."""
PROGRAMS = ("kind", "helm", "kubectl")
BASES = {".": dockerfiles.PYTHON_BASE, "images/spark": dockerfiles.SPARK_BASE, "images/hadoop": dockerfiles.HADOOP_BASE}

Row = tuple[str, float]


class User:
    """Enters lines into bash, and keeps how long they took.

    Attributes:
        rows: Of the table: a line or a heading, and seconds.
    """

    def __init__(self, cluster: Cluster, docker: Docker, folder: Path, log: Path) -> None:
        plugins = [Path(sys.executable).parent, *(path.parent for path in tools.ensure(PROGRAMS).values())]
        path = ":".join([*map(str, plugins), docker.environment["PATH"]])
        own = {"PATH": path, "KUBECONFIG": str(cluster.kubeconfig), "DOCKER_BUILDKIT": "1", "COLUMNS": "120"}
        self._environment = {**docker.environment, **own}
        self._docker, self._log = docker, log
        self._secrets = builders.pip_secrets(folder)
        self.rows: list[Row] = []

    def follow(self, heading: str) -> None:
        """Enter the lines of a section."""
        lines = pages.console_lines(pages.text_of(PAGE, heading))
        assert lines, heading
        taken = [(f"`{line}`", self._enter(line)) for line in lines]
        self.rows += [(f"**{heading}**", sum(seconds for _, seconds in taken)), *taken]

    def _enter(self, line: str) -> float:
        entered = self._built(line) if line.startswith("docker build ") else line
        started = time.monotonic()
        said = shell.run("bash", "-ec", entered, cwd=paths.REPOSITORY, env=self._environment, timeout_s=LIMIT_S)
        taken_s = time.monotonic() - started
        print(f"{taken_s:7.1f} s  {line}", flush=True)
        with self._log.open("a") as log:
            log.write(f"$ {line}\n{said}")
        return taken_s

    def _built(self, line: str) -> str:
        """Return a build with what it needs on a machine with a package index or a base of its own."""
        head, _, context = line.rpartition(" ")
        words = [head, *self._secrets]
        if not self._docker.obtains(dockerfiles.base_of((paths.REPOSITORY / context / "Dockerfile").read_text())):
            self._docker.run("load", "--quiet", "--input", builders.base_archive(BASES[context]))
            words += ["--build-arg", f"BASE=localhost/boathouse-base:{BASES[context].key()}"]
        return " ".join([*words, context])


class Machines(KindProvider):
    """Nodes that are new machines when they come: without the pod network's configuration of the node of their name."""

    @override
    def switch_off(self, name: str, node: str) -> None:
        self.run_on(name, node, "find", "/etc/cni/net.d", "-type", "f", "-delete")
        super().switch_off(name, node)


class Nodes:
    """The nodes for jobs: all of them all the time, or from zero."""

    def __init__(self, cluster: Cluster, provider: KindProvider, spec: ClusterSpec, *, from_zero: bool) -> None:
        self._system, *workers = config.node_names(spec)[1:]
        self._workers = workers if from_zero else [self._system]
        self._cluster, self._provider, self._from_zero = cluster, provider, from_zero

    @contextlib.contextmanager
    def with_volume(self) -> Iterator[None]:
        """Have a volume for the first job's claim on a node for jobs; the operator gets another one."""
        with local_volumes.reserved(self._cluster, pages.NAMESPACE, "first-mrjob", node=self._workers[0]):
            if self._from_zero:
                self._cluster.run("cordon", *self._workers)
            yield

    @contextlib.contextmanager
    def scaling(self) -> Iterator[Provisioner | None]:
        """Remove the nodes for jobs, and add them for pods while the block runs; the operator's takes no other pods."""
        if not self._from_zero:
            yield None
            return
        self._cluster.run("taint", "node", self._system, "tests.boathouse.dev/system=true:NoSchedule")
        for name in self._workers:
            self._provider.switch_off(NAME, name)
            self._cluster.run("delete", "node", name)
        with Provisioner(self._cluster, self._provider, self._workers).running() as provisioner:
            yield provisioner
        self._cluster.run("taint", "node", self._system, "tests.boathouse.dev/system-")

    def removed(self, provisioner: Provisioner) -> Row:
        """Remove the nodes as they get empty; return how many there were, and how long that took."""
        started = time.monotonic()
        provisioner.until_empty()
        came = len(provisioner.added)
        provisioner.added.clear()
        return f"nodes that came, and are removed again: {came}", time.monotonic() - started


def objects(cluster: Cluster) -> set[str]:
    """Return all objects but Events, and what kubelets and DaemonSets have of nodes that come and go."""
    kinds = cluster.run("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(kind for kind in kinds if kind.partition(".")[0] != "events")
    found = [item for item in cluster.get(wanted, "-A")["items"] if not autoscaling.of_daemon_set(item)]
    names = {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in found}
    return {f"{kind} {namespace}/{name}" for kind, namespace, name in names if namespace != NODE_LEASES}


def try_out(cluster: Cluster, nodes: Nodes, user: User) -> list[str]:
    """Follow the page from the first command to the last; return the objects that are left afterwards."""
    before = objects(cluster)
    user.follow(INSTALL)
    with nodes.scaling() as provisioner:
        for heading in JOBS:
            user.follow(heading)
            if provisioner:
                user.rows.append(nodes.removed(provisioner))
    user.follow(UNINSTALL)
    with contextlib.suppress(AssertionError):  # the caller reports them
        waiting.until(lambda: objects(cluster) <= before, "nothing is left", within_s=COLLECTED_S, every_s=5)
    return sorted(objects(cluster) - before)


def write(name: str, rows: Sequence[Row]) -> None:
    """Write the table of a cluster into the page."""
    table = "".join(f"| {what} | {seconds:.1f} |\n" for what, seconds in rows)
    head, begin, rest = LOG.read_text().partition(f"<!-- {name} -->\n")
    _, end, tail = rest.partition(f"<!-- /{name} -->")
    LOG.write_text(f"{head}{begin}| command | seconds |\n|---|---:|\n{table}{end}{tail}")


def main() -> None:
    """Start a cluster, follow the page, write the page of times, and stop the cluster."""
    parser = argparse.ArgumentParser(prog="python -m e2e.tests.first_hour", description=__doc__)
    parser.add_argument("--from-zero", action="store_true", help="start without a node for jobs")
    from_zero = parser.parse_args().from_zero
    name = "from-zero" if from_zero else "two-nodes"
    provider, spec = Machines(), ClusterSpec(name=NAME, nodes=3 if from_zero else 2)
    log = paths.REPOSITORY / "build" / "first-hour" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    cluster = provider.up(spec)
    try:
        nodes = Nodes(cluster, provider, spec, from_zero=from_zero)
        with tempfile.TemporaryDirectory() as folder, nodes.with_volume():
            user = User(cluster, provider.docker(NAME), Path(folder), log)
            left = try_out(cluster, nodes, user)
    except BaseException:
        demo.save(cluster, pages.NAMESPACE, log.with_suffix(""))
        raise
    finally:
        provider.down(NAME)
    write(name, [*user.rows, ("**all**", sum(seconds for what, seconds in user.rows if what.startswith("**")))])
    print(f"left in the cluster: {', '.join(left) or 'nothing'}; written: {LOG}")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
