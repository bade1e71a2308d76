"""The fair worlds in which jobs' virtual sizes fall (FSPY, III.B; Algorithms 2 and 3; eq. 10): one for each share.

    submitted ──add──> virtual queue ──size used up──> finished there ──real end──> gone
                            │  ^                            │
        real end, unsized   │  └──────a larger size─────────┘
        or cancelled ───────┴──> gone

VSC, then VRA, run when a job comes, when a job's size becomes known or changes, when a job leaves, and at each virtual
completion in between; in between the sizes fall linearly, so reading one runs nothing.

Deviations:
* Algorithm 2 on tuples: f = min(1, min_r fairShare_r / APB_r), virtualResource = f·APB.
* Shares are weighted by `Job.weight`; with equal weights this is the paper's share.
* The virtual queue's ties (equal memory of APB) go by submission, then id.
* Algorithm 3's damaged signs are minus, and interval = current - last.
* Algorithm 3 takes the master's container off the virtual resource; where the share is small beside it, a job would
  stop or grow. At least `least_work_share` of what would be left if the master shrank along counts as work.
* Sizes fall in memory-seconds only: that is what the paper orders by (III.C).
* The paper asks that S_init be large enough that no job finishes virtually before it is sized, and does not say how
  large. Here it is infinite. Eq. 10, VS_new = S_pred - (S_init - VS_cur), holds because S_init - VS_cur is stored as
  `used` and stays.
* A job whose size turns out larger after it finished virtually comes back, with what it has left.

A fair world for each queue and namespace, with the part of the cluster that sharing gives it.

The framework shares the cluster between queues by their weights, and between the namespaces of a queue equally, and
FSPY orders the jobs of one namespace. So each queue and namespace (a *share*) has a fair world of its own. A queue with
jobs in the fair worlds has weight / (sum of the weights of such queues) of the cluster, and each of its namespaces with
such jobs an equal part of that. With one share this is the paper's world.

Deviation: the parts are renewed at each cycle and when the cluster changes, not at each virtual completion in between.
"""

import bisect
import collections
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from boathouse_policies import model
from boathouse_policies.fspy import jobs
from boathouse_policies.fspy.config import Config

MOST_ENDED = 256  # jobs of a world that are over and have not finished virtually (arbitrary)
_MEMORY = 1
_ROUNDING = 1e-9


def allocate(bounds: Sequence[jobs.Amount], weights: Sequence[float], cluster: jobs.Amount) -> list[jobs.Amount]:
    """Run Algorithm 2, VRA: what each job has in the fair world, by the bounds (APB) in the virtual queue's order.

    Each has at most its bound, and at most its fair share, by weights above 0, of what the ones before it left.
    """
    cpu_left, memory_left = cluster
    rests = [*itertools.accumulate(reversed(weights))][::-1]  # of each job and those after it
    given = []
    for (cpu, memory), weight, rest in zip(bounds, weights, rests, strict=True):
        part = weight / rest
        feed = min(1.0, cpu_left * part / cpu if cpu > 0 else 1.0, memory_left * part / memory if memory > 0 else 1.0)
        given.append((cpu * feed, memory * feed))
        cpu_left = max(0.0, cpu_left - cpu * feed)
        memory_left = max(0.0, memory_left - memory * feed)
    return given


def working_memory(share: jobs.Amount, bound: jobs.Amount, shape: jobs.Shape, least_work_share: float) -> float:
    """Run Algorithm 3, lines 4-7: the memory that works off a job's size: its master's container does not."""
    master = shape.master[_MEMORY]
    if shape.uber or not 0 < master < bound[_MEMORY]:  # a master as large as the cluster: nothing works beside it
        return share[_MEMORY]
    feed = share[_MEMORY] / bound[_MEMORY]
    return max(share[_MEMORY] - master, feed * (bound[_MEMORY] - master) * least_work_share)


@dataclasses.dataclass(slots=True, eq=False)
class VirtualJob:
    """A job in the fair world. Sizes in byte-seconds."""

    id: model.JobId
    world: "World"
    submitted_s: float  # breaks ties, then the id
    weight: float
    shape: jobs.Shape  # what it is made of
    size: float  # S_pred; infinite where it is unknown
    used: float = 0.0  # S - VS at the world's last update
    bound: jobs.Amount = jobs.NOTHING  # APB
    share: jobs.Amount = jobs.NOTHING  # the allocated virtual resource
    rate: float = 0.0  # byte-seconds used up in a second
    finish_s: float = math.inf  # when it finishes virtually if nothing changes; when it did, once it has
    finished: bool = False
    ended: bool = False  # whether the real job is over

    def size_left(self, now_s: float | None = None) -> float:
        """Return VS in byte-seconds, of a time between its world's last update (the default) and next virtual end."""
        passed_s = 0.0 if now_s is None else now_s - self.world.now_s
        return 0.0 if self.finished else max(0.0, self.size - self.used - self.rate * passed_s)


class World:
    """A fair world. Its jobs are kept together with those of other worlds."""

    def __init__(self, config: Config, all_jobs: dict[model.JobId, VirtualJob] | None = None) -> None:
        self._config = config
        self.cluster: jobs.Amount = jobs.NOTHING  # all of the real cluster, or the part that sharing gives this world
        self.now_s = 0.0  # when sizes and shares were last updated
        self.jobs = {} if all_jobs is None else all_jobs  # that are not gone, those that finished virtually too
        self.queue: list[VirtualJob] = []  # the pending virtual jobs, in the virtual queue's order
        self.members = 0  # how many of the jobs are in this world
        self._next_end_s = math.inf

    def advance(self, now_s: float) -> None:
        """Let time pass: the virtual completions until now, each with VSC and VRA. Earlier times change nothing."""
        while self._next_end_s <= now_s:
            self._update_sizes(self._next_end_s)
            self._update_shares()

    def resize(self, cluster: jobs.Amount, now_s: float) -> None:
        """Set the cluster's resources."""
        self.advance(now_s)
        if cluster == self.cluster:
            return
        self._update_sizes(now_s)
        self.cluster = cluster
        for job in self.queue:
            job.bound = jobs.parallelism(job.shape, cluster)
        self.queue.sort(key=_place)
        self._update_shares()

    def add(self, job: model.Job, shape: jobs.Shape, now_s: float, *, used: float = 0.0) -> None:
        """Add a job; `used` is what it used up already, if it is known from before a restart."""
        self.advance(now_s)
        self._update_sizes(now_s)
        size = jobs.size(shape)[_MEMORY] if shape.is_sized else math.inf
        self.members += 1
        self.jobs[job.id] = fresh = VirtualJob(job.id, self, job.submitted_s, job.weight, shape, size, used)
        self._enter(fresh)
        self._update_shares()

    def reshape(self, known: VirtualJob, shape: jobs.Shape, now_s: float) -> None:
        """Update a job whose size became known (eq. 10), or whose stages changed."""
        if known.shape == shape:
            return
        self.advance(now_s)
        self._update_sizes(now_s)
        known.shape = shape
        if shape.is_sized:
            known.size = jobs.size(shape)[_MEMORY]
        self._leave(known)
        if not known.finished or known.used < known.size:
            self._enter(known)
        self._update_shares()

    def end(self, job: model.JobId, now_s: float, *, succeeded: bool) -> None:
        """End the real job. One of known size stays in the virtual queue until it finishes there too.

        Deviation: of jobs that are over, at most `MOST_ENDED` stay; beyond that the one that would finish first goes.
        """
        known = self.jobs.get(job)
        if known is None:
            return
        self.advance(now_s)
        known.ended = True
        if succeeded and known.size < math.inf and not known.finished:
            ended = [job for job in self.queue if job.ended]
            if len(ended) <= MOST_ENDED:
                return
            known = min(ended, key=lambda job: (job.finish_s, job.submitted_s, job.id))
        self._update_sizes(now_s)
        if self.jobs.pop(known.id, None) is not None:
            self.members -= 1
        self._leave(known)
        self._update_shares()

    def _enter(self, job: VirtualJob) -> None:
        job.finished = False
        job.bound = jobs.parallelism(job.shape, self.cluster)
        bisect.insort(self.queue, job, key=_place)

    def _leave(self, job: VirtualJob) -> None:
        self.queue = [other for other in self.queue if other is not job]

    def _update_sizes(self, now_s: float) -> None:
        """Run Algorithm 3, VSC."""
        interval_s = max(0.0, now_s - self.now_s)
        self.now_s = max(self.now_s, now_s)
        for job in self.queue:
            job.used += job.rate * interval_s
            # The second is the first without rounding; the first also finds what ends together with another.
            if job.used >= job.size * (1 - _ROUNDING) or job.finish_s <= now_s:
                job.finished, job.finish_s = True, now_s
                job.share, job.rate = jobs.NOTHING, 0.0
                if job.ended:
                    del self.jobs[job.id]
                    self.members -= 1
        self.queue = [job for job in self.queue if not job.finished]

    def _update_shares(self) -> None:
        """Run Algorithm 2, VRA, and find when the next job finishes if nothing else happens."""
        given = allocate([job.bound for job in self.queue], [job.weight for job in self.queue], self.cluster)
        for job, share in zip(self.queue, given, strict=True):
            job.share = share
            job.rate = working_memory(share, job.bound, job.shape, self._config.least_work_share)
            job.finish_s = self.now_s + max(0.0, job.size - job.used) / job.rate if job.rate > 0 else math.inf
        self._next_end_s = min([job.finish_s for job in self.queue], default=math.inf)


def _place(job: VirtualJob) -> tuple[float, float, str]:
    return job.bound[_MEMORY] / job.weight, job.submitted_s, job.id


MOST_ENDED_WORLDS = 2048  # jobs of all worlds that are over and have not finished virtually (arbitrary)
Share: TypeAlias = tuple[model.QueueName, model.NamespaceName]


class Worlds:
    """The fair worlds."""

    def __init__(self, config: Config) -> None:
        self.jobs: dict[model.JobId, VirtualJob] = {}  # that are not gone, those that finished virtually too
        self._config = config
        self._worlds: dict[Share, World] = {}
        self._ended: collections.deque[model.JobId] = collections.deque()

    def pending(self) -> Iterator[World]:
        """Return the worlds in which any job is pending."""
        return (world for world in self._worlds.values() if world.queue)

    def resize(self, cluster: jobs.Amount, queues: Mapping[model.QueueName, model.Queue], now_s: float) -> None:
        """Let time pass, drop worlds without jobs, and share the cluster among those in which any job is pending."""
        for world in self._worlds.values():
            world.advance(now_s)
        self._worlds = {share: world for share, world in self._worlds.items() if world.members}
        shares = [share for share, world in self._worlds.items() if world.queue]
        namespaces = collections.Counter(queue for queue, _ in shares)
        weights = {name: queues[name].weight if name in queues else 0.0 for name in namespaces}
        total = sum(weights.values())
        for queue, namespace in shares:
            part = weights[queue] / total / namespaces[queue] if total else 0.0
            self._worlds[queue, namespace].resize((cluster[0] * part, cluster[1] * part), now_s)

    def add(self, job: model.Job, shape: jobs.Shape, now_s: float, *, used: float = 0.0) -> None:
        """Add a job; `used` is what it used up already, if it is known from before a restart."""
        world = self._worlds.setdefault((job.queue, job.namespace), World(self._config, self.jobs))
        world.add(job, shape, now_s, used=used)

    def end(self, job: model.JobId, now_s: float, *, succeeded: bool) -> None:
        """End the real job. Of all worlds only the last `MOST_ENDED_WORLDS` stay: the others have the part of one."""
        if job not in self.jobs:
            return
        self.jobs[job].world.end(job, now_s, succeeded=succeeded)
        self._ended.append(job)
        if len(self._ended) > MOST_ENDED_WORLDS:
            oldest = self.jobs.get(self._ended.popleft())
            if oldest is not None and oldest.ended:
                oldest.world.end(oldest.id, now_s, succeeded=False)
