"""A kind cluster: its configuration, the image of its nodes, and whose Docker runs it."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from boathouse_e2e import catalogue, debian, gotoolchain, providers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind import capabilities, config, daemon, manifests, node_image, provider as kind
from boathouse_e2e.local import state
from boathouse_e2e.local.layout import Layout
from boathouse_e2e.shell import run
from boathouse_e2e.spec import ClusterSpec

MACHINE = config.Machine(cpus=8, memory_mib=16384, archives=Path("/archives"), audit_policy=Path("/x/policy.json"))
STATUS = "Name:\tcat\nCapBnd:\t{:016x}\n"
ALL_BITS = (1 << len(capabilities.NAMES)) - 1
SYS_RESOURCE = capabilities.NAMES.index("SYS_RESOURCE")


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def patches(spec, machine=MACHINE):
    """kubeadm's settings of the control plane, and those of the kubelets."""
    return [json.loads(patch) for patch in config.kind_config(spec, machine)["kubeadmConfigPatches"]]


def arguments(component):
    return {argument["name"]: argument["value"] for argument in component["extraArgs"]}


def test_workers_are_as_many_as_the_spec_has_nodes_beside_the_control_plane():
    spec = ClusterSpec(name="c", nodes=2)
    assert [node["role"] for node in config.kind_config(spec, MACHINE)["nodes"]] == [
        "control-plane",
        "worker",
        "worker",
    ]
    assert config.node_names(spec) == ["c-control-plane", "c-worker", "c-worker2"]


def test_a_kubelet_reserves_what_its_node_shall_not_offer():
    _, kubelet = patches(ClusterSpec(node_cpu=2, node_memory_mib=4096))
    assert kubelet["kubeReserved"] == {"cpu": "6", "memory": f"{16384 - 4096 - 100}Mi"}


def test_the_grace_period_and_the_users_own_flags_reach_the_control_plane():
    spec = ClusterSpec(node_monitor_grace_period_s=8, apiserver_args=("--v=2",), scheduler_args=("--kube-api-qps=9",))
    cluster, kubelet = patches(spec)
    assert arguments(cluster["controllerManager"])["node-monitor-grace-period"] == "8s"
    assert arguments(cluster["apiServer"])["v"] == "2"
    assert arguments(cluster["scheduler"]) == {"kube-api-qps": "9"}
    assert kubelet["nodeLeaseDurationSeconds"] == 8


def test_the_audit_log_is_a_file_of_the_machine_that_the_api_server_sees():
    spec = ClusterSpec(audit_log=Path("/logs/audit.log"))
    server = patches(spec)[0]["apiServer"]
    mounts = config.kind_config(spec, MACHINE)["nodes"][0]["extraMounts"]
    (inside,) = [mount["containerPath"] for mount in mounts if mount["hostPath"] == "/logs"]
    assert arguments(server)["audit-log-path"] == f"{inside}/audit.log"
    assert inside in {volume["hostPath"] for volume in server["extraVolumes"]}
    assert patches(ClusterSpec())[0]["apiServer"]["extraVolumes"] == []


def test_the_api_server_is_reached_at_the_address_of_the_clusters_own_docker():
    networking = config.kind_config(ClusterSpec(), dataclasses.replace(MACHINE, api=("10.192.255.2", 21000)))[
        "networking"
    ]
    assert (networking["apiServerAddress"], networking["apiServerPort"]) == ("10.192.255.2", 21000)
    assert "apiServerAddress" not in config.kind_config(ClusterSpec(), MACHINE)["networking"]


def test_kubeadm_and_kind_read_the_manifests_as_yaml():
    objects = list(yaml.safe_load_all(manifests.pod_network()))
    assert [manifest["kind"] for manifest in objects] == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "DaemonSet",
    ]
    (storage_class,) = yaml.safe_load_all(manifests.storage())
    assert "annotations" not in storage_class["metadata"]  # not the default: nothing makes its volumes


def test_the_node_image_is_built_again_when_a_tool_changes(monkeypatch):
    before = node_image.key()
    changed = dataclasses.replace(catalogue.TOOLS_BY_NAME["kubelet"], package="another")
    monkeypatch.setattr(type(changed), "key", lambda tool: f"{tool.name}-{tool.package}")
    one = node_image.key()
    monkeypatch.setitem(catalogue.TOOLS_BY_NAME, "kubelet", changed)
    assert len({before, one, node_image.key()}) == 3


def test_the_sandbox_image_is_the_one_that_kinds_containerd_names():
    assert (
        node_image.sandbox_image('  sandbox_image = "registry.example/pause:3.10"\n') == "registry.example/pause:3.10"
    )
    with pytest.raises(ClusterError, match="sandbox_image"):
        node_image.sandbox_image("")


def test_all_containers_of_a_node_have_its_product_name_and_no_limit_of_open_files():
    default = {"process": {"args": ["sh"], "rlimits": [1]}, "root": {}}
    specification = node_image.base_specification(default)
    assert specification["process"] == {"args": ["sh"]}
    assert specification["hooks"]["createContainer"][0]["path"].startswith("/kind/bin/")


@pytest.mark.parametrize(
    ("bounding", "lacking"), [(ALL_BITS, set()), (ALL_BITS & ~(1 << SYS_RESOURCE), {"CAP_SYS_RESOURCE"})]
)
def test_the_capabilities_that_a_machine_lacks_are_read_from_the_bounding_set(bounding, lacking):
    assert capabilities.missing(STATUS.format(bounding), last=len(capabilities.NAMES) - 1) == lacking


def test_a_bundle_and_a_process_file_lose_the_capabilities_that_are_missing(tmp_path):
    process = {"args": ["init"], "capabilities": {"bounding": ["CAP_KILL", "CAP_SYS_RESOURCE"]}}
    (tmp_path / "config.json").write_text(json.dumps({"ociVersion": "1", "process": process}))
    (tmp_path / "process.json").write_text(json.dumps(process))
    capabilities.adapt(["create", "--bundle", str(tmp_path), "id"], {"CAP_SYS_RESOURCE"})
    capabilities.adapt(["exec", f"--process={tmp_path / 'process.json'}", "id"], {"CAP_SYS_RESOURCE"})
    written = [json.loads((tmp_path / name).read_text()) for name in ("config.json", "process.json")]
    assert [written[0]["process"], written[1]] == [{"args": ["init"], "capabilities": {"bounding": ["CAP_KILL"]}}] * 2


def test_the_script_in_place_of_runc_hands_its_arguments_on(tmp_path):
    runc, script = tmp_path / "bin" / "runc", tmp_path / "script"
    runc.parent.mkdir()
    for path, text in ((runc, '#!/bin/sh\necho "$@"\n'), (script, capabilities.shim(sys.executable))):
        path.write_text(text)
        path.chmod(0o755)
    path = f"{runc.parent}:{os.environ['PATH']}"
    assert run(script, "state", "a b", env={**os.environ, "PATH": path}) == "state a b\n"


def test_without_docker_kind_needs_root_on_debian_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(kind, "docker_answers", lambda: False)
    monkeypatch.setattr(debian, "can_install", lambda: False)
    with pytest.raises(ClusterError, match="start Docker, or run as root on Debian"):
        kind.KindProvider().up(ClusterSpec(name="x"))


@pytest.fixture
def docker(monkeypatch, tmp_path):
    """The user's Docker: a script, which gives these answers to commands by their first words."""

    def answer(**answers):
        folder = tmp_path / "bin"
        folder.mkdir()
        cases = "".join(f"{word}) echo {answer!r};;" for word, answer in answers.items())
        (folder / "docker").write_text(f"#!/bin/sh\ncase $1 in {cases} *) echo Error: no $1 >&2; exit 1;; esac\n")
        (folder / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setattr(kind.tools, "ensure", lambda names: dict.fromkeys(names, folder / "none"))

    return answer


def test_a_kind_cluster_that_the_user_has_is_not_deleted_for_one_of_the_same_name(docker, monkeypatch):
    docker(info="", context="unix:///var/run/docker.sock", ps="3e1f")
    monkeypatch.setattr(kind, "_end", lambda *_: pytest.fail("deleted"))
    with pytest.raises(ClusterError, match="a kind cluster 'x' that was not started from here"):
        kind.KindProvider().up(ClusterSpec(name="x"))
    assert state.load("x") is None


def test_a_docker_on_another_machine_is_refused(docker):
    docker(info="", context="tcp://other:2376")
    with pytest.raises(ClusterError, match="tcp://other:2376"):
        kind.KindProvider().up(ClusterSpec(name="x"))


def test_why_an_image_cannot_be_pulled_is_what_docker_says(docker):
    docker(info="")
    assert kind.Docker().pull("an/image") == "Error: no pull"


def test_what_docker_needs_is_installed_before_the_namespaces_are_made(monkeypatch):
    class StoppedError(Exception):
        pass

    def stop(packages):
        assert "nftables" in packages
        raise StoppedError

    monkeypatch.setattr(debian, "ensure", stop)
    monkeypatch.setattr(kind.network, "create", lambda *_: pytest.fail("a network before its programs"))
    monkeypatch.setattr(daemon, "client", lambda _: None)
    with pytest.raises(StoppedError):
        kind.Start(state.begin(ClusterSpec(name="x"), provider=state.KIND, own_docker=True)).run()


def test_a_state_folder_whose_socket_cannot_be_is_named():
    with pytest.raises(ClusterError, match="XDG_STATE_HOME"):
        daemon.socket_of(Layout(slot=0, folder=Path("/") / ("x" * 120), nodes=0, docker=True))


def test_a_cluster_in_the_users_docker_has_no_namespaces_and_one_with_its_own_has():
    for own in (False, True):
        begun = state.begin(ClusterSpec(name=f"c{own}".lower()), provider=state.KIND, own_docker=own)
        assert begun.layout.isolated == own
        assert state.load(begun.spec.name) == begun


def test_a_cluster_is_found_by_its_own_provider_only_and_by_auto():
    state.begin(ClusterSpec(name="x"), provider=state.KIND)
    assert state.load("x", state.LOCAL) is None
    assert providers.choose("auto", name="x").name == state.KIND
    with pytest.raises(ClusterError, match="of provider kind is there"):
        state.begin(ClusterSpec(name="x"))


def test_the_pod_networks_daemon_passes_its_own_tests():
    go = gotoolchain.find_go()
    folder = catalogue.TOOLS_BY_NAME["kind-cni"].folder
    # With -trimpath, as all tools are built, so that what was compiled for them is taken from the build cache.
    command = [go.command, "test", "-trimpath", "-vet=all", "./..."]
    subprocess.run(command, cwd=folder, env=go.environment(), check=True)
