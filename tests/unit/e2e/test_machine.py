"""Where a local cluster cannot run, the reason and the other ways are said; what is ours alone is removed."""

import concurrent.futures
import os
import signal
import subprocess

import pytest

from boathouse_e2e import debian, paths, providers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups, checks, cleanup, state
from boathouse_e2e.spec import ClusterSpec


def test_nodes_need_root_and_the_message_says_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (problem,) = checks.missing(ClusterSpec(nodes=2))
    assert "root" in problem
    assert checks.missing(ClusterSpec(nodes=0)) == []


def test_a_cluster_that_cannot_run_here_offers_kind(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="PROVIDER=kind"):
        checks.prepare(ClusterSpec(nodes=2))


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch):
    monkeypatch.setattr(debian, "can_install", lambda: False)
    with pytest.raises(ClusterError, match="apt-get install --no-install-recommends no-such-tool"):
        debian.ensure({"no-such-tool": "no-such-command"})


def test_an_existing_cluster_must_be_asked_for_by_name():
    with pytest.raises(ClusterError, match="--context"):
        providers.choose("existing")


def test_kind_is_chosen_where_docker_answers_and_local_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for answers, name in ((True, "kind"), (False, "local")):
        monkeypatch.setattr(providers, "docker_answers", lambda answers=answers: answers)
        assert providers.choose("auto", name="x").name == name


@pytest.fixture
def hierarchy(tmp_path):
    for controller in ("cpu", "memory", "cpuset"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    return tmp_path


def test_a_cgroup_is_made_in_every_hierarchy(hierarchy):
    cgroups.create("boathouse0/node-0", hierarchy)
    assert len(cgroups.find("boathouse0/node-0", hierarchy)) == 3


def test_a_cgroup_is_removed_with_all_beneath_it_and_nothing_beside_it(hierarchy):
    cgroups.create("boathouse0/node-0", hierarchy)
    cgroups.create("boathouse1", hierarchy)
    cgroups.remove("boathouse0", hierarchy)
    assert cgroups.find("boathouse0", hierarchy) == []
    assert len(cgroups.find("boathouse1", hierarchy)) == 3


def test_the_processes_of_a_node_are_ended_and_those_of_another_are_not(hierarchy):
    with subprocess.Popen(["sleep", "600"]) as ended, subprocess.Popen(["sleep", "600"]) as spared:
        for node, process in (("node-0", ended), ("node-1", spared)):
            cgroups.create(f"boathouse0/{node}/pod", hierarchy)
            (found, *_) = cgroups.find(f"boathouse0/{node}/pod", hierarchy)
            (found / "cgroup.procs").write_text(f"{process.pid}\n")
        cgroups.kill("boathouse0/node-0", hierarchy)
        assert ended.wait() == -signal.SIGKILL
        assert spared.poll() is None
        spared.kill()


def test_who_waits_for_a_lock_that_is_removed_still_excludes_the_next(tmp_path):
    path, order = tmp_path / "lock", []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:

        def enter(number):
            with paths.locked(path, remove=number % 2 == 0):
                order.append(("in", number))
                order.append(("out", number))

        list(pool.map(enter, range(100)))
    assert all(order[i][1] == order[i + 1][1] for i in range(0, 200, 2))


def test_folders_that_a_cluster_makes_on_the_machine_go_with_the_last_one_and_others_stay(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cleanup, "SYSCTLS", ())
    monkeypatch.setattr(cleanup, "LEAST", {})
    made, there = tmp_path / "made", tmp_path / "there"
    there.mkdir()
    cleanup.save_machine([made, there])
    made.mkdir()
    cleanup.save_machine([made, there])  # a second cluster
    cleanup.restore_machine()
    assert [made.exists(), there.exists()] == [False, True]


@pytest.mark.parametrize(("keep_logs", "left"), [(False, []), (True, ["logs"])])
def test_an_ended_cluster_leaves_at_most_its_logs_and_its_name_is_free(monkeypatch, tmp_path, keep_logs, left):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    begun = state.begin(ClusterSpec(name="x", nodes=0))
    for name in ("etcd", "logs"):
        (begun.layout.folder / name).mkdir()
    cleanup.end(begun, keep_logs=keep_logs)
    assert state.load("x") is None
    assert [path.name for path in begun.layout.folder.glob("*")] == left
