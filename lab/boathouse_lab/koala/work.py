"""What a task of a Hadoop cluster does, on which nodes: pieces of work in pods, step by step.

* A map computes and reads at the same time: its block is on its own disks, or comes from a node that has it (and over
  the link, to a transient node); then it spills what it puts out.
* A reducer copies what maps put out, merges it on its disks, reduces it, and writes its output: one replica to its own
  disks if it is on a core node, the others to those core nodes that are least busy (as the NameNode considers load).

A piece that was with a node that is lost is done again with another.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_sim.live.rates import Activity
from boathouse_sim.work import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boathouse_lab.koala.jobs import HadoopSpec
    from boathouse_lab.koala.tracker import JobBook
    from boathouse_sim.live.course import Pod
    from boathouse_sim.live.rates import Gate
    from boathouse_sim.live.world import LiveWorld

_LEAST_MB = 0.01
"""Less is not worth a piece of work: Wordcount's output."""


@dataclasses.dataclass(slots=True, eq=False)
class Piece:
    """Work in one place.

    Attributes:
        pod: Where; None for the link.
        segment: What.
        gate: What keeps it from ending.
        helps: Whether it is with another node than the task's own, and any other would do.
        activity: Its progress, once begun.
    """

    pod: Pod | None
    segment: Segment
    gate: Gate | None = None
    helps: bool = False
    activity: Activity | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Attempt:
    """A task that runs.

    Attributes:
        job: Its job.
        index: Within its kind.
        is_map: Its kind.
        pod: The node.
        stores: Whether that holds data.
        luck: What chance makes its computing longer by.
        done: Called at its end.
        steps: What is still to do: pieces that are done at the same time, step by step.
        open: Pieces under way.
    """

    job: JobBook
    index: int
    is_map: bool
    pod: Pod
    stores: bool
    luck: float
    done: Callable[[Attempt], None]
    steps: Iterator[Sequence[Piece]] = dataclasses.field(init=False)
    open: list[Piece] = dataclasses.field(default_factory=list)


class Work:
    """Carries attempts out.

    Args:
        world: Where.
        spec: The cluster.
        datanodes: The core nodes that are up, in order, now.

    Attributes:
        stored_mb: Output that transient nodes sent to core nodes, replicas counted.
    """

    def __init__(self, world: LiveWorld, spec: HadoopSpec, datanodes: Callable[[], Sequence[Pod]]) -> None:
        self._world, self._spec, self._datanodes = world, spec, datanodes
        self.stored_mb = 0.0

    # Attempts

    def start(self, attempt: Attempt, sources: Sequence[Pod] = ()) -> None:
        """Begin.

        Args:
            attempt: What.
            sources: Of a map: nodes with its block.
        """
        attempt.steps = self._map(attempt, sources) if attempt.is_map else self._reduce(attempt)
        self._next(attempt)

    def _next(self, attempt: Attempt) -> None:
        for pieces in attempt.steps:
            if pieces:
                attempt.open = list(pieces)
                for piece in pieces:
                    self._begin(attempt, piece)
                return
        attempt.done(attempt)

    def _begin(self, attempt: Attempt, piece: Piece) -> None:
        def ended() -> None:
            attempt.open.remove(piece)
            if not attempt.open:
                self._next(attempt)

        if piece.pod is None:
            piece.activity = self._send(piece.segment, ended)
        else:
            luck = attempt.luck if piece.segment.cpu_ms else 1.0
            piece.activity = self._world.do(piece.pod, piece.segment, ended, gate=piece.gate, luck=luck)

    def _send(self, segment: Segment, ended: Callable[[], None]) -> Activity:
        rate = segment.copy_mb / segment.copy_ms * 1000
        sent = Activity(self._spec.link, segment.copy_ms, (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, rate, 0.0), ended)
        self._world.rates.start(sent)
        return sent

    def cancel(self, attempt: Attempt) -> None:
        """Give it up."""
        for piece in attempt.open:
            self._stop(piece)
        attempt.open = []

    def _stop(self, piece: Piece) -> None:
        activity = piece.activity
        assert activity is not None
        if piece.pod is None:
            self._world.rates.stop(activity)
        elif activity in piece.pod.activities:  # a lost pod's have been stopped
            piece.pod.activities.remove(activity)
            self._world.rates.stop(activity)

    def without(self, attempt: Attempt, lost: Pod) -> None:
        """Do again, elsewhere, what a lost node did for an attempt of another."""
        for piece in [one for one in attempt.open if one.helps and one.pod is lost]:
            attempt.open.remove(piece)
            others = self._least_busy(1, besides=())
            if others:
                again = Piece(others[0], piece.segment, helps=True)
                attempt.open.append(again)
                self._begin(attempt, again)
        if not attempt.open:
            self._next(attempt)

    def mend_copies(self, attempts: Sequence[Attempt]) -> None:
        """Update the copies after the existing map output changed."""
        for attempt in attempts:
            for piece in attempt.open:
                if piece.gate is not None and piece.activity is not None:
                    self._world.rates.update(piece.activity)

    # Steps

    def _map(self, attempt: Attempt, sources: Sequence[Pod]) -> Iterator[Sequence[Piece]]:
        job, program = attempt.job.spec, attempt.job.spec.program
        compute = program.compute("map", job.block_mb * program.map_s_per_mb)
        if attempt.pod in sources:
            yield [Piece(attempt.pod, self._with_reading(compute, job.block_mb))]
        else:
            source = min(sources, key=lambda pod: (len(pod.activities), pod.task.index))
            serve = Piece(source, self._disk("serve", read_mb=job.block_mb, copy_mb=job.block_mb), helps=True)
            yield [Piece(attempt.pod, compute), serve, *self._over_link(attempt, job.block_mb)]
        spilled_mb = job.block_mb * program.map_output
        yield [Piece(attempt.pod, self._disk("spill", write_mb=spilled_mb))] if spilled_mb > _LEAST_MB else []

    def _reduce(self, attempt: Attempt) -> Iterator[Sequence[Piece]]:
        job, program = attempt.job, attempt.job.spec.program
        share_mb = job.spec.share_mb
        copy = Segment(name="shuffle", copy_ms=max(1, self._copy_ms(share_mb)), copy_mb=share_mb)
        yield [Piece(attempt.pod, copy, gate=job.gate)]
        job.past_copy.add(attempt.index)
        if share_mb > _LEAST_MB:
            yield [Piece(attempt.pod, self._disk("sort", read_mb=share_mb, write_mb=share_mb))]
        yield [Piece(attempt.pod, program.compute("reduce", share_mb * program.reduce_s_per_mb))]
        output_mb = share_mb * program.output
        if output_mb <= _LEAST_MB:
            return
        link = self._over_link(attempt, output_mb * self._spec.replicas)
        self.stored_mb += 0.0 if attempt.stores else output_mb * self._spec.replicas
        if self._spec.pipelined:
            yield [*link, *self._replicas(attempt, output_mb)]
        else:
            yield link
            yield self._replicas(attempt, output_mb)

    def _replicas(self, attempt: Attempt, output_mb: float) -> Sequence[Piece]:
        own = [Piece(attempt.pod, self._disk("write", write_mb=output_mb))] if attempt.stores else []
        others = self._least_busy(self._spec.replicas - len(own), besides=(attempt.pod,))
        sent = self._disk("store", write_mb=output_mb, copy_mb=output_mb)
        return [*own, *(Piece(pod, sent, helps=True) for pod in others)]

    def _least_busy(self, count: int, besides: Sequence[Pod]) -> Sequence[Pod]:
        found = [pod for pod in self._datanodes() if pod not in besides]
        return sorted(found, key=lambda pod: (len(pod.activities), pod.task.index))[:count]

    def _over_link(self, attempt: Attempt, sent_mb: float) -> Sequence[Piece]:
        if attempt.stores or not self._spec.link:
            return []
        rate = attempt.pod.machine.network_mb_per_s
        return [Piece(None, Segment(name="link", copy_ms=max(1, round(sent_mb / rate * 1000)), copy_mb=sent_mb))]

    # Segments

    def _copy_ms(self, share_mb: float) -> int:
        return round(share_mb / self._spec.disks.copy_mb_per_s * 1000)

    def _as_written(self, read_mb: float) -> float:
        """Convert reading to MB at the rate of writing, which is the capacity of the machine's disks."""
        return read_mb * self._spec.disks.write_mb_per_s / self._spec.disks.read_mb_per_s

    def _with_reading(self, compute: Segment, read_mb: float) -> Segment:
        """Overlap a segment with reading: together they take as long as the longer of them."""
        disk_mb = self._as_written(read_mb)
        read_ms = round(disk_mb / self._spec.disks.write_mb_per_s * 1000)
        shorter = max(compute.cpu_ms, read_ms) / max(1, compute.cpu_ms + read_ms)
        return dataclasses.replace(
            compute,
            cpu_ms=round(compute.cpu_ms * shorter),
            cores=compute.cores / shorter,
            read_ms=round(read_ms * shorter),
            read_mb=disk_mb,
        )

    def _disk(self, name: str, *, read_mb: float = 0.0, write_mb: float = 0.0, copy_mb: float = 0.0) -> Segment:
        """Return its use of disks alone; what it sends besides is at the network's, as long as that is the faster."""
        mb = self._as_written(read_mb) + write_mb
        return Segment(
            name=name, write_ms=max(1, round(mb / self._spec.disks.write_mb_per_s * 1000)), write_mb=mb, copy_mb=copy_mb
        )
