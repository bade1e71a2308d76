"""Read the metrics of kubelets directly, by libcurl on the event loop, and count the reads.

Nothing that a kubelet does costs more than the limits here: an answer that is too large or too slow is abandoned, and
redirects are not followed, because they would hand the token on.
"""

import asyncio
import enum
import io
import ipaddress
import pathlib
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

import prometheus_client as prometheus
import pycurl
from prometheus_client import registry

from boathouse.cluster import client, curl_options, errors, transport
from boathouse.telemetry import metrics

TIMEOUT_MS: Final = 3000
IDLE_CONNECTIONS: Final = 600
"""About so many connections are kept between reads; in a larger cluster the other nodes have none. One takes 130 KiB of
memory, and saves more than half of the CPU time of a read, that of the TLS handshake."""
_SPARE_CONNECTIONS: Final = 100
"""Which nodes have one is decided by a hash, so their number is not exact."""
IDLE_S: Final = 80
"""How long an idle connection is reused: less than a kubelet keeps it, 90 s."""
_OK: Final = 200
_REFUSED: Final = frozenset({401, 403})
_CERTIFICATE_CODES: Final = frozenset({pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE})
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3)


class Result(enum.StrEnum):
    """How a read of a kubelet ended, a label of metrics."""

    SUCCESS = "success"
    UNAUTHORIZED = "unauthorized"
    CERTIFICATE = "certificate"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    STATUS = "status"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    NO_ADDRESS = "no_address"


class ReadError(Exception):
    """A kubelet could not be read."""

    def __init__(self, result: Result, message: str) -> None:
        super().__init__(message)
        self.result = result


def is_readable(address: str) -> bool:
    """Return whether an address is a literal IP address of a single host that may be another machine's."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (ip.is_multicast or ip.is_unspecified or ip.is_link_local)


class KubeletClient:
    """Sends GET requests to kubelets; without a file of their authorities, any certificate is accepted."""

    def __init__(self, ca_file: pathlib.Path | None) -> None:
        self._ca_file, self._ca_changed_ns, self._kept_part = ca_file, 0, 1.0
        self._transfers: transport.Transfers | None = None
        self._handles: list[pycurl.Curl] = []

    def refresh(self, nodes: int) -> None:
        """Close the connections if the file with the authorities has changed. No request may be in flight."""
        self._kept_part = IDLE_CONNECTIONS / max(1, nodes)
        if self._ca_file is None:
            return
        try:
            changed_ns = self._ca_file.stat().st_mtime_ns
        except OSError:
            changed_ns = 0  # each request fails, with the file's name in its error
        if changed_ns != self._ca_changed_ns:
            self._ca_changed_ns = changed_ns
            self.close()

    def close(self) -> None:
        """Close all connections and cancel the requests in flight."""
        self._handles.clear()
        if self._transfers is not None:
            self._transfers.close()
            self._transfers = None

    async def get(self, address: str, port: int, path: str, *, token: str, limit_bytes: int) -> bytes:
        """Return the answer of a kubelet at an IP address, if it is complete and in time; else raises `ReadError`."""
        if self._transfers is None:
            self._transfers = transport.Transfers(IDLE_CONNECTIONS + _SPARE_CONNECTIONS)
        running, received = self._transfers, _Limited(limit_bytes)
        curl = self._handles.pop() if self._handles else self._handle()
        host = f"[{address}]" if ":" in address else address
        curl.setopt(pycurl.URL, f"https://{host}:{port}{path}")
        curl.setopt(pycurl.HTTPHEADER, ["Accept: text/plain", f"Authorization: Bearer {token}"])
        curl.setopt(pycurl.WRITEFUNCTION, received.add)
        curl.setopt(pycurl.FORBID_REUSE, not self._keeps(f"{host}:{port}"))
        try:
            await _finished(running.start(curl), received)
        finally:
            running.stop(curl)
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        self._handles.append(curl)  # a handle whose request failed or was cancelled is not reused
        if status != _OK:
            result = Result.UNAUTHORIZED if status in _REFUSED else Result.STATUS
            raise ReadError(result, f"the kubelet answered {status} for {path}")
        return received.take()

    def _keeps(self, address: str) -> bool:
        """Return whether a connection is kept: always the same ones, or few would be in use again."""
        return zlib.crc32(address.encode()) < self._kept_part * 2**32

    def _handle(self) -> pycurl.Curl:
        options: dict[int, Any] = {
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTPS,
            pycurl.TIMEOUT_MS: TIMEOUT_MS,
            pycurl.MAXAGE_CONN: IDLE_S,
            pycurl.NOSIGNAL: 1,
            pycurl.PROXY: "",  # no proxy, also if the environment sets one
            pycurl.USERAGENT: "boathouse",
        }
        if self._ca_file is None:
            options |= {pycurl.SSL_VERIFYPEER: 0, pycurl.SSL_VERIFYHOST: 0}
        else:
            options[pycurl.CAINFO] = str(self._ca_file)
        return curl_options.handle(options.items())


class _Limited:
    def __init__(self, limit_bytes: int) -> None:
        self._body = io.BytesIO()
        self._left, self.is_too_large = limit_bytes, False

    def add(self, data: bytes) -> int:
        """Add data; returns -1, which ends the transfer, if there is too much."""
        self._left -= len(data)
        if self._left < 0:
            self.is_too_large = True
            return -1
        return self._body.write(data)

    def take(self) -> bytes:
        """Return the data and drop it: the handle still references this object."""
        body, self._body = self._body.getvalue(), io.BytesIO()
        return body


async def _finished(end: asyncio.Future[None], received: _Limited) -> None:
    try:
        await end
    except pycurl.error as error:
        code, message = error.args[0], str(error.args[-1])
        if received.is_too_large:
            raise ReadError(Result.TOO_LARGE, "the answer is too large") from error
        if code == pycurl.E_OPERATION_TIMEDOUT:
            raise ReadError(Result.TIMEOUT, message) from error
        raise ReadError(Result.CERTIFICATE if code in _CERTIFICATE_CODES else Result.CONNECTION, message) from error


def counter(target: registry.CollectorRegistry) -> Callable[[Result, float], None]:
    """Return a function that counts reads by their results, with their duration."""
    lasting = "Time from a request to a kubelet to the end of its answer, or to its failure"
    reads = metrics.counter(
        target, "kubelet_reads", "Reads of kubelets' metrics by how they ended", result=tuple(Result)
    )
    duration_s = prometheus.Histogram(
        "kubelet_read_duration_seconds", lasting, namespace=metrics.PREFIX, buckets=_SECONDS, registry=target
    )

    def count(result: Result, passed_s: float) -> None:
        reads(result)
        duration_s.observe(passed_s)

    return count


ACCOUNT: Final = "boathouse-signals"
TOKEN_LIFETIME_S: Final = 3600
RENEWED_AT: Final = 0.8
TOKEN_RETRY_S: Final = 60.0


class MetricsToken:
    """A token of `boathouse-signals`. A kubelet never gets the operator's own: a stolen node would have its rights."""

    def __init__(self, api: client.ApiClient, namespace: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._monotonic, self._token = api, namespace, monotonic, ""
        self._renew_s = self._expires_s = 0.0

    async def current(self) -> str:
        """Return the token, after its renewal if that is due; raises `errors.ClusterError` if there is none."""
        if not self._token or self._monotonic() >= self._renew_s:
            await self._renew(self._monotonic())
        return self._token

    def reject(self) -> None:
        """Renew the token soon, because a kubelet has refused it."""
        self._renew_s = min(self._renew_s, self._monotonic() + TOKEN_RETRY_S)

    async def _renew(self, now_s: float) -> None:
        try:
            self._token = await self._api.create_token(self._namespace, ACCOUNT, TOKEN_LIFETIME_S)
        except errors.ClusterError:
            if not self._token or now_s >= self._expires_s:
                raise
            self._renew_s = now_s + TOKEN_RETRY_S
        else:
            self._renew_s, self._expires_s = now_s + RENEWED_AT * TOKEN_LIFETIME_S, now_s + TOKEN_LIFETIME_S
