"""Jobs that share an output, on a storage whose operations can be counted, killed at and paused at."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Self

import msgspec
import obstore
from obstore.store import MemoryStore

from boathouse_task import cleanup_task, commit_task, local, object_store, setup_task
from boathouse_task.contract import CommitRecord, OwnerState, Reason, TaskSpec, TaskType
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage
from boathouse_task.stores import Entry
from boathouse_task.task import Task

PARTS = 2
OPERATIONS = ("create", "write", "move", "delete", "read", "size", "children", "files")


class Killed(BaseException):
    """The end of the pod."""


class Hook:
    """Called before and after each operation; by default it lets all pass."""

    def before(self) -> None:
        """An operation begins."""

    def after(self) -> None:
        """An operation is done; nobody has been told."""


class KillAt(Hook):
    """Kills the task before or after its n-th operation; what other threads of it do then fails as well."""

    def __init__(self, number: int, *, after: bool) -> None:
        self._left, self._after, self._lock = number, after, threading.Lock()
        self.killed = False

    def before(self) -> None:
        with self._lock:
            self._left -= 1
            self.killed = self.killed or (self._left == 0 and not self._after)
            if self.killed:
                raise Killed

    def after(self) -> None:
        with self._lock:
            self.killed = self.killed or self._left <= 0
            if self.killed:
                raise Killed


class Paused(Hook):
    """A task in a thread of its own, held before its n-th operation while the block runs.

    Attributes:
        was_held: Whether it has so many operations.
        reason: Why it failed in the end; None if it did not.
    """

    def __init__(self, task: Callable[[Hook], None], number: int) -> None:
        self._left, self._lock = number, threading.Lock()
        self._held, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(task,))
        self.was_held = False
        self.reason: Reason | None = None

    def before(self) -> None:
        with self._lock:
            self._left -= 1
            mine = self._left == 0
        if mine:
            self._held.set()
            assert self._go.wait(30)

    def _run(self, task: Callable[[Hook], None]) -> None:
        self.reason = reason_of(lambda: task(self))

    def __enter__(self) -> Self:
        self._thread.start()
        while self._thread.is_alive() and not self._held.wait(0.001):
            pass
        self.was_held = self._held.is_set()
        return self

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._thread.join(30)


class HookedStorage(Storage):
    """Files, or a store in memory that behaves as S3 does: no folders, and a move is a copy and a deletion."""

    def __init__(self, memory: MemoryStore, hook: Hook) -> None:
        super().__init__(None, {}, part_bytes=1 << 20)
        self._memory, self._hook = memory, hook

    def _open_store(self, scheme, bucket):
        return (
            object_store.ObjectStore(self._memory, self._listed, 1 << 20)
            if scheme == "s3"
            else super()._open_store(scheme, bucket)
        )

    def _listed(self, folder, is_recursive):
        found = [each for batch in obstore.list(self._memory, folder or None) for each in batch]
        depth = folder.count("/") + 1 if folder else 0
        for each in found:
            if is_recursive or each["path"].count("/") == depth:
                yield Entry(path=each["path"], size_bytes=each["size"])

    def __getattribute__(self, name):
        whole = super().__getattribute__(name)
        return partial(self._run, whole) if name in OPERATIONS else whole

    def _run(self, operation, *arguments):
        self._hook.before()
        result = operation(*arguments)
        if operation.__name__ == "files":
            result = iter(list(result))
        self._hook.after()
        return result


class Leader:
    """The leader's knowledge of jobs, as setup tasks ask for it."""

    def __init__(self) -> None:
        self.states: dict[str, OwnerState] = {}

    def owner(self, *, job_uid, namespace, cluster):
        del namespace, cluster
        return self.states.get(job_uid, OwnerState.ACTIVE)

    def post_plan(self, plan, digest):
        """Setup's last act."""


class Outputs:
    """An output and the jobs that want it.

    Args:
        workshop: Its folders.
        scheme: "file" or "s3".
    """

    def __init__(self, workshop, scheme: str) -> None:
        self.workshop = workshop
        self.leader = Leader()
        self.memory = MemoryStore()
        self.storage = HookedStorage(self.memory, Hook())
        base = f"file://{workshop.folder}" if scheme == "file" else "s3://bucket"
        self.input, self.output = f"{base}/in/a", f"{base}/out"

    def job(self, name: str, namespace: str = "demo") -> "Job":
        """A new job over the same input to the same output."""
        return Job(self, name, namespace)

    def names(self) -> list[str]:
        """All names below the output, without those of work folders."""
        layout = self.job("reader").layout()
        prefix = f"{layout.output.path}/"
        found = sorted(file.location.path.removeprefix(prefix) for file in self.storage.files(layout.output))
        return [name for name in found if "/boathouse-" not in name]

    def writers(self) -> set[str]:
        """The names of the jobs whose content the parts have."""
        layout = self.job("reader").layout()
        parts = [file for file in self.storage.children(layout.output) if "/part-" in file.location.path]
        return {self.storage.read(file.location).decode().partition(" ")[0] for file in parts}

    def declared(self) -> str | None:
        """The UID in `_SUCCESS`."""
        layout = self.job("reader").layout()
        if self.storage.size(layout.success) is None:
            return None
        return msgspec.json.decode(self.storage.read(layout.success))["job_uid"]


class Job:
    """One job, whose maps are played: each leaves a part that names the job."""

    def __init__(self, outputs: Outputs, name: str, namespace: str) -> None:
        self.outputs, self.name = outputs, name
        self.spec = msgspec.structs.replace(
            local.job_spec(inputs=[outputs.input], output=outputs.output, mapper=["cat"]),
            job_name=name,
            namespace=namespace,
            cluster="here",
        )
        self.uid = self.spec.job_uid

    def layout(self):
        """The job's places."""
        return self.task(self.spec).layout

    def task(self, spec: TaskSpec, hook: Hook | None = None) -> Task:
        """A task of the job that has not begun."""
        task = self.outputs.workshop.task(spec)
        task.storage = HookedStorage(self.outputs.memory, hook or Hook())
        task.client = self.outputs.leader
        return task

    def setup(self, hook: Hook | None = None) -> None:
        """Runs the setup task."""
        setup_task.run(self.task(self.spec, hook))

    def maps(self) -> None:
        """Leaves what the maps of the job leave."""
        task = self.task(self.spec)
        for index in range(PARTS):
            content = f"{self.name} {index}".encode()
            task.storage.write(task.layout.data(TaskType.MAP, index, 1), content)
            record = CommitRecord(
                task=f"m-{index:05d}", attempt=1, pod_uid="p", digest="d", size_bytes=len(content), records=1
            )
            task.storage.write(task.layout.commit(TaskType.MAP, index), msgspec.json.encode(record))

    def commit(self, hook: Hook | None = None) -> None:
        """Runs the commit task."""
        order = msgspec.structs.replace(self.spec, task_type=TaskType.COMMIT, maps=PARTS)
        commit_task.run(self.task(order, hook))

    def clean_up(self, hook: Hook | None = None) -> None:
        """Runs the cleanup task."""
        cleanup_task.run(self.task(msgspec.structs.replace(self.spec, task_type=TaskType.CLEANUP), hook))

    def run(self) -> Reason | None:
        """Runs the whole job; returns why it failed."""
        return reason_of(lambda: (self.setup(), self.maps(), self.commit()))


def reason_of(work: Callable[[], object]) -> Reason | None:
    """Does the work; returns why it failed, None if it did not."""
    try:
        work()
    except TaskError as error:
        return error.reason
    return None
