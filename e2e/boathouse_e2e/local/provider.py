"""The local provider: real Kubernetes processes on this machine, started and ended by this module."""

from __future__ import annotations

import time
from signal import SIGKILL
from types import MappingProxyType
from typing import TYPE_CHECKING

from boathouse_e2e import catalogue, kwok, tools
from boathouse_e2e.archive import mark
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups, checks, cleanup, control_plane, network, node, processes, state
from boathouse_e2e.local.api import Api
from boathouse_e2e.local.processes import Component
from boathouse_e2e.paths import locked
from boathouse_e2e.spec import Cluster, ClusterSpec, ComponentStatus

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from boathouse_e2e.local.state import State

READY_TIMEOUT_S = 300  # a process that ends is seen at once; this is for a machine that is slow or busy
_POLL_S = 0.1


class LocalProvider:
    """Clusters of processes on this machine."""

    name = "local"

    def missing(self, spec: ClusterSpec) -> list[str]:
        """Return what this machine lacks for the spec; Debian packages are not missing where they can be installed."""
        return checks.missing(spec)

    def up(self, spec: ClusterSpec) -> Cluster:
        """Start a cluster; one that half lives is ended first, one that is up with the same spec is returned.

        Raises:
            ClusterError: it cannot run here, another one of that name is up, or something did not become ready.
        """
        spec = spec.validated()
        checks.prepare(spec)
        names = catalogue.for_provider(self.name, nodes=spec.nodes, kwok_nodes=spec.kwok_nodes)
        programs = tools.ensure(names, spec.kubernetes)
        with locked(state.lock_of(spec.name)):
            if up_already := self._already_up(spec):
                return up_already
            begun = state.begin(spec)
            try:
                Start(begun, programs).run()
            except BaseException:
                cleanup.end(begun, keep_logs=True)
                raise
            begun.ready().save()
        return _cluster(begun, programs["kubectl"])

    def _already_up(self, spec: ClusterSpec) -> Cluster | None:
        known = state.load(spec.name, state.LOCAL)
        if known is None:
            return None
        if known.phase == state.READY and _lives(known):
            if known.spec != spec:
                raise ClusterError(f"a cluster {spec.name!r} is up with other settings: end it first, or choose a name")
            return self.find(spec.name)
        print(f"Ending what is left of cluster {spec.name!r}", flush=True)
        cleanup.end(known)
        return None

    def down(self, name: str) -> None:
        """End the cluster; no error where there is none."""
        with locked(state.lock_of(name), remove=True):
            if known := state.load(name, state.LOCAL):
                cleanup.end(known)

    def find(self, name: str) -> Cluster | None:
        """Return the cluster of this name, if it is up."""
        known = state.load(name, state.LOCAL)
        if known is None or known.phase != state.READY or not _answers(known):  # as after a restart of the machine
            return None
        return _cluster(known, tools.ensure(["kubectl"])["kubectl"])

    def status(self, name: str) -> list[ComponentStatus]:
        """Return each component's process and log, and whether each node is ready."""
        known = state.load(name, state.LOCAL)
        if known is None:
            return []
        parts = [processes.status(known.cluster_id, component) for component in processes.known(known.layout.folder)]
        return parts + _node_status(known)

    def signal(self, name: str, component: str, number: signal.Signals) -> None:
        """Send a signal to a component's process, for tests of faults.

        SIGCONT mends a SIGSTOP, `start_again` a SIGKILL.

        Raises:
            ClusterError: there is no such cluster, or the component does not run.
        """
        known = _known(name)
        process = processes.find_component(known.cluster_id, component)
        if process is None or not processes.send(process, known.cluster_id, number):
            raise ClusterError(f"{component} does not run in cluster {name!r}")

    def runs(self, name: str, component: str) -> bool:
        """Return whether a component's process is there.

        Raises:
            ClusterError: there is no such cluster.
        """
        return processes.find_component(_known(name).cluster_id, component) is not None

    def start_again(self, name: str, component: str) -> None:
        """Start a component again that was killed, as it was started.

        Raises:
            ClusterError: there is no such cluster or component.
        """
        known = _known(name)
        kept = {one.name: one for one in processes.known(known.layout.folder)}
        if component not in kept or component == network.HOLDER:
            raise ClusterError(f"no component {component!r} to start; there are {', '.join(kept)}")
        pid = network.holder_pid(known)
        into = network.enter(pid) if pid else ()
        processes.start(kept[component], cluster_id=known.cluster_id, folder=known.layout.folder, enter=into)

    def switch_off(self, name: str, node: str) -> None:
        """End a node's kubelet and all processes of its pods, as a machine that loses its power.

        Its kubelet, started again, brings it back.

        Raises:
            ClusterError: there is no such cluster, or the kubelet does not run.
        """
        known = _known(name)
        self.signal(name, f"kubelet-{node}", SIGKILL)
        cgroups.kill(f"{known.layout.cgroup}/{node}")

    def load_images(self, cluster: Cluster, archives: Sequence[Path]) -> None:
        """Import docker-archive files into the containerd of every node, those left out that were imported before."""
        known = _known(cluster.name)
        marks = {archive: known.layout.folder / "images" / mark(archive) for archive in archives}
        new = [archive for archive, mark in marks.items() if not mark.exists()]
        if not new:
            return
        node.import_images(known, tools.ensure(["ctr"])["ctr"], new)
        for archive in new:
            marks[archive].parent.mkdir(exist_ok=True)
            marks[archive].touch()


class Start:
    """The steps from a written state to a ready cluster."""

    def __init__(self, begun: State, programs: Mapping[str, Path]) -> None:
        self._state = begun
        self._layout = begun.layout
        self._spec = begun.spec
        self._programs = programs
        self._enter: tuple[str, ...] = ()

    def run(self) -> None:
        """Start everything, in the order in which one part needs another, and wait for it."""
        control_plane.write_files(self._layout, self._spec)
        if self._layout.isolated:
            cleanup.save_machine()
            self._enter = network.create(self._state, self._programs["pause"])
            self._launch(*node.runtimes(self._layout, self._programs))
        self._start_control_plane()
        if self._layout.isolated:
            self._start_nodes()
        if self._spec.kwok_nodes:
            self._start_kwok()

    def _launch(self, *components: Component) -> None:
        for component in components:
            processes.start(component, cluster_id=self._state.cluster_id, folder=self._layout.folder, enter=self._enter)

    def _start_control_plane(self) -> None:
        layout, spec, programs = self._layout, self._spec, self._programs
        server = (control_plane.etcd(layout, programs), control_plane.kube_apiserver(layout, spec, programs))
        clients = (
            control_plane.kube_controller_manager(layout, spec, programs),
            control_plane.kube_scheduler(layout, spec, programs),
        )
        names = [component.name for component in (*server, *clients)]
        self._launch(*server)
        with self._api() as api:
            # The controller manager ends when its roles are not there within 10 s, which a busy machine exceeds.
            self._wait("the API server is ready", api.ready, [component.name for component in server])
            self._launch(*clients)
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait("the controllers work", lambda: api.exists(account), names)

    def _start_nodes(self) -> None:
        with self._api() as api:
            for path, item in node.dns_objects(self._layout):
                api.create(path, item)
            node.import_pause_image(self._state, self._programs)
            agents = {one.name: one for one in node.agents(self._layout, self._spec, self._programs)}
            self._launch(*agents.values())
            # Two kubelets that start in the same moment may meet at the one socket path that kubelets have built in.
            self._wait("all nodes are ready", lambda: ready_nodes(api) >= self._spec.nodes, agents, again=agents)

    def _start_kwok(self) -> None:
        kubeconfig = control_plane.kubeconfig_of(self._layout, "kwok")
        lease_s = control_plane.lease_duration_s(self._spec)
        arguments = kwok.arguments(self._spec, kubeconfig, network=self._layout.kwok_network, lease_duration_s=lease_s)
        log = str(self._layout.logs / "kwok.log")
        self._launch(Component(name="kwok", command=(str(self._programs["kwok"]), *arguments), log=log))
        wanted = self._spec.nodes + self._spec.kwok_nodes
        with self._api() as api:
            for index in range(self._spec.kwok_nodes):
                api.create("/api/v1/nodes", kwok.node(self._spec, index))
            self._wait("all fake nodes are ready", lambda: ready_nodes(api) >= wanted, ["kwok"])

    def _api(self) -> Api:
        return Api(self._layout)

    def _wait(
        self,
        what: str,
        condition: Callable[[], bool],
        needed: Iterable[str],
        again: Mapping[str, Component] = MappingProxyType({}),
    ) -> None:
        """Wait for a condition; give up at once where a needed component's process has ended.

        An answer that the API server does not give in time is one more reason to wait.

        Args:
            what: For people.
            condition: What is waited for.
            needed: Names of components.
            again: Those that are started once more where they end, as systemd would.
        """
        needed, started, left = list(needed), time.monotonic(), dict(again)
        while not _holds(condition):
            waited_s = time.monotonic() - started
            ended = [name for name in needed if waited_s > 1 and not self._lives(name)]
            if ended and all(name in left for name in ended):
                self._launch(*(left.pop(name) for name in ended))
            elif ended or waited_s > READY_TIMEOUT_S:
                raise ClusterError(self._failure(what, ended or needed, ended=bool(ended)))
            time.sleep(_POLL_S)
        print(f"  {what} ({time.monotonic() - started:.1f} s)", flush=True)

    def _lives(self, component: str) -> bool:
        """Return whether it runs, or is still on its way into the namespaces, which takes a busy machine seconds."""
        return any(one.component == component for one in processes.find(self._state.cluster_id))

    def _failure(self, what: str, components: Sequence[str], *, ended: bool) -> str:
        logs = [self._layout.logs / f"{name}.log" for name in components]
        tails = "\n".join(f"--- {log}\n{processes.log_tail(log)}" for log in logs)
        reason = f"{', '.join(components)} ended" if ended else f"it was not so after {READY_TIMEOUT_S} s"
        return f"waited until {what}: {reason}\n{tails}"


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except OSError:
        return False


def ready_nodes(api: Api) -> int:
    """Return how many nodes are Ready."""
    return sum(1 for item in api.get("/api/v1/nodes").get("items", []) if kwok.is_ready(item))


def _known(name: str) -> State:
    known = state.load(name, state.LOCAL)
    if known is None:
        raise ClusterError(f"there is no local cluster {name!r}")
    return known


def _cluster(known: State, kubectl: Path) -> Cluster:
    layout = known.layout
    return Cluster(
        name=known.spec.name,
        provider="local",
        kubeconfig=layout.kubeconfig,
        context=None,
        kubectl=kubectl,
        server=layout.server,
    )


def _lives(known: State) -> bool:
    components = processes.known(known.layout.folder)
    if not all(processes.find_component(known.cluster_id, component.name) for component in components):
        return False
    return _answers(known)


def _answers(known: State) -> bool:
    with Api(known.layout) as api:
        return api.ready()


def _node_status(known: State) -> list[ComponentStatus]:
    try:
        with Api(known.layout) as api:
            items = api.get("/api/v1/nodes")["items"]
    except OSError as error:
        return [ComponentStatus(name="API server", state=f"does not answer: {error}")]
    return kwok.node_status(items)
