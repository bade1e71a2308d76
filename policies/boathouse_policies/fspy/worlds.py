"""A fair world for each queue and namespace, with the part of the cluster that sharing gives it.

The framework shares the cluster between queues by their weights, and between the namespaces of a queue equally, and
FSPY orders the jobs of one namespace. So each queue and namespace (a *share*) has a fair world of its own. A queue with
jobs in the fair worlds has weight / (sum of the weights of such queues) of the cluster, and each of its namespaces with
such jobs an equal part of that. With one share this is the paper's world.

Deviation: the parts are renewed at each cycle and when the cluster changes, not at each virtual completion in between.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, TypeAlias

from boathouse_policies import model
from boathouse_policies.fspy.virtual import VirtualJob, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boathouse_policies.fspy.config import Config
    from boathouse_policies.fspy.jobs import Amount, Shape

MOST_ENDED = 2048
"""Jobs of all worlds that are over and have not finished virtually (arbitrary)."""
Share: TypeAlias = tuple[model.QueueName, model.NamespaceName]


class Worlds:
    """The fair worlds.

    Args:
        config: The constants.

    Attributes:
        jobs: The virtual jobs of all worlds that are not gone, those that finished virtually too.
    """

    def __init__(self, config: Config) -> None:
        self.jobs: dict[model.JobId, VirtualJob] = {}
        self._config = config
        self._worlds: dict[Share, World] = {}
        self._ended: collections.deque[model.JobId] = collections.deque()

    def pending(self) -> Iterator[World]:
        """Return the worlds in which any job is pending."""
        return (world for world in self._worlds.values() if world.queue)

    def size_left(self, job: VirtualJob, now_s: float | None = None) -> float:
        """Return VS in byte-seconds, as of its world's last update if no time is given."""
        return job.world.size_left(job, job.world.now_s if now_s is None else now_s)

    def advance(self, now_s: float) -> None:
        """Let time pass, and drop the worlds that are left without jobs."""
        for share, world in list(self._worlds.items()):
            world.advance(now_s)
            if not world.members:
                del self._worlds[share]

    def resize(self, cluster: Amount, queues: Mapping[model.QueueName, model.Queue], now_s: float) -> None:
        """Let time pass, and share the cluster among the worlds in which any job is pending from now on."""
        self.advance(now_s)
        shares = [share for share, world in self._worlds.items() if world.queue]
        namespaces = collections.Counter(queue for queue, _ in shares)
        weights = {name: queues[name].weight if name in queues else 0.0 for name in namespaces}
        total = sum(weights.values())
        for queue, namespace in shares:
            part = weights[queue] / total / namespaces[queue] if total else 0.0
            self._worlds[queue, namespace].resize((cluster[0] * part, cluster[1] * part), now_s)

    def add(self, job: model.Job, shape: Shape, now_s: float, *, used: float = 0.0) -> None:
        """Add a job; `used` is what it used up already, if it is known from before a restart."""
        share = (job.queue, job.namespace)
        if share not in self._worlds:
            self._worlds[share] = World(self._config, self.jobs)
        self._worlds[share].add(job, shape, now_s, used=used)

    def reshape(self, job: model.JobId, shape: Shape, now_s: float) -> None:
        """Update a job whose size became known (eq. 10), or whose stages changed."""
        self.jobs[job].world.reshape(job, shape, now_s)

    def end(self, job: model.JobId, now_s: float, *, succeeded: bool) -> None:
        """End the real job.

        Of all worlds at most the last `MOST_ENDED` jobs that are over stay. One that goes harms nobody: the others of
        its world have its part.
        """
        if job not in self.jobs:
            return
        self.jobs[job].world.end(job, now_s, succeeded=succeeded)
        self._ended.append(job)
        if len(self._ended) > MOST_ENDED:
            oldest = self.jobs.get(self._ended.popleft())
            if oldest is not None and oldest.ended:
                oldest.world.end(oldest.id, now_s, succeeded=False)
