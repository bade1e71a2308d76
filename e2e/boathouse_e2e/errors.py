"""The one error that the commands show to people: what went wrong and what to do."""

from __future__ import annotations


class ClusterError(Exception):
    """A cluster, tool or image could not be had; the message says why and what to do."""
