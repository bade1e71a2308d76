"""Clusters side by side: no two slots share an address, a port or a name."""

import ipaddress
import itertools
import socket
from pathlib import Path

import pytest

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import state
from boathouse_e2e.local.layout import SLOTS, Layout

LAYOUTS = [Layout(slot=slot, folder=Path("/clusters/x"), nodes=2) for slot in range(SLOTS)]


def test_no_two_slots_share_a_network_a_port_or_a_name():
    for one, other in itertools.combinations(LAYOUTS, 2):
        assert not ipaddress.IPv4Network(one.network).overlaps(ipaddress.IPv4Network(other.network))
        assert not set(one.ports) & set(other.ports)
        assert (one.veth, one.nft_table, one.cgroup) != (other.veth, other.nft_table, other.cgroup)


def test_pods_services_and_the_cable_lie_in_the_clusters_network_and_apart():
    layout = Layout(slot=3, folder=Path("/clusters/x"), nodes=200)
    parts = [*(layout.node_network(index) for index in range(200)), layout.service_network, f"{layout.api_address}/32"]
    networks = [ipaddress.IPv4Network(part) for part in parts]
    assert all(network.subnet_of(ipaddress.IPv4Network(layout.network)) for network in networks)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))


def test_a_device_name_is_short_enough_for_the_kernel():
    assert max(len(layout.veth) for layout in LAYOUTS) <= 15


def test_a_control_plane_alone_listens_on_loopback():
    assert Layout(slot=0, folder=Path("/clusters/x"), nodes=0).server == "https://127.0.0.1:21000"


def test_the_lowest_slot_is_taken_that_no_cluster_has_and_that_the_machine_does_not_route():
    routed = [ipaddress.IPv4Network("10.194.8.0/24")]
    free = state.free_slot({0, 1}, routed=routed, nodes=2)
    assert free > 2
    assert not ipaddress.IPv4Network(LAYOUTS[free].network).overlaps(routed[0])


def test_a_slot_whose_port_is_in_use_is_passed_over():
    first = state.free_slot(set(), routed=[], nodes=0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", LAYOUTS[first].ports[3]))
        other.listen()
        assert state.free_slot(set(), routed=[], nodes=0) != first


def test_when_all_slots_are_taken_the_error_says_what_to_do():
    with pytest.raises(ClusterError, match="down"):
        state.free_slot(range(SLOTS), routed=[], nodes=2)
