"""Rates of activities that are in each other's way: columns for each host, updated when one comes, goes or pauses.

All activities of a host make a domain. Whenever one of them changes, all are brought up to date at their old rates, the
host's load is added up anew, and the earliest end among them is the one event of the domain on the heap; older events
are recognised by the domain's version. Where a pool is used, everything is one domain, for its load is felt everywhere.

What reads from another host loads the disks and the network of that one too, and its reading is as slow as the slowest
of its own network and these. Loads are those of tasks without neighbours: so a change of a host's slowdown changes the
rates of those who read from it, but no load, and goes no further.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from boathouse_sim.base_world import Call
from boathouse_sim.clock import Clock, Priority
from boathouse_sim.conditions import DISK, KINDS, NETWORK, POOL, Contention
from boathouse_sim.live.rates import NOTHING, Activity, Four, Rates, whole_ms
from boathouse_sim.topology import Host
from boathouse_sim.work import Pool


@dataclasses.dataclass(slots=True, eq=False)
class _Domain:
    """Activities that feel each other; slots of what reads its disks from elsewhere, and the domain of each."""

    members: dict[int, Activity] = dataclasses.field(default_factory=dict)
    readers: "dict[int, _Domain]" = dataclasses.field(default_factory=dict)
    slots: npt.NDArray[np.intp] | None = None
    since_ms: int = 0
    version: int = 0


class SharedRates(Rates):
    """See the module's docstring."""

    def __init__(self, clock: Clock, hosts: Sequence[Host], contention: Contention, pools: Sequence[Pool] = ()) -> None:
        super().__init__(clock)
        self._contention = contention
        self._host_at = {host.name: i for i, host in enumerate(hosts)}
        self._pool_at = {pool.name: i + 1 for i, pool in enumerate(pools)}  # 0 is no pool
        self._capacity = np.ones((len(hosts), KINDS))
        for i, host in enumerate(hosts):
            self._capacity[i, : NETWORK + 1] = host.cores, host.disk_mb_per_s, host.network_mb_per_s
        self._slow = np.ones((len(hosts), KINDS))
        self._pools = np.array([np.inf, *(pool.mb_per_s for pool in pools)])
        self._pools_slow = np.ones(len(self._pools))
        self._domains = [_Domain()] * len(hosts) if pools else [_Domain() for _ in hosts]
        self._dirty: dict[int, _Domain] = {}
        self._empty: list[int] = []
        self._left = np.zeros(0)
        self._speed = np.zeros(0)
        self._stretch = np.zeros((0, KINDS))
        self._load = np.zeros((0, KINDS))
        self._going = np.zeros(0)
        self._where = np.zeros((0, 2), np.intp)  # host and pool
        self._source = np.zeros(0, np.intp)  # host from which it reads; its own where there is none
        self._far_stretch = np.zeros(0)
        self._far_load = np.zeros((0, KINDS))  # of that host
        self._far = 0  # how many read from another host

    @override
    def start(self, activity: Activity) -> None:
        if not self._empty:
            self._grow()
        slot = activity.slot = self._empty.pop()
        host = self._host_at[activity.host]
        activity.since_ms = self._clock.now_ms
        self._left[slot], self._speed[slot] = activity.left_ms, 0.0
        self._where[slot] = host, self._pool_at[activity.pool] if activity.pool else 0
        self._source[slot], self._far_stretch[slot], self._far_load[slot] = host, 0.0, 0.0
        domain = self._domains[host]
        domain.members[slot] = activity
        domain.slots = None
        if activity.far.host:
            self._source[slot] = self._host_at[activity.far.host]
            self._domains[self._source[slot]].readers[slot] = domain
            self._far += 1
        self._write(activity)
        self._changed(activity)

    @override
    def stop(self, activity: Activity) -> None:
        domain = self._domains[self._host_at[activity.host]]
        del domain.members[activity.slot]
        domain.slots = None
        if activity.far.host:
            del self._domains[self._host_at[activity.far.host]].readers[activity.slot]
            self._far -= 1
        activity.left_ms = self.left_ms(activity)
        self._going[activity.slot] = 0.0
        self._empty.append(activity.slot)
        activity.slot = -1
        self._changed(activity)

    @override
    def update(self, activity: Activity) -> None:
        self._left[activity.slot] = self.left_ms(activity)
        self._speed[activity.slot] = 0.0
        activity.left_ms, activity.since_ms = float(self._left[activity.slot]), self._clock.now_ms
        self._write(activity)
        self._changed(activity)

    @override
    def left_ms(self, activity: Activity) -> float:
        if activity.slot < 0:
            return activity.left_ms
        now_ms = self._clock.now_ms
        if activity.gate is not None:
            return activity.left_at(now_ms)
        since_ms = max(self._domains[self._host_at[activity.host]].since_ms, activity.since_ms)
        return float(self._left[activity.slot] - self._speed[activity.slot] * (now_ms - since_ms))

    def _write(self, activity: Activity) -> None:
        slot = activity.slot
        self._stretch[slot] = activity.stretch
        self._going[slot] = float(not activity.paused)
        # A copy that waits for maps hardly uses the network: it counts once all there is to copy is there.
        loads = not activity.paused and (activity.gate is None or activity.gate.open)
        self._load[slot] = activity.load if loads else 0.0
        if activity.far.host:
            self._far_stretch[slot] = activity.far.stretch
            self._far_load[slot, DISK : NETWORK + 1] = activity.far.mb_per_s if loads else 0.0

    def _grow(self) -> None:
        size = len(self._left)
        more = max(64, size)
        self._left, self._speed, self._going = (np.pad(a, (0, more)) for a in (self._left, self._speed, self._going))
        self._far_stretch, self._source = np.pad(self._far_stretch, (0, more)), np.pad(self._source, (0, more))
        tables = (self._stretch, self._load, self._far_load)
        self._stretch, self._load, self._far_load = (np.pad(a, ((0, more), (0, 0))) for a in tables)
        self._where = np.pad(self._where, ((0, more), (0, 0)))
        self._empty = list(range(size + more - 1, size - 1, -1))

    def _changed(self, activity: Activity) -> None:
        self._touch(self._domains[self._host_at[activity.host]])
        if activity.far.host:
            self._touch(self._domains[self._host_at[activity.far.host]])

    def _touch(self, domain: _Domain) -> None:
        self._dirty[id(domain)] = domain

    @override
    def settle(self) -> None:
        dirty, self._dirty = self._dirty, {}
        reached = dict(dirty)
        for domain in dirty.values():
            if self._slow_down(domain):
                reached |= {id(home): home for home in domain.readers.values()}
        for domain in reached.values():
            slots = self._advance(domain)
            domain.version += 1
            if len(slots):
                self._load_up(slots)
                self._next_end(domain, slots)
            for activity in domain.members.values():
                if activity.gate is not None:
                    activity.speed = float(self._speed[activity.slot])

    def _advance(self, domain: _Domain) -> npt.NDArray[np.intp]:
        slots, now_ms = _slots(domain), self._clock.now_ms
        elapsed_ms, domain.since_ms = now_ms - domain.since_ms, now_ms
        if elapsed_ms and len(slots):
            self._left[slots] -= self._speed[slots] * elapsed_ms
            for slot, activity in domain.members.items():
                if activity.gate is not None:
                    activity.advance(now_ms)
                    self._left[slot] = activity.left_ms
        return slots

    def _slow_down(self, domain: _Domain) -> bool:
        """Compute the slowdowns from now on; return whether those of disks or networks are others than before."""
        slots = _slots(domain)
        if len(self._pools) > 1:
            self._slow_down_all(slots)
            return False  # who reads is in the same domain
        if not len(slots) and not domain.readers:
            return False
        loads = self._load[slots]
        if domain.readers:
            readers = np.fromiter(domain.readers, np.intp, len(domain.readers))
            loads, host = np.concatenate([loads, self._far_load[readers]]), self._source[readers[0]]
        else:
            host = self._where[slots[0], 0]
        streams = np.array([np.count_nonzero(loads[:, DISK])], np.float64)
        total = loads.sum(axis=0, keepdims=True)
        total[0, POOL] = 0.0
        before = self._slow[host, DISK : NETWORK + 1].copy()
        self._slow[host] = self._contention.slowdown(total, self._capacity[host : host + 1], streams)[0]
        return bool((self._slow[host, DISK : NETWORK + 1] != before).any())

    def _slow_down_all(self, slots: npt.NDArray[np.intp]) -> None:
        """Compute those of all hosts and pools, by the only domain that there is with pools."""
        where, loads, own = self._where[slots], self._load[slots], self._where[slots, 0]
        if self._far:
            own = np.concatenate([own, self._source[slots]])
            loads = np.concatenate([loads, self._far_load[slots]])
        hosts, at = np.unique(own, return_inverse=True)
        total = np.zeros((len(hosts), KINDS))
        for kind in range(POOL):
            total[:, kind] = np.bincount(at, weights=loads[:, kind], minlength=len(hosts))
        streams = np.bincount(at, weights=loads[:, DISK] > 0, minlength=len(hosts)).astype(np.float64)
        self._slow[hosts] = self._contention.slowdown(total, self._capacity[hosts], streams)
        used = np.bincount(where[:, 1], weights=self._load[slots, POOL], minlength=len(self._pools))
        self._pools_slow = np.maximum(used / self._pools, 1.0)

    def _load_up(self, slots: npt.NDArray[np.intp]) -> None:
        where = self._where[slots]
        slow = self._slow[where[:, 0]]
        slow[:, POOL] = self._pools_slow[where[:, 1]]
        takes = (self._stretch[slots] * slow).sum(axis=1)
        if self._far:
            there = self._slow[self._source[slots], DISK : NETWORK + 1].max(axis=1)
            takes += self._far_stretch[slots] * np.maximum(there - slow[:, NETWORK], 0.0)
        self._speed[slots] = self._going[slots] / takes

    def _next_end(self, domain: _Domain, slots: npt.NDArray[np.intp]) -> None:
        speed = self._speed[slots]
        ends_ms = np.divide(self._left[slots], speed, out=np.full(len(slots), np.inf), where=speed > 0)
        closed = [i for i, activity in enumerate(domain.members.values()) if activity.gate and not activity.gate.open]
        if closed:
            ends_ms[closed] = np.inf
        first = float(ends_ms.min())
        if first < np.inf:
            due = Call(self._due, domain, domain.version)
            self._clock.at(self._clock.now_ms + whole_ms(first), Priority.END, due)

    def _due(self, domain: _Domain, version: int) -> None:
        """End what is due, unless something has changed since."""
        if domain.version != version:
            return
        slots = self._advance(domain)
        # As `_next_end` sees it: of what is quicker than with all its shares, as much is left as it does in that time.
        is_over = (self._left[slots] <= NOTHING * np.maximum(self._speed[slots], 1.0)).tolist()
        ended = [activity for activity, over in zip(domain.members.values(), is_over, strict=True) if over]
        for activity in ended:
            if activity.slot >= 0 and activity.may_end:  # what ended before may have stopped it
                self.stop(activity)
                self._complete(activity)
        self._touch(domain)

    @override
    def used(self, activity: Activity) -> Four:
        slot = activity.slot
        if slot < 0:
            return (0.0, 0.0, 0.0, 0.0)
        share = float(self._speed[slot] * self._stretch[slot].sum())
        cpu, disk, network, pool = (self._load[slot] * share).tolist()
        return cpu, disk, network, pool


def _slots(domain: _Domain) -> npt.NDArray[np.intp]:
    if domain.slots is None:
        domain.slots = np.fromiter(domain.members, np.intp, len(domain.members))
    return domain.slots
