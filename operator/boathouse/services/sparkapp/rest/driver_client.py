"""GET from a driver's REST interface: short, bounded, and only from the address of its own pod.

The driver runs a tenant's code. It may answer slowly, without end, with a redirect or with anything else; each of these
is no answer.
"""

import asyncio
import ipaddress
from typing import Final, Self

import aiohttp

TIMEOUT_S: Final = 2.0
MAX_BYTES: Final = 256 * 1024
_OK: Final = 200


class DriverClient:
    """Reads from drivers; an async context manager."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
            max_line_size=8190,
            max_field_size=8190,
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, address: str, port: int, path: str) -> bytes | None:
        """Return the answer to a GET; None for no usable one.

        Args:
            address: The IP address of the driver's pod, from its status.
            port: The port of its REST interface.
            path: The path with its query, without a leading slash.
        """
        url = url_of(address, port, path)
        if url is None or self._session is None:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S), self._session.get(url, allow_redirects=False) as answer:
                if answer.status != _OK:
                    return None
                body = await answer.content.readexactly(MAX_BYTES + 1)
        except asyncio.IncompleteReadError as whole:
            return whole.partial
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None
        return None if len(body) > MAX_BYTES else body


def url_of(address: str, port: int, path: str) -> str | None:
    """Return the URL below a pod's address; None for an address that no pod of the cluster's network has."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or not 0 < port < 2**16:
        return None
    host = f"[{ip}]" if ip.version == 6 else str(ip)  # noqa: PLR2004 - of IP
    return f"http://{host}:{port}/{path}"
