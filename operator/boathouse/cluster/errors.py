# ruff: noqa: N818 - the names are Kubernetes' own reasons
"""What can go wrong between us and the API server. Converted once, in ``boathouse.cluster.client``.

::

    ClusterError
    ├── ConfigError              no usable way to an API server: says what to set
    ├── ConnectionLost           no answer, or half of one; ``maybe_done`` tells whether the server may have acted
    ├── DecodeError              an answer that is not what its type promises
    └── ApiError                 the server answered with an error status
        ├── Unauthorized         401
        ├── Forbidden            403, also an exceeded quota
        ├── NotFound             404
        ├── Conflict             409, also a bind of a pod that is bound, gated, deleting or another one
        │   └── AlreadyExists    409 with that reason
        ├── Gone                 410, a resourceVersion or continue token that is too old
        ├── Invalid              422, also a refusal by an admission policy that names no reason
        ├── TooManyRequests      429
        └── ServerError          5xx; the write may still have been done (``504``, or an error after the commit)
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
    """Whatever keeps us from the API server's answer."""


class ConfigError(ClusterError):
    """No usable cluster configuration; the message says what to set."""


class ConnectionLost(ClusterError):
    """The connection failed before a whole answer came.

    Attributes:
        maybe_done: False when nothing of the request was sent, because there was no connection.
    """

    def __init__(self, message: str, *, maybe_done: bool = True) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class DecodeError(ClusterError):
    """The server's answer does not have the shape of its type."""


class ApiError(ClusterError):
    """The API server answered with an error status.

    Attributes:
        status: The HTTP status.
        reason: ``Status.reason``, CamelCase; empty when the answer was no ``Status``.
        message: ``Status.message``, or the first bytes of the body.
        retry_after_s: When the server asks to be tried again, in seconds from the answer; None when it does not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s


class Unauthorized(ApiError):
    """The token or certificate is not accepted."""


class Forbidden(ApiError):
    """RBAC, an admission policy with that reason, or a quota says no."""


class NotFound(ApiError):
    """No such object, or no such kind."""


class Conflict(ApiError):
    """A precondition failed: read again and decide again."""


class AlreadyExists(Conflict):
    """An object of that name exists; it need not be ours."""


class Gone(ApiError):
    """The resourceVersion or continue token is too old: list again."""


class Invalid(ApiError):
    """Validation or an admission policy refused the object; the same request will be refused again."""


class TooManyRequests(ApiError):
    """The server sheds load; nothing was done."""


class ServerError(ApiError):
    """The server failed; a write may have been done all the same."""


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


def from_status(status: int, reason: str, message: str, retry_after_s: float | None = None) -> ApiError:
    """Return the error for an HTTP status and a ``Status.reason``."""
    kind = _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else ApiError)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, reason, message, retry_after_s)
