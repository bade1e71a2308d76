"""Names of things, one type each; values of which cycles make many; and the ranges of constants."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NewType

TaskId = NewType("TaskId", str)
"""`namespace/pod-name` of the pod that the task has, or will have."""

PodUid = NewType("PodUid", str)
JobId = NewType("JobId", str)
"""The UID of the job's object (MRJob, SparkApp); of pods of others, what tells their jobs apart."""

ClassId = NewType("ClassId", str)
"""Unique over all jobs: by custom `job/step/stage`, with a suffix where one stage asks for several sizes."""

QueueName = NewType("QueueName", str)
NamespaceName = NewType("NamespaceName", str)
NodeName = NewType("NodeName", str)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, **options: Any) -> Callable[[type], type]:
        """Make a dataclass that is frozen to type checkers alone: at run time that takes twice as long to construct."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)


def check_ranges(
    policy: str,
    constants: object,
    *,
    shares: Iterable[str] = (),
    positive: Iterable[str] = (),
    not_negative: Iterable[str] = (),
) -> None:
    """Refuse constants that have no meaning.

    Args:
        policy: Whose constants they are.
        constants: Has them as attributes.
        shares: Names of those above 0 and at most 1.
        positive: Names of those above 0.
        not_negative: Names of those that are 0 or more.

    Raises:
        ValueError: Names the constant and its range.
    """
    ranges: Iterable[tuple[Iterable[str], Callable[[float], bool], str]] = (
        (shares, lambda constant: 0 < constant <= 1, "above 0 and at most 1"),
        (positive, lambda constant: constant > 0, "above 0"),
        (not_negative, lambda constant: constant >= 0, "at least 0"),
    )
    for names, is_valid, words in ranges:
        for name in names:
            if not is_valid(getattr(constants, name)):
                raise ValueError(f"{policy}: {name} must be {words}, not {getattr(constants, name)}")


__all__ = ["check_ranges", "value"]
