"""What was learnt outlives the process: in one bounded ConfigMap beside the operator, written now and then.

Losing it costs nothing but the learning, so it is read once, when this process begins to lead, and what cannot be read
is left behind.
"""

import asyncio
import base64
import gzip
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from boathouse.telemetry import logs

_log = logs.get(__name__)
_CONFIG_MAPS = catalogue.CONFIG_MAPS.untyped()

NAME: Final = "boathouse-learned"
KEY: Final = "state.json.gz"
EVERY_S: Final = 60.0
MAX_BYTES: Final = 512 * 1024
"""Compressed; etcd takes three times as much after base64."""


class Part(Protocol):
    """What has something to keep: an observer, the learner."""

    def dump(self) -> Mapping[str, Any]:
        """Its state as JSON values."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        ...


class Learned:
    """Keeps the state of some parts.

    Args:
        api: The API server.
        namespace: The operator's own.
        parts: By names that stay the same over versions.
        may_lead: Asked before every write.
    """

    def __init__(
        self, api: client.ApiClient, namespace: str, parts: Mapping[str, Part], may_lead: Callable[[], bool]
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._parts = parts
        self._may_lead = may_lead
        self._written = b""

    async def load(self) -> None:
        """Read what an earlier leader kept.

        Raises:
            errors.ClusterError: The API server cannot be asked.
        """
        try:
            found = await self._api.get(_CONFIG_MAPS, NAME, self._namespace)
        except errors.NotFound:
            return
        try:
            packed = base64.b64decode((found.get("binaryData") or {})[KEY])
            state = msgspec.json.decode(gzip.decompress(packed))
        except (KeyError, ValueError, OSError, EOFError, msgspec.MsgspecError) as error:
            _log.warning("what was learnt cannot be read and is begun anew", config_map=NAME, error=str(error))
            return
        for name, part in self._parts.items():
            self._load_one(name, part, state.get(name))

    def _load_one(self, name: str, part: Part, state: object) -> None:
        if not isinstance(state, dict) or not state:
            return
        try:
            part.load(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # an older version's
            _log.warning("what was learnt cannot be used and is begun anew", part=name, error=str(error))
        else:
            _log.info("goes on from what was learnt", part=name)

    async def run(self) -> None:
        """Write what has changed, every minute, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.save()
            except errors.ClusterError as error:
                _log.warning("what was learnt was not written; the next round tries again", error=str(error))

    async def save(self) -> None:
        """Write it if it has changed.

        Raises:
            errors.ClusterError: It was not written.
        """
        plain = msgspec.json.encode({name: part.dump() for name, part in self._parts.items()})
        if plain == self._written or not self._may_lead():
            return
        packed = gzip.compress(plain, compresslevel=6, mtime=0)
        if len(packed) > MAX_BYTES:
            _log.warning("what was learnt is too large to be kept", size_bytes=len(packed), limit_bytes=MAX_BYTES)
            return
        failpoints.hit("before-learned.write")
        await self._write({KEY: base64.b64encode(packed).decode()})
        failpoints.hit("after-learned.write")
        self._written = plain

    async def _write(self, data: Mapping[str, str]) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": self._namespace,
                "labels": {names.APP_MANAGED_BY: names.MANAGER, names.APP_PART_OF: "boathouse"},
            },
            "binaryData": data,
        }
        try:
            await self._api.replace(_CONFIG_MAPS, NAME, manifest, self._namespace)
        except errors.NotFound:
            await self._api.create(_CONFIG_MAPS, manifest, self._namespace)
