"""One life of the operator under one attack, beside a victim's job; and what was counted meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import pytest

from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.resources.sparkapp.names import LABEL_TASK_TYPE, TASK_TYPE_DRIVER
from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import hostile, kubelets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from boathouse.cluster import client, wire
    from boathouse_e2e import lab
    from tests.hostile import rest
    from tests.hostile.form import Attack

MEMORY_LIMIT_BYTES = 512 * 1024**2
"""The chart's resources.limits.memory."""
_PATIENCE_S = 60
T = TypeVar("T")
_JOBS = itertools.count(1)
_FINAL = ("Succeeded", "Failed")
SMALL = kubelets.Shape(maps=1, reduces=0, cpu="100m")
SHAPE = kubelets.Shape(maps=12, reduces=2, cpu="100m")


class Siege:
    """The attacker, the victim and the operator.

    Attributes:
        admin: An administrator's client.
        attacker: The tenant that attacks.
        attacked: Kubelets of the attacker's namespace.
        operator: The operator's process, which leads.
        audit: What the API server recorded since the attack began.
        drivers: The attacker's Spark drivers.
        servers: Servers in the place of drivers' REST interfaces, by the application's name.
        aside: A server that the operator must not reach.
    """

    def __init__(
        self,
        place: lab.Lab,
        admin: client.ApiClient,
        attacker: hostile.Tenant,
        honest: kubelets.Kubelets,
        attacked: hostile.HostileKubelets,
        operator: lab.Operator,
    ) -> None:
        self.lab, self.admin, self.attacker = place, admin, attacker
        self._honest, self.attacked, self.operator = honest, attacked, operator
        self.audit: list[dict[str, Any]] = []
        self._epoch = 0
        self.drivers: list[hostile.Driver] = []
        self.servers: dict[str, rest.Server] = {}
        self.aside: rest.Server | None = None
        self._clients = contextlib.AsyncExitStack()

    async def begin(self) -> None:
        """Start the operator and wait until it leads and has worked once, so that what follows is the attack's."""
        before = await hostile.epoch(self.admin)
        self.operator.start()

        async def leads() -> bool:
            return await hostile.epoch(self.admin) > before

        await self.until(leads, "the operator leads")
        self._epoch = await hostile.epoch(self.admin)
        self.lab.new_audit_events()

    async def until(self, holds: Callable[[], Any], what: str, *, patience_s: float = _PATIENCE_S) -> None:
        """Wait for a condition, plain or async; an operator that ends is a finding."""
        deadline = time.monotonic() + patience_s
        while True:
            answer = holds()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            self.check()
            if time.monotonic() > deadline:
                pytest.fail(f"in {patience_s:g} s not: {what}; {await self._state()}")
            await asyncio.sleep(0.05)

    async def _state(self) -> str:
        """What a person would look at first."""
        jobs = (await self.admin.list(MRJOBS, hostile.VICTIM)).items
        last = self.operator.log.read_text().splitlines()[-3:]
        return f"the victim's jobs: {[job.get('status') for job in jobs]}; the operator's log ends with {last}"

    def check(self) -> None:
        """Fail if the operator or the kubelets have ended."""
        self._honest.check()
        self.attacked.check()
        if self.operator.exit_code is not None:
            log = self.operator.log.read_text()[-3000:]
            pytest.fail(f"the operator ended with {self.operator.exit_code}: {log}")

    @contextlib.asynccontextmanager
    async def under(self, attack: Attack) -> AsyncIterator[None]:
        """Apply an attack, and go on with what it repeats until the block ends."""
        self.attacked.message = attack.message
        if attack.first:
            self.operator.kill()
        await self.attacker.create_all(attack.objects())
        if attack.act is not None:
            await attack.act(self)
        if attack.first:
            await self.begin()
        repeating = asyncio.create_task(self._repeat(attack)) if attack.again is not None else None
        try:
            yield
        finally:
            if repeating is not None:
                if repeating.done():
                    repeating.result()
                repeating.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await repeating

    async def over(self) -> None:
        """Take the attack back: delete what the attacker made, and wait until the operator has seen it."""
        self.attacked.message = None
        await hostile.clear(self.admin, hostile.ATTACKER)
        await self.victim_finishes(SMALL)

    async def _repeat(self, attack: Attack) -> None:
        assert attack.again is not None
        while True:
            await attack.again(self)
            await asyncio.sleep(0)

    async def begin_driver(self, name: str) -> hostile.Driver:
        """Submit a SparkApp of the attacker's; returns its driver, which then does as the test says."""
        pod = await self.driver_pod(hostile.application(name))
        self.drivers.append(await self.enter(hostile.driver(self.lab, pod.metadata.name, pod.metadata.uid)))
        return self.drivers[-1]

    async def driver_pod(self, application: dict[str, Any]) -> wire.PodView:
        """Submit a SparkApp of the attacker's and wait until the pod of its driver runs."""
        made = await self.attacker.create(application)
        uid = made["metadata"]["uid"]
        labels = f"{names.LABEL_JOB_UID}={uid},{LABEL_TASK_TYPE}={TASK_TYPE_DRIVER}"

        async def runs() -> bool:
            return any(pod.status.phase == "Running" for pod in await self.pods(labels=labels))

        await self.until(runs, "the driver runs")
        (pod,) = await self.pods(labels=labels)
        return pod

    async def enter(self, context: contextlib.AbstractAsyncContextManager[T]) -> T:
        """Enter a context that is left after the attack."""
        return await self._clients.enter_async_context(context)

    async def close(self) -> None:
        """Leave the contexts that were entered."""
        await self._clients.aclose()

    async def submit(self, manifest: dict[str, Any], shape: kubelets.Shape) -> str:
        """Apply a job of the attacker's whose tasks are played by its kubelets; returns its UID."""
        made = await self.attacker.create(manifest)
        uid = str(made["metadata"]["uid"])
        self.attacked.jobs[uid] = kubelets.Ledger(shape)
        return uid

    async def phase(self, name: str, namespace: str = hostile.ATTACKER) -> str:
        """The phase of a job."""
        return str((await self.status(name, namespace)).get("phase") or "")

    async def status(self, name: str, namespace: str = hostile.ATTACKER) -> dict[str, Any]:
        """The status of a job; empty before there is one."""
        return (await self.admin.get(MRJOBS, name, namespace)).get("status") or {}

    async def has_ended(self, name: str, namespace: str = hostile.ATTACKER) -> bool:
        """Whether a job has a final phase."""
        return await self.phase(name, namespace) in _FINAL

    async def victim_begins(self, shape: kubelets.Shape = SHAPE, *, held: bool = False) -> tuple[str, kubelets.Ledger]:
        """Apply a job of the victim's; returns its name and its ledger."""
        name = f"victim-{next(_JOBS)}"
        made = await self.admin.create(MRJOBS, shape.manifest(name, hostile.VICTIM), hostile.VICTIM)
        ledger = self._honest.jobs[made["metadata"]["uid"]] = kubelets.Ledger(shape, held=held)
        return name, ledger

    async def victim_finishes(self, shape: kubelets.Shape = SHAPE) -> str:
        """Run a job of the victim's to its end and check its output; returns its name."""
        name, ledger = await self.victim_begins(shape)
        await self.victim_ends(name, ledger)
        return name

    async def victim_ends(self, name: str, ledger: kubelets.Ledger) -> None:
        """Wait for the end of a job of the victim's and check its output."""
        shape = ledger.shape
        await self.until(lambda: self.has_ended(name, hostile.VICTIM), "the victim's job ends")
        status = await self.status(name, hostile.VICTIM)
        tasks = {"map": shape.maps, "reduce": shape.reduces}
        assert status["phase"] == "Succeeded", status
        assert status["counters"] == {"Tasks": tasks}
        assert {"map": ledger.committed("m"), "reduce": ledger.committed("r")} == tasks

    async def pods(self, namespace: str = hostile.ATTACKER, labels: str = "") -> Sequence[wire.PodView]:
        """The pods of a namespace."""
        return (await self.admin.list(catalogue.PODS, namespace, labels=labels)).items

    def passes(self, seconds: float) -> Callable[[], bool]:
        """Whether so much time has passed, for what is counted over a time."""
        end = time.monotonic() + seconds
        return lambda: time.monotonic() > end

    async def metrics(self) -> str:
        """The operator's metrics page."""
        url = f"http://127.0.0.1:{self.operator.metrics_port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()

    def seen(self) -> list[dict[str, Any]]:
        """What the API server recorded since the attack began."""
        self.audit += self.lab.new_audit_events()
        return self.audit

    async def judge(self, attack: Attack) -> hostile.Counts:
        """What must hold under every attack: the same leader, its memory, and how much it wrote."""
        self.check()
        assert await hostile.epoch(self.admin) == self._epoch, "another epoch began"
        memory_bytes = hostile.peak_memory_bytes(self.operator.pid)
        counts = hostile.counts(self.seen())
        assert memory_bytes < MEMORY_LIMIT_BYTES
        assert counts.writes <= attack.most_writes, counts
        assert counts.events <= attack.most_events, counts
        assert counts.refused_creates <= attack.most_refused, counts
        assert counts.token_reviews <= attack.most_reviews, counts
        assert counts.lease_gap_s < self.lab.chart_config["lease"]["durationSeconds"], counts
        return counts
