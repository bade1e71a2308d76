"""A real S3 server in the cluster, for demo and tests: versitygw over a folder that ends with its pod."""

from __future__ import annotations

import base64
import re
import secrets
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any

import obstore
import yaml
from obstore.store import S3Store

from boathouse_e2e import images, waiting
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_e2e.spec import Cluster

NAMESPACE = "boathouse-demo"
NAME = "s3"
PORT = 7070
REGION = "us-east-1"
SECRET = "s3-credentials"  # noqa: S105 # the name of a Secret
ENDPOINT = f"http://{NAME}.{NAMESPACE}.svc:{PORT}"
_READY_TIMEOUT_S = 300
_FORWARD_TIMEOUT_S = 60
_SIGNED_FOR = timedelta(minutes=5)
_EXAMPLE = REPOSITORY / "examples" / "s3.yaml"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Credentials:
    """An S3 key pair; its secret is kept out of representations."""

    access_key_id: str
    secret_access_key: str


def manifests(credentials: Credentials, *, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """Return the namespace, the Secret, the Deployment and the Service `s3` at port 7070."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        secret(credentials, namespace=namespace),
        *_server(namespace),
    ]


def secret(credentials: Credentials, *, namespace: str) -> dict[str, Any]:
    """Return the Secret that jobs and the server read, with the names of variables that every S3 client knows."""
    data = {"AWS_ACCESS_KEY_ID": credentials.access_key_id, "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": namespace},
        "type": "Opaque",
        "stringData": data,
    }


def _server(namespace: str) -> list[dict[str, Any]]:
    """Return the Deployment and the Service of the users' example, with the image that is built here."""
    deployment, service = yaml.safe_load_all(_EXAMPLE.read_text())
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = images.VERSITYGW
    for manifest in (deployment, service):
        manifest["metadata"]["namespace"] = namespace
    return [deployment, service]


def deploy(cluster: Cluster, *, namespace: str = NAMESPACE) -> Credentials:
    """Start the S3 server, or find it, and wait until it is ready; its image must be on the nodes (`images.load`).

    Returns:
        Its root credentials: new ones for a new server, those of the Secret otherwise.

    Raises:
        ClusterError: it did not become ready.
    """
    credentials = find_credentials(cluster, namespace=namespace) or Credentials(
        access_key_id="boathouse", secret_access_key=secrets.token_urlsafe(24)
    )
    cluster.apply(*manifests(credentials, namespace=namespace))
    timeout = f"--timeout={_READY_TIMEOUT_S}s"
    cluster.run("rollout", "status", f"deployment/{NAME}", "-n", namespace, timeout, timeout_s=_READY_TIMEOUT_S + 10)
    return credentials


def find_credentials(cluster: Cluster, *, namespace: str = NAMESPACE) -> Credentials | None:
    """Return the credentials that the Secret holds, if there is one."""
    found = cluster.run("get", "secret", SECRET, "-n", namespace, "--ignore-not-found", "-o", "json")
    if not found.strip():
        return None
    data = cluster.get("secret", SECRET, "-n", namespace)["data"]
    key, value = (base64.b64decode(data[name]).decode() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    return Credentials(access_key_id=key, secret_access_key=value)


@contextmanager
def endpoint_from_host(cluster: Cluster, *, namespace: str = NAMESPACE) -> Iterator[str]:
    """Yield the S3 server's URL for programs on this machine, by a port forward through the API server.

    Raises:
        ClusterError: the port forward did not come up.
    """
    command = cluster.kubectl_command("port-forward", "-n", namespace, f"service/{NAME}", f":{PORT}")
    with tempfile.TemporaryFile("w+") as log:
        forward = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)
        try:
            yield f"http://127.0.0.1:{_forwarded_port(forward, log)}"
        finally:
            forward.terminate()
            forward.wait()


def _forwarded_port(forward: subprocess.Popen[str], log: IO[str]) -> int:
    deadline = time.monotonic() + _FORWARD_TIMEOUT_S
    while time.monotonic() < deadline:
        log.seek(0)
        text = log.read()
        if found := re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", text):
            return int(found.group(1))
        if forward.poll() is not None:
            raise ClusterError(f"no port forward to the S3 server: {text}")
        time.sleep(0.05)
    raise ClusterError("no port forward to the S3 server came up in time")


def bucket(endpoint: str, credentials: Credentials, name: str) -> S3Store:
    """Return a client of a bucket, which is made if it is not there.

    Args:
        endpoint: the server's URL, as `endpoint_from_host` yields it.
        credentials: as `deploy` returns them.
        name: the bucket's name.

    Raises:
        ClusterError: the server refused to make the bucket.
    """
    store = S3Store(
        name,
        endpoint=endpoint,
        access_key_id=credentials.access_key_id,
        secret_access_key=credentials.secret_access_key,
        region=REGION,
        client_options={"allow_http": True},
    )
    waiting.until(lambda: _made(store, name), f"bucket {name!r} of the S3 server", within_s=_FORWARD_TIMEOUT_S)
    return store


def _made(store: S3Store, name: str) -> bool:
    """Make a bucket. Returns False if the server answered with an error of its own, as while somebody else makes it."""
    signed = urllib.request.Request(obstore.sign(store, "PUT", "", _SIGNED_FOR), method="PUT")  # noqa: S310 # our own URL
    try:
        urllib.request.urlopen(signed, timeout=_READY_TIMEOUT_S).close()  # noqa: S310 # the same
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.INTERNAL_SERVER_ERROR:
            return False
        if error.code != HTTPStatus.CONFLICT:  # it is there
            raise ClusterError(f"could not make bucket {name!r}: {error.code} {error.read().decode()}") from error
    return True
