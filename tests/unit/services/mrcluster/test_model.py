"""The status of a cluster: restored as it was written, small, whatever anybody wrote; names of its objects."""

import dataclasses
import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources import crd
from boathouse.resources.base import Condition
from boathouse.resources.mrcluster import names, status as wire
from boathouse.resources.mrcluster.names import ConditionType, Role
from boathouse.resources.mrcluster.status import LeavingNode, SizeChange, SizeReason
from boathouse.services.frame import status_codec
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.model import ClusterState
from tests.builders.mrclusters import cluster

LAST_S = 4e9  # in the year 2096
TIMES = st.integers(1, int(LAST_S)).map(float)
COUNTS = st.integers(0, 2**53)
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
CORE = st.sets(st.integers(0, wire.MRClusterSpec().core.count + 200), max_size=12).map(sorted).map(tuple)
TRANSIENT = st.sets(st.integers(0, 2**31), max_size=12).map(sorted).map(tuple)
HOSTS = st.one_of(
    st.integers(0, 200).map(lambda number: model.host_of(Role.CORE, number)),
    st.integers(0, 2**31).map(lambda number: model.host_of(Role.TRANSIENT, number)),
)
LEAVING = st.builds(
    LeavingNode, host=HOSTS, since_s=TIMES, deadline_s=st.none() | TIMES, reason=st.sampled_from(["", "Resized"])
)
CONDITIONS = st.builds(
    Condition,
    type=st.sampled_from(list(ConditionType)).map(str),
    status=st.sampled_from(["True", "False", "Unknown"]),
    reason=st.sampled_from(list(names.Reason)).map(str),
    message=TEXTS,
    last_transition_time=st.just("2026-01-01T00:00:00Z"),
    observed_generation=st.none() | COUNTS,
)
FIGURES = {
    "load_percent": st.none() | COUNTS,
    "slots": st.none() | COUNTS,
    "containers": st.none() | st.builds(wire.Containers, running=COUNTS, pending=COUNTS),
    "applications": st.none() | COUNTS,
    "hdfs": st.none() | st.builds(wire.HdfsUsage, capacity_bytes=COUNTS, used_bytes=COUNTS, missing_blocks=COUNTS),
}
STATES = st.builds(
    ClusterState,
    phase=st.sampled_from(["Pending", "Starting", "Ready", "Degraded", "Expired"]),
    observed_generation=COUNTS,
    queue=st.sampled_from(["", "default"]),
    reason=st.sampled_from(["", "CoreNodeLost"]),
    conditions=st.lists(CONDITIONS, max_size=4, unique_by=lambda condition: condition.type).map(tuple),
    start_s=st.none() | TIMES,
    ready_s=st.none() | TIMES,
    completion_s=st.none() | TIMES,
    cluster_id=st.sampled_from(["", "CID-0a1b2c3d"]),
    first_core_nodes=st.integers(0, 200),
    replication=st.integers(0, 10),
    next_transient=st.just(2**31 + 1),
    wanted_core=CORE,
    wanted_transient=TRANSIENT,
    core=st.none() | st.builds(wire.NodeCounts, wanted=COUNTS, ready=COUNTS),
    transient=st.none() | st.builds(wire.NodeCounts, pending=COUNTS, leaving=COUNTS),
    leaving=st.lists(LEAVING, max_size=5, unique_by=lambda node: node.host).map(tuple),
    size=st.none() | st.builds(SizeReason, time_s=TIMES, reason=TEXTS, offer=st.integers(-500, 500)),
    sizes=st.lists(
        st.builds(SizeChange, time_s=TIMES, core=st.integers(0, 200), transient=st.integers(0, 500)), max_size=4
    ).map(tuple),
    addresses=st.none() | st.builds(wire.Addresses, hdfs=TEXTS, web_hdfs=TEXTS, job_history=st.none() | TEXTS),
    settings=st.sampled_from(["", "f" * 64]),
    last_active_s=st.none() | TIMES,
    **FIGURES,
)


def largest_state():
    """Return the state of the largest cluster, with the longest texts and without ranges of transient nodes."""
    numbers = tuple(range(2**31 - 1000, 2**31, 2))
    everywhere = {"time_s": LAST_S, "core": 200, "transient": 500}
    texts = "x" * 10_000
    return ClusterState(
        phase="Degraded",
        reason="R" * 64,
        queue="q" * 63,
        conditions=tuple(degraded_condition(condition_type, texts) for condition_type in ConditionType),
        cluster_id="C" * 128,
        next_transient=2**31,
        wanted_core=tuple(range(200)),
        wanted_transient=numbers,
        leaving=tuple(
            LeavingNode(host=f"t{number}", since_s=LAST_S, deadline_s=LAST_S, reason="R" * 24)
            for number in numbers[: wire.MAX_LEAVING]
        ),
        size=SizeReason(time_s=LAST_S, reason=texts),
        sizes=(SizeChange(**everywhere),) * 1000,
        hdfs=wire.HdfsUsage(**dict.fromkeys(wire.HdfsUsage.model_fields, 2**62)),
        settings="f" * 64,
    )


def degraded_condition(condition_type, message=""):
    return Condition(
        type=condition_type,
        status="True",
        reason="DecommissionStalled",
        message=message,
        last_transition_time="2026-01-01T00:00:00Z",
        observed_generation=2**31,
    )


@settings(max_examples=40)
@given(STATES)
def test_a_state_is_restored_from_its_status_and_from_what_the_api_server_keeps_of_it(state):
    status = model.to_status(state)
    assert model.from_status(status) == state
    kept = json.loads(json.dumps(status_codec.stripped(status)))
    assert model.to_status(model.from_status(kept)) == status


@given(st.sets(st.integers(0, 10**9), max_size=wire.MAX_NUMBERS))
def test_numbers_are_parsed_from_their_text(numbers):
    assert wire.parse_ranges(wire.ranges_text(numbers)) == tuple(sorted(numbers))


def test_numbers_that_follow_one_another_are_one_range():
    assert wire.ranges_text([7, 3, 4, 5, 6, 12]) == "3-7,12"
    assert wire.ranges_text([]) == ""


@pytest.mark.parametrize("text", ["", "a", "-", "3-", "-3", "1,,b", "0-9999999999", "9-3", ",".join(["0-700"] * 99)])
def test_a_text_of_anybody_has_few_numbers(text):
    assert len(wire.parse_ranges(text)) <= wire.MAX_NUMBERS


def test_the_status_of_the_largest_cluster_is_below_32_kib():
    text = json.dumps(model.to_status(largest_state()))
    assert 20 * 1024 < len(text) < 32 * 1024


def test_the_latest_changes_of_the_size_are_kept():
    sizes = tuple(SizeChange(time_s=float(second), core=1, transient=second) for second in range(1, 200))
    kept = model.from_status(model.to_status(ClusterState(sizes=sizes))).sizes
    assert kept == sizes[-wire.MAX_SIZES :]


def test_every_field_is_in_the_status_so_that_a_merge_patch_clears_it():
    written = model.to_status(ClusterState())
    assert {*written} == {*crd.structural_schema(wire.MRCluster)["properties"]["status"]["properties"]}
    assert written["clusterID"] is None


def test_urgent_fields_exist():
    assert set(model.URGENT_FIELDS) <= set(model.to_status(ClusterState()))


def test_numbers_of_nodes_that_exist_or_leave_are_not_used_again_when_the_counter_is_lost():
    status = {"wantedTransient": "3-4", "leaving": [{"host": "t9", "since": "2026-01-01T00:00:00Z"}]}
    assert model.from_status(status).next_transient == 10
    assert model.from_status({"wantedTransient": "3-4", "nextTransient": 5}).next_transient == 5


@pytest.mark.parametrize(
    "status",
    [
        None,
        {"phase": "Upgrading", "wantedCore": 3, "leaving": "all", "sizes": [[1, 2, 3]], "hdfs": []},
        {
            "leaving": [
                {"host": "t1"},
                {"host": "../etc", "since": "2026-01-01T00:00:00Z"},
                {"host": "t1", "since": "x"},
            ]
        },
        {"size": {"time": "x", "reason": "y"}, "sizes": [{"time": "then", "core": 1, "transient": 1}]},
        {"startTime": "soon", "nextTransient": -1, "firstCoreNodes": "3.5", "conditions": [{}]},
    ],
    ids=["none", "types", "leaving", "times", "numbers"],
)
def test_invalid_fields_are_left_out(status):
    assert model.from_status(status) == ClusterState()


def test_valid_fields_beside_invalid_ones_are_kept():
    status = {"clusterID": "CID-1", "phase": "Upgrading", "firstCoreNodes": 3, "wantedCore": "0-2,x"}
    found = model.from_status(status)
    assert (found.cluster_id, found.first_core_nodes, found.wanted_core) == ("CID-1", 3, (0, 1, 2))


def test_the_hosts_of_a_cluster_are_master_core_and_transient_nodes():
    state = ClusterState(wanted_core=(0, 1), wanted_transient=(7,), leaving=(LeavingNode(host="t7", since_s=1),))
    assert state.wanted_hosts == ("master", "c0", "c1", "t7")
    assert state.leaving_hosts == {"t7"}
    assert ClusterState().wanted_hosts == ()


def test_without_its_free_parts_a_state_has_what_the_planner_needs():
    state = dataclasses.replace(largest_state(), load_percent=3, slots=4, applications=1)
    bare = model.without_free_parts(state)
    assert (bare.load_percent, bare.slots, bare.hdfs, bare.size, bare.sizes) == (None, None, None, None, ())
    assert (bare.leaving, bare.wanted_transient, bare.cluster_id) == (
        state.leaving,
        state.wanted_transient,
        state.cluster_id,
    )


def test_conditions_are_found_by_their_type():
    state = ClusterState(conditions=(degraded_condition(ConditionType.DEGRADED),))
    assert state.holds(ConditionType.DEGRADED)
    assert not state.holds(ConditionType.READY)


LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
CLUSTER_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)
POD_HOSTS = st.builds(model.host_of, st.sampled_from([Role.MASTER, Role.CORE, Role.TRANSIENT]), st.integers(0, 2**31))


@settings(max_examples=50)
@given(CLUSTER_NAMES, POD_HOSTS)
def test_every_name_is_a_dns_label_that_contains_the_whole_name_of_the_cluster(name, host):
    names = cluster(name=name)
    for text in (names.named(host), names.service, names.config_map("f" * 64)):
        assert text.startswith(f"{name}-0a1b2c3d-")
        assert len(text) <= 63
        assert LABEL.fullmatch(text)


@settings(max_examples=50)
@given(st.sets(POD_HOSTS, min_size=2, max_size=2))
def test_no_two_hosts_have_a_name_in_common(hosts):
    names, (one, other) = cluster(), hosts
    assert names.named(one) != names.named(other)
    assert names.fqdn(one) != names.fqdn(other)


def test_the_names_of_a_cluster():
    names = cluster()
    assert names.named("c0") == "etl-0a1b2c3d-c0"
    assert names.fqdn("t17") == "t17.etl-0a1b2c3d-hadoop.demo.svc"
    assert names.config_map("0123456789abcdef") == "etl-0a1b2c3d-conf-01234567"
    assert names.named("clients") == "etl-0a1b2c3d-clients"


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
    names = cluster(name=name)
    assert names.host(names.named(host)) == host
    assert cluster(name="other").host(names.named(host)) is None
    assert names.host(names.service) is None


@pytest.mark.parametrize("host", ["master", "elsewhere"])
def test_a_host_that_cannot_leave_is_not_read_from_a_status(host):
    leaving = [{"host": host, "since": "2026-01-01T00:00:00Z", "reason": "Drained"}]
    assert model.from_status({"leaving": leaving}).leaving == ()
