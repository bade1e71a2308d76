"""What pods of the crowd send to the progress endpoint of an operator in another process."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from boathouse.services.mrjob import splits
from tests.builders.operators import crowds

if TYPE_CHECKING:
    from tests.wire.fake_api import FakeApi

REPORT_EVERY_S, RETRY_S = 5.0, 0.5
AT_ONCE = 32
DUE_KEPT = 10_000
_PLAN_JSON, _DIGEST = msgspec.json.encode(crowds.PLAN), splits.encode(crowds.PLAN).digest


class EndpointHints:
    """Sends over TLS, with a token of the pod, and from an address of its own as each pod has one.

    Args:
        api: The fake API server, which issues the tokens.
        port: Of the endpoint.
    """

    def __init__(self, api: FakeApi, port: int) -> None:
        self._api, self._url = api, f"https://127.0.0.1:{port}/v1/jobs"
        self._addresses = itertools.cycle(f"127.0.{1 + high}.{1 + low}" for high in range(8) for low in range(250))
        self._sending: set[asyncio.Task[None]] = set()
        self._digests: dict[str, str] = {}
        self._next_s: dict[str, float] = {}
        self.sent = 0

    def plan(self, key: str, uid: str) -> str | None:
        """Post the split plan of a job; returns its digest once the operator has taken it."""
        if key in self._digests:
            return self._digests.pop(key)
        if self._is_due(key, RETRY_S):
            self._start(key, f"{uid}/plan", _PLAN_JSON, _DIGEST)
        return None

    def report(self, key: str, uid: str) -> None:
        """Post the report of a cluster's agent, as often as agents do."""
        if self._is_due(key, REPORT_EVERY_S):
            path = f"{uid}/cluster/{key.partition('/')[2]}/report"
            self._start(key, path, msgspec.json.encode(crowds.agent_report(uid)))

    def _is_due(self, key: str, every_s: float) -> bool:
        now_s = time.monotonic()
        if now_s < self._next_s.get(key, 0.0) or len(self._sending) >= AT_ONCE:
            return False
        if len(self._next_s) > DUE_KEPT:
            self._next_s = {due_key: at_s for due_key, at_s in self._next_s.items() if at_s > now_s}
        self._next_s[key] = now_s + every_s
        return True

    def _start(self, key: str, path: str, body: bytes, digest: str = "") -> None:
        task = asyncio.create_task(self._send(key, self._api.issue_token(key), path, body, digest))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, key: str, token: str, path: str, body: bytes, digest: str) -> None:
        connector = aiohttp.TCPConnector(ssl=False, local_addr=(next(self._addresses), 0))
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with (
                aiohttp.ClientSession(connector=connector, headers=headers) as session,
                session.post(f"{self._url}/{key.partition('/')[0]}/{path}", data=body) as answer,
            ):
                if answer.status == 200:
                    self.sent += 1
                    if digest:
                        self._digests[key] = digest
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass  # the operator has not started or the pod is unknown yet: the crowd asks again
        finally:
            self._api.tokens.pop(token, None)
