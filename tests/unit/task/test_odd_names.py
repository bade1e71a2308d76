"""Objects beside and among the input whose names cannot be read, and stores that refuse to list."""

import http.client
import io
import os
import subprocess
import sys

import pytest

from boathouse_task import hdfs, locations, object_store, s3_listing, setup_task
from boathouse_task.contract import HdfsAddress, Reason
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage
from tests.builders.task_hdfs import NameNode, rpc_error
from tests.unit.task import buckets

ODD = [
    pytest.param("in//b.txt", "in//b.txt", id="an empty segment"),
    pytest.param("in/a\tb.txt", "in/a\\tb.txt", id="a TAB"),
    pytest.param("in/a\nb.txt", "in/a\\nb.txt", id="a newline"),
    pytest.param("in/a\x7fb.txt", "in/a\\x7fb.txt", id="DEL"),
    pytest.param("in/end.txt/", "in/end.txt/", id="a slash at its end"),
]


def listed(storage, url):
    return [file.location.path for file in setup_task.list_input(storage, locations.parse(url))]


def inputs_of(job_folder, storage, *urls):
    task = job_folder.task(job_folder.setup_spec(inputs=list(urls)))
    task.storage = storage
    return [file.url for file in setup_task._inputs(task)]


@pytest.mark.parametrize(("key", "shown"), ODD)
def test_an_odd_key_that_the_input_matches_is_one_user_error_that_names_it(job_folder, key, shown):
    with buckets.storage(buckets.Bucket({"in/a.txt": 1, key: 1})) as storage, pytest.raises(TaskError) as failed:
        inputs_of(job_folder, storage, "s3://b/in")
    assert (failed.value.reason, failed.value.user_error) == (Reason.INVALID_URL, True)
    assert f"s3://b/{shown}" in failed.value.message
    assert "\n" not in failed.value.message


@pytest.mark.parametrize(("key", "_shown"), ODD)
@pytest.mark.parametrize("url", ["s3://b/in/[ab].csv", "s3://b/in/{a,b}.csv", "s3://b/i?/*.csv", "s3://b/*/a.csv"])
def test_an_odd_key_that_no_input_matches_does_not_matter(job_folder, key, _shown, url):
    objects = {"in/a.csv": 1, key: 1, key.replace("in", "in/logs"): 1, f"other/{key}": 1}
    with buckets.storage(buckets.Bucket(objects)) as storage:
        assert inputs_of(job_folder, storage, url) == ["s3://b/in/a.csv"]


@pytest.mark.parametrize("key", ["in/./c", "in/sub/../c", "in/_logs//x", "in/.tmp/a\tb", "in/_a\nb"])
def test_an_odd_key_below_a_hidden_name_does_not_matter(job_folder, key):
    with buckets.storage(buckets.Bucket({"in/a.txt": 1, key: 1})) as storage:
        assert inputs_of(job_folder, storage, "s3://b/in") == ["s3://b/in/a.txt"]


def test_a_key_with_a_slash_at_its_start_is_not_taken_for_another(job_folder):
    with buckets.storage(buckets.Bucket({"/a.txt": 1})) as storage, pytest.raises(TaskError, match=r"s3://b//a\.txt"):
        inputs_of(job_folder, storage, "s3://b/")


@pytest.mark.parametrize("is_encoding", [True, False])
def test_keys_are_listed_as_they_are_over_several_pages(is_encoding):
    names = ["in/a b", "in/a+b", "in/50%25", "in/ü&<.txt", "in/sub/x", "in/~'()*", "in/z"]
    bucket = buckets.Bucket(dict.fromkeys(names, 1) | {"in/": 0, "in/sub/": 0, "inn": 1})
    bucket.is_encoding = is_encoding
    with buckets.storage(bucket) as storage:
        assert listed(storage, "s3://b/in") == sorted(names)
        children = [file.location.path for file in storage.children(locations.parse("s3://b/in"))]
    assert children == sorted(set(names) - {"in/sub/x"})
    assert len(bucket.asked) > 4


def test_keys_without_number_are_listed_though_each_page_fails_first():
    bucket = buckets.Bucket({"in/a": 1})
    bucket.refusals = [(503, b""), (429, b""), (500, b"<Error><Code>InternalError</Code></Error>")]
    with buckets.storage(bucket, retry_s=30) as storage:
        assert listed(storage, "s3://b/in") == ["in/a"]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"", "access is denied"),
        (401, b"", "access is denied"),
        (403, b"<html>proxy</html>", "access is denied"),
        (403, b"<Error><Code>AccessDenied</Code></Error>", "access is denied"),
        (403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>", "the secret key is wrong"),
        (403, b"<Error><Code>InvalidAccessKeyId</Code></Error>", "does not know the access key"),
    ],
)
@pytest.mark.parametrize("method", ["listing", "files", "children"])
def test_a_list_that_is_refused_is_access_denied_and_not_repeated(status, body, words, method):
    bucket = buckets.Bucket({"in/a": 1})
    bucket.refusals = [(status, body)]
    with buckets.storage(bucket, retry_s=30) as storage, pytest.raises(TaskError) as failed:
        list(getattr(storage, method)(locations.parse("s3://b/in")))
    assert (failed.value.reason, failed.value.user_error) == (Reason.ACCESS_DENIED, True)
    assert words in failed.value.message
    assert "s3://b/in" in failed.value.message


@pytest.mark.parametrize(
    ("status", "body", "is_users", "words"),
    [
        (404, b"<Error><Code>NoSuchBucket</Code></Error>", True, "the bucket does not exist"),
        (301, b"<Error><Code>PermanentRedirect</Code></Error>", True, "the region is wrong"),
        (400, b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>", True, "the region is wrong"),
        (418, b"secret canary", False, "status 418"),
        (200, b"<html>", False, "is no XML"),
        (200, b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", False, "document type"),
        (200, b"<x><IsTruncated>true</IsTruncated></x>", False, "does not name its next page"),
    ],
)
def test_another_answer_to_a_list_says_what_it_was_without_its_text(status, body, is_users, words):
    bucket = buckets.Bucket({})
    bucket.refusals = [(status, body)]
    with buckets.storage(bucket) as storage, pytest.raises(TaskError) as failed:
        listed(storage, "s3://b/in")
    assert (failed.value.reason, failed.value.user_error) == (Reason.STORAGE_ERROR, is_users)
    assert words in failed.value.message
    assert "canary" not in failed.value.message


@pytest.mark.parametrize("text", ["dns error: x", "Name or service not known", "failure in name resolution"])
def test_a_host_that_is_not_found_is_named_by_its_field(text):
    error = object_store.explain(OSError(text), "read", "s3://b/in")
    assert error.message.endswith("the host name of spec.storage.s3.endpointURL does not resolve")


def test_a_bucket_for_everybody_is_listed_without_a_signature():
    bucket = buckets.Bucket({"in/a": 1})
    with buckets.storage(bucket, key="") as storage:
        assert listed(storage, "s3://b/in") == ["in/a"]
    assert set(bucket.signatures) == {None}


def test_a_request_has_the_signature_of_amazons_example():
    signed = s3_listing.authorization(
        "examplebucket.s3.amazonaws.com", "/", "max-keys=2&prefix=J", "20130524T000000Z", "us-east-1",
        "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )  # fmt: skip
    assert signed.endswith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


def test_a_request_with_temporary_keys_is_signed_and_sent_with_their_token(monkeypatch):
    sent = []
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    bucket = s3_listing.Bucket("http://s3:7070/b", "us-east-1", keys, 0)
    monkeypatch.setattr(bucket, "_open", lambda request, **_: sent.append(request) or io.BytesIO(b"<a/>"))
    assert list(bucket.listing(locations.parse("s3://b/"), is_recursive=True)) == []
    (request,) = sent
    assert request.get_header("X-amz-security-token") == "t"
    assert (
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token," in request.headers["Authorization"]
    )


@pytest.mark.parametrize("error", [ConnectionResetError(), http.client.IncompleteRead(b"")])
def test_a_list_whose_connection_breaks_is_asked_for_again(monkeypatch, error):
    answers = [error, io.BytesIO(b"<a/>")]

    def answer(*_, **__):
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    bucket = s3_listing.Bucket("http://s3:7070/b", "us-east-1", {}, 60, sleep=lambda _: None)
    monkeypatch.setattr(bucket, "_open", answer)
    assert (list(bucket.listing(locations.parse("s3://b/"), is_recursive=True)), answers) == ([], [])


@pytest.mark.parametrize("name", [b"a\tb.txt", b"a\nb.txt", b"\xff.txt", b"report#1"])
def test_an_odd_file_that_the_input_matches_is_one_user_error_that_names_it(job_folder, name):
    job_folder.write_input("a.csv", b"x\n")
    (job_folder.input / os.fsdecode(name)).write_bytes(b"x\n")
    failed = job_folder.fail_job()
    assert (failed.reason, failed.user_error) == (Reason.INVALID_URL, True)
    assert repr(name)[2:-1] in failed.message
    job_folder.run_job(inputs=[f"file://{job_folder.input}/*.csv"])


@pytest.mark.parametrize("path", ["in//a", "in/./a", "in/../in/a", "in/a\tb", "in/a#1"])
def test_a_url_that_cannot_be_read_is_a_user_error_that_names_it(job_folder, path):
    job_folder.write_input("a", b"x\n")
    failed = job_folder.fail_job(inputs=[f"file://{job_folder.folder}/{path}"])
    assert failed.user_error
    assert failed.reason in (Reason.INVALID_URL, Reason.INPUT_NOT_FOUND)
    assert locations.shown(f"file://{job_folder.folder}/{path}") in failed.message


def test_files_are_found_through_links_and_a_link_to_nothing_is_no_file(job_folder):
    job_folder.write_input("a", b"x\n")
    elsewhere = job_folder.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b").write_bytes(b"y\n")
    (job_folder.input / "link").symlink_to(elsewhere)
    (job_folder.input / "nothing").symlink_to("nowhere")
    os.mkfifo(job_folder.input / "pipe")
    job_folder.run_job()
    assert b"".join(job_folder.parts()) == b"x\t\ny\t\n"


def test_a_link_to_a_folder_above_it_ends(job_folder):
    job_folder.write_input("a", b"x\n")
    (job_folder.input / "link").symlink_to(job_folder.input)
    assert "Too many levels of symbolic links" in job_folder.fail_job().message


@pytest.fixture
def lake(monkeypatch):
    """An HDFS in memory, and the storage of a task with it."""
    node = NameNode()
    monkeypatch.setattr(hdfs, "_client", lambda _address, _name: node)
    addresses = {"lake": HdfsAddress(name_node="nn:8020")}
    return node, Storage(None, {}, part_bytes=1 << 20, retry_s=0, hdfs_addresses=addresses)


@pytest.mark.parametrize("method", ["listing", "files", "children"])
def test_a_list_that_hdfs_refuses_is_access_denied(lake, method):
    node, storage = lake
    node.files["/in/a"] = b"x"
    node.failures["list"] = [rpc_error("security.AccessControlException", "Permission denied: user=hadoop")]
    with pytest.raises(TaskError) as failed:
        list(getattr(storage, method)(locations.parse("hdfs://lake/in")))
    assert (failed.value.reason, failed.value.user_error) == (Reason.ACCESS_DENIED, True)


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a#1", "a\x7f"])
def test_names_that_hdfs_has_are_read_from_it(job_folder, lake, name):
    node, storage = lake
    node.files[f"/in/{name}"] = b"x"
    (found,) = setup_task.list_input(storage, locations.parse("hdfs://lake/in"))
    assert inputs_of(job_folder, storage, "hdfs://lake/in") == [f"hdfs://lake/in/{name}"]
    assert storage.read(found.location) == b"x"


_AS_NOBODY = """
import os, sys
from boathouse_task import locations
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage
storage, where = Storage(None, {}, part_bytes=1 << 20), locations.parse(sys.argv[1])
actions = {
    "list": lambda: list(storage.files(where)),
    "children": lambda: storage.children(where),
    "read": lambda: storage.read(where.child("a")),
    "range": lambda: storage.read_range(where.child("a"), 0, 1),
    "look up": lambda: storage.size(where.child("a")),
    "create": lambda: storage.create(where.child("b"), b""),
    "write": lambda: storage.write(where.child("b"), b""),
    "upload": lambda: storage.upload(where.child("b"), [b""]),
    "move": lambda: storage.move(where.child("a"), where.child("b"), 1),
    "delete": lambda: storage.delete([where.child("a")]),
}
os.setgid(65534)
os.setuid(65534)
for name, action in actions.items():
    try:
        action()
        print(name, "succeeded")
    except TaskError as error:
        print(error.reason, error.user_error, "10001" in error.message)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as somebody else")
def test_a_folder_that_nobody_may_use_is_access_denied_whatever_is_done_there(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "a").write_bytes(b"x")
    closed.chmod(0o700)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    ran = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, f"file://{closed}"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert set(ran.stdout.splitlines()) == {"AccessDenied True True"}
