"""The client of Hadoop's daemons against daemons that are broken or malicious."""

import itertools
import socket

import pytest

from boathouse_task.rest import Rest, RestError
from tests.builders.agents import Daemon, broken_daemon

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def request(port: int, **limits: object) -> object:
    return Rest("Daemon", port, **limits).get("/x", dict[str, int])


def test_a_response_is_decoded_as_the_expected_type():
    with Daemon({"/x": (200, b'{"a":1}')}).serving() as port:
        assert request(port) == {"a": 1}


def test_a_chunked_response_is_decoded_too():
    with broken_daemon(OK + b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n') as port:
        assert request(port) == {"a": 1}


def test_a_response_that_ends_with_its_connection_is_decoded_too():
    with broken_daemon(OK + b'Connection: close\r\n\r\n{"a":1}') as port:
        assert request(port) == {"a": 1}


@pytest.mark.parametrize("status", [302, 307, 401, 404, 500, 503])
def test_a_redirect_or_an_error_is_no_response(status):
    daemon = Daemon({"/x": (status, b'{"a":1}')})
    with daemon.serving() as port, pytest.raises(RestError, match=f"Daemon: GET /x: status {status}") as error:
        request(port)
    assert error.value.status == status
    assert daemon.paths() == ["/x"]


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(OK + b'Content-Length: 7\r\n\r\n{"a":', id="shorter than declared"),
        pytest.param(OK + b'Content-Length: 7\r\nContent-Encoding: gzip\r\n\r\n{"a":1}', id="compressed"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n{", id="huge chunk"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{", id="negative chunk"),
        pytest.param(OK + b"Content-Length: 99999999999999999999\r\n\r\n{", id="huge length"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", id="status that is no number"),
        pytest.param(OK + b"X: y\r\n" * 200 + b"\r\n{}", id="too many headers"),
        pytest.param(OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n{}", id="long header"),
        pytest.param(b"", id="nothing"),
        pytest.param(OK + b"\r\n" + b'{"a":"1"}', id="wrong type"),
        pytest.param(OK + b"\r\n" + b"[]", id="no object"),
        pytest.param(OK + b"\r\n" + b"\xff\xfe", id="no text"),
        pytest.param(OK + b"\r\n" + b'{"b":' + b"[" * 100_000, id="deep"),
    ],
)
def test_a_malformed_response_is_an_error_and_no_crash(response):
    with broken_daemon(response) as port, pytest.raises(RestError, match="Daemon: "):
        request(port)


@pytest.mark.parametrize(
    ("first", "endless"),
    [
        pytest.param(OK + b"\r\n", b" " * 4096, id="body"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\n     \r\n", id="chunks"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="continue"),
    ],
)
def test_an_endless_response_is_cut_off_at_its_limit(first, endless):
    with broken_daemon(first, endless=endless) as port, pytest.raises(RestError, match="too large"):
        request(port, most_bytes=50_000, timeout_s=60)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 2", OK, OK + b"\r\n{"], ids=["nothing", "status", "headers", "body"])
def test_a_daemon_that_stops_in_the_middle_is_given_up(first):
    with broken_daemon(first, keep_open=True) as port, pytest.raises(RestError, match="TimeoutError") as error:
        request(port, timeout_s=0.05)
    assert error.value.is_timeout


def test_a_daemon_that_sends_slowly_has_no_more_time_in_all():
    seconds = itertools.count()
    with broken_daemon(OK + b"\r\n", endless=b" ") as port, pytest.raises(RestError, match="too slow"):
        request(port, timeout_s=20, monotonic=lambda: float(next(seconds)))


def test_a_port_without_a_daemon_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RestError, match="ConnectionRefusedError"):
        request(port)


def test_a_change_is_sent_as_json():
    daemon = Daemon({"/x": (202, b"")})
    with daemon.serving() as port:
        Rest("Daemon", port).put("/x", b'{"a":1}')
    assert daemon.requests == [("PUT", "/x", b'{"a":1}')]
