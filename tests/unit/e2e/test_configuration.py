"""From a spec to the components' flags and files."""

import os
from pathlib import Path

import pytest

from boathouse_e2e.local import control_plane, network, node
from boathouse_e2e.local.layout import Layout
from boathouse_e2e.spec import ClusterSpec


class Programs(dict):
    def __missing__(self, name):
        return Path("/tools") / name


def layout(nodes=2):
    return Layout(slot=0, folder=Path("/clusters/x"), nodes=nodes)


def flags(component):
    return dict(word.removeprefix("--").split("=", 1) for word in component.command[1:])


def test_the_api_server_logs_audits_only_where_asked():
    without = control_plane.kube_apiserver(layout(), ClusterSpec(), Programs())
    with_log = control_plane.kube_apiserver(layout(), ClusterSpec(audit_log=Path("/logs/audit")), Programs())
    assert "audit-log-path" not in flags(without)
    assert flags(with_log)["audit-log-path"] == "/logs/audit"


def test_the_users_own_flags_come_last_and_so_win():
    component = control_plane.kube_apiserver(layout(), ClusterSpec(apiserver_args=("--v=4",)), Programs())
    assert component.command[-1] == "--v=4"


def test_what_schedulers_write_is_audited_with_its_body():
    (bodies,) = [rule for rule in control_plane.audit_policy()["rules"] if rule["level"] == "Request"]
    audited = [resource for group in bodies["resources"] for resource in group.get("resources", [])]
    assert {"pods", "pods/*", "leases"} <= set(audited)


def test_a_short_grace_period_shortens_the_leases_and_reports_of_nodes():
    spec = ClusterSpec(node_monitor_grace_period_s=8)
    config = node.kubelet_config(layout(), spec, 0)
    assert config["nodeLeaseDurationSeconds"] == 8
    assert config["nodeStatusUpdateFrequency"] == "2s"
    assert flags(control_plane.kube_controller_manager(layout(), spec, Programs()))["node-monitor-grace-period"] == "8s"


def test_a_kubelet_keeps_back_what_its_node_shall_not_offer():
    spec = ClusterSpec(node_cpu=2, node_memory_mib=4096)
    kept = node.reserved(spec, machine_cpus=8, machine_memory_mib=16384)
    assert kept == {"cpu": "6", "memory": f"{16384 - 4096 - 100}Mi"}


def test_a_machine_smaller_than_the_node_offers_what_it_has():
    assert node.reserved(ClusterSpec(), machine_cpus=1, machine_memory_mib=2048) == {"cpu": "0", "memory": "0Mi"}


def test_two_nodes_share_no_folder_socket_or_network(tmp_path):
    place = Layout(slot=0, folder=tmp_path, nodes=2)
    configs = [node.containerd_config(place, index, Path("/shim")) for index in range(2)]
    own = [{line for line in config.splitlines() if "/node-" in line or str(tmp_path) in line} for config in configs]
    assert own[0]
    assert not own[0] & own[1]
    assert place.node_network(0) != place.node_network(1)


@pytest.mark.parametrize(
    ("texts", "servers"),
    [
        (["nameserver 10.0.0.2\n"], ["10.0.0.2"]),
        (["nameserver 127.0.0.53\n", "nameserver 192.0.2.1\nnameserver 192.0.2.2\n"], ["192.0.2.1", "192.0.2.2"]),
        (["# none\n"], []),
    ],
)
def test_only_name_servers_that_another_network_namespace_reaches_are_used(texts, servers):
    assert network.usable_nameservers(texts) == servers


def test_credentials_are_readable_by_their_owner_alone_and_name_the_nodes_identity(tmp_path):
    place = Layout(slot=0, folder=tmp_path, nodes=1)
    control_plane.write_credentials(place, "x")
    secrets = [*place.pki.glob("*.key"), *place.pki.glob("*.kubeconfig"), place.kubeconfig]
    assert len(secrets) > 10
    assert {oct(os.stat(path).st_mode & 0o777) for path in secrets} == {"0o600"}  # noqa: PTH116


def test_every_pod_address_of_every_node_is_paired_with_itself():
    rules = network.hairpin_rules(layout())
    assert "10.192.0.2 . 10.192.0.2" in rules
    assert "10.192.1.254 . 10.192.1.254" in rules
