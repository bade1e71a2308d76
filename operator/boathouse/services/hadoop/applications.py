"""Follow applications of Hadoop clusters by their tags, for the jobs that submitted them.

A cluster's agent asks its ResourceManager for a tag when the operator orders it, and reports what it found. Only that
shows whether a client whose pod was lost has submitted its application. So an answer about a tag counts only if the
agent asked after the tag was followed, and a job sees when the agent asked at the earliest.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from boathouse.cluster import server_time
from boathouse.services.frame.kind import ObjectUid
from boathouse_task.cluster_contract import MOST_KILLS, MOST_TAGS, ApplicationFigures


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TagView:
    """The applications of a tag. Times are epoch seconds of this process's clock.

    Attributes:
        answered_s: When the agent reported them.
        began_s: A time before the agent asked for them: what had been submitted by then is among them.
        rm_started_s: When the ResourceManager that was asked started, at the latest. It may not have recovered all
            applications yet if that was a moment before.
        applications: First those that run, then the newest; none: the ResourceManager knows no application of the tag.
    """

    answered_s: float
    began_s: float
    rm_started_s: float
    applications: Sequence[ApplicationFigures] = ()


@dataclasses.dataclass(slots=True)
class _Tag:
    """A tag that a job follows."""

    cluster: ObjectUid
    job: ObjectUid
    since_s: float
    view: TagView | None = None


@dataclasses.dataclass(slots=True)
class _Cluster:
    """Tags to ask for and applications to kill, the next first; the values are None."""

    tags: collections.OrderedDict[str, None] = dataclasses.field(default_factory=collections.OrderedDict)
    kills: collections.OrderedDict[str, None] = dataclasses.field(default_factory=collections.OrderedDict)


class Applications:
    """What the clusters' ResourceManagers say of the tags that jobs follow.

    Args:
        mark: Called with the job of a tag whose applications have changed.
        now: Returns epoch seconds.
    """

    def __init__(
        self, mark: Callable[[ObjectUid], None], now: Callable[[], float] = server_time.SERVER_TIME.now_s
    ) -> None:
        self._mark, self._now = mark, now
        self._tags: dict[str, _Tag] = {}
        self._clusters: dict[ObjectUid, _Cluster] = {}

    # For jobs

    def follow(self, cluster_uid: ObjectUid, tag: str, job_uid: ObjectUid) -> None:
        """Ask the cluster's ResourceManager for the applications of a tag, until the tag is dropped.

        Raises:
            ValueError: The tag has capitals: YARN stores tags in lower case.
        """
        if tag != tag.lower():
            message = f"the tag {tag!r} is not in lower case"
            raise ValueError(message)
        known = self._tags.get(tag)
        if known is not None and (known.cluster, known.job) == (cluster_uid, job_uid):
            return
        self.drop(tag)
        self._tags[tag] = _Tag(cluster=cluster_uid, job=job_uid, since_s=self._now())
        self._clusters.setdefault(cluster_uid, _Cluster()).tags[tag] = None

    def drop(self, tag: str) -> None:
        """Stop asking for a tag, and killing its applications; an unknown tag is ignored."""
        known = self._tags.pop(tag, None)
        if known is None:
            return
        self._end_kills(known.cluster, known.view)
        cluster = self._clusters[known.cluster]
        del cluster.tags[tag]
        if not cluster.tags:
            del self._clusters[known.cluster]

    def view(self, tag: str) -> TagView | None:
        """Return the applications of a tag; None until the agent has answered."""
        known = self._tags.get(tag)
        return known.view if known else None

    def wish_kill(self, cluster_uid: ObjectUid, application_id: str) -> None:
        """Have an application killed: the order is repeated until the application ends or its tag is dropped."""
        cluster = self._clusters.get(cluster_uid)
        if cluster is not None:
            cluster.kills[application_id] = None

    # For agents

    def orders(self, cluster_uid: ObjectUid) -> tuple[Sequence[str], Sequence[str]]:
        """Return the tags that the agent shall ask for next, and the applications that it shall kill."""
        cluster = self._clusters.get(cluster_uid)
        if cluster is None:
            return (), ()
        return _next(cluster.tags, MOST_TAGS), _next(cluster.kills, MOST_KILLS)

    def answered(
        self,
        cluster_uid: ObjectUid,
        *,
        at_s: float,
        began_s: float,
        rm_started_s: float,
        found: Mapping[str, Sequence[ApplicationFigures]],
    ) -> None:
        """Take the applications that an agent has found, by tag.

        Args:
            cluster_uid: The agent's cluster.
            at_s: When it reported them.
            began_s: A time before it began to ask.
            rm_started_s: When the ResourceManager started, at the latest.
            found: Applications of the tags that it asked for and got an answer about.
        """
        for tag, applications in found.items():
            known = self._tags.get(tag)
            if known is None or known.cluster != cluster_uid or began_s < known.since_s:
                continue
            view = TagView(
                answered_s=at_s, began_s=began_s, rm_started_s=rm_started_s, applications=tuple(applications)
            )
            running = {application.id for application in applications if not application.has_ended}
            before, known.view = known.view, view
            self._end_kills(cluster_uid, before, running)
            if before is None or before.applications != view.applications:
                self._mark(known.job)

    def _end_kills(self, cluster_uid: ObjectUid, view: TagView | None, running: Collection[str] = ()) -> None:
        """Do not kill those applications of a former view that do not run any more."""
        kills = self._clusters[cluster_uid].kills
        for application in view.applications if view else ():
            if application.id not in running:
                kills.pop(application.id, None)

    def forget(self, cluster_uid: ObjectUid) -> None:
        """Drop all tags of a deleted cluster."""
        cluster = self._clusters.pop(cluster_uid, None)
        for tag in cluster.tags if cluster else ():
            self._mark(self._tags.pop(tag).job)


def _next(waiting: collections.OrderedDict[str, None], most: int) -> Sequence[str]:
    """Return the first entries, and move them to the end."""
    chosen = list(waiting)[:most]
    for each in chosen:
        waiting.move_to_end(each)
    return chosen
