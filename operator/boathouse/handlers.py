"""Kopf as a source of events: its settings, and handlers which only pass watch events of custom resources on.

They are handlers of raw events: they add no annotations to resources and need no finalizer. A crash loses nothing,
because the next list has all objects.
"""

import base64
from collections.abc import Awaitable, Callable, Iterable

import kopf

from boathouse.cluster import config
from boathouse.resources import names
from boathouse.services.frame.object_store import RESYNC_PAGE, ObjectStore


def registry(stores: Iterable[ObjectStore]) -> kopf.OperatorRegistry:
    """Return a new registry, whose handlers pass the events of each kind to its store."""
    result = kopf.OperatorRegistry()
    for objects in stores:
        resource = objects.kind.resource
        kopf.on.event(resource.group, resource.version, resource.plural, registry=result)(_handler(objects))
    return result


def _handler(objects: ObjectStore) -> Callable[..., Awaitable[None]]:
    async def changed(event: kopf.RawEvent, **_: object) -> None:
        take_in = objects.on_deleted if event["type"] == "DELETED" else objects.on_object
        take_in(dict(event["object"]))

    return changed


def settings() -> kopf.OperatorSettings:
    """Return settings with finite timeouts, so that a watch that hangs fails and is retried."""
    result = kopf.OperatorSettings()
    result.watching.server_timeout = 300
    result.watching.client_timeout = 330
    result.watching.connect_timeout = 10
    result.watching.inactivity_timeout = 70
    result.watching.chunk_size = RESYNC_PAGE
    result.networking.request_timeout = 30
    result.networking.error_backoffs = (1, 2, 3, 5, 8)
    result.networking.enforce_retry_after = True
    # A worker takes one object, and waits for more of its events before it takes another. With Kopf's 5 s, a tenant's
    # many new objects would keep those of others waiting: 50 workers would take 10 objects a second.
    result.queueing.worker_limit, result.queueing.idle_timeout = 50, 0.05
    result.queueing.exit_timeout = 5
    result.posting.enabled = False
    result.scanning.disabled = True
    result.peering.standalone = True
    result.execution.default_backoff = 5
    result.persistence.finalizer = f"{names.GROUP}/kopf"
    result.process.ultimate_exiting_timeout = 25
    return result


def login(registry: kopf.OperatorRegistry, cluster: config.ClusterConfig) -> None:
    """Return the credentials of the operator's client for Kopf, which calls the handler again if a token is refused."""

    @kopf.on.login(registry=registry)
    async def connection(**_: object) -> kopf.ConnectionInfo:
        token = cluster.token_file.read_text().strip() if cluster.token_file else cluster.token
        certificate = _encoded(cluster.client_pem)
        return kopf.ConnectionInfo(
            server=cluster.server,
            ca_data=_encoded(cluster.ca_pem),
            token=token,
            certificate_data=certificate,
            private_key_data=certificate,
            default_namespace=cluster.namespace,
        )


def _encoded(pem: str | None) -> str | None:
    return base64.b64encode(pem.encode()).decode() if pem else None
