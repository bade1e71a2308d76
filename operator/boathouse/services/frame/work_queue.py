"""The reconcile queue: keys of objects that changed. One worker at a time reconciles a key, and no key is lost.

A key may be added at any rate. The distance between two reconciles of a key is proportional to the event-loop time of
the last one, so a job of thousands of pods takes a bounded part of the loop. Time spent waiting for the API server does
not count. An error delays the next reconcile of the key. If the object caused the error, adding the key does not
shorten the delay, because whoever may change an object can add its key at any rate. Of the keys that are due,
namespaces take turns, and those of one namespace never occupy all workers.
"""

import asyncio
import contextlib
import functools
import heapq
import random
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import prometheus_client as prometheus
from prometheus_client import registry

from boathouse import fair
from boathouse.cluster import errors, retries
from boathouse.services.frame.kind import namespace_of
from boathouse.telemetry import logs
from boathouse.telemetry.metrics import counter

_log = logs.get(__name__)
Reconcile = Callable[[str], Awaitable[float | None]]
"""Reconciles the object with this key; returns in how many seconds it is due again even without a change, or None."""
MIN_DISTANCE_S, COST_FACTOR = 0.05, 10.0
RESULTS = ("success", "error")
CLOCK_S = 1e-6
_SERVERS_TROUBLE = (errors.ConnectionLost, errors.ServerError, errors.TooManyRequests, TimeoutError, OSError)
"""Errors that no object caused: adding the key ends the delay."""
_DELAYS_KEPT = 1024
"""Idle keys whose delay is kept; beyond that, delays that are over are dropped."""


class WorkQueue:
    """Calls `reconcile(key)` for every key that was added, until cancelled.

    The clock is the CPU time of the event loop's thread: no object is to blame when the machine works for others.
    """

    def __init__(
        self,
        reconcile: Reconcile,
        *,
        workers: int,
        metrics: registry.CollectorRegistry,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._reconcile, self._clock, self._workers = reconcile, clock, workers
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._ready: fair.FairQueue[str] = fair.FairQueue(workers)
        self._is_ready: set[str] = set()
        self._busy: dict[str, float | None] = {}
        self._not_before: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._jitter = random.Random()  # noqa: S311 - spreads retries, protects nothing
        self._backoff = retries.Backoff(base_s=1.0, cap_s=60.0)
        self._count = counter(metrics, "reconcile", "Reconciles", result=RESULTS)
        lasting, busy = "Duration of a reconcile", "Event-loop time spent in reconciles"
        self._seconds = prometheus.Histogram("boathouse_reconcile_duration_seconds", lasting, registry=metrics)
        self._busy_s = prometheus.Counter("boathouse_reconcile_busy_seconds", busy, registry=metrics)

    @property
    def depth(self) -> int:
        """Return how many keys are in the queue."""
        return len(self._due) + len(self._is_ready)

    def add(self, key: str, after_s: float = 0.0) -> None:
        """Reconcile the key in `after_s` seconds or sooner."""
        due = asyncio.get_running_loop().time() + after_s
        if key in self._busy:
            waiting = self._busy[key]
            self._busy[key] = due if waiting is None else min(waiting, due)
            return
        if key in self._is_ready:
            return
        if after_s <= 0:
            due = max(due, self._not_before.get(key, 0.0))
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            self._wake.set()

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._next()
            self._busy[key] = None
            try:
                again_s = await self._reconcile_key(key)
            finally:
                marked = self._busy.pop(key)
                self._ready.done(namespace_of(key))
                self._wake.set()
            if again_s is not None:
                self.add(key, max(again_s, self._delay_s(key)))
            if marked is not None:
                self.add(key, max(marked - asyncio.get_running_loop().time(), self._delay_s(key)))

    def _delay_s(self, key: str) -> float:
        return max(0.0, self._not_before.get(key, 0.0) - asyncio.get_running_loop().time())

    def _delay(self, key: str, until: float) -> None:
        self._not_before[key] = max(until, self._not_before.get(key, 0.0))
        if len(self._not_before) > _DELAYS_KEPT + 2 * (len(self._due) + len(self._busy)):
            now = asyncio.get_running_loop().time()
            self._not_before = {delayed_key: rest for delayed_key, rest in self._not_before.items() if rest > now}

    async def _reconcile_key(self, key: str) -> float | None:
        loop = asyncio.get_running_loop()
        start, work = loop.time(), _Timed(self._reconcile(key), self._clock)
        try:
            again_s = await work
        except (errors.ClusterError, TimeoutError, OSError) as error:
            return self._failed(key, error)
        except Exception as error:  # noqa: BLE001 - the fault of one object must not keep others from being reconciled
            _log.exception("reconcile failed", key=key)
            return self._failed(key, error)
        finally:
            now = loop.time()
            self._seconds.observe(now - start)
            self._busy_s.inc(work.busy_s)
            self._delay(key, now + max(MIN_DISTANCE_S, COST_FACTOR * min(work.busy_s, 1.0)))
        self._failures.pop(key, None)
        self._count("success")
        return again_s

    def _failed(self, key: str, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        at_least_s = error.retry_after_s if isinstance(error, errors.ClusterError) else None
        delay_s = self._backoff.delay_s(failures, self._jitter, at_least_s=at_least_s)
        self._count("error")
        if not isinstance(error, _SERVERS_TROUBLE):
            self._not_before[key] = asyncio.get_running_loop().time() + delay_s
        _log.warning("reconcile failed, will be retried", key=key, error=str(error), failures=failures, delay_s=delay_s)
        return delay_s

    async def _next(self) -> str:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            self._collect_ready(loop.time() + CLOCK_S)
            if (taken := self._ready.take()) is not None:
                self._is_ready.discard(taken[1])
                return taken[1]
            timeout_s = self._heap[0][0] - loop.time() if self._heap else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._wake.wait()

    def _collect_ready(self, until: float) -> None:
        while self._heap:
            due, key = self._heap[0]
            if self._due.get(key) == due:
                if due > until:
                    return
                del self._due[key]
                self._is_ready.add(key)
                self._ready.put(namespace_of(key), key)
            heapq.heappop(self._heap)  # otherwise it was added again for an earlier time


class _Timed:
    """Awaits a coroutine and measures the event-loop time that it takes between its waits."""

    def __init__(self, work: Awaitable[float | None], clock: Callable[[], float]) -> None:
        self.busy_s, self._work, self._clock = 0.0, work, clock

    def __await__(self) -> Generator[Any, Any, float | None]:
        steps = self._work.__await__()
        go_on: Callable[[], Any] = functools.partial(next, steps)
        while True:
            began_s = self._clock()
            try:
                wait = go_on()
            except StopIteration as end:
                answer: float | None = end.value
                return answer
            finally:
                self.busy_s += self._clock() - began_s
            try:
                yield wait
            except BaseException as error:  # noqa: BLE001 - a cancellation is passed on as well
                go_on = functools.partial(steps.throw, error)
            else:
                go_on = functools.partial(next, steps)
