"""A simulated job on a cluster: leaders die, clients are cut off, ResourceManagers restart, clusters are replaced.

Invariant: at no time do two applications of the job run.
"""

from __future__ import annotations

import dataclasses
import random
import types
from typing import Any

from boathouse import failpoints
from boathouse.services import hadoop
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.hadoop import Applications
from boathouse.services.mrjob import conditions, job_state
from boathouse.services.mrjob.attempt_pods import Ending
from boathouse.services.mrjob.hadoop import mirror
from boathouse.services.mrjob.hadoop.hadoop_jobs import HadoopJobs
from boathouse.services.mrjob.hadoop.observation import ClientPod
from boathouse.services.mrjob.memory import JobMemory
from boathouse_task.cluster_contract import ApplicationFigures
from tests.builders import mrjobs
from tests.builders.mrclusters import cluster_facts

NOW_S = mrjobs.CREATED_S + 1000
CLUSTER = cluster_facts(uid="c-1", name="lake", namespace="demo")


class Killed(BaseException):
    """SIGKILL of the leader."""


@dataclasses.dataclass(slots=True)
class Client:
    """The process of a client, which may outlive what the API server knows of its pod."""

    attempt: int
    uid: str
    state: PodLife = PodLife.RUNNING
    has_leave: bool = False
    has_submitted: bool = False
    is_cut_off: bool = False
    deleting_since_s: float | None = None
    exit_code: int = 0

    @property
    def pod(self) -> ClientPod:
        """Return the pod as the leader sees it."""
        failed = self.state is PodLife.FAILED
        ending = Ending(reason="PodLost", message="killed", user_error=False) if failed and self.exit_code > 1 else None
        user = Ending(reason="TaskFailed", message="usage", user_error=True) if failed and self.exit_code == 1 else None
        return ClientPod(
            name=f"client-a{self.attempt}",
            uid=self.uid,
            attempt=self.attempt,
            state=self.state,
            placed_s=NOW_S,
            node="n1",
            deleting_since_s=self.deleting_since_s,
            ending=ending or user,
        )


class _Scheduler:
    """Creates pods some time after they were submitted; forgets all with its process."""

    def __init__(self, job: SimulatedHadoopJob) -> None:
        self._job = job
        self.pending: int = 0

    def submit(self, _job: Any, _classes: Any, _tasks: Any, builder: Any) -> list[Any]:
        if any(pod.attempt == builder.attempt for pod in self._job.pods.values()):
            return []
        if builder.attempt in self._job.ended:
            return [builder.task_id]
        self.pending = builder.attempt
        return []

    def withdraw(self, _job: Any) -> None:
        self.pending = 0

    def may_create(self, _job: Any) -> bool:
        return bool(self.pending)

    def diagnosis(self, _job: Any) -> None:
        return None

    def create(self) -> None:
        if self.pending:
            self._job.create_pod(self.pending)
            self.pending = 0


class _Clients:
    """The index of pods."""

    def __init__(self, job: SimulatedHadoopJob) -> None:
        self._job = job

    def of(self, _uid: Any) -> tuple[ClientPod, ...]:
        return tuple(client.pod for client in self._job.pods.values())

    def find(self, _uid: Any, name: str) -> ClientPod | None:
        client = self._job.pods.get(name)
        return client.pod if client else None


class _RelatedObjects:
    async def missing_keys(self, _namespace: str, _wanted: Any) -> list[str]:
        return []


class _Bundles:
    """Publishes nothing."""

    async def ensure(self, _namespace: str) -> None: ...


class SimulatedHadoopJob:
    """A job, its leader, and all that happens outside of the leader.

    Attributes:
        status: The job's status as the API server has it.
        pods: Pods that the API server has, by name.
        processes: Clients that run somewhere.
        ended: Attempts whose pods the scheduler observed to be gone.
        applications: What the ResourceManager knows.
        events: The events that applications may still run.
        delays_s: After how long reconciles asked for the next.
    """

    def __init__(self, seed: int = 0, **spec: Any) -> None:
        self.random = random.Random(seed)
        self.now_s = NOW_S
        self.model = mrjobs.cluster_job(**spec)
        self.suspend = False
        self.status: dict[str, Any] = {}
        self.deleting_since_s: float | None = None
        self.is_gone = False
        self.pods: dict[str, Client] = {}
        self.processes: list[Client] = []
        self.ended: set[int] = set()
        self.applications: dict[str, tuple[str, ApplicationFigures]] = {}
        self.cluster = CLUSTER
        self.rm_started_s = NOW_S - 1000
        self.submissions = 0
        self.lives = 0
        self.kills: list[str] = []
        self.events: list[tuple[Any, ...]] = []
        self.delays_s: list[float] = []
        self.start()

    # The leader

    def start(self) -> None:
        """Start a leader that knows only what the API server has."""
        self.lives += 1
        self.scheduler = _Scheduler(self)
        self.tags = Applications(lambda _: None, lambda: self.now_s)
        self.directory = hadoop.Directory()
        self.directory.put(self.cluster)
        context = types.SimpleNamespace(now=lambda: self.now_s, may_lead=lambda: True, events=None)
        leader = types.SimpleNamespace(
            settings=mrjobs.CONFIG,
            clusters=self.directory,
            applications=self.tags,
            scheduling=types.SimpleNamespace(scheduler=self.scheduler),
            bundles=_Bundles(),
            controllers=types.SimpleNamespace(context=context, mark=lambda _: None),
        )
        self.jobs = HadoopJobs(leader, mrjobs.SETTINGS, _RelatedObjects(), lambda _delay, _call: None)  # type: ignore[arg-type]
        self.jobs.clients = _Clients(self)  # type: ignore[assignment]
        self.memory = JobMemory(mrjobs.UID, job_state.from_status(self.status, 1), self.status)  # type: ignore[arg-type]

    async def reconcile(self, *, is_delayed: bool = False) -> None:
        """Reconcile the job in the frame's order."""
        if self.is_gone:
            return
        job = dataclasses.replace(
            self.model,
            deleting_since_s=self.deleting_since_s,
            spec=self.model.spec.model_copy(update={"suspend": self.suspend}),
        )
        desired = self.jobs.plan(await self.jobs.observe(job, self.memory), self.memory)
        if why := conditions.cleanup_failure(self.memory.state, desired.state):
            self.events.append((job.key, job.uid, why))
        self.memory.state = desired.state
        if not is_delayed:
            self.status = self.memory.written = job_state.to_status(desired.state)
            failpoints.hit("after-mrjob.status")
            for name, uid in desired.delete:
                self.delete_pod(name, uid)
        writes: Any = types.SimpleNamespace(attempt=lambda name: failpoints.around(f"mrjob.{name}"))
        for effect in () if is_delayed else desired.before_status:
            await effect(writes)
        delays = [await effect(writes) for effect in desired.after]
        self.delays_s += [delay_s for delay_s in delays if delay_s is not None]
        if self.deleting_since_s is not None and not desired.holds_deletion and not is_delayed and not desired.delete:
            self.is_gone = True

    async def live(self, *, dies_at: str = "") -> None:
        """Reconcile; the leader may die at a failpoint, and another one starts."""

        def hit(name: str) -> None:
            if name == dies_at:
                raise Killed

        original, failpoints.hit = failpoints.hit, hit
        try:
            await self.reconcile(is_delayed=self.random.random() < 0.1)
        except Killed:
            self.start()
        finally:
            failpoints.hit = original

    # Pods and their processes

    def create_pod(self, attempt: int) -> None:
        client = Client(attempt=attempt, uid=f"pod-{attempt}-{len(self.processes)}")
        self.pods[f"client-a{attempt}"] = client
        self.processes.append(client)

    def delete_pod(self, name: str, uid: str) -> None:
        client = self.pods.get(name)
        if client is not None and client.uid == uid and client.deleting_since_s is None:
            client.deleting_since_s = self.now_s

    def end(self, client: Client, exit_code: int) -> None:
        client.exit_code = exit_code
        client.state = PodLife.FAILED if exit_code else PodLife.SUCCEEDED

    def kubelet(self) -> None:
        """Carry out deletions, except of clients that are cut off."""
        for name, client in list(self.pods.items()):
            if client.deleting_since_s is not None and not client.is_cut_off:
                if client.state.is_live:
                    self.end(client, 143)
                self.ended.add(client.attempt)
                del self.pods[name]

    # Clients

    def ask_leave(self, client: Client) -> None:
        caller = types.SimpleNamespace(namespace="demo", pod_name=f"client-a{client.attempt}")
        pod = self.jobs.find(mrjobs.UID, caller)  # type: ignore[arg-type]
        if not client.is_cut_off and pod is not None and pod.uid == client.uid:
            client.has_leave = client.has_leave or self.jobs.may_submit(mrjobs.UID, pod)  # type: ignore[arg-type]

    def submit(self, client: Client) -> None:
        """Submit an application, even if the pod is being deleted or is cut off from the operator."""
        if client.state.is_live and client.has_leave and not client.has_submitted:
            client.has_submitted = True
            self.submissions += 1
            name = f"application_1_{self.submissions}"
            figures = ApplicationFigures(id=name, state="RUNNING", started_ms=int(self.now_s * 1000))
            self.applications[name] = (f"{mrjobs.UID}-{client.attempt}", figures)

    # The cluster

    @property
    def running(self) -> list[str]:
        return [name for name, (_, figures) in self.applications.items() if not figures.has_ended]

    def finish(self, name: str, final: str) -> None:
        tag, figures = self.applications[name]
        state = "KILLED" if final == "KILLED" else "FINISHED"
        counters = {"g": {"n": 1}}
        ended = ApplicationFigures(
            id=figures.id, state=state, final=final, counters=counters, maps=(2, 2), reduces=(1, 1)
        )
        self.applications[name] = (tag, ended)

    def replace_cluster(self) -> None:
        """Delete the cluster with its applications, and create it again."""
        for name in self.running:
            self.finish(name, "KILLED")
        self.applications.clear()
        self.tags.forget(self.cluster.uid)
        self.cluster = dataclasses.replace(self.cluster, uid=ObjectUid(f"c-{self.random.random()}"))
        self.rm_started_s = self.now_s
        self.directory.put(self.cluster)

    def report(self) -> None:
        """Answer the orders of the leader. A ResourceManager that has just started may know no application yet."""
        tags_, kill = self.tags.orders(self.cluster.uid)
        for name in kill:
            if name in self.running:
                self.kills.append(name)
                self.finish(name, "KILLED")
        is_recovered = self.now_s >= self.rm_started_s + mirror.RECOVERY_S / 2
        found = {
            tag: [figures for application_tag, figures in self.applications.values() if application_tag == tag]
            if is_recovered
            else []
            for tag in tags_
        }
        self.tags.answered(self.cluster.uid, began_s=self.now_s, rm_started_s=self.rm_started_s, found=found)

    def check(self) -> None:
        assert len(self.running) <= 1, self.applications

    # Random events

    def happen(self) -> None:
        """Let one event happen outside of the leader."""
        client = self.random.choice(self.processes) if self.processes else None
        what = self.random.choice(
            ("create", "leave", "submit", "end", "cut", "heal", "report", "rm", "cluster", "finish", "time")
        )
        live = client is not None and client.state.is_live
        if what == "create":
            self.scheduler.create()
        elif what == "report":
            self.report()
        elif what == "time":
            self.now_s += self.random.choice((1, 2, 5, 15, 40))
            self.kubelet()
        elif what == "rm" and self.random.random() < 0.2:
            self.rm_started_s = self.now_s
        elif what == "cluster" and self.random.random() < 0.2:
            self.replace_cluster()
        elif what == "finish" and self.running and self.random.random() < 0.3:
            self.finish(self.running[0], "SUCCEEDED")
        elif client is not None and live:
            self._of_client(what, client)

    def _of_client(self, what: str, client: Client) -> None:
        if what == "leave":
            self.ask_leave(client)
        elif what == "submit":
            self.submit(client)
        elif what == "end" and not client.is_cut_off and self.random.random() < 0.3:
            self.end(client, 137)
        elif what == "cut" and self.random.random() < 0.3:
            client.is_cut_off = True
        elif what == "heal":
            client.is_cut_off = False

    async def settle(self) -> None:
        """Let everything work until the job has ended."""
        for client in self.processes:
            client.is_cut_off = False
        for _ in range(400):
            await self.live()
            self.scheduler.create()
            for client in self.processes:
                if client.state.is_live:
                    self.ask_leave(client)
                    self.submit(client)
            self.check()
            if self.running and self.random.random() < 0.1:
                self.finish(self.running[0], "SUCCEEDED")
            for client in self.processes:
                if client.state.is_live and client.has_submitted and not self.running:
                    self.end(client, 0)
            self.report()
            self.now_s += 3
            self.kubelet()
            if self.is_gone or (self.status.get("phase") in job_state.TERMINAL and not self.running):
                return
