# ruff: noqa: N818 - the names are Kubernetes' own reasons
"""Errors of requests to the API server, which `boathouse.cluster.transport` and `client` raise.

::

    ClusterError
    ├── ConfigError              no usable configuration of a cluster; the message says what to set
    ├── ConnectionLost           no complete response; `maybe_done`: whether the server may have acted
    ├── DecodeError              a response that does not match its model
    └── ApiError                 a response with an error status
        ├── Unauthorized         401
        ├── Forbidden            403, also an exceeded quota
        ├── NotFound             404
        ├── Conflict             409, also a bind of a pod that is bound, gated, deleted or has another UID
        │   └── AlreadyExists    409 with that reason
        ├── Gone                 410, a resourceVersion or continue token that is too old
        ├── Invalid              422, also a rejection by an admission policy without a reason
        ├── TooManyRequests      429
        └── ServerError          5xx; the write may still have been done (`504`, or an error after the commit)
"""

from __future__ import annotations

__all__ = [
    "AlreadyExists",
    "ApiError",
    "ClusterError",
    "ConfigError",
    "Conflict",
    "ConnectionLost",
    "DecodeError",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
    "from_status",
]


class ClusterError(Exception):
    """A request to the API server failed."""


class ConfigError(ClusterError):
    """No usable cluster configuration; the message says what to set."""


class ConnectionLost(ClusterError):
    """The connection failed before a complete response.

    Attributes:
        maybe_done: Whether the server may have received the request; False without a connection.
    """

    def __init__(self, message: str, *, maybe_done: bool = True) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class DecodeError(ClusterError):
    """The server's response does not match its model."""


class ApiError(ClusterError):
    """The API server responded with an error status.

    Attributes:
        status: The HTTP status.
        reason: `Status.reason`, CamelCase; empty if the response is not a `Status`.
        message: `Status.message`, or the first bytes of the body.
        retry_after_s: Retry-After in seconds from the response, or None.
        is_status: Whether the response is a `Status`. Otherwise a proxy sent it, or the server knows no such path.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after_s: float | None = None, *, is_status: bool = True
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.is_status = is_status


class Unauthorized(ApiError):
    """The token or certificate was rejected."""


class Forbidden(ApiError):
    """RBAC, an admission policy with that reason, or a quota rejected the request."""


class NotFound(ApiError):
    """The object or the kind does not exist."""


class Conflict(ApiError):
    """A precondition failed: read the object and decide again."""


class AlreadyExists(Conflict):
    """An object of that name exists, of any owner."""


class Gone(ApiError):
    """The resourceVersion or continue token is too old: list again."""


class Invalid(ApiError):
    """Validation or an admission policy rejected the object, and would reject the same request again."""


class TooManyRequests(ApiError):
    """The server limits the rate of requests; nothing was done."""


class ServerError(ApiError):
    """The server failed; a write may have been done."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_FIRST_SERVER_ERROR = 500


def from_status(
    status: int, reason: str, message: str, retry_after_s: float | None = None, *, is_status: bool = True
) -> ApiError:
    """Return the error for an HTTP status and a `Status.reason`."""
    kind = _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else ApiError)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, reason, message, retry_after_s, is_status=is_status)
