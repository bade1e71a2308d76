"""Files of an agent, also after crashes."""

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from boathouse_task.agent.host_files import Done, HostFiles, Stored
from boathouse_task.cluster_contract import Leaving, Request, Version
from tests.builders.agents import DOMAIN, agent_spec

OLD = Stored(version=Version(1, 5), leaving=[Leaving("t1", 300), Leaving("c3", stores=True)])
NEW = Stored(version=Version(2, 4), leaving=[Leaving("t2", 60)])


class Crashed(BaseException):
    """The process ends here."""


def excluded(folder: Path) -> tuple[str, list[tuple[str | None, ...]]]:
    """What the daemons read: the list of HDFS, names and timeouts of YARN."""
    hosts = ET.parse(folder / "agent" / "yarn.exclude.xml").getroot()  # noqa: S314 - our own
    names = [(host.findtext("name"), host.findtext("timeout")) for host in hosts.findall("host")]
    return (folder / "agent" / "dfs.exclude").read_text(), names


def test_a_volume_without_orders_has_the_smallest_version(host_files):
    assert host_files.read() == Stored(version=Version(0, 0), leaving=[])


def test_orders_are_read_again_after_a_restart(host_files, tmp_path):
    host_files.write(OLD)
    assert HostFiles(agent_spec(tmp_path)).read() == OLD


def test_hdfs_gets_the_nodes_that_store_and_yarn_all_with_their_timeouts(host_files, tmp_path):
    host_files.write(OLD)
    hdfs, yarn = excluded(tmp_path)
    assert hdfs == f"c3.{DOMAIN}\n"
    assert yarn == [(f"t1.{DOMAIN}", "300"), (f"c3.{DOMAIN}", "-1")]


def test_the_lists_have_the_names_that_nodes_registered(host_files, tmp_path):
    host_files.write(Stored(version=Version(1, 5), leaving=OLD.leaving, names={"c3": f"c3.{DOMAIN}.cluster.local"}))
    hdfs, yarn = excluded(tmp_path)
    assert hdfs == f"c3.{DOMAIN}.cluster.local\n"
    assert yarn == [(f"t1.{DOMAIN}", "300"), (f"c3.{DOMAIN}.cluster.local", "-1")]


def test_a_node_that_leaves_no_more_is_in_no_list(host_files, tmp_path):
    host_files.write(OLD)
    host_files.write(Stored(version=Version(1, 6)))
    assert excluded(tmp_path) == ("", [])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":"x"}', b'{"leaving":[["/etc"]]}'])
def test_damaged_orders_are_no_orders(host_files, tmp_path, content):
    (tmp_path / "agent" / "orders.json").write_bytes(content)
    assert host_files.read() == Stored()


def system_calls(monkeypatch, crash_at: int) -> list[str]:
    """Let the process end before a system call of writing, counted from 0; returns the calls."""
    calls: list[str] = []

    def counted(name, function):
        def call(*arguments):
            if len(calls) == crash_at:
                raise Crashed
            calls.append(name)
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", counted("fsync", os.fsync))
    monkeypatch.setattr(Path, "replace", counted("rename", Path.replace))
    return calls


CALLS = ["fsync", "rename", "fsync"] * 3


def test_each_file_reaches_the_disk_before_it_gets_its_name_and_the_name_too(host_files, monkeypatch):
    calls = system_calls(monkeypatch, crash_at=-1)
    host_files.write(NEW)
    assert calls == CALLS


@pytest.mark.parametrize("crash_at", range(len(CALLS)))
def test_after_a_crash_at_any_time_there_are_the_old_or_the_new_orders(host_files, tmp_path, monkeypatch, crash_at):
    host_files.write(OLD)
    with monkeypatch.context() as patch:
        system_calls(patch, crash_at)
        with pytest.raises(Crashed):
            host_files.write(NEW)
    excluded(tmp_path)  # the daemons could read them all the time
    stored = HostFiles(agent_spec(tmp_path)).read()
    assert stored == (OLD if crash_at <= CALLS.index("rename") else NEW)
    HostFiles(agent_spec(tmp_path)).derive(stored)
    assert excluded(tmp_path)[0] == ("" if stored == NEW else f"c3.{DOMAIN}\n")


def test_requests_are_numbered_also_over_restarts(host_files, tmp_path):
    assert [host_files.request(Request.HDFS), host_files.request(Request.HDFS), host_files.request(Request.YARN)] == [
        1,
        2,
        1,
    ]
    assert HostFiles(agent_spec(tmp_path)).request(Request.HDFS) == 3
    assert (tmp_path / "refresh" / "hdfs.want").read_text() == "3\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, None),
        ("7 0\n", Done(7, 0)),
        ("7 255\n", Done(7, 255)),
        ("7\n", None),
        ("", None),
        ("seven 0", None),
        ("-7 0", None),
        ("7 0 " + "x" * 10_000, None),
        ("\u0667 0", None),
    ],
)
def test_the_result_of_a_request_is_its_number_and_status(host_files, tmp_path, content, expected):
    if content is not None:
        (tmp_path / "refresh" / "yarn.done").write_text(content)
    assert host_files.done(Request.YARN) == expected
