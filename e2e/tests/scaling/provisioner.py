"""A small provisioner of real nodes: starts kubelets for pods that say Unschedulable, and ends those of empty nodes."""

import concurrent.futures
import contextlib
import threading
from collections.abc import Iterator, Sequence

from boathouse_e2e import autoscaling
from boathouse_e2e.local.layout import node_name
from boathouse_e2e.spec import Cluster, FaultInjection
from e2e.tests import harness

WORKERS = [node_name(1), node_name(2)]
_EVERY_S = 0.5


class Provisioner:
    """Adds the nodes of a list to a cluster, one at a time, and removes them.

    Args:
        cluster: The cluster.
        provider: Starts and ends kubelets.
        names: The nodes, which are switched off.

    Attributes:
        added: The nodes that were added, in their order.
    """

    def __init__(self, cluster: Cluster, provider: FaultInjection, names: Sequence[str]) -> None:
        self._cluster, self._provider, self._names = cluster, provider, names
        self._ended = threading.Event()
        self.added: list[str] = []

    @contextlib.contextmanager
    def running(self) -> Iterator["Provisioner"]:
        """Add nodes until the block ends, which removes all that are left."""
        assert not self.workers()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            adding = pool.submit(self._run)
            try:
                yield self
            finally:
                self._ended.set()
                adding.result()
                for name in self.workers():
                    self._remove(name)

    def workers(self) -> dict[str, autoscaling.Size]:
        """Return the nodes for jobs that are there."""
        nodes = {node["metadata"]["name"]: node for node in self._cluster.get("nodes")["items"]}
        return {
            name: autoscaling.Size.of(nodes[name]["status"]["allocatable"]) for name in self._names if name in nodes
        }

    def until_empty(self) -> None:
        """Wait until no node is left, and remove each that no pod is on, or would be put on."""
        harness.until(lambda: not self._with_pods(), "no worker is left")

    def _with_pods(self) -> set[str]:
        workers = self.workers()
        used, _ = autoscaling.simulate(workers, self._pods())
        for name in workers.keys() - used:
            self._remove(name)
        return used

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._step()

    def _step(self) -> None:
        workers = self.workers()
        _, unplaced = autoscaling.simulate(workers, self._pods())
        missing = [name for name in self._names if name not in workers]
        if unplaced and missing:
            self._add(missing[0])

    def _pods(self) -> list[autoscaling.Pod]:
        return list(self._cluster.get("pods", "-A")["items"])

    def _add(self, name: str) -> None:
        self._provider.start_again(self._cluster.name, f"kubelet-{name}")
        timeout = f"--timeout={harness.TIMEOUT_S}s"
        for state in ("create", "condition=Ready"):
            self._cluster.run("wait", f"node/{name}", f"--for={state}", timeout, timeout_s=harness.TIMEOUT_S + 10)
        self.added.append(name)

    def _remove(self, name: str) -> None:
        self._provider.switch_off(self._cluster.name, name)
        self._cluster.run("delete", "node", name)
