"""An API server on loopback that accepts every write and records it: enough for Spark's own client to submit."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import threading
import urllib.parse
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

WATCH_S = 2.0
"""How long a watch stays open without an event: a SparkContext stops only when its watches have ended."""


class StandIn(http.server.ThreadingHTTPServer):
    """Keeps the objects that were written, by path; a watch never reports anything."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, dict[str, Any]] = {}
        self.written: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.news = threading.Condition()
        self.closing = threading.Event()
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def put(self, path: str, written: dict[str, Any]) -> dict[str, Any]:
        """Keep an object as the API server would, and return what it would answer."""
        number = next(self._numbers)
        metadata = written.get("metadata", {}) | {
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        stored = written | {"metadata": metadata}
        with self.news:
            self.objects[path] = stored
            self.written.append(written)
            self.news.notify_all()
        return stored

    def take(self) -> list[dict[str, Any]]:
        """Return what was written since the last call, and forget all objects."""
        with self.news:
            written, self.written = self.written, []
            self.objects.clear()
        return written

    def wait(self, kind: str, count: int, timeout_s: float) -> bool:
        """Return whether so many objects of a kind were written in time."""

        def enough() -> bool:
            return sum(manifest["kind"] == kind for manifest in self.written) >= count

        with self.news:
            return self.news.wait_for(enough, timeout_s)


@contextlib.contextmanager
def running() -> Iterator[StandIn]:
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_GET(self) -> None:
        self._note()
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if query.get("watch") == ["true"]:
            self._watch()
        elif url.path in self.server.objects:
            self._answer(200, self.server.objects[url.path])
        elif url.path.rsplit("/", 1)[-1] in {"pods", "services", "configmaps", "persistentvolumeclaims"}:
            self._answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
        else:
            self._answer(
                404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            )

    def do_POST(self) -> None:
        self._note()
        written = self._body()
        path = f"{urllib.parse.urlsplit(self.path).path}/{written.get('metadata', {}).get('name')}"
        self._answer(201, self.server.put(path, written))

    def do_PATCH(self) -> None:
        self._note()
        self._answer(200, self.server.put(urllib.parse.urlsplit(self.path).path, self._body()))

    def do_DELETE(self) -> None:
        self._note()
        self._body()
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _note(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")

    def _body(self) -> dict[str, Any]:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return yaml.safe_load(text) if text else {}

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.server.closing.wait(WATCH_S)
        with contextlib.suppress(OSError):
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        return
