"""Names: valid, within their bounds, and different for different hosts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.model import Names
from tests.builders.mrclusters import cluster

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
CLUSTER_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
HOSTS = st.builds(model.host_of, st.sampled_from([Role.MASTER, Role.CORE, Role.TRANSIENT]), st.integers(0, 2**31))


@settings(max_examples=50)
@given(CLUSTER_NAMES, HOSTS)
def test_every_name_is_a_dns_label_that_contains_the_whole_name_of_the_cluster(name, host):
    names = Names(cluster(name=name))
    for text in (names.pod(host), names.claim(host), names.service, names.config_map("f" * 64)):
        assert text.startswith(f"{name}-0a1b2c3d-")
        assert len(text) <= 63
        assert LABEL.fullmatch(text)


@settings(max_examples=50)
@given(st.sets(HOSTS, min_size=2, max_size=2))
def test_no_two_hosts_have_a_name_in_common(hosts):
    names, (one, other) = Names(cluster()), hosts
    assert names.pod(one) != names.pod(other)
    assert names.fqdn(one) != names.fqdn(other)


def test_the_names_of_a_cluster():
    names = Names(cluster())
    assert names.pod("c0") == names.claim("c0") == "etl-0a1b2c3d-c0"
    assert names.fqdn("t17") == "t17.etl-0a1b2c3d-hadoop.demo.svc"
    assert names.config_map("0123456789abcdef") == "etl-0a1b2c3d-conf-01234567"
    assert names.network_policy("clients") == "etl-0a1b2c3d-clients"


@settings(max_examples=50)
@given(st.sampled_from([Role.CORE, Role.TRANSIENT]), st.integers(0, 2**31))
def test_role_and_number_can_be_read_from_a_host(role, number):
    host = model.host_of(role, number)
    assert (model.role_of(host), model.number_of(host)) == (role, number)


def test_there_is_one_master():
    assert model.host_of(Role.MASTER, 7) == "master"
    assert (model.role_of("master"), model.number_of("master")) == (Role.MASTER, 0)


@pytest.mark.parametrize("text", ["", "c", "c01", "x1", "c-1", "C1", "c1\n", "master0", "t99999999999"])
def test_other_names_are_of_no_host(text):
    assert model.role_of(text) is None
    with pytest.raises(ValueError, match="is not the name of a host"):
        model.number_of(text)


@pytest.mark.parametrize("host", ["master", "c0", "t17"])
@pytest.mark.parametrize("name", ["etl", "a" * 40])
def test_the_host_of_a_pod_is_known_by_its_name(name, host):
    names = Names(cluster(name=name))
    assert names.host(names.pod(host)) == host
    assert Names(cluster(name="other")).host(names.pod(host)) is None
    assert names.host(names.service) is None
