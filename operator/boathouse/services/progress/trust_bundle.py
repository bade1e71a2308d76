"""Publish the certificate authorities that tasks trust.

Each replica adds its own to one ConfigMap. The leader copies all of them to the namespaces with jobs, so that tasks
trust the standby before it becomes the leader.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping

from cryptography import x509

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, retries
from boathouse.resources import names
from boathouse.telemetry import logs

_log = logs.get(__name__)
MAX_AUTHORITIES = 8
REPUBLISH_S = 20.0
"""Interval at which each replica checks that its authority is published."""
_CONFIG_MAPS = catalogue.CONFIG_MAPS.untyped()


class Bundles:
    """Maintains `boathouse-progress-ca` in the operator's namespace and in those with jobs.

    Args:
        api: The API server.
        namespace: The operator's namespace.
        replica: Name of this pod, the key of its authority.
        now: Returns the wall-clock time.
    """

    def __init__(self, api: client.ApiClient, *, namespace: str, replica: str, now: Callable[[], dt.datetime]) -> None:
        self._api = api
        self._namespace = namespace
        self._replica = replica
        self._now = now
        self._pem = ""
        self._bundle = ""
        self._published: dict[str, str] = {}
        self._publishing = asyncio.Lock()  # of two concurrent writes to a namespace, the older bundle might arrive last

    async def add(self, pem: str) -> None:
        """Publish this replica's authority, and drop expired and surplus ones."""
        self._pem = pem
        await retries.retrying(lambda: self._add(pem), idempotent=True, conflicts=True)

    async def republish(self) -> None:
        """Publish this replica's authority again if it is missing. The standby does so too, so that tasks trust it.

        Raises:
            errors.ClusterError: A request failed.
        """
        await self._add(self._pem)

    async def refresh(self) -> None:
        """Read the replicas' authorities, and update the namespaces with jobs.

        Errors of a namespace (it was deleted, or its quota is exhausted) are logged and do not affect others.
        """
        await self._read()
        for namespace in list(self._published):
            try:
                await self._restore(namespace)
            except Exception as error:  # noqa: BLE001 - an error of one namespace must not affect the others
                _log.warning("the authorities could not be published", namespace=namespace, error=str(error))

    async def ensure(self, namespace: str) -> None:
        """Publish the bundle in a namespace unless it is there, before tasks start."""
        if not self._bundle:
            await self._read()
        if self._published.get(namespace) == self._bundle:
            return
        async with self._publishing:
            if self._published.get(namespace) != self._bundle:
                await self._publish(namespace, self._bundle)

    async def _read(self) -> None:
        try:
            found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        except errors.NotFound:  # the ConfigMap was deleted; each replica publishes its own authority again
            await self._add(self._pem)
            found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        data = found.get("data") or {}
        self._bundle = "".join(pem for key, pem in sorted(data.items()) if key != names.PROGRESS_CA_KEY)

    async def _restore(self, namespace: str) -> None:
        """Publish the bundle if it is missing or was edited, as users who may edit the namespace can do."""
        async with self._publishing:
            try:
                found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, namespace)
            except errors.NotFound:
                found = {}
            if namespace not in self._published:  # its last job went meanwhile
                return
            if (found.get("data") or {}).get(names.PROGRESS_CA_KEY) == self._bundle:
                self._published[namespace] = self._bundle
                return
            await self._publish(namespace, self._bundle)

    async def _publish(self, namespace: str, bundle: str) -> None:
        failpoints.hit("before-progress.ca")
        try:
            await self._apply(namespace, bundle)
        except errors.NotFound:  # the namespace was deleted
            self._published.pop(namespace, None)
            return
        except errors.Invalid:  # the ConfigMap was made immutable
            await self._api.delete(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, namespace)
            await self._apply(namespace, bundle)
        failpoints.hit("after-progress.ca")
        self._published[namespace] = bundle

    async def _apply(self, namespace: str, bundle: str) -> None:
        await self._api.patch(
            _CONFIG_MAPS,
            names.PROGRESS_CA_CONFIG_MAP,
            _manifest(namespace, {names.PROGRESS_CA_KEY: bundle}),
            namespace,
            style=client.PatchStyle.APPLY,
            force=True,
        )

    def forget(self, namespace: str) -> None:
        """Publish the bundle again when it is needed next, because the namespace may have been recreated."""
        self._published.pop(namespace, None)

    async def _add(self, pem: str) -> None:
        key = f"{self._replica}.crt"
        try:
            found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        except errors.NotFound:
            await self._api.create(_CONFIG_MAPS, _manifest(self._namespace, {key: pem}), self._namespace)
            return
        data = _pruned((found.get("data") or {}) | {key: pem}, key, self._now())
        if data != found.get("data"):
            await self._api.replace(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, found | {"data": data}, self._namespace)


def _pruned(authorities: Mapping[str, str], own: str, now: dt.datetime) -> dict[str, str]:
    """Return the valid authorities, the newest first, always including this replica's."""
    dated: list[tuple[bool, dt.datetime, str]] = []
    for key, pem in authorities.items():
        if key == names.PROGRESS_CA_KEY:  # the bundle for jobs in the operator's namespace
            continue
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
        except ValueError:
            continue
        if certificate.not_valid_after_utc > now:
            dated.append((key == own, certificate.not_valid_before_utc, key))
    kept = {key: authorities[key] for _, _, key in sorted(dated, reverse=True)[:MAX_AUTHORITIES]}
    own_bundle = authorities.get(names.PROGRESS_CA_KEY)
    return kept | ({names.PROGRESS_CA_KEY: own_bundle} if own_bundle else {})


def _manifest(namespace: str, data: Mapping[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.PROGRESS_CA_CONFIG_MAP,
            "namespace": namespace,
            "labels": {names.APP_MANAGED_BY: names.MANAGER, names.APP_PART_OF: "boathouse"},
        },
        "data": dict(data),
    }
