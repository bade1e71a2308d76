# ruff: noqa: N818 - the names are Kubernetes' own reasons
"""Errors of requests to the API server, which `boathouse.cluster.transport` and `client` raise."""


class ClusterError(Exception):
    """A request to the API server failed."""

    retry_after_s: float | None = None


class ConfigError(ClusterError):
    """No usable cluster configuration; the message says what to set."""


class ConnectionLost(ClusterError):
    """The connection failed before a complete response. Without a connection `maybe_done` is False."""

    def __init__(self, message: str, *, maybe_done: bool = True) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class DecodeError(ClusterError):
    """The server's response does not match its model."""


class ApiError(ClusterError):
    """An error status with its `Status`; without one the message is the start of the body, a proxy's for example."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after_s: float | None = None, *, is_status: bool = True
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message
        self.retry_after_s, self.is_status = retry_after_s, is_status


class Unauthorized(ApiError):
    """401: the token or certificate was rejected."""


class Forbidden(ApiError):
    """403: RBAC, an admission policy with that reason, or an exceeded quota rejected the request."""


class NotFound(ApiError):
    """404: the object or the kind does not exist."""


class Conflict(ApiError):
    """409: read the object and decide again. Also a bind of a pod that is bound, gated, deleted or has another UID."""


class AlreadyExists(Conflict):
    """409 with that reason: an object of that name exists, of any owner."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old: list again."""


class Invalid(ApiError):
    """422: validation, or an admission policy without a reason, rejected the object and would reject it again."""


class TooManyRequests(ApiError):
    """429: the server limits the rate of requests; nothing was done."""


class ServerError(ApiError):
    """5xx: the server failed; a write may have been done (`504`, or an error after the commit)."""


_BY_STATUS: dict[int, type[ApiError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone}
_BY_STATUS |= {422: Invalid, 429: TooManyRequests}
_FIRST_SERVER_ERROR = 500


def from_status(
    status: int, reason: str, message: str, retry_after_s: float | None = None, *, is_status: bool = True
) -> ApiError:
    """Return the error for an HTTP status and a `Status.reason`."""
    kind = _BY_STATUS.get(status, ServerError if status >= _FIRST_SERVER_ERROR else ApiError)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, reason, message, retry_after_s, is_status=is_status)
