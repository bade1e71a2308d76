"""The laboratory for the session; jobs and their judgement for each test."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.cluster import catalogue, client, config, errors, wire
from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import ahead, faults, install, invariants, kubelets, lab, paths
from tests.faults import suspending

if TYPE_CHECKING:
    import pathlib
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence

_JOBS = itertools.count(1)
_PATIENCE_S = 200
_WRITE_TO_DEATH_S = 2.0
"""How long a process may live on after the write that it dies of: others see the write first."""
_FINAL = ("Succeeded", "Failed")
_PAUSE_WITHIN_S = 60
_NO_SETTINGS: dict[str, Any] = {}
SETTINGS = {"profile": "boathouse"}
"""Of every operator of this checkout."""
VALUES = {"spark": {"namespaces": [lab.NAMESPACE]}}


def pytest_collection_finish(session: pytest.Session) -> None:
    ahead.build_tools(session, "helm")


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory):
    with lab.laboratory(tmp_path_factory.mktemp("faults"), values=VALUES) as place:
        yield place


class Trial:
    """One job under harm, and what must hold of it in the end.

    Attributes:
        late_s: How long after its deadline a reduce may still be suspended.
    """

    resource = MRJOBS
    late_s = invariants.LATE_WITHOUT_OPERATOR_S

    def __init__(self, place: lab.Lab, api: client.ApiClient, nodes: kubelets.Kubelets, recording: Any) -> None:
        self.lab, self.api, self.kubelets = place, api, nodes
        self._recording = recording
        self._name = self._uid = ""
        self._may_end: set[lab.Operator] = set()
        self._work: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def operator(
        self, identity: str = lab.IDENTITIES[0], *, checkout: pathlib.Path = paths.REPOSITORY, **timing: float
    ):
        """A replica whose progress endpoint the tasks know."""
        settings = SETTINGS if checkout == paths.REPOSITORY else _NO_SETTINGS
        with self.lab.operator(identity, lab.Lease(**timing), settings, checkout) as one:
            self.kubelets.operators.append(one)
            yield one
            self.kubelets.operators.remove(one)

    async def submit(
        self,
        shape: kubelets.Shape,
        *,
        clean_up: str = "OnEnd",
        is_suspended: bool = True,
        pauses: bool = False,
        pod_annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Apply a job.

        Args:
            shape: Its shape.
            clean_up: When its files are removed.
            is_suspended: Whether its reduces start at once and are suspended at random times.
            pauses: Whether its maps run on until a reduce has paused.
            pod_annotations: Annotations of its pods.
        """
        self._name = f"job-{next(_JOBS)}"
        is_suspended = is_suspended and shape.reduces > 0
        if is_suspended:
            shape = dataclasses.replace(shape, polls=True, slow_start_percent=0)
        manifest = shape.manifest(self._name)
        manifest["spec"]["cleanUp"] = clean_up
        if pod_annotations:
            manifest["spec"]["podTemplate"] = {"metadata": {"annotations": dict(pod_annotations)}}
        await self.create(manifest)
        self.kubelets.jobs[self._uid] = kubelets.Ledger(shape)
        if is_suspended:
            self._begin(suspending.now_and_then(self, random.Random(self._name)))
        if is_suspended and pauses:
            self._begin(suspending.hold_maps_until_a_pause(self, _PAUSE_WITHIN_S))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._work.append(asyncio.create_task(work))

    async def create(self, manifest: dict[str, Any]) -> None:
        """Apply the object of the trial."""
        self._name = manifest["metadata"]["name"]
        self._uid = (await self.api.create(self.resource, manifest, lab.NAMESPACE))["metadata"]["uid"]

    @property
    def ledger(self) -> kubelets.Ledger:
        """What the job's tasks have done."""
        return self.kubelets.jobs[self._uid]

    @property
    def name(self) -> str:
        """The job's name."""
        return self._name

    @property
    def uid(self) -> str:
        """The job's UID."""
        return self._uid

    @property
    def has_job(self) -> bool:
        """Whether a job was applied."""
        return bool(self._name)

    async def status(self) -> dict[str, Any]:
        """The job's status; empty when it is gone."""
        try:
            return (await self.api.get(self.resource, self._name, lab.NAMESPACE)).get("status") or {}
        except errors.NotFound:
            return {}

    async def epoch(self) -> int:
        """The Lease's epoch now."""
        lease = await self.api.get(catalogue.LEASES, faults.LEASE, install.NAMESPACE)
        return lease.spec.lease_transitions or 0

    async def until(self, holds: Callable[[], Any], what: str, *, patience_s: float = _PATIENCE_S) -> None:
        """Wait for a condition, plain or async."""
        deadline = time.monotonic() + patience_s
        while True:
            answer = holds()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            self._check()
            if time.monotonic() > deadline:
                pods = [(one.metadata.name, one.spec.node_name, one.status.phase) for one in await self._pods()]
                pytest.fail(
                    f"in {patience_s} s not: {what}; the job: {await self.status()}; its pods: {pods}; "
                    f"the endpoint's last answers: {self.kubelets.refusals[-3:]}"
                )
            await asyncio.sleep(0.05)

    def _check(self) -> None:
        """An operator or a kubelet that ended by itself is a finding, not something to wait for."""
        self.kubelets.check()
        for work in self._work:
            if work.done():
                work.result()
        for one in self.kubelets.operators:
            if one not in self._may_end and one.exit_code not in (None, -signal.SIGKILL):
                pytest.fail(f"the operator ended with {one.exit_code}: {one.log.read_text()[-2000:]}")

    async def deaths(
        self,
        operator: lab.Operator,
        failpoint: str,
        *,
        most: int,
        unless: Callable[[], Awaitable[bool]] | None = None,
    ) -> int:
        """Start an operator again and again that dies at a failpoint, until something holds; how often it died."""

        async def over() -> bool:
            return not operator.lives or (unless is not None and await unless())

        kills = 0
        for _ in range(most):
            operator.start(failpoint)
            await self.until(over, f"the operator dies at {failpoint}, or nothing is left to do")
            await asyncio.to_thread(operator.ends_within, _WRITE_TO_DEATH_S)
            kills += operator.exit_code == -signal.SIGKILL
            operator.kill()
        return kills

    async def patch(self, spec: dict[str, Any]) -> None:
        """Change the job's spec."""
        await self.api.patch(self.resource, self._name, {"spec": spec}, lab.NAMESPACE)

    async def annotate(self, name: str, value: str | None) -> None:
        """Set an annotation of the job, or remove it."""
        await self.api.patch(self.resource, self._name, {"metadata": {"annotations": {name: value}}}, lab.NAMESPACE)

    def running(self, number: int) -> Callable[[], Awaitable[bool]]:
        """Whether so many of the job's pods run."""

        async def holds() -> bool:
            return sum(one.status.phase == "Running" for one in await self._pods()) == number

        return holds

    async def nothing_left(self) -> bool:
        """Whether the job has no pods, ended ones included."""
        return not await self._pods()

    async def _pods(self) -> Sequence[wire.PodView]:
        label = f"boathouse.dev/job-uid={self._uid}"
        return (await self.api.list(catalogue.PODS, lab.NAMESPACE, labels=label)).items

    async def gone(self) -> bool:
        """Whether the job is deleted."""
        try:
            await self.api.get(self.resource, self._name, lab.NAMESPACE)
        except errors.NotFound:
            return True
        return False

    async def ended(self) -> bool:
        """Whether the job has a final phase."""
        return (await self.status()).get("phase") in _FINAL

    def let_end(self, operator: lab.Operator) -> None:
        """Expect an operator to end by itself, as a leader does that has lost its Lease."""
        self._may_end.add(operator)

    async def judge(self) -> None:
        """I1 to I7, I11, I13 and I14: the job ended well, everything was counted once, and nothing was broken."""
        await self.until(self.ended, "the job has ended")
        status, ledger = await self.status(), self.ledger
        tasks = {"map": ledger.shape.maps, "reduce": ledger.shape.reduces}
        assert status["phase"] == "Succeeded", status
        assert status["counters"] == {"Tasks": tasks}
        assert {"map": ledger.committed("m"), "reduce": ledger.committed("r")} == tasks
        audit = self.lab.new_audit_events()
        assert self.violations(audit, status) == []
        await self._clean_up()

    def violations(self, audit: list[dict[str, Any]], status: dict[str, Any]) -> list[invariants.Violation]:
        """What the records of this trial show."""
        logs = {path.name: path.read_text() for path in self.lab.folder.glob("*.log") if path != self.lab.audit_log}
        changes = self._recording.changes()
        return [
            *invariants.over_commits(changes, self.lab.nodes),
            *invariants.without_record(changes),
            *invariants.counted_twice(changes, self.lab.nodes),
            *invariants.too_long(audit, time.time(), self.late_s),
            *invariants.bound_twice(audit),
            *invariants.stale_epochs(audit),
            *invariants.status_went_back(audit),
            *invariants.leaks(lab.CANARY, logs | {"the status": str(status)}),
        ]

    async def _clean_up(self) -> None:
        """I4: with the job goes all that was made for it."""
        await self.discard()
        await self.until(self.nothing_left, "the job's pods are gone")

    async def discard(self) -> None:
        """Delete the job, if it is there: one that a failed test left would take the nodes from the next."""
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self._work.clear()
        with contextlib.suppress(errors.NotFound):
            await self.api.delete(self.resource, self._name, lab.NAMESPACE)


@pytest.fixture
async def trial(laboratory) -> AsyncIterator[Trial]:
    laboratory.new_audit_events()  # what another test did is judged there
    with faults.recording(laboratory.cluster) as recording:
        async with (
            client.ApiClient(config.from_kubeconfig(laboratory.cluster.kubeconfig)) as api,
            kubelets.running(api, laboratory) as nodes,
        ):
            one = Trial(laboratory, api, nodes, recording)
            yield one
            if one.has_job:
                await one.discard()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often the operator was killed in all."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    kills = sum(
        int(value)
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name == "kills"
    )
    if kills:
        terminalreporter.write_line(f"the operator was killed {kills} times")
