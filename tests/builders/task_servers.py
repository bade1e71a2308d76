"""HTTP servers that tasks and agents connect to: the operator's endpoint, with a certificate of its own, and others."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.server
import ssl
import threading
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


class Request(NamedTuple):
    """A request that a server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """What a server sends."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


@contextlib.contextmanager
def http_server(respond: Callable[[Request], tuple], certificate: Path | None = None) -> Iterator[int]:
    """Run a server; yield its port.

    Args:
        respond: Returns the response to a request, or the first values of one.
        certificate: Folder with `ca.crt` and `key`, for TLS.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            response = Response(*respond(Request(self.command, self.path, dict(self.headers), body)))
            self.send_response(response.status)
            for name, value in {"Content-Length": str(len(response.body)), **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(response.body)
            except OSError:
                self.close_connection = True  # the client has read enough

        do_PUT = do_POST = do_GET  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "ca.crt", certificate / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Endpoint:
    """The operator's endpoint.

    Args:
        responses: (status, body) of one request after another, the last for ever.

    Attributes:
        headers: Of all responses.
        requests: All requests so far.
    """

    def __init__(self, *responses: tuple[int, bytes]) -> None:
        self.responses = list(responses)
        self.headers: dict[str, str] = {}
        self.requests: list[Request] = []

    def response(self, request: Request) -> tuple[int, bytes]:
        """Return the status and body for a request."""
        del request
        return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]

    @contextlib.contextmanager
    def serving(self, folder: Path) -> Iterator[str]:
        """Run the endpoint with a certificate and a token in the folder; yield its URL."""
        _write_certificate(folder)
        (folder / "token").write_text("token-1\n")

        def respond(request: Request) -> Response:
            self.requests.append(request)
            return Response(*self.response(request), self.headers)

        with http_server(respond, folder) as port:
            yield f"https://localhost:{port}"


def credentials(folder: Path) -> dict[str, Path]:
    """Return the fields of an environment with the endpoint's token and authority."""
    return {"token_path": folder / "token", "ca_path": folder / "ca.crt"}


def _write_certificate(folder: Path) -> None:
    """Write a key and a certificate of localhost, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - dt.timedelta(minutes=1)).not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (folder / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
