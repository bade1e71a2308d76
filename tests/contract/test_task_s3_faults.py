"""A job on an S3 server that answers half of all requests with an error, before or after it has done what was asked."""

import contextlib
import http.client
import http.server
import random
import threading
from collections.abc import Iterator

import pytest

from boathouse_task import local, locations
from boathouse_task.contract import S3Config
from tests.contract.test_task_s3 import SUM, TEXT, WORDS, endpoint, environment, storage_of

__all__ = ["endpoint"]
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


def chances(seed: int, *, stratum: int = 8) -> Iterator[float]:
    """Uniform draws, one in each eighth of [0, 1) among every eight.

    So no run of failures outlasts the time for which a request is repeated.
    """
    generator = random.Random(seed)
    while True:
        yield from generator.sample([(part + generator.random()) / stratum for part in range(stratum)], stratum)


@contextlib.contextmanager
def unreliable(endpoint: str, *, before: float, after: float, seed: int):
    """A proxy that fails a request before passing it on, or after, with these probabilities; yields it."""
    drawn, lock = chances(seed), threading.Lock()
    host = endpoint.removeprefix("http://")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Expect"):
                self.send_response_only(100)
            with lock:
                chance = next(drawn)
                self.server.asked += 1
            if chance < before:
                self.fail()
                return
            connection = http.client.HTTPConnection(host, timeout=60)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if before <= chance < before + after:
                self.fail()
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP and name.lower() not in ("server", "date"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(content)

        def fail(self):
            self.server.failed += 1
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the base class's names

        def log_message(self, *_arguments):
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = server.failed = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("before", "after", "seed"),
    [
        (0.5, 0.0, 1),
        (0.3, 0.2, 2),
        pytest.param(0.5, 0.0, 3, marks=pytest.mark.long),
        pytest.param(0.3, 0.2, 4, marks=pytest.mark.long),
    ],
)
def test_a_job_counts_words_though_half_of_all_requests_fail(endpoint, tmp_path, before, after, seed):
    storage = storage_of(endpoint)
    storage.write(locations.parse("s3://bucket/faulty/a"), TEXT)
    output = f"s3://bucket/out-faulty-{before}-{seed}"
    with unreliable(endpoint, before=before, after=after, seed=seed) as proxy:
        spec = local.job_spec(
            inputs=["s3://bucket/faulty"], output=output, mapper=WORDS, reducer=SUM, reduces=2, split_max_bytes=60_000,
            s3=S3Config(endpoint_url=f"http://127.0.0.1:{proxy.server_port}"),
        )  # fmt: skip
        local.run_job(spec, environment(tmp_path))
    assert proxy.failed > proxy.asked * 0.3
    assert proxy.failed > 20
    parts = [file for file in storage.files(locations.parse(output)) if "part-" in file.location.path]
    rows = [row.split(b"\t") for part in parts for row in storage.read(part.location).splitlines()]
    assert {word: int(count) for word, count in rows} == {word: TEXT.split().count(word) for word in set(TEXT.split())}
