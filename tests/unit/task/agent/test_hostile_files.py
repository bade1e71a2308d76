"""Files that a container of a user's image has put in the place of the agent's."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from boathouse_task.agent.host_files import MOST_ORDERS_BYTES, Done, HostFiles, Stored
from boathouse_task.cluster_contract import MOST_LEAVING, Leaving, Request, Version
from tests.builders.agents import DOMAIN

STORED = Stored(version=Version(2, 4), leaving=[Leaving("c3", stores=True)])
WRITTEN = ("agent/orders.json", "agent/dfs.exclude", "agent/yarn.exclude.xml", "refresh/hdfs.want")
DESCRIPTORS = Path("/proc/self/fd")
READ = ("agent/orders.json", "refresh/hdfs.done")


@pytest.fixture
def secret(tmp_path):
    """A file of the agent's own container that has what the agent would accept."""
    path = tmp_path / "secret"
    path.write_bytes(msgspec.json.encode(STORED))
    return path


def endless(path: Path) -> None:
    """Make a file without blocks that is larger than the agent's memory limit."""
    with path.open("wb") as opened:
        opened.truncate(2**30)


def bind_socket(path: Path) -> None:
    """Make a socket."""
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


HOSTILE = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "socket": bind_socket,
    "endless": endless,
    "link to a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.fixture(params=HOSTILE.values(), ids=list(HOSTILE))
def put(request, monkeypatch, tmp_path) -> Callable[[Path], None]:
    """Puts something in the place of a file."""
    monkeypatch.chdir(tmp_path)
    return request.param


def read(host_files: HostFiles) -> tuple[Stored, Done | None]:
    """What the agent reads."""
    return host_files.read(), host_files.done(Request.HDFS)


@pytest.mark.parametrize("name", READ)
def test_what_is_no_small_regular_file_is_absent_and_the_log_says_so_once(host_files, tmp_path, capsys, put, name):
    put(tmp_path / name)
    for _ in range(2):
        assert read(host_files) == (Stored(), None)
    logged = capsys.readouterr().err
    assert logged.count("counts as absent") == 1
    assert name in logged


@pytest.mark.parametrize("name", READ)
def test_a_link_to_a_file_of_the_agents_container_is_not_followed(host_files, tmp_path, secret, name):
    if name != "agent/orders.json":
        secret.write_text("7 0")
    (tmp_path / name).symlink_to(secret)
    assert read(host_files) == (Stored(), None)


@pytest.mark.parametrize("suffix", ["", ".new"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_write_replaces_a_link_and_leaves_its_target(host_files, tmp_path, secret, name, suffix):
    before = secret.read_bytes()
    (tmp_path / f"{name}{suffix}").symlink_to(secret)
    host_files.write(STORED)
    assert host_files.request(Request.HDFS) == 1
    assert secret.read_bytes() == before
    assert stat.S_ISREG((tmp_path / name).lstat().st_mode)
    assert host_files.read() == STORED
    assert (tmp_path / "agent/dfs.exclude").read_text() == f"c3.{DOMAIN}\n"


@pytest.mark.parametrize("suffix", ["", ".new"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_write_never_blocks_and_succeeds_or_is_an_error_that_is_reported(host_files, tmp_path, put, name, suffix):
    put(tmp_path / f"{name}{suffix}")
    try:
        host_files.write(STORED)
        assert host_files.request(Request.HDFS) == 1
    except OSError:
        assert put is Path.mkdir
    else:
        assert host_files.read() == STORED


def test_a_write_into_a_file_that_a_container_puts_there_meanwhile_is_refused(host_files, secret, monkeypatch):
    def unlink(path: Path, **_options: object) -> None:
        path.symlink_to(secret)

    before = secret.read_bytes()
    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(FileExistsError):
        host_files.write(STORED)
    assert secret.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[" * MOST_ORDERS_BYTES, id="deep"),
        pytest.param(b'{"x":' * (MOST_ORDERS_BYTES // 5), id="deep and unknown"),
        pytest.param(msgspec.json.encode({"leaving": [["t1"]] * (MOST_LEAVING + 1)}), id="many hosts"),
        pytest.param(msgspec.json.encode({"names": {"t1": "a\n</name>"}}), id="name with a line end"),
        pytest.param(msgspec.json.encode({"names": {"t1": "../../apps"}}), id="name with a path"),
        pytest.param(msgspec.json.encode({"version": [2**70, 0]}), id="version outside of the bounds"),
    ],
)
def test_orders_outside_of_the_bounds_are_no_orders(host_files, tmp_path, capsys, content):
    (tmp_path / "agent/orders.json").write_bytes(content)
    assert host_files.read() == Stored()
    assert "orders.json" in capsys.readouterr().err


def test_the_largest_orders_fit(host_files):
    hosts = [f"c{number}".ljust(63, "x") for number in range(MOST_LEAVING)]
    largest = Stored(
        version=Version(2**62, 2**62),
        leaving=[Leaving(host, 2**31, stores=True) for host in hosts],
        names={host: f"{host}.".ljust(253, "x") for host in hosts},
    )
    host_files.write(largest)
    assert host_files.read() == largest


def test_reading_something_else_leaves_no_file_open(host_files, tmp_path):
    (tmp_path / "refresh/hdfs.done").mkdir()
    before = len(list(DESCRIPTORS.iterdir()))
    for _ in range(5):
        host_files.done(Request.HDFS)
    assert len(list(DESCRIPTORS.iterdir())) == before
