"""The few requests that starting a cluster needs, over one connection with the administrator's certificate."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from boathouse_e2e.local.layout import Layout

TIMEOUT_S = 30
NOT_FOUND = 404
CONFLICT = 409
_FIRST_ERROR = 400


class Api:
    """A connection to the API server of a local cluster; it is opened again when it was lost."""

    def __init__(self, layout: Layout) -> None:
        context = ssl.create_default_context(cafile=layout.pki / "ca.crt")
        context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")
        host, port = layout.api_address, layout.api_port
        self._connection = http.client.HTTPSConnection(host, port, context=context, timeout=TIMEOUT_S)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Return one request; returns the status code and the body.

        Raises:
            OSError: the server cannot be reached.
        """
        payload = json.dumps(body) if body is not None else None
        try:
            self._connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            return response.status, response.read()
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            raise OSError(f"{method} {path}: {error}") from error

    def ready(self) -> bool:
        """Return whether `/readyz` says ok."""
        try:
            return self.request("GET", "/readyz")[0] == http.client.OK
        except OSError:
            return False

    def get(self, path: str) -> dict[str, Any]:
        """GET a JSON object."""
        return self._decoded("GET", path, *self.request("GET", path))

    def exists(self, path: str) -> bool:
        """Return whether an object is there."""
        return self.request("GET", path)[0] == http.client.OK

    def create(self, path: str, body: dict[str, Any]) -> None:
        """POST an object; one that is there already is left as it is."""
        status, content = self.request("POST", path, body)
        if status != CONFLICT:
            self._decoded("POST", path, status, content)

    def delete(self, path: str) -> None:
        """DELETE an object, if it is there."""
        status, content = self.request("DELETE", path)
        if status != NOT_FOUND:
            self._decoded("DELETE", path, status, content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @staticmethod
    def _decoded(method: str, path: str, status: int, content: bytes) -> dict[str, Any]:
        if status >= _FIRST_ERROR:
            raise OSError(f"{method} {path}: {status} {content.decode(errors='replace')[:500]}")
        return json.loads(content)  # type: ignore[no-any-return] # an object, as the API server sends it
