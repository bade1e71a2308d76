"""A spec says which of its fields cannot be, and survives its file."""

import types
from pathlib import Path

import pytest

from boathouse_e2e import catalogue, kwok
from boathouse_e2e.archive import Image, write_programs
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind.config import Machine, kind_config
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.providers import ExistingProvider, lacking_images
from boathouse_e2e.spec import ClusterSpec

WRONG = [
    ({"name": "Upper"}, "lower-case"),
    ({"name": "../x"}, "lower-case"),
    ({"nodes": 201}, "nodes"),
    ({"kubernetes": "1.34"}, "choose 1.36 or 1.35"),
    ({"kwok_nodes": -1}, "kwok_nodes"),
    ({"node_cpu": 0}, "node_cpu"),
    ({"node_monitor_grace_period_s": 1}, "grace"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_an_impossible_field_is_named(fields, message):
    with pytest.raises(ClusterError, match=message):
        ClusterSpec(**fields).validated()


def test_the_environment_selects_the_release_of_kubernetes(monkeypatch):
    monkeypatch.delenv(catalogue.RELEASE_VARIABLE, raising=False)
    assert ClusterSpec().kubernetes == catalogue.DEFAULT_RELEASE
    monkeypatch.setenv(catalogue.RELEASE_VARIABLE, "1.35")
    assert ClusterSpec().kubernetes == "1.35"


@pytest.mark.parametrize("provider", [KindProvider(), ExistingProvider("mine")], ids=lambda one: one.name)
def test_a_provider_that_cannot_choose_the_release_says_so(provider):
    assert any("Kubernetes 1.35" in problem for problem in provider.missing(ClusterSpec(kubernetes="1.35")))


def test_nodes_that_lack_images_are_named_unless_they_report_only_a_part():
    def node(name, *images):
        return {"metadata": {"name": name}, "status": {"images": [{"names": [image]} for image in images]}}

    many = [f"other:{number}" for number in range(50)]
    nodes = [node("has", "a:1", "b:1"), node("lacks", "a:1"), node("may-have", *many), node("bare")]
    assert lacking_images(nodes, ["a:1", "b:1"]) == {"lacks": ["b:1"], "bare": ["a:1", "b:1"]}


def test_images_are_not_loaded_into_a_cluster_of_the_users_but_checked(tmp_path):
    (program := tmp_path / "p").write_text("x")
    write_programs(tmp_path / "i.tar", Image(name="localhost/p:dev"), {"/p": program})
    reported = [{"names": ["localhost/p:dev"]}]
    cluster = types.SimpleNamespace(workers=lambda: [{"metadata": {"name": "n"}, "status": {"images": reported}}])
    ExistingProvider("mine").load_images(cluster, [tmp_path / "i.tar"])
    reported.clear()
    with pytest.raises(ClusterError, match=r"n lacks localhost/p:dev\nLoad these archives .*i\.tar"):
        ExistingProvider("mine").load_images(cluster, [tmp_path / "i.tar"])


def test_a_file_of_an_earlier_checkout_is_about_the_default_release(monkeypatch):
    monkeypatch.setenv(catalogue.RELEASE_VARIABLE, "1.35")
    written = ClusterSpec(kubernetes=catalogue.DEFAULT_RELEASE)
    fields = {name: value for name, value in written.to_json().items() if name != "kubernetes"}
    assert ClusterSpec.from_json(fields) == written


def test_what_is_written_before_the_start_is_what_is_read_after_a_crash(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    spec = ClusterSpec(name="x", nodes=0, audit_log=Path("/tmp/audit"), apiserver_args=("--v=2",))  # noqa: S108
    begun = state.begin(spec)
    assert state.load("x") == begun
    assert [known.spec for known in state.load_all()] == [spec]


def test_two_clusters_begun_side_by_side_have_different_slots(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    slots = [state.begin(ClusterSpec(name=name, nodes=0)).slot for name in ("a", "b", "c")]
    assert len(set(slots)) == 3


def test_fake_nodes_are_tainted_only_beside_real_ones():
    alone, beside = (kwok.node(ClusterSpec(nodes=nodes, kwok_nodes=1), 0) for nodes in (0, 2))
    assert alone["spec"]["taints"] == []
    assert beside["spec"]["taints"][0]["effect"] == "NoSchedule"


def test_racks_are_dealt_out_in_turn_to_fake_nodes_and_to_kinds(tmp_path):
    spec = ClusterSpec(nodes=3, kwok_nodes=3, racks=2)
    machine = Machine(cpus=2, memory_mib=8192, archives=tmp_path, audit_policy=tmp_path)
    fakes = [kwok.node(spec, index)["metadata"]["labels"]["boathouse.dev/rack"] for index in range(3)]
    workers = [node for node in kind_config(spec, machine)["nodes"] if node["role"] == "worker"]
    assert fakes == [node["labels"]["boathouse.dev/rack"] for node in workers] == ["rack-0", "rack-1", "rack-0"]


def test_a_spec_is_read_by_other_checkouts():
    spec = ClusterSpec(name="c", kwok_nodes=3, kwok_resizes=True, apiserver_args=("--v=2",))
    stored = spec.to_json()
    assert "kwok_resizes" not in stored
    assert ClusterSpec.from_json({**stored, "a_later_field": 1}) == spec
