"""The operator's command line, and its failpoints."""

import json
import os

import pydantic
import pytest

from boathouse import failpoints, leader, main, options
from boathouse.resources.config import OperatorConfig
from boathouse.services.frame import controllers


def parse(*arguments, **environment):
    return options.parse(arguments, environment)


def test_without_anything_the_defaults_hold():
    options_ = parse("--identity", "op-1")
    assert (options_.config.namespace, options_.config.profile, options_.state_folder) == (
        "boathouse-system",
        "boathouse",
        None,
    )


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"profile": "fair", "pendingAhead": 1, "namespace": "file"}))
    options_ = parse(
        "--config", str(path), "--pending-ahead", "3", BOATHOUSE_PENDING_AHEAD="2", BOATHOUSE_PROFILE="fifo"
    )
    assert (options_.config.namespace, options_.config.profile, options_.config.pending_ahead) == ("file", "fifo", 3)


def test_namespaces_are_separated_by_commas():
    assert parse("--watch-namespaces", "a,b").config.watch_namespaces == ["a", "b"]


def test_nested_values_have_flags_too():
    options_ = parse("--task-image", "task:1", "--lease-duration-s", "20")
    assert (options_.config.task.image, options_.config.lease.duration_seconds) == ("task:1", 20)


def test_in_a_pod_the_replica_is_the_pod_and_its_state_is_kept_for_its_restart():
    options_ = parse(POD_NAME="boathouse-x")
    assert options_.identity == "boathouse-x"
    assert options_.state_folder is not None


def test_a_wrong_value_is_named():
    with pytest.raises(pydantic.ValidationError, match="profile"):
        parse("--profile", "best")


def test_wrong_values_end_the_process_with_a_message(capsys):
    assert main.main(["--metrics-port", "0"]) == main.EXIT_USAGE
    assert "metricsPort" in capsys.readouterr().err


def test_without_a_cluster_the_process_says_what_to_set(capsys, monkeypatch):
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(main.logs, "configure", lambda **_: None)
    assert main.main([]) == main.EXIT_USAGE
    assert "KUBECONFIG" in capsys.readouterr().err


def test_the_failpoints_can_be_listed(capsys):
    assert main.main(["--list-failpoints"]) == 0
    assert capsys.readouterr().out.split() == list(failpoints.NAMES)


@pytest.fixture
def killed(monkeypatch):
    """How often the process would have killed itself."""
    kills = []
    monkeypatch.setattr(os, "kill", lambda *_: None)
    monkeypatch.setattr(os, "_exit", kills.append)
    yield kills
    failpoints.arm({})


def test_a_failpoint_kills_at_its_turn_and_only_there(killed):
    failpoints.arm({failpoints.VARIABLE: "after-mrjob.status:2"})
    failpoints.hit("before-mrjob.status")
    failpoints.hit("after-mrjob.status")
    assert killed == []
    failpoints.hit("after-mrjob.status")
    assert killed == [137]


def test_without_the_variable_no_failpoint_does_anything(killed):
    assert failpoints.arm({}) is None
    for name in failpoints.NAMES:
        failpoints.hit(name)
    assert killed == []


@pytest.mark.parametrize("value", ["nowhere", "after-mrjob.status:0", "after-mrjob.status:x"])
def test_a_misspelt_failpoint_is_refused(value):
    with pytest.raises(ValueError, match=failpoints.VARIABLE):
        failpoints.arm({failpoints.VARIABLE: value})


def test_clusters_are_resized_only_where_a_kind_has_clusters(monkeypatch):
    def scales(**actuators):
        config = OperatorConfig.model_validate({"actuators": actuators})
        return leader._switches(config).scale

    assert scales()
    assert not scales(scale=False)
    monkeypatch.setattr(leader, "KINDS", (controllers.KindEntry(add=lambda _: None),))
    assert not scales()


@pytest.mark.parametrize(("partition", "per_site"), [("All", False), ("PerSite", True)])
def test_the_value_says_whether_the_nodes_of_each_zone_are_divided_on_their_own(partition, per_site):
    config = OperatorConfig.model_validate({"hadoop": {"partition": partition}})
    assert leader._switches(config).per_site is per_site


@pytest.mark.parametrize(("enabled", "block_s"), [(False, 0.0), (True, 600.0)])
def test_parts_act_in_blocks_of_time_where_the_switchback_is_enabled(enabled, block_s):
    config = OperatorConfig.model_validate({"switchback": {"enabled": enabled, "blockSeconds": 600}})
    assert leader._switches(config).switchback_s == block_s
