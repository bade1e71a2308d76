"""The authorities that tasks trust: each replica adds its own to one ConfigMap, the leader copies all where jobs run.

So a task trusts the standby before it becomes the leader.
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
KEEP_S = 20.0
"""How often each replica looks whether its authority is still published."""
_CONFIG_MAPS = catalogue.CONFIG_MAPS.untyped()


class Bundles:
    """Keeps `boathouse-progress-ca`, in the operator's namespace and in those with jobs.

    Args:
        api: The API server.
        namespace: The operator's.
        replica: This pod's name, the key of its authority.
        now: The wall clock.
    """

    def __init__(self, api: client.ApiClient, *, namespace: str, replica: str, now: Callable[[], dt.datetime]) -> None:
        self._api = api
        self._namespace = namespace
        self._replica = replica
        self._now = now
        self._pem = ""
        self._bundle = ""
        self._published: dict[str, str] = {}
        self._publishing = asyncio.Lock()  # of two bundles on their way to a namespace the older might come last

    async def add(self, pem: str) -> None:
        """Publish this replica's authority, and drop those that have expired or are too many."""
        self._pem = pem
        await retries.retrying(lambda: self._add(pem), idempotent=True, conflicts=True)

    async def keep(self) -> None:
        """Publish this replica's authority again if it is missing. The standby does so, too, for tasks must trust it.

        Raises:
            errors.ClusterError: It could not be checked.
        """
        await self._add(self._pem)

    async def refresh(self) -> None:
        """Read what the replicas published, and bring the namespaces with jobs up to date.

        What a namespace does not take (somebody deleted it, or filled its quota) is logged, and is its own trouble.
        """
        await self._read()
        for namespace in list(self._published):
            try:
                await self._restore(namespace)
            except Exception as error:  # noqa: BLE001 - one namespace must not keep the others from their authorities
                _log.warning("the authorities could not be published", namespace=namespace, error=str(error))

    async def ensure(self, namespace: str) -> None:
        """Have the bundle in a namespace, before a task there looks for it."""
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
        except errors.NotFound:  # somebody deleted it; each replica publishes its own again
            await self._add(self._pem)
            found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        data = found.get("data") or {}
        self._bundle = "".join(pem for key, pem in sorted(data.items()) if key != names.PROGRESS_CA_KEY)

    async def _restore(self, namespace: str) -> None:
        """Publish the bundle where it is missing or another one: whoever may edit the namespace may edit it."""
        async with self._publishing:
            try:
                found = await self._api.get(_CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, namespace)
            except errors.NotFound:
                found = {}
            if (found.get("data") or {}).get(names.PROGRESS_CA_KEY) == self._bundle:
                self._published[namespace] = self._bundle
                return
            await self._publish(namespace, self._bundle)

    async def _publish(self, namespace: str, bundle: str) -> None:
        failpoints.hit("before-progress.ca")
        try:
            await self._apply(namespace, bundle)
        except errors.NotFound:  # the namespace is gone
            self._published.pop(namespace, None)
            return
        except errors.Invalid:  # somebody made it immutable
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
        """Publish the bundle again when it is next needed: the namespace may have been deleted and created again."""
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
    """Those that are valid, the youngest first, ours always."""
    dated: list[tuple[bool, dt.datetime, str]] = []
    for key, pem in authorities.items():
        if key == names.PROGRESS_CA_KEY:  # the bundle for jobs in this namespace
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
