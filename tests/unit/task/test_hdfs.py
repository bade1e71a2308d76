import subprocess
import sys
from concurrent import futures

import pytest

from boathouse_task import hdfs, locations
from boathouse_task.contract import HdfsAddress, Reason
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.locations import Source
from boathouse_task.storage import Storage
from tests.builders.task_hdfs import rpc_error
from tests.builders.tasks import SleepingClock

SAFE_MODE = rpc_error("hdfs.server.namenode.SafeModeException", "Cannot create file. Name node is in safe mode.")
DENIED = rpc_error("security.AccessControlException", "Permission denied: user=hadoop, access=WRITE")

pytestmark = pytest.mark.usefixtures("name_node")


@pytest.fixture
def store(clock: SleepingClock) -> hdfs.HdfsStore:
    address = HdfsAddress(name_node="nn:8020")
    return hdfs.HdfsStore("lake", address, {}, 30, sleep=clock.sleep, monotonic=clock.monotonic)


@pytest.fixture
def storage() -> Storage:
    return Storage(None, {}, part_bytes=1 << 20, retry_s=0, hdfs_addresses={"lake": HdfsAddress(name_node="nn:8020")})


def at(path: str) -> locations.Location:
    return locations.parse(f"hdfs://lake/{path}")


def test_what_was_written_is_read(storage, name_node):
    assert storage.create(at("a/b"), b"1")
    storage.write(at("a/c"), b"22")
    assert storage.upload(at("a/d/e"), [b"3", b"33"]) == 3
    assert {path: storage.read(at(path)) for path in ("a/b", "a/c", "a/d/e")} == {
        "a/b": b"1",
        "a/c": b"22",
        "a/d/e": b"333",
    }
    assert sorted(name_node.files) == ["/a/b", "/a/c", "/a/d/e"]


def test_files_are_listed_with_their_blocks_and_folders_are_not(storage, name_node):
    name_node.files |= {"/a/b": b"1", "/a/c/d": b"22", "/ab": b"x"}
    assert [(file.location.url, file.size_bytes, file.block_bytes) for file in storage.files(at("a"))] == [
        ("hdfs://lake/a/b", 1, 1024),
        ("hdfs://lake/a/c/d", 2, 1024),
    ]
    assert [file.location.path for file in storage.children(at("a"))] == ["a/b"]


@pytest.mark.parametrize("path", ["nothing", "a/b"])
def test_what_is_no_folder_is_empty(storage, name_node, path):
    name_node.files["/a/b"] = b"1"
    assert list(storage.files(at(path))) == storage.children(at(path)) == []


def test_missing_files_and_folders_have_no_size(storage, name_node):
    name_node.files["/a/b"] = b"12"
    assert [storage.size(at(path)) for path in ("a/b", "a", "c")] == [2, None, None]
    with pytest.raises(NotFound, match="hdfs://lake/c does not exist"):
        storage.read(at("c"))


def test_a_file_is_never_seen_without_its_content(store, name_node):
    name_node.failures["rename"] = [DENIED]
    with pytest.raises(PermissionError):
        store.create("a", b"content")
    assert name_node.files == {}
    assert ("create", "/a") not in name_node.calls


def test_a_file_that_exists_is_not_created_again(store, name_node):
    name_node.files["/a"] = b"first"
    assert not store.create("a", b"second")
    assert name_node.files == {"/a": b"first"}


def test_of_many_creators_one_wins(store, name_node):
    contents = [str(number).encode() for number in range(8)]
    with futures.ThreadPoolExecutor(8) as racers:
        won = list(racers.map(lambda content: store.create("a", content), contents))
    assert [content for content, is_winner in zip(contents, won, strict=True) if is_winner] == [name_node.files["/a"]]
    assert list(name_node.files) == ["/a"]


def test_a_creator_whose_response_was_lost_is_the_winner(store, name_node):
    name_node.lost["rename"] = 1
    assert store.create("a", b"mine")
    assert name_node.files == {"/a": b"mine"}


def test_a_lost_response_does_not_fail_a_write(store, name_node):
    name_node.files["/a"] = b"old"
    name_node.lost["rename"] = 1
    store.write("a", b"new")
    assert name_node.files == {"/a": b"new"}


def test_an_existing_file_is_replaced(storage, name_node):
    name_node.files |= {"/a": b"old", "/b": b"new"}
    storage.move(at("b"), at("a"), 3)
    assert name_node.files == {"/a": b"new"}
    with pytest.raises(NotFound):
        storage.move(at("b"), at("a"), 3)


def test_requests_are_retried_until_safe_mode_is_over(store, name_node, clock):
    name_node.failures["create"] = [SAFE_MODE, SAFE_MODE, OSError("Connection refused (os error 111)")]
    assert store.create("a", b"1")
    assert clock.now_s == 0.5 + 1 + 2


def test_requests_are_not_retried_for_ever(store, name_node, clock):
    name_node.failures["create"] = [SAFE_MODE] * 100
    with pytest.raises(OSError, match="SafeModeException: Cannot create file"):
        store.write("a", b"1")
    assert 20 < clock.now_s <= 30


@pytest.mark.parametrize(
    ("error", "reason", "is_users", "hint"),
    [
        (DENIED, Reason.ACCESS_DENIED, True, "access is denied"),
        (SAFE_MODE, Reason.STORAGE_ERROR, False, "the NameNode is in safe mode"),
        (rpc_error("hdfs.protocol.DSQuotaExceededException"), Reason.OUT_OF_DISK, True, "the quota of space"),
        (rpc_error("ipc.StandbyException"), Reason.STORAGE_ERROR, False, "a standby"),
        (
            rpc_error("ipc.RemoteException", "File /a could only be written to 0 of the 1 minReplication nodes."),
            Reason.OUT_OF_DISK,
            False,
            "no DataNode has room",
        ),
        (OSError("Connection refused (os error 111)"), Reason.STORAGE_ERROR, False, "refuses connections"),
        (RuntimeError('DataTransferError("All DataNodes failed: [")'), Reason.STORAGE_ERROR, False, "no DataNode with"),
        (OSError("failed to lookup address information"), Reason.STORAGE_ERROR, False, "does not resolve"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_say_what_to_do(storage, name_node, error, reason, is_users, hint):
    name_node.failures["create"] = [error]
    with pytest.raises(TaskError) as failed:
        storage.write(at("a"), b"1")
    assert (failed.value.reason, failed.value.user_error) == (reason, is_users)
    assert failed.value.message.startswith("cannot write hdfs://lake/a: ")
    assert hint in failed.value.message
    assert "Secret" not in failed.value.message


def test_what_cannot_succeed_is_tried_once(store, name_node, clock):
    name_node.failures["create"] = [DENIED]
    with pytest.raises(PermissionError):
        store.write("a", b"1")
    assert clock.now_s == 0


def test_a_range_beyond_the_end_is_a_change_of_the_file(storage, name_node):
    name_node.files["/a"] = b"12345"
    assert storage.read_range(at("a"), 1, 3) == b"234"
    for offset, length in ((3, 5), (9, 1)):
        with pytest.raises(TaskError, match="has changed"):
            storage.read_range(at("a"), offset, length)


def test_the_windows_of_a_file_are_read_with_one_request_for_its_blocks(storage, name_node):
    name_node.files["/a"] = bytes(100)
    assert b"".join(storage.read_windows(at("a"), 0, 100, 10)) == bytes(100)
    assert name_node.calls.count(("read", "/a")) == 1


def test_blocks_that_have_moved_are_looked_up_again(store, name_node):
    name_node.files["/a"] = b"12345"
    store.read_range("a", 0, 1)
    name_node.failures["read_range"] = [RuntimeError('DataTransferError("All DataNodes failed: [")')]
    assert store.read_range("a", 0, 2) == b"12"
    assert name_node.calls.count(("read", "/a")) == 2


@pytest.mark.parametrize("size", [1, 3 << 20])
def test_an_upload_that_fails_leaves_no_file(storage, name_node, size):
    def chunks():
        yield bytes(size)
        raise ValueError("the command failed")

    with pytest.raises(ValueError, match="the command failed"):
        storage.upload(at("a"), chunks())
    assert name_node.files == {}


def test_a_small_upload_is_retried(store, name_node):
    name_node.failures["close"] = [OSError("Connection refused (os error 111)")]
    store.upload("a", Source([b"1", b"2"]))
    assert name_node.files == {"/a": b"12"}


def test_empty_folders_are_removed_and_others_are_not(storage, name_node):
    name_node.folders |= {"/a", "/a/b", "/a/b/c", "/a/d"}
    name_node.files["/a/d/e"] = b""
    storage.remove_empty_folders(at("a"))
    assert name_node._folders() == {"/a", "/a/d"}
    storage.remove_empty_folders(at("nothing"))


def test_missing_files_are_deleted_without_complaint(storage, name_node):
    name_node.files["/a"] = b""
    storage.delete([at("a"), at("b")])
    assert name_node.files == {}


def test_an_unknown_cluster_is_named():
    with pytest.raises(TaskError, match="InvalidURL: hdfs://pond/ names no cluster"):
        Storage(None, {}, part_bytes=1).size(locations.parse("hdfs://pond/a"))


def test_hdfs_native_refuses_no_setting_and_takes_the_user():
    code = (
        "import os; from boathouse_task import hdfs;"
        "hdfs.HdfsStore('127.0.0.1:1', None, {'HADOOP_USER_NAME': 'me'}, 0); print(os.environ['HADOOP_USER_NAME'])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "me\n"


def test_tasks_without_hdfs_do_not_load_hdfs_native():
    code = "import sys, boathouse_task.__main__; print('hdfs_native' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "False\n"
