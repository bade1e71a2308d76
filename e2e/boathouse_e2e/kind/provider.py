"""The kind provider: a control plane and workers in Docker containers, started and ended by this module."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import yaml

from boathouse_e2e import catalogue, kwok, tools
from boathouse_e2e.archive import mark
from boathouse_e2e.docker import Docker, docker_answers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind import config, daemon, node_image
from boathouse_e2e.local import cleanup, control_plane, network, processes, state
from boathouse_e2e.local.processes import Component
from boathouse_e2e.paths import images_folder, locked
from boathouse_e2e.shell import run, succeeds
from boathouse_e2e.spec import Cluster, ClusterSpec, ComponentStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boathouse_e2e.local.state import State

READY_TIMEOUT = "300s"
_DOCKER_TIMEOUT_S = 60
_KWOK_NETWORK = "10.224.0.0/16"
_NETWORK = "kind"
_CUT: Final = "boathouse_cut_off"
_CUT_RULES: Final = f"""table inet {_CUT} {{
  chain input {{ type filter hook input priority -300; iifname "eth0" drop; }}
  chain output {{ type filter hook output priority -300; oifname "eth0" drop; }}
  chain forward {{ type filter hook forward priority -300; iifname "eth0" drop; oifname "eth0" drop; }}
}}"""


class KindProvider:
    """Clusters of Docker containers."""

    name = state.KIND

    def missing(self, spec: ClusterSpec) -> list[str]:
        """Return what kind lacks for the spec on this machine."""
        wrong = _remote() if docker_answers() else daemon.missing()
        if spec.kubernetes != catalogue.DEFAULT_RELEASE:
            wrong.append(f"Kubernetes {spec.kubernetes} is had from the local provider only (PROVIDER=local)")
        if spec.audit_log and os.geteuid() != 0:
            wrong.append("only root may read the audit log of a kind cluster: run as root, or use PROVIDER=local")
        return wrong

    def up(self, spec: ClusterSpec) -> Cluster:
        """Create the cluster; what is left of an earlier one is removed, one that is up with the spec is returned.

        Raises:
            ClusterError: there is no Docker and none can be started, another one of that name is up, or kind failed.
        """
        spec = spec.validated()
        if problems := self.missing(spec):
            raise ClusterError("\n".join(problems))
        tools.ensure(catalogue.for_provider(self.name, nodes=spec.nodes, kwok_nodes=spec.kwok_nodes))
        with locked(state.lock_of(spec.name)):
            if up_already := self._already_up(spec):
                return up_already
            own_docker = not docker_answers()
            if not own_docker:
                _refuse_foreign(spec.name)
            begun = state.begin(spec, provider=self.name, own_docker=own_docker)
            try:
                Start(begun).run()
            except BaseException as error:
                try:
                    _end(begun, keep_logs=True)
                except ClusterError as second:
                    raise ClusterError(f"{error}\nand what was started did not end: {second}") from error
                raise
            begun.ready().save()
        return _cluster(begun)

    def _already_up(self, spec: ClusterSpec) -> Cluster | None:
        known = state.load(spec.name, self.name)
        if known is None:
            return None
        if known.phase == state.READY and _lives(known):
            if known.spec != spec:
                raise ClusterError(f"a cluster {spec.name!r} is up with other settings: end it first, or choose a name")
            return _cluster(known)
        print(f"Ending what is left of cluster {spec.name!r}", flush=True)
        _end(known)
        return None

    def down(self, name: str) -> None:
        """Delete the cluster and what was made for it; no error where there is none."""
        with locked(state.lock_of(name), remove=True):
            if known := state.load(name, self.name):
                _end(known)

    def find(self, name: str) -> Cluster | None:
        """Return the cluster of this name, if it is up."""
        known = state.load(name, self.name)
        return _cluster(known) if known and known.phase == state.READY and _lives(known) else None

    def status(self, name: str) -> list[ComponentStatus]:
        """Return the cluster's processes on this machine, and its nodes."""
        known = state.load(name, self.name)
        if known is None:
            return []
        parts = [processes.status(known.cluster_id, component) for component in processes.known(known.layout.folder)]
        if known.phase != state.READY:
            return parts
        return [*parts, *kwok.node_status(_cluster(known).get("nodes")["items"])]

    def load_images(self, cluster: Cluster, archives: Sequence[Path]) -> None:
        """Load docker-archive files into every node that takes pods, those left out that were loaded before."""
        known = _known(cluster.name)
        marks = {archive: known.layout.folder / "images" / mark(archive) for archive in archives}
        new = [archive for archive in archives if not marks[archive].exists()]
        seen = [archive for archive in new if archive.resolve().parent == images_folder().resolve()]
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(lambda node: _import(known, node, seen), config.node_names(known.spec)[-known.spec.nodes :]))
        if others := [archive for archive in new if archive not in seen]:
            environment = _docker(known).environment
            run(_kind(), "load", "image-archive", *others, "--name", cluster.name, env=environment)
        for archive in new:
            marks[archive].parent.mkdir(exist_ok=True)
            marks[archive].touch()

    def signal(self, name: str, component: str, number: signal.Signals) -> None:
        """Send a signal to a component's process, for tests of faults.

        SIGCONT mends a SIGSTOP, `start_again` a SIGKILL of a kubelet. Components of the control plane that are killed
        are started by their kubelet.

        Args:
            name: The cluster's.
            component: `kubelet-NODE`, or a program of the control plane such as `kube-scheduler`.
            number: The signal.

        Raises:
            ClusterError: there is no such cluster, or the component does not run.
        """
        program, node = _place_of(_known(name), component)
        self.run_on(name, node, "sh", "-c", f'kill -{number.value} $(pidof "{program}")')
        if number == signal.SIGKILL and program == "kubelet":
            self.run_on(name, node, "systemctl", "stop", "kubelet")  # systemd would start it again

    def runs(self, name: str, component: str) -> bool:
        """Return whether a component's process is there.

        Raises:
            ClusterError: there is no such cluster.
        """
        program, node = _place_of(_known(name), component)
        return _docker(_known(name)).succeeds("exec", node, "pidof", program)

    def start_again(self, name: str, component: str) -> None:
        """Start a kubelet again that was killed, or a node that was switched off.

        Raises:
            ClusterError: there is no such cluster or kubelet.
        """
        known = _known(name)
        node = component.removeprefix("kubelet-")
        if not component.startswith("kubelet-") or node not in config.node_names(known.spec):
            raise ClusterError(f"no component {component!r} to start; there is a kubelet-NODE for each node")
        docker = _docker(known)
        if docker.run("inspect", "--format", "{{.State.Running}}", node).strip() == "true":
            docker.run("exec", node, "systemctl", "start", "kubelet")
        else:
            docker.run("start", node)  # systemd starts the kubelet

    def switch_off(self, name: str, node: str) -> None:
        """End all processes of a node, as a machine that loses its power. Its kubelet, started again, brings it back.

        Raises:
            ClusterError: there is no such cluster, or the node does not run.
        """
        _docker(_known(name)).run("kill", node)

    def cut_off(self, name: str, node: str) -> None:
        """Drop every packet between a node and the others, until `rejoin`."""
        self.run_on(name, node, "nft", _CUT_RULES)

    def rejoin(self, name: str, node: str) -> None:
        """Undo `cut_off`."""
        self.run_on(name, node, "nft", "delete", "table", "inet", _CUT)

    def run_on(self, name: str, node: str, *command: str, stdin: str = "") -> str:
        """Run a command on a node; returns what it wrote.

        Raises:
            ClusterError: there is no such cluster or node, or the command failed.
        """
        return self.docker(name).run("exec", "--interactive", node, *command, stdin=stdin)

    def docker(self, name: str) -> Docker:
        """Return the daemon that has the nodes.

        Raises:
            ClusterError: there is no such cluster.
        """
        return _docker(_known(name))


class Start:
    """The steps from a written state to a ready cluster."""

    def __init__(self, begun: State) -> None:
        self._state = begun
        self._layout = begun.layout
        self._spec = begun.spec
        self._docker = _docker(begun)

    def run(self) -> None:
        """Start everything, in the order in which one part needs another."""
        self._layout.folder.mkdir(parents=True, exist_ok=True)
        images_folder().mkdir(parents=True, exist_ok=True)
        if self._state.own_docker:
            self._start_docker()
        elif not self._docker.succeeds("network", "inspect", _NETWORK):
            _network_mark(self._state).touch()
        if self._spec.audit_log:
            control_plane.write_audit_policy(self._layout.folder, self._spec.audit_log)
        self._create(self._image())
        if self._spec.kwok_nodes:
            self._start_kwok()

    def _start_docker(self) -> None:
        daemon.install()
        started = time.monotonic()
        cleanup.save_machine()
        enter = network.create(self._state, tools.ensure(["pause"])["pause"])
        for component in daemon.components(self._layout):
            processes.start(component, cluster_id=self._state.cluster_id, folder=self._layout.folder, enter=enter)
        while not self._docker.answers():
            if time.monotonic() > started + _DOCKER_TIMEOUT_S:
                raise ClusterError(f"Docker did not start: {processes.log_tail(daemon.log_of(self._layout))}")
            time.sleep(0.2)
        print(f"  a Docker daemon of the cluster's own answers ({time.monotonic() - started:.1f} s)", flush=True)

    def _image(self) -> str:
        """Return the image of the nodes, once Docker has it."""
        published = node_image.published_image()
        if why_not := self._docker.pull(published):
            print(f"  no {published}: {why_not}", flush=True)
            return self._own_image()
        return published

    def _own_image(self) -> str:
        name = node_image.name()
        if not self._docker.succeeds("image", "inspect", name):
            archive = node_image.ensure()
            started = time.monotonic()
            self._docker.run("load", "--quiet", "--input", archive)
            print(f"  Docker has the nodes' image ({time.monotonic() - started:.1f} s)", flush=True)
        return name

    def _machine(self) -> config.Machine:
        offered = json.loads(self._docker.run("info", "--format", "{{json .}}"))
        layout = self._layout
        return config.Machine(
            cpus=offered["NCPU"],
            memory_mib=offered["MemTotal"] // 2**20,
            archives=images_folder(),
            audit_policy=layout.folder / control_plane.AUDIT_POLICY,
            api=(layout.api_address, layout.api_port) if self._state.own_docker else None,
        )

    def _create(self, image: str) -> None:
        settings = self._layout.folder / "kind.json"
        settings.write_text(json.dumps(config.kind_config(self._spec, self._machine()), indent=1))
        started = time.monotonic()
        marks = {processes.CLUSTER_MARK: self._state.cluster_id, processes.COMPONENT_MARK: "kind"}
        run(
            *(_kind(), "create", "cluster", "--name", self._spec.name, "--config", settings, "--image", image),
            *("--kubeconfig", self._layout.kubeconfig, "--wait", READY_TIMEOUT),
            env={**self._docker.environment, **marks},  # it survives a killed starter, and `down` must find it
        )
        ready = ("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY_TIMEOUT}")
        _cluster(self._state).run(*ready, timeout_s=400)
        version = _cluster(self._state).get("nodes")["items"][0]["status"]["nodeInfo"]["kubeletVersion"]
        print(f"  all nodes are ready, with Kubernetes {version} ({time.monotonic() - started:.1f} s)", flush=True)

    def _start_kwok(self) -> None:
        cluster, spec = _cluster(self._state), self._spec
        lease_s = control_plane.lease_duration_s(spec)
        arguments = kwok.arguments(spec, cluster.kubeconfig, network=_KWOK_NETWORK, lease_duration_s=lease_s)
        log = str(self._layout.logs / "kwok.log")
        component = Component(name="kwok", command=(str(tools.ensure(["kwok"])["kwok"]), *arguments), log=log)
        processes.start(component, cluster_id=self._state.cluster_id, folder=self._layout.folder)
        cluster.apply(*(kwok.node(spec, index) for index in range(spec.kwok_nodes)))
        cluster.run("wait", "--for=condition=Ready", "nodes", "-l", "type=kwok", "--timeout=120s")


def _end(known: State, *, keep_logs: bool = False) -> None:
    """End a cluster from any state; may be repeated.

    Raises:
        ClusterError: the user's Docker, which has its nodes, does not answer.
    """
    if not known.own_docker:
        docker = _docker(known)
        if not docker.answers():
            raise ClusterError(f"Docker has the nodes of cluster {known.spec.name!r} and does not answer: start it")
        kubeconfig = known.layout.kubeconfig
        run(_kind(), "delete", "cluster", "--name", known.spec.name, "--kubeconfig", kubeconfig, env=docker.environment)
        if _network_mark(known).exists():
            docker.succeeds("network", "rm", _NETWORK)  # refused while another cluster uses it
    cleanup.end(known, keep_logs=keep_logs)


def _network_mark(known: State) -> Path:
    """Return the file that says that Docker had no network of kind's before."""
    return known.layout.folder / "network-of-ours"


def _docker(known: State) -> Docker:
    return daemon.client(known.layout) if known.own_docker else Docker()


def _remote() -> list[str]:
    """Return why the user's Docker cannot have the cluster: its nodes read folders of this machine."""
    host = Docker().run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").strip()
    if host.startswith(("unix://", "npipe://")):
        return []
    return [f"Docker is on another machine ({host}), and kind's nodes read folders of this one: select a local Docker"]


def _refuse_foreign(name: str) -> None:
    """Be sure that a cluster of the user's, which `down` would delete, has not this name.

    Raises:
        ClusterError: one has.
    """
    if Docker().run("ps", "--all", "--quiet", "--filter", f"label=io.x-k8s.kind.cluster={name}").strip():
        raise ClusterError(
            f"Docker has a kind cluster {name!r} that was not started from here: choose another name, or delete it "
            f"with `kind delete cluster --name {name}`"
        )


def _kind() -> Path:
    return tools.ensure(["kind"])["kind"]


def _import(known: State, node: str, archives: Sequence[Path]) -> None:
    """Import archives of the images' folder, which nodes see, into a node's containerd."""
    for archive in archives:
        inside = f"{config.ARCHIVES}/{archive.name}"
        _docker(known).run("exec", node, "ctr", "--namespace=k8s.io", "images", "import", "--local", inside)


def _place_of(known: State, component: str) -> tuple[str, str]:
    """Return the program of a component, and the node on which it runs."""
    if component.startswith("kubelet-"):
        return "kubelet", component.removeprefix("kubelet-")
    return component, config.node_names(known.spec)[0]


def _known(name: str) -> State:
    known = state.load(name, state.KIND)
    if known is None:
        raise ClusterError(f"there is no kind cluster {name!r}")
    return known


def _lives(known: State) -> bool:
    if not _docker(known).answers():
        return False
    return succeeds(*_cluster(known).kubectl_command("get", "--raw=/readyz"))


def _cluster(known: State) -> Cluster:
    kubeconfig, context = known.layout.kubeconfig, f"kind-{known.spec.name}"
    return Cluster(
        name=known.spec.name,
        provider=state.KIND,
        kubeconfig=kubeconfig,
        context=context,
        kubectl=tools.ensure(["kubectl"])["kubectl"],
        server=yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"],
    )
