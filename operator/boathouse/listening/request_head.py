"""Check the head of an HTTP/1.1 request: its size, and where the request ends. Pure."""

import re
from http import HTTPStatus
from typing import Final

MAX_BYTES: Final = 16 * 1024
"""Maximum size of a request line and headers. A pod's token has 1 to 2 KiB."""
MAX_HEADERS: Final = 32
END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")


def body_bytes(head: bytes) -> int | HTTPStatus:
    """Return the size of a request's body in bytes, or the status with which to refuse the request.

    Bodies have a length: no client of the operator sends chunks, and with them the end of a request would be known only
    after parsing its body. An HTTP parser may reject more than this function.

    Args:
        head: The request line and the headers, without the empty line.
    """
    request_line, *headers = head.split(b"\r\n")
    if not request_line:
        return HTTPStatus.BAD_REQUEST
    if len(headers) > MAX_HEADERS:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    lengths = []
    for header in headers:
        name, _, value = header.partition(b":")
        name = name.strip().lower()
        if name == b"transfer-encoding":
            return HTTPStatus.LENGTH_REQUIRED
        if name == b"content-length":
            lengths.append(value.strip())
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        return HTTPStatus.BAD_REQUEST
    return int(lengths[0])
