"""Whose turn it is.

Fair sharing between queues, then between the namespaces in a queue, then the profile's order of jobs, then the job's
order of classes.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, cast

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.narrow import Narrow
from boathouse_policies.framework.want import Want

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from boathouse_policies.framework.accounts import Share
    from boathouse_policies.framework.extension import Regrouping
    from boathouse_policies.framework.lineup import Band
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.waiting import WaitingRoom


class _QueueLine:
    """The bands of one queue.

    Attributes:
        bands: Those of each namespace, the highest priority first; the namespaces in the order of their names.
        namespaces: How many share the queue, those that have no turn in this cycle included.
        places: The place of each namespace.
        share: The dominant share of the queue over its weight.
        shares: The dominant share of each namespace; infinite once nothing of it is open.
    """

    __slots__ = ("bands", "limits", "namespaces", "places", "queue", "share", "shares")

    def __init__(self, queue: model.Queue, axis: model.Axis, namespaces: int) -> None:
        self.queue = queue
        self.namespaces = namespaces
        self.bands: list[list[Band]] = []
        self.places: dict[model.NamespaceName, int] = {}
        self.limits = [(name, axis.row(name), most) for name, most in queue.limits]
        self.share = 0.0
        self.shares = np.zeros(0)

    @property
    def is_shared(self) -> bool:
        """Whether several namespaces have pending tasks here."""
        return self.namespaces > 1

    def add(self, band: Band) -> None:
        """Append a band."""
        if band.namespace not in self.places:
            self.places[band.namespace] = len(self.bands)
            self.bands.append([])
        self.bands[-1].append(band)


class Line:
    """The classes of a cycle in the order of their turns.

    Queues go by dominant share over weight, the least first (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011,
    with weights as in 4.3), ties by name. Within a queue namespaces go by dominant share of what their jobs hold of it,
    with equal weights. Within a namespace: the higher priority, then the profile's key, then submission.
    Before all: gangs that have begun and are short of their minimum, for what they hold is of no use without it; and as
    long as every node on offer is kept for somebody, those whom they are kept for.

    Attributes:
        orphans: Classes of jobs whose queue does not exist or does not accept them.
    """

    def __init__(self, room: WaitingRoom, profile: Profile, scratch: Scratch) -> None:
        self._profile = profile
        self._scratch = scratch
        self._lineup = lineup = room.lineup()
        self._wants: dict[int, Want] = {}
        self._open = lineup.open.copy()
        self._untouched: list[model.BoolVector] = []
        self._allowed: Collection[model.ClassId] | None = None
        self._queues: dict[model.QueueName, _QueueLine] = {}
        self._keys = np.full(len(lineup.jobs), np.inf)
        self._open_jobs = lineup.open_jobs(self._open)
        for band in lineup.bands:
            self._join(band, room)
        for line in self._queues.values():
            self._share(line)
            line.shares = np.zeros(len(line.bands))
            for namespace in line.places if line.is_shared else ():
                self._share_of(namespace, line)
        self._kept: collections.Counter[Share] = collections.Counter()
        if scratch.kept and any(line.is_shared for line in self._queues.values()):
            self._give_kept_nodes_back()
        self._monotone = profile.monotone_in(scratch)
        self._narrow = self._narrowed(room)
        self.orphans = [Want(one, profile, scratch) for one in lineup.orphans]
        begun = [self._want(i) for i in lineup.gangs if self._open[i] and self._begun(i, room)]
        self._first = sorted(begun, key=_rank)
        self._owners: list[Want] = []
        if scratch.all_kept:
            owners = scratch.owners()
            self._owners = sorted((want for want in self.rest() if want.task_class.id in owners), key=_rank)
        # Not isinstance: for a protocol that costs as much as a small cycle.
        self._regrouping = cast("Regrouping", profile.order) if hasattr(profile.order, "generation") else None
        self._generation = 0 if self._regrouping is None else self._regrouping.generation(scratch)

    def _join(self, band: Band, room: WaitingRoom) -> None:
        """Ask for the keys of a band's jobs, if any is open."""
        jobs = self._lineup.jobs
        places = self._open_jobs[band.start : band.stop].nonzero()[0] + band.start
        if not len(places):
            return
        self._keys[places] = self._profile.order.keys([jobs[i] for i in places.tolist()], self._scratch)
        line = self._queues.get(band.queue)
        if line is None:
            line = self._queues[band.queue] = _QueueLine(
                room.queues[band.queue], self._scratch.view.axis, self._lineup.namespaces[band.queue]
            )
        line.add(band)

    def _narrowed(self, room: WaitingRoom) -> Narrow | None:
        """Who can only go where room came free, as far as that is certain: nothing else can have changed for them."""
        lineup, scratch, view = self._lineup, self._scratch, self._scratch.view
        known = self._monotone and not scratch.kept and view.offered is None and view.max_per_node is None
        if not known or not room.freed:
            return None
        index = view.layout.index
        nodes = sorted(index[name] for name in room.freed if name in index)
        return Narrow(lineup.narrow, lineup.sizes(self._profile.sizer, view.axis), nodes, scratch)

    def _want(self, place: int) -> Want:
        want = self._wants.get(place)
        if want is None:
            want = self._wants[place] = Want(self._lineup.waiting[place], self._profile, self._scratch)
            want.place = place
        return want

    def _begun(self, place: int, room: WaitingRoom) -> bool:
        classes = (one.task_class for one in room.classes_of(self._lineup.waiting[place].job.id))
        return any(one.gang_min and self._scratch.placed(one.id) for one in classes)

    def _share(self, line: _QueueLine) -> None:
        if len(self._queues) > 1:
            usage = self._scratch.queue_usage(line.queue.name)
            line.share = self._scratch.dominant_share(usage) / line.queue.weight

    def _share_of(self, namespace: model.NamespaceName, line: _QueueLine) -> None:
        line.shares[line.places[namespace]] = self._dominant_share(line, namespace)

    def _dominant_share(self, line: _QueueLine, namespace: model.NamespaceName) -> float:
        return self._scratch.dominant_share(self._scratch.share_usage((line.queue.name, namespace)))

    def _give_kept_nodes_back(self) -> None:
        """Keep no node for a namespace while another that has a turn holds less of the queue: the other goes first."""
        kept = self._scratch.kept
        behind = {owner for owner in set(kept.values()) if self._is_behind(owner)}
        for node in [node for node, owner in kept.items() if owner in behind]:
            self._scratch.release(node)
        places, waiting = self._lineup.places, self._lineup.waiting
        jobs = (waiting[places[owner]].job for owner in kept.values() if owner in places)
        self._kept.update((job.queue, job.namespace) for job in jobs)

    def _is_behind(self, owner: model.ClassId) -> bool:
        place = self._lineup.places.get(owner)
        if place is None:
            return False
        job = self._lineup.waiting[place].job
        line = self._queues.get(job.queue)
        return line is not None and self._dominant_share(line, job.namespace) > line.shares.min()

    def most_kept(self, want: Want) -> int | None:
        """How many more nodes may be kept for a class; None for any number.

        Where namespaces share a queue, one keeps an equal part of the nodes at most, and no more than it has tasks for:
        otherwise the others would stand still until a node is empty.
        """
        line = self._queues[want.job.queue]
        if not line.is_shared:
            return None
        part = max(1, len(self._scratch.offered) // line.namespaces)
        return max(0, min(want.left, part - self._kept[line.queue.name, want.job.namespace]))

    def kept(self, want: Want) -> None:
        """A node was kept for a class."""
        self._kept[want.job.queue, want.job.namespace] += 1

    def next_class(self) -> Want | None:
        """The class whose turn it is; None when all are closed."""
        while self._first:
            want = self._first[0]
            if self._open[want.place] and self._scratch.placed(want.task_class.id) < want.task_class.gang_min:
                return want
            self._first.pop(0)
        while self._owners and self._scratch.all_kept:
            if self._open[self._owners[0].place]:
                return self._owners[0]
            self._owners.pop(0)
        job = self._next_job()
        if job is None:
            return None
        place = self._lineup.first[job]
        while not self._open[place] or not self._may(place):
            place += 1
        want = self._want(place)
        want.among = self._narrow.nodes_of(place) if self._narrow is not None and self._narrow.classes[place] else None
        return want

    def _next_job(self) -> int | None:
        if len(self._lineup.bands) == 1:
            job = int(self._keys.argmin())
            return job if self._keys[job] != np.inf else None
        best: tuple[float, int] | None = None
        for line in self._queues.values():  # in the order of names, so the first of equals wins
            if best is None or line.share < best[0]:
                first = self._first_of(line)
                if first is not None:
                    best = (line.share, first)
        return None if best is None else best[1]

    def _first_of(self, line: _QueueLine) -> int | None:
        """The first job of the namespace that holds least; in the order of names, so the first of equals wins."""
        shares = line.shares
        while shares[least := int(shares.argmin())] != np.inf:
            job = self._first_in(line.bands[least])
            if job is not None:
                return job
            shares[least] = np.inf
        return None

    def _first_in(self, bands: list[Band]) -> int | None:
        while bands:
            band = bands[0]
            job = band.start + int(self._keys[band.start : band.stop].argmin())
            if self._keys[job] != np.inf:
                return job
            bands.pop(0)
        return None

    def _may(self, place: int) -> bool:
        return self._allowed is None or self._lineup.waiting[place].task_class.id in self._allowed

    def classes_of(self, job: model.JobId) -> Sequence[Want]:
        """The open classes of a job, in its order."""
        return [self._want(place) for place in self._open_of(self._lineup.job_places[job])]

    def _open_of(self, job: int) -> list[int]:
        start, stop = self._lineup.first[job : job + 2]
        return [place for place in range(start, stop) if self._open[place] and self._may(place)]

    def over_limit(self, want: Want, size: model.IntVector) -> model.Verdict | None:
        """Whether one more task of this size would exceed the limits of the class' queue."""
        line = self._queues[want.job.queue]
        if not line.limits:
            return None
        usage = self._scratch.queue_usage(line.queue.name)
        for name, row, most in line.limits:
            need = int(size[row]) if row < len(size) else 0
            if need and usage[row] + need > most:
                held = f"queue {line.queue.name!r} holds {int(usage[row])} of its limit of {most} {name}"
                return model.Verdict(code=model.Code.QUEUE_LIMIT, message=f"{held}; one task asks for {need}")
        return None

    def limited(self, want: Want) -> bool:
        """Whether the class' queue has limits."""
        return bool(self._queues[want.job.queue].limits)

    def placed(self, want: Want) -> None:
        """A task of the class was placed: its job's key and the shares of its queue and namespace are mended."""
        if not want.left:
            self.close(want)
        self.taken_back(want)

    def taken_back(self, want: Want) -> None:
        """What the class' job holds changed: mend its key and the shares of its queue and namespace."""
        line = self._queues[want.job.queue]
        self._share(line)
        if line.is_shared:
            self._share_of(want.job.namespace, line)
        job = self._lineup.job_of[want.place]
        is_open = self._keys[job] != np.inf
        if is_open or self._regrouping is not None:
            key = self._profile.order.keys((want.job,), self._scratch)[0]
            if is_open:
                self._keys[job] = key
        if self._regrouping is not None and self._regrouping.generation(self._scratch) != self._generation:
            self._generation = self._regrouping.generation(self._scratch)
            self._ask_again()

    def _ask_again(self) -> None:
        for band in self._lineup.bands:
            places = np.isfinite(self._keys[band.start : band.stop]).nonzero()[0] + band.start
            if len(places):
                jobs = [self._lineup.jobs[i] for i in places.tolist()]
                self._keys[places] = self._profile.order.keys(jobs, self._scratch)

    def shrunk(self, node: int) -> Iterator[Want]:
        """A node took tasks: close who cannot go anywhere now. Of these, the classes that have had a turn."""
        nowhere = None if self._narrow is None else self._narrow.shrunk(node)
        if nowhere is None:
            return
        nowhere &= self._open
        if not np.count_nonzero(nowhere):
            return
        for place in [place for place in self._wants if nowhere[place]]:
            nowhere[place] = False
            self.close(self._wants[place])
            yield self._wants[place]
        self._untouched.append(nowhere)
        self._open &= ~nowhere
        self._keys[~self._lineup.open_jobs(self._open)] = np.inf

    def untouched(self) -> Sequence[Want]:
        """The classes that `shrunk` closed before they had a turn."""
        return [self._want(i) for nowhere in self._untouched for i in nowhere.nonzero()[0].tolist()]

    def close(self, want: Want) -> None:
        """The class has no turn any more in this cycle."""
        self._open[want.place] = False
        job = self._lineup.job_of[want.place]
        if not self._open_of(job):
            self._keys[job] = np.inf

    def confine(self, classes: Collection[model.ClassId]) -> None:
        """Only these classes have turns from now on; the others stay open, for another cycle."""
        self._allowed = classes
        keys = np.full(len(self._keys), np.inf)
        places = [self._lineup.places[one] for one in classes if one in self._lineup.places]
        jobs = [self._lineup.job_of[place] for place in places if self._open[place]]
        keys[jobs] = self._keys[jobs]
        self._keys = keys

    def rest(self) -> Sequence[Want]:
        """All open classes."""
        return [self._want(place) for place in self._open.nonzero()[0].tolist()]

    def hopeless(self, failed: Want) -> Iterable[Want]:
        """Open classes that fit nowhere either, because this one did not: seen at once, not one by one.

        Room only shrinks within a cycle. So what asks for at least as much under the same constraints fails too, and
        what asks for more of something than any node has free.
        """
        if not self._monotone:
            return ()
        waiting, sizes = self._lineup.waiting, self._lineup.sizes(self._profile.sizer, self._scratch.view.axis)
        scratch, rows = self._scratch, len(sizes)
        most = scratch.free[:rows, scratch.offered].max(axis=1, initial=0)
        too_large = (sizes > most[:, None]).any(axis=0)
        as_large = (sizes >= failed.least[:rows, None]).all(axis=0)
        constraints = failed.task_class.constraints
        return [
            self._want(i)
            for i in ((too_large | as_large) & self._open).nonzero()[0].tolist()
            if not waiting[i].task_class.gang_min and (too_large[i] or waiting[i].task_class.constraints == constraints)
        ]


def _rank(want: Want) -> tuple[float, model.JobId, int]:
    return want.waiting.rank
