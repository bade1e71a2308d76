"""Tasks that pause by order, as the task runtime does, in the model of task runtimes."""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from boathouse.resources import quantity
from boathouse_task import contract, pausing

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse.cluster import wire


_LOOK_S = 0.05
_POLL_S = 5


class Ask(Protocol):
    """Sends a request to the progress endpoint until a leader answers; returns its answer."""

    async def __call__(self, method: str, path: str, body: bytes | None = None, /) -> dict[str, Any]:
        """Send it."""


class Pod(Protocol):
    """A task's pod."""

    @property
    def metadata(self) -> wire.ObjectMeta:
        """Its identity."""

    @property
    def status(self) -> wire.PodStatus:
        """Its status."""


class PausedTasks:
    """The tasks that pause.

    Args:
        clock: Seconds.

    Attributes:
        begun: Set once a task has paused.
        ended: How many pauses ended, by reason.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._courses: dict[str, pausing.Course] = {}
        self.begun = asyncio.Event()
        self.ended: collections.Counter[pausing.Ended] = collections.Counter()

    def begin(self, uid: str, order: contract.SuspendOrder) -> None:
        """Pause a pod's task; it sends its acknowledgement afterwards."""
        self.begun.set()
        now_s = self._clock()
        until_s = now_s + min(order.for_s, contract.MOST_SUSPENDED_S)
        self._courses[uid] = pausing.Course(now_s=now_s, until_s=until_s)

    async def poll(self, path: str, ask: Ask, *, pod: Callable[[], Pod], lacks_maps: Callable[[], bool]) -> None:
        """Poll for a task's orders until cancelled, except while it pauses; acknowledge or refuse each order once.

        Args:
            path: Of the task, at the progress endpoint.
            ask: Sends a request as its pod.
            pod: Returns the newest version of its pod.
            lacks_maps: Returns whether it lacks map output.
        """
        since, carried_out = 0, ""
        while True:
            if self.is_paused(pod()):
                await asyncio.sleep(_LOOK_S)
                continue
            query = f"since={since}&order={carried_out}&wait_s={_POLL_S}"
            orders = msgspec.convert(await ask("GET", f"{path}/orders?{query}"), contract.Orders, str_keys=True)
            since = orders.version
            if orders.suspend is None or orders.suspend.id == carried_out:
                continue
            carried_out = orders.suspend.id
            refused = "" if lacks_maps() else contract.SuspendRefusal.PHASE_PASSED.value
            if not refused:
                self.begin(pod().metadata.uid, orders.suspend)
            answer = contract.Acknowledgement(id=carried_out, refused=refused)
            await ask("POST", f"{path}/acknowledge", msgspec.json.encode(answer))

    def is_paused(self, pod: Pod) -> bool:
        """Return whether a pod's task pauses, by the CPU limit that its status shows to be in force."""
        uid = pod.metadata.uid
        course = self._courses.get(uid)
        if course is None:
            return False
        end = course.look(self._clock(), is_suspended=_has_limit_of_suspended(pod.status))
        if end is not None:
            self.ended[end] += 1
            del self._courses[uid]
        return end is None

    def forget(self, uid: str) -> None:
        """Drop a pod that has ended."""
        self._courses.pop(uid, None)


def _has_limit_of_suspended(status: wire.PodStatus) -> bool:
    shown = [
        container_status.resources.limits.get("cpu")
        for container_status in status.container_statuses
        if container_status.resources
    ]
    return any(limit and quantity.milli(limit) <= contract.SUSPENDED_LIMIT_MILLI for limit in shown)
