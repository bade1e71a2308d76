"""Convert between the API's RFC 3339 timestamps and epoch seconds."""

import datetime as dt


def rfc3339(epoch_s: float | None) -> str | None:
    """Return the UTC timestamp to the second; None stays None."""
    if epoch_s is None:
        return None
    return dt.datetime.fromtimestamp(int(epoch_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(timestamp: str | None) -> float | None:
    """Return seconds since 1970; None stays None.

    Raises:
        ValueError: The text is not a timestamp.
    """
    return dt.datetime.fromisoformat(timestamp).timestamp() if timestamp else None
