"""Send requests to the API server and wait for the answers: for commands, which have no event loop."""

import contextlib
import dataclasses
import itertools
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pycurl

from boathouse.cluster import curl_options, errors, server_time
from boathouse.cluster.config import ClusterConfig
from boathouse.cluster.kubeconfig import Credential

REQUEST_TIMEOUT_S: Final = 30.0
ATTEMPTS: Final = 4
MAX_RETRY_AFTER_S: Final = 30.0
"""A server that says to wait longer is not waited for."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TURN_S: Final = 1.0
"""How long libcurl waits at most before Python looks for signals."""


class Session:
    """Sends requests with a user's credentials. Threads may share it; each transfer has connections of its own."""

    _credential: Credential | None = None

    def __init__(self, config: ClusterConfig, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._config, self._sleep = config, sleep
        self._idle: list[pycurl.CurlMulti] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> bytes:
        """Return the body of a response; the path is quoted, the query is not. A busy server gets the request again."""
        options: dict[int, Any] = {pycurl.TIMEOUT_MS: round(timeout_s * 1000), pycurl.ACCEPT_ENCODING: "gzip"}
        return b"".join(self._sent(method, path, query, options, body=body, content_type=content_type))

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, idle_s: float = 0) -> Iterator[bytes]:
        """Yield the body of a GET as it arrives; after `idle_s` without data the connection is lost (0: no limit)."""
        options: dict[int, Any] = {pycurl.LOW_SPEED_LIMIT: 1, pycurl.LOW_SPEED_TIME: round(idle_s)}
        return self._sent("GET", path, query, options)

    def _sent(self, method: str, path: str, *rest: Any, **body: Any) -> Iterator[bytes]:
        """Yield the body of a response, after the attempts that failed before there was any of it."""
        for attempt in itertools.count(1):
            with contextlib.closing(self._handle(method, path, *rest, **body)) as curl:
                try:
                    yield from self._transfer(curl, f"{method} {path}")
                except errors.ApiError as error:
                    delay_s = self._retry_delay_s(error, attempt, is_read=method == "GET")
                    if delay_s is None:
                        raise
                else:
                    return
            self._sleep(delay_s)

    def _retry_delay_s(self, error: errors.ApiError, attempt: int, *, is_read: bool) -> float | None:
        if isinstance(error, errors.Unauthorized) and self._credential is not None and attempt == 1:
            self._credential = None  # revoked before it expired: the plugin makes another
            return 0.0
        is_busy = isinstance(error, errors.TooManyRequests) or (isinstance(error, errors.ServerError) and is_read)
        delay_s = error.retry_after_s
        if not is_busy or delay_s is None or delay_s > MAX_RETRY_AFTER_S or attempt >= ATTEMPTS:
            return None
        return delay_s

    def _handle(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        options: Mapping[int, Any],
        body: bytes | None = None,
        content_type: str = "",
    ) -> pycurl.Curl:
        config = self._authenticated()
        url, connection = curl_options.server(config)
        if not config.proxy_url and urllib.parse.urlsplit(config.server).hostname in _LOOPBACK:
            connection[pycurl.PROXY] = ""  # the environment's proxies are for other machines
        curl = curl_options.handle((*connection.items(), *options.items()))
        curl.setopt(pycurl.URL, f"{url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else ""))
        curl_options.set_body(curl, method, body)
        curl.setopt(pycurl.HTTPHEADER, _headers(config, content_type if body is not None else ""))
        return curl

    def _authenticated(self) -> ClusterConfig:
        config = self._config
        if config.token_file is not None:
            try:
                return dataclasses.replace(config, token=config.token_file.read_text().strip())
            except OSError as error:
                raise errors.ConfigError(f"the token {config.token_file} cannot be read: {error.strerror}") from error
        if config.plugin is None:
            return config
        credential = self._credential
        if credential is None or not credential.is_current(server_time.SERVER_TIME.now_s()):
            credential = self._credential = config.plugin.run()
        client_pem = credential.client_pem or config.client_pem
        return dataclasses.replace(config, token=credential.token, client_pem=client_pem)

    def _transfer(self, curl: pycurl.Curl, what: str) -> Iterator[bytes]:
        """Yield the body of a response in parts as they arrive; close the connection if it is not read to its end."""
        parts: list[bytes] = []
        curl.setopt(pycurl.WRITEFUNCTION, parts.append)
        multi = self._idle.pop() if self._idle else pycurl.CurlMulti()
        multi.add_handle(curl)
        try:
            running = 1
            while running:
                _, running = multi.perform()
                if parts and not curl_options.is_error(curl):
                    yield b"".join(parts)
                    parts.clear()
                elif running:
                    wait_ms = multi.timeout()
                    multi.select(_TURN_S if wait_ms < 0 else min(_TURN_S, wait_ms / 1000))
            for _, _, message in multi.info_read()[2]:
                raise curl_options.to_connection_lost(curl, f"{what}: {message}")
        finally:
            multi.remove_handle(curl)
            self._idle.append(multi)
        if curl_options.is_error(curl):
            raise curl_options.to_error(curl, b"".join(parts))


def _headers(config: ClusterConfig, content_type: str) -> list[str]:
    headers = ["Accept: application/json, */*", "User-Agent: boathouse", "Expect:", *config.headers]
    if config.tls_server_name:  # only the certificate has that name
        headers.append(f"Host: {urllib.parse.urlsplit(config.server).netloc}")
    if content_type:
        headers.append(f"Content-Type: {content_type}")
    if config.token:
        headers.append(f"Authorization: Bearer {config.token}")
    return headers
