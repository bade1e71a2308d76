"""Set libcurl's options for the API server, and convert its answers to errors, on the event loop and off it."""

import io
import urllib.parse
from collections.abc import Iterable
from typing import Any

import msgspec
import pycurl

from boathouse.cluster import catalogue, errors
from boathouse.cluster.config import ClusterConfig

_IDLE_CONNECTION_S = 60
"""How long an idle connection is reused; the API server closes it after 90 s."""
_CONNECT_MS = 10_000
_ERROR_STATUS = 300
"""Statuses from here on are errors. A redirect is not followed, because it would forward the token."""
_MESSAGE_CHARS = 500


def handle(options: Iterable[tuple[int, Any]]) -> pycurl.Curl:
    """Return a handle with these options."""
    curl = pycurl.Curl()
    for option, value in options:
        curl.setopt(option, value)
    return curl


def server(config: ClusterConfig) -> tuple[str, dict[int, Any]]:
    """Return the base URL and libcurl's options for the connection."""
    url = urllib.parse.urlsplit(config.server)
    options: dict[int, Any] = {
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.CONNECTTIMEOUT_MS: _CONNECT_MS,
        pycurl.MAXAGE_CONN: _IDLE_CONNECTION_S,
        pycurl.TCP_KEEPALIVE: 1,
        pycurl.NOSIGNAL: 1,
    }
    if config.proxy_url:
        options[pycurl.PROXY] = config.proxy_url
    if config.tls_server_name:  # libcurl verifies the certificate for the URL's host name
        port = url.port or 443
        options[pycurl.CONNECT_TO] = [f"::{url.netloc.removesuffix(f':{port}')}:{port}"]
        url = url._replace(netloc=f"{config.tls_server_name}:{port}")
    if not config.is_verified:
        options[pycurl.SSL_VERIFYPEER] = options[pycurl.SSL_VERIFYHOST] = 0
    elif config.ca_pem:
        options[pycurl.CAINFO_BLOB] = config.ca_pem.encode()
    elif url.scheme == "https":
        options |= _system_authorities()
    if config.client_pem:
        options[pycurl.SSLCERT_BLOB] = options[pycurl.SSLKEY_BLOB] = config.client_pem.encode()
    return url.geturl(), options


def _system_authorities() -> dict[int, Any]:
    """Return where this machine keeps its authorities: the wheel's libcurl knows only where its builder's did."""
    import ssl  # takes 10 ms, and clusters have an authority of their own, as a rule

    paths = ssl.get_default_verify_paths()
    return {k: v for k, v in ((pycurl.CAINFO, paths.cafile), (pycurl.CAPATH, paths.capath)) if v}


def set_body(curl: pycurl.Curl, method: str, body: bytes | None) -> None:
    """Set a request's method and body."""
    curl.setopt(pycurl.UPLOAD, body is not None)
    curl.setopt(pycurl.CUSTOMREQUEST, method)
    if body is not None:
        curl.setopt(pycurl.INFILESIZE_LARGE, len(body))
        # libcurl cannot rewind this body, so it never resends a write after a broken connection.
        curl.setopt(pycurl.READFUNCTION, io.BytesIO(body).read)


def is_error(curl: pycurl.Curl) -> bool:
    """Return whether the response's status, as far as it has arrived, is that of an error."""
    return int(curl.getinfo(pycurl.RESPONSE_CODE)) >= _ERROR_STATUS


def to_error(curl: pycurl.Curl, body: bytes) -> errors.ApiError:
    """Return the error of a response with an error status."""
    status, retry_after_s = curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo(pycurl.RETRY_AFTER) or None
    try:
        answer = msgspec.json.decode(body, type=catalogue.Status)
    except (msgspec.DecodeError, msgspec.ValidationError):  # a proxy's page, or text such as "404 page not found"
        answer = catalogue.Status(message=body[:_MESSAGE_CHARS].decode(errors="replace").strip())
    if retry_after_s is None and answer.details and answer.details.retry_after_seconds:
        retry_after_s = float(answer.details.retry_after_seconds)
    return errors.from_status(status, answer.reason, answer.message, retry_after_s, is_status=answer.kind == "Status")


def to_connection_lost(curl: pycurl.Curl, message: str) -> errors.ConnectionLost:
    """Return the error of a request without a complete response."""
    return errors.ConnectionLost(message, maybe_done=curl.getinfo(pycurl.REQUEST_SIZE) > 0)
