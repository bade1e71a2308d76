"""Read the claims of a projected service account token without verifying it. Pure.

Anybody can forge such a token. The claims only decide whether to send a TokenReview: a token that names no live pod of
the job is refused without one, and the verified result must name the same pod.
"""

import base64
import binascii
import dataclasses
from typing import Final

import msgspec

MAX_CHARS: Final = 8190
"""A projected token has about 1,200 characters; the HTTP parser takes no longer header."""
_PARTS: Final = 3
_SKEW_S: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The pod that a token belongs to."""

    namespace: str
    pod_name: str
    pod_uid: str


class _Pod(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Kubernetes(msgspec.Struct, frozen=True):
    namespace: str
    pod: _Pod


class _Payload(msgspec.Struct, frozen=True):
    iss: str
    exp: float
    aud: str | list[str]
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")


_decoder = msgspec.json.Decoder(_Payload)


def read(token: str, audience: str, now_s: float) -> Caller | None:
    """Return the pod that a token claims to be projected into.

    Args:
        token: A JSON Web Token.
        audience: Required audience.
        now_s: Seconds since the epoch.

    Returns:
        None for a token that no TokenReview would accept: malformed, expired, of another audience or not of a pod.
    """
    parts = token.split(".", _PARTS)
    if len(token) > MAX_CHARS or len(parts) != _PARTS or not token.isascii():
        return None
    try:
        payload = _decoder.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    audiences = [payload.aud] if isinstance(payload.aud, str) else payload.aud
    if audience not in audiences or payload.exp < now_s - _SKEW_S:
        return None
    said = payload.kubernetes
    return Caller(namespace=said.namespace, pod_name=said.pod.name, pod_uid=said.pod.uid)
