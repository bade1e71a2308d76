"""The token with which kubelets are read. The operator's own never goes to one: a stolen node would have its rights."""

import time
from collections.abc import Callable
from typing import Final

from boathouse.cluster import client, errors

ACCOUNT: Final = "boathouse-signals"
TOKEN_LIFETIME_S: Final = 3600
RENEWED_AT: Final = 0.8
"""Share of the lifetime after which a token is renewed."""
TOKEN_RETRY_S: Final = 60.0


class MetricsToken:
    """A token of the service account `boathouse-signals`."""

    def __init__(self, api: client.ApiClient, namespace: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api, self._namespace, self._monotonic = api, namespace, monotonic
        self._token = ""
        self._renew_s = self._expires_s = 0.0

    async def current(self) -> str:
        """Return the token, after its renewal if that is due; raises `errors.ClusterError` if there is none."""
        if not self._token or self._monotonic() >= self._renew_s:
            await self._renew(self._monotonic())
        return self._token

    def reject(self) -> None:
        """Renew the token soon, because a kubelet has refused it."""
        self._renew_s = min(self._renew_s, self._monotonic() + TOKEN_RETRY_S)

    async def _renew(self, now_s: float) -> None:
        try:
            self._token = await self._api.create_token(self._namespace, ACCOUNT, TOKEN_LIFETIME_S)
        except errors.ClusterError:
            if not self._token or now_s >= self._expires_s:
                raise
            self._renew_s = now_s + TOKEN_RETRY_S
        else:
            self._renew_s, self._expires_s = now_s + RENEWED_AT * TOKEN_LIFETIME_S, now_s + TOKEN_LIFETIME_S
