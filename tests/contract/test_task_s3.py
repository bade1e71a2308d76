"""The task runtime on a real S3 server (versitygw)."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from concurrent import futures
from typing import IO

import msgspec
import pytest

from boathouse_e2e import tools
from boathouse_task import contract, local, locations, runner
from boathouse_task.contract import Reason, S3Config
from boathouse_task.environment import Environment
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.processes import Processes
from boathouse_task.storage import Storage

KEY, SECRET = "some-key", "canary-secret"
TEXT = b"the boat and the house\nand the lake\n" * 3000
WORDS = ["awk", '{ for (i = 1; i <= NF; i++) print $i "\t1" }']
SUM = ["awk", "-F\t", '{ sum[$1] += $2 } END { for (key in sum) print key "\t" sum[key] }']


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """A server with an empty bucket `bucket`; its URL."""
    program = tools.ensure(["versitygw"])["versitygw"]
    folder = tmp_path_factory.mktemp("s3")
    (folder / "bucket").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    keys = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    log = (folder.parent / "s3.log").open("w+b")
    command = [program, "--port", f"127.0.0.1:{port}", "posix", folder]
    server = subprocess.Popen(command, env=keys, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    wait_for(url, server, log)
    yield url
    server.send_signal(signal.SIGTERM)
    server.wait(30)
    log.close()


def wait_for(url: str, server: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - our own http server
        except urllib.error.HTTPError as answer:
            answer.close()
            return
        except OSError:
            time.sleep(0.05)
    log.seek(0)
    raise AssertionError(f"versitygw has ended: {log.read()!r}")


def storage_of(endpoint: str, key: str = KEY, secret: str = SECRET) -> Storage:
    credentials = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    return Storage(S3Config(endpoint_url=endpoint), credentials, part_bytes=5 << 20, retry_s=60)


def at(path: str) -> locations.Location:
    return locations.parse(f"s3://bucket/{path}")


def test_of_32_creators_at_once_exactly_one_wins(endpoint):
    storage = storage_of(endpoint)
    for number in range(10):
        with futures.ThreadPoolExecutor(32) as racers:
            won = list(
                racers.map(lambda racer, number=number: storage.create(at(f"race/{number}"), b"%d" % racer), range(32))
            )
        assert won.count(True) == 1
        assert storage.read(at(f"race/{number}")) == b"%d" % won.index(True)


def test_objects_of_all_sizes_come_back(endpoint):
    storage = storage_of(endpoint)
    for size in (0, 1, 5 << 20, 12_345_678):
        content = os.urandom(size)
        chunks = [content[start : start + 700_000] for start in range(0, size, 700_000)]
        assert storage.upload(at("big"), chunks) == size
        assert b"".join(storage.read_windows(at("big"), 0, size, 4 << 20)) == content


def test_an_upload_that_fails_leaves_no_object(endpoint):
    def failing():
        yield b"x" * (11 << 20)
        raise KeyError("the mapper")

    with pytest.raises(KeyError):
        storage_of(endpoint).upload(at("half"), failing())
    assert storage_of(endpoint).size(at("half")) is None


def test_moving_and_deleting_may_be_repeated(endpoint):
    storage = storage_of(endpoint)
    storage.write(at("from"), b"x")
    storage.move(at("from"), at("to"), 1)
    with pytest.raises(NotFound):
        storage.move(at("from"), at("to"), 1)
    storage.delete([at("to"), at("never-there")])
    storage.delete([at("to")])
    assert storage.size(at("to")) is None


@pytest.mark.parametrize("combined", [False, True])
def test_a_job_counts_words(endpoint, tmp_path, combined):
    storage = storage_of(endpoint)
    storage.write(at("books/a b%20ü.txt"), TEXT)
    storage.write(at("books/deep/er/b.txt"), TEXT)
    storage.write(at("books/_hidden"), TEXT)
    output = f"s3://bucket/out-{combined}"
    spec = local.job_spec(
        inputs=["s3://bucket/books"], output=output, mapper=WORDS, combiner=SUM if combined else None, reducer=SUM,
        reduces=3, split_max_bytes=40_000, s3=S3Config(endpoint_url=endpoint),
    )  # fmt: skip
    result = local.run_job(spec, environment(tmp_path))
    parts = [file for file in storage.files(locations.parse(output)) if "part-" in file.location.path]
    rows = [row.split(b"\t") for part in parts for row in storage.read(part.location).splitlines()]
    assert {word: int(count) for word, count in rows} == {
        word: 2 * TEXT.split().count(word) for word in set(TEXT.split())
    }
    assert len(list(storage.files(locations.parse(output)))) == len(parts) + 1
    assert result.bytes_total == sum(part.size_bytes for part in parts)


def environment(folder) -> Environment:
    return Environment(
        work_path=folder,
        variables={**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET},
        pod_uid="x",
    )


@pytest.mark.parametrize(
    ("key", "secret", "url", "what"),
    [
        pytest.param(KEY, "wrong", "s3://bucket/books", "the secret key is wrong", id="secret"),
        pytest.param("wrong", SECRET, "s3://bucket/books", "does not know the access key", id="key"),
        pytest.param("", "", "s3://bucket/books", "access is denied", id="unsigned"),
        pytest.param(KEY, SECRET, "s3://nope/books", "the bucket does not exist", id="bucket"),
    ],
)
def test_what_is_wrong_with_the_storage_is_said_without_the_secret(endpoint, key, secret, url, what):
    with pytest.raises(TaskError) as failed:
        list(storage_of(endpoint, key, secret).files(locations.parse(url)))
    assert what in failed.value.message
    assert url in failed.value.message
    assert failed.value.user_error
    assert SECRET not in str(failed.value)


def test_existing_output_and_missing_input_are_found_out_at_setup(endpoint, tmp_path):
    storage_of(endpoint).write(at("there/x"), b"x")
    cases = {("s3://bucket/there", "s3://bucket/there"): Reason.OUTPUT_EXISTS}
    cases |= {("s3://bucket/missing/*", "s3://bucket/new"): Reason.INPUT_NOT_FOUND}
    for (source, output), reason in cases.items():
        spec = local.job_spec(inputs=[source], output=output, mapper=["cat"], s3=S3Config(endpoint_url=endpoint))
        result = runner.run(spec, environment(tmp_path), Processes())
        assert (result.reason, result.user_error) == (reason, True)
        assert msgspec.json.decode(runner.encode(result), type=contract.TaskResult) == result


def test_a_request_is_repeated_until_the_server_is_back(endpoint):
    """A proxy that refuses its first connections stands for a server that restarts."""
    storage_of(endpoint).write(at("steady"), b"x")
    with flaky_proxy(endpoint, refused=3) as url:
        assert storage_of(url).read(at("steady")) == b"x"


@contextlib.contextmanager
def flaky_proxy(endpoint: str, refused: int):
    """Closes so many connections at once, then passes bytes on."""
    host, _, port = endpoint.removeprefix("http://").partition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener, futures.ThreadPoolExecutor() as pool:
        pool.submit(_serve, listener, refused, (host, int(port)), pool)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, refused: int, target: tuple[str, int], pool: futures.ThreadPoolExecutor) -> None:
    for number in range(1000):
        try:
            client, _ = listener.accept()
        except OSError:
            return
        if number < refused:
            client.close()
            continue
        server = socket.create_connection(target)
        pool.submit(_pass_on, client, server)
        pool.submit(_pass_on, server, client)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError), source:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
