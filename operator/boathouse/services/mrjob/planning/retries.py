"""Limit the rate of a namespace's retries."""

import dataclasses
from collections.abc import Sequence

from boathouse.fair import Buckets
from boathouse.services.mrjob.attempts.settle import Attempt


def admit(
    retries: Buckets, namespace: str, waiting: Sequence[Attempt], granted: frozenset[Attempt]
) -> tuple[list[Attempt], frozenset[Attempt]]:
    """Return the attempts that may start now, and those among them that used a token.

    First attempts, attempts whose pod exists, and attempts that were granted before need no token.
    """
    admitted: list[Attempt] = []
    kept: set[Attempt] = set()
    for attempt in waiting:
        bare = dataclasses.replace(attempt, pod_uid=None)
        if attempt.number > 1:
            if attempt.pod_uid is None and bare not in granted and not retries.take(namespace):
                continue
            kept.add(bare)
        admitted.append(attempt)
    return admitted, frozenset(kept)
