"""How long it takes from the decision to resume a reduce until its shuffle runs again.

    python -m benchmarks.resumes [--rounds 20] [--kubelet-ms 30]

The operator, its HTTPS endpoint and the task runtime's polls and pauses are the real ones;
the API server is the fake one of the tests. The kubelet is a model that actuates a resize after `--kubelet-ms`: 29 ms
is the median of a bare resize on a real one (`benchmarks.suspensions`). What counts as the shuffle is a thread that
passes the gate of the runtime's copiers. Prints median and p99 of both ways, and whether the median is at most 0.5 s:

- from the decision to resume until the shuffle runs;
- from the decision to suspend until the scheduler has the CPU.

In a container the look at the limit takes at most a period of the kernel longer, 0.1 s. A round takes 2 s.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import functools
import statistics
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks import support
from boathouse.cluster import server_time
from boathouse.resources import quantity, statuses
from boathouse.services.mrjob import routes
from boathouse.services.mrjob.kind import MRJobKind
from boathouse.services.progress import certificates
from boathouse.suspension import suspending
from boathouse.suspension.stages import Stage
from boathouse.telemetry import logs
from boathouse_policies import model
from boathouse_task import contract, pausing, progress, reduce_task
from boathouse_task.environment import Environment
from tests.builders import manifests
from tests.builders.operators import leaders, mrjobs, schedulers
from tests.builders.task_suspensions import Cgroup
from tests.wire import fake_api, waiting
from tests.wire.fake_api import world

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Mapping

    from boathouse.scheduling.pods import rows
    from boathouse.scheduling.scheduler import Scheduler

MOST_S = 0.5
RESUMED, SUSPENDED = "resumed, from the decision", "CPU free, from the decision to suspend"
LAST_MAP = ("m-00001", 1)
GAP_S = 0.2
"""A copier that does not pass the gate for so long pauses."""
SUSPENDED_S = 300.0
REST_S = 1.0
"""The endpoint takes one acknowledgement of a pod in a second."""
HOST = "localhost"
SIZE = model.Resources(cpu_milli=1, memory_bytes=1)
"""Of decisions: the operator shrinks and grows by the pod's record."""


_eventually = functools.partial(waiting.eventually, turns=3000)


class Copier:
    """A thread that passes the gate of a reduce's copiers again and again.

    Attributes:
        passed_s: When it did last.
        resumed_s: When it did after the last pause.
    """

    def __init__(self, pause: pausing.Pause) -> None:
        self._pause, self._stopped = pause, threading.Event()
        self.passed_s = self.resumed_s = time.monotonic()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stopped.wait(0.002):
            with self._pause.working():
                now_s = time.monotonic()
            if now_s - self.passed_s > GAP_S:
                self.resumed_s = now_s
            self.passed_s = now_s

    @property
    def is_paused(self) -> bool:
        """Whether it waits at the gate."""
        return time.monotonic() - self.passed_s > GAP_S

    def stop(self) -> None:
        """End the thread, once it may pass the gate."""
        self._stopped.set()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A reduce that lacks the output of a map, with its operator and its kubelet."""

    scheduler: Scheduler
    api: fake_api.FakeApi
    kubelet: mrjobs.Kubelet
    copier: Copier
    pod: str

    @property
    def row(self) -> rows.PodRow:
        """The scheduler's row of its pod."""
        row = self.scheduler.state.pods.get(model.TaskId(self.pod))
        assert row is not None
        return row

    async def suspend(self) -> float:
        """Suspend the reduce as a policy does; return the seconds until its CPU is free."""
        began_s, about = time.monotonic(), self._about()
        until_s = self.scheduler.state.clock() + SUSPENDED_S
        self.scheduler.adjuster.take(model.Suspend(**about, resources=SIZE, until_s=until_s, reason="a benchmark"))
        await _eventually(self._is_suspended, "the reduce is suspended")
        took_s = time.monotonic() - began_s
        await _eventually(lambda: self.copier.is_paused, "its copier waits")
        return took_s

    async def resume(self) -> float:
        """Resume it as a policy does; return the seconds until its shuffle runs."""
        began_s, about = time.monotonic(), self._about()
        self.scheduler.adjuster.take(model.Resume(**about, resources=SIZE, reason="a benchmark"))
        return await self.resumed_after(began_s)

    async def resumed_after(self, began_s: float) -> float:
        """Return the seconds from a moment until the shuffle runs."""
        await _eventually(lambda: self.copier.resumed_s > began_s, "the shuffle runs again")
        return self.copier.resumed_s - began_s

    async def at_rest(self) -> None:
        """Wait until the reduce has its CPU again."""
        await _eventually(lambda: self.row.suspension is None or self.row.suspension.is_over, "the suspension is over")

    @property
    def is_ready(self) -> bool:
        """Whether the scheduler knows that it runs, and can suspend it."""
        row = self.scheduler.state.pods.get(model.TaskId(self.pod))
        if row is None or row.facts is None or not row.facts.can_resize:
            return False
        return suspending.problem(row.facts, row.state) is None

    def _is_suspended(self) -> bool:
        suspension = self.row.suspension
        return suspension is not None and suspension.order is None and suspension.stage is Stage.SUSPENDED

    def _about(self) -> dict[str, Any]:
        return {"task": model.Task(id=self.row.id, task_class=model.ClassId("reduce")), "node": model.NodeName("n1")}


async def actuate(api: fake_api.FakeApi, pod: str, cgroup: Cgroup, delay_s: float) -> None:
    """Be the kubelet of a pod: take over its resources after a while when they change, until the pod is gone."""
    known: dict[str, Any] = {}
    while body := api.get("pods", pod):
        wanted = body["spec"]["containers"][0]["resources"]
        if wanted != known:
            known = copy.deepcopy(wanted)
            await asyncio.sleep(delay_s)
            cgroup.limit(quantity.milli(known["limits"]["cpu"]))
            api.actuate_resize(pod)
        await asyncio.sleep(0.005)


def poll(job_uid: str, pod: str, port: int, folder: Path, cgroup: Cgroup) -> pausing.Pause:
    """Start the runtime's thread that polls for a reduce's orders and obeys them; return its gate."""
    pause = pausing.Pause()
    here = Environment(pod_name=pod, token_path=folder / "token", ca_path=folder / "ca.crt", cgroup_path=cgroup.folder)
    spec = contract.TaskSpec(
        job_uid=job_uid,
        job_name="wordcount",
        namespace="demo",
        task_type=contract.TaskType.REDUCE,
        work_url="s3://b/w",
        output_url="s3://b/o",
        progress_url=f"https://{HOST}:{port}",
        maps=2,
    )
    task: Any = SimpleNamespace(client=progress.Client(spec, here), spec=spec, environment=here, pause=pause)

    def run() -> None:
        for _ in reduce_task.finished_maps(task):
            pass

    threading.Thread(target=run, daemon=True).start()
    return pause


def named(api: fake_api.FakeApi, task: str) -> str:
    """Return the pod of a task, or an empty text."""
    return next((key for key in api.objects("pods") if key.endswith(task)), "")


@contextlib.asynccontextmanager
async def reducing(kubelet_s: float) -> AsyncIterator[Running]:
    """Run an operator and a job with a reduce that lacks the output of its last map."""
    kinds: list[MRJobKind] = []

    def build(*arguments: Any) -> MRJobKind:
        kinds.append(MRJobKind(*arguments))
        return kinds[-1]

    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(mock.patch.object(routes, "MRJobKind", build))
        # pods that wait since the server's own date would be late
        stack.enter_context(mock.patch.object(world, "_NOW", statuses.rfc3339(time.time())))
        api = await stack.enter_async_context(fake_api.FakeApi())
        api.add(manifests.node("n1", cpu="16", memory="32Gi"))
        api.add(mrjobs.mrjob(numReduceTasks=1, slowStartCompletedMapsPercent=0))
        made = leaders.leading(api, (routes.ENTRY,), profile="fair", now=time.time)  # it suspends and resumes nobody
        leader = await stack.enter_async_context(made)
        authority = certificates.authority(None, "benchmark", server_time.SERVER_TIME.now())
        context = certificates.server_context(authority, [HOST], server_time.SERVER_TIME.now())
        port = await stack.enter_async_context(leader.endpoint.serve(context, port=0, host="127.0.0.1"))
        kubelet = mrjobs.Kubelet(api, 2)
        kubelet.operator, kubelet.overlap, kubelet.script = kinds[0], True, {LAST_MAP: None}
        stack.push_async_callback(schedulers.stop, asyncio.create_task(kubelet.run()))
        pod, last_map = [
            await _eventually(functools.partial(named, api, task)) for task in ("r-00000-a1", "m-00001-a1")
        ]
        uid, name = api.get("mrjobs", mrjobs.KEY)["metadata"]["uid"], pod.partition("/")[2]
        for key in (last_map, pod):
            await _eventually(lambda key=key: api.get("pods", key)["spec"].get("nodeName"))
            api.set_phase(key, "Running")
        (folder / "token").write_text(api.issue_token(pod))
        (folder / "ca.crt").write_text(authority.pem)
        cgroup = Cgroup(folder / "cgroup")
        stack.push_async_callback(schedulers.stop, asyncio.create_task(actuate(api, pod, cgroup, kubelet_s)))
        copier = Copier(poll(uid, name, port, folder, cgroup))
        stack.callback(copier.stop)
        running = Running(scheduler=leader.scheduling.scheduler, api=api, kubelet=kubelet, copier=copier, pod=pod)
        await _eventually(lambda: running.is_ready, "the reduce runs")
        yield running


async def measure(rounds: int, kubelet_s: float) -> dict[str, list[float]]:
    """Return the seconds that each took."""
    took_s: dict[str, list[float]] = {RESUMED: [], SUSPENDED: []}
    async with reducing(kubelet_s) as running:
        for _ in range(rounds):
            await asyncio.sleep(REST_S)
            took_s[SUSPENDED].append(await running.suspend())
            took_s[RESUMED].append(await running.resume())
            await running.at_rest()
    return took_s


def report(took_s: Mapping[str, list[float]]) -> list[str]:
    """Return the lines that say what was measured."""
    lines = []
    for what, times_s in took_s.items():
        median_s, p99_s = statistics.median(times_s), statistics.quantiles(times_s, n=100, method="inclusive")[98]
        within = "within" if median_s <= MOST_S else "ABOVE"
        lines.append(f"{what}: {len(times_s)} times, median {median_s:.3f} s, {within} {MOST_S} s, p99 {p99_s:.3f} s")
    return lines


def main(asked: argparse.Namespace) -> None:
    """Measure and print."""
    logs.configure()
    support.say("\n".join(report(asyncio.run(measure(asked.rounds, asked.kubelet_ms / 1000)))))


if __name__ == "__main__":
    main(support.options(__doc__ or "", rounds=20, **{"kubelet-ms": 30}))
