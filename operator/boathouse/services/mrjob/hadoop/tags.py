"""What the ResourceManager says of the tags of a job's attempts, and when that is sure. Pure.

A client that has ended may have submitted an application a moment before. Only the ResourceManager knows, so it is
asked for all tags before another client may submit.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.services.hadoop.applications import TagView
from boathouse.services.mrjob.state import hadoop_state
from boathouse_task.cluster_contract import ApplicationFigures

MOST: Final = 8
"""Attempts whose tags are asked for. Those before had ended when the last of these began."""
SETTLED_S: Final = 10.0
"""How long a request of a client that has ended may be under way."""
RECOVERY_S: Final = 30.0
"""How long a ResourceManager that has started may take to recover its applications."""

Views = Mapping[str, TagView | None]


def of(uid: str, attempt: int) -> Sequence[str]:
    """Return the tags of the last attempts, the current one's first."""
    return [hadoop_state.tag(uid, number) for number in range(attempt, max(0, attempt - MOST), -1)]


def are_sure(views: Views, clientless_s: float | None) -> bool:
    """Return whether the ResourceManager has said all that there is of these tags.

    Args:
        views: Its answers by tag.
        clientless_s: Since when no client can submit; None: one can.
    """
    return clientless_s is not None and all(
        view is not None and view.began_s >= max(clientless_s + SETTLED_S, view.rm_started_s + RECOVERY_S)
        for view in views.values()
    )


def running(views: Views, *, but: str = "") -> Sequence[ApplicationFigures]:
    """Return the applications that have not ended, except those of one tag."""
    return [
        each for tag, view in views.items() if view and tag != but for each in view.applications if not each.has_ended
    ]


def newest(applications: Sequence[ApplicationFigures]) -> ApplicationFigures:
    """Return the application that was submitted last: a ResourceManager numbers them."""
    return max(applications, key=number)


def number(application: ApplicationFigures) -> tuple[int, int]:
    """Return the start of the ResourceManager and the number of the application, from its ID."""
    _, started, count = application.id.split("_")
    return int(started), int(count)
