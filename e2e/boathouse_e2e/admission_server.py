"""A mutating webhook for tests, run in a pod by itself: every pod gets a sidecar, more requests and a node selector.

It needs the standard library only. Arguments: the settings as JSON, the files of the certificate and of its key.
"""

from __future__ import annotations

import base64
import http.server
import json
import re
import ssl
import sys
from typing import Any

PORT = 8443
MORE = {"cpu": 50, "memory": 32 * 1024**2}
"""What the first container gets in addition: millicores, bytes."""
_BYTES = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def answer(request: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the response to the request of an AdmissionReview.

    Args:
        request: Of a pod that is created.
        settings: `sidecar` is a container, `nodeSelector` has labels, `refusesDryRuns` is a flag.
    """
    if request.get("dryRun") and settings["refusesDryRuns"]:
        return {"uid": request["uid"], "allowed": False, "status": {"message": "only pods that will run are welcome"}}
    spec = request["object"]["spec"]
    first, *others = spec["containers"]
    containers = [{**first, "resources": raised(first.get("resources", {}))}, *others, settings["sidecar"]]
    selector = spec.get("nodeSelector", {}) | settings["nodeSelector"]
    patch = [
        {"op": "add", "path": "/spec/containers", "value": containers},
        {"op": "add", "path": "/spec/nodeSelector", "value": selector},
    ]
    encoded = base64.b64encode(json.dumps(patch).encode()).decode()
    return {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": encoded}


def raised(resources: dict[str, Any]) -> dict[str, Any]:
    """Return requests and limits with `MORE`; a limit that is not there stays so."""
    found = dict(resources)
    for field in ("requests", "limits"):
        amounts = dict(resources.get(field, {}))
        for name in MORE.keys() & amounts.keys():
            amounts[name] = _cpu(amounts[name]) if name == "cpu" else _memory(amounts[name])
        if amounts:
            found[field] = amounts
    return found


def _cpu(quantity: str) -> str:
    milli = float(quantity[:-1]) if quantity.endswith("m") else float(quantity) * 1000
    return f"{milli + MORE['cpu']:.0f}m"


def _memory(quantity: str) -> str:
    match = re.fullmatch(r"(\d+)(|Ki|Mi|Gi)", quantity)
    if match is None:
        raise ValueError(f"the amount of memory {quantity!r} is not understood")
    return str(int(match[1]) * _BYTES[match[2]] + MORE["memory"])


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers reviews."""

    settings: dict[str, Any]

    def do_POST(self) -> None:
        """Answer one review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = answer(review["request"], self.settings)
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(settings: str, certificate: str, key: str) -> None:
    """Serve until the process is ended."""
    Handler.settings = json.loads(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("", PORT), Handler)
    # The handshake is left to the thread of the connection: one that says nothing holds up no others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
