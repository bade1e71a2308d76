"""A progress endpoint with a certificate of its own."""

import contextlib
import datetime as dt
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(folder) -> None:
    """A key and a certificate of localhost, signed by itself."""
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


class Endpoint:
    """Answers with the given (status, body) one after another, the last for ever; remembers what was asked."""

    def __init__(self, answers: list[tuple[int, bytes]]) -> None:
        self.answers = answers
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The status and body for a request."""
        del path, body
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def handler(endpoint) -> type[http.server.BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                endpoint.asked.append((self.command, self.path, dict(self.headers), body))
                status, answer = endpoint.answer(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST  # noqa: N815 - the name that http.server looks for

            def log_message(self, *_):
                pass

        return Handler


@contextlib.contextmanager
def serving(folder, endpoint: Endpoint) -> Iterator[str]:
    """Runs the endpoint; yields its URL."""
    write_certificate(folder)
    (folder / "token").write_text("token-1\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), endpoint.handler())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def credentials(folder: Path) -> dict[str, Path]:
    """The fields of an environment with the endpoint's token and authority."""
    return {"token_path": folder / "token", "ca_path": folder / "ca.crt"}
