"""The head of a request: how large it may be, and where it says that the request ends."""

from http import HTTPStatus

import pytest

from boathouse.listening import gate

GET = b"GET / HTTP/1.1\r\nHost: x"


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        pytest.param(b"", 0, id="no-body"),
        pytest.param(b"\r\nContent-Length: 12", 12, id="a-body"),
        pytest.param(b"\r\nCONTENT-length:12", 12, id="in-capitals"),
        pytest.param(b"\r\nContent-Length: 1\r\nContent-Length: 1", HTTPStatus.BAD_REQUEST, id="two-lengths"),
        pytest.param(b"\r\nContent-Length: -1", HTTPStatus.BAD_REQUEST, id="negative"),
        pytest.param(b"\r\nContent-Length: +1", HTTPStatus.BAD_REQUEST, id="signed"),
        pytest.param(b"\r\nContent-Length: " + b"9" * 19, HTTPStatus.BAD_REQUEST, id="without-end"),
        pytest.param(b"\r\nTransfer-Encoding: chunked", HTTPStatus.LENGTH_REQUIRED, id="chunks"),
        pytest.param(b"\r\nContent-Length: 1\r\ntransfer-encoding : x", HTTPStatus.LENGTH_REQUIRED, id="both"),
    ],
)
def test_a_head_says_how_long_its_body_is(headers, length):
    assert gate.body_bytes(GET + headers) == length


def test_a_head_has_at_most_32_headers():
    headers = [b"\r\nX-%d: 1" % number for number in range(gate.MAX_HEADERS)]
    assert gate.body_bytes(GET + b"".join(headers[1:])) == 0
    assert gate.body_bytes(GET + b"".join(headers)) is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_a_head_without_a_request_line_is_refused():
    assert gate.body_bytes(b"\r\nGET / HTTP/1.1") is HTTPStatus.BAD_REQUEST
    assert gate.body_bytes(b"") is HTTPStatus.BAD_REQUEST
