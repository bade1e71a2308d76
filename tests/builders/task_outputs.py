"""Jobs that share an output, on a storage at whose operations a task can be killed or paused."""

from __future__ import annotations

import dataclasses
import threading
from functools import partial
from typing import TYPE_CHECKING, Self

import msgspec
import obstore
from obstore.store import MemoryStore

from boathouse_task import commit_task, local, object_store, setup_task
from boathouse_task.contract import CommitRecord, OwnerState, Reason, TaskSpec, TaskType
from boathouse_task.errors import TaskError
from boathouse_task.locations import StoredObject
from boathouse_task.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

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
        """An operation is done; its result is not known yet."""


class KillAt(Hook):
    """Kills the task after its n-th operation, before it has the result; what its other threads do then fails too."""

    def __init__(self, number: int) -> None:
        self._left, self._lock = number, threading.Lock()
        self._is_killed = False

    def before(self) -> None:
        with self._lock:
            self._left -= 1
            if self._is_killed:
                raise Killed

    def after(self) -> None:
        with self._lock:
            self._is_killed = self._is_killed or self._left <= 0
            if self._is_killed:
                raise Killed


class Paused(Hook):
    """A task in a thread of its own, paused before its n-th operation while the block runs.

    Attributes:
        was_paused: Whether it has so many operations.
        reason: Why it failed in the end; None if it did not.
    """

    def __init__(self, task: Callable[[Hook], None], number: int) -> None:
        self._left, self._lock = number, threading.Lock()
        self._paused, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(task,))
        self.was_paused = False
        self.reason: Reason | None = None

    def before(self) -> None:
        with self._lock:
            self._left -= 1
            mine = self._left == 0
        if mine:
            self._paused.set()
            self._go.wait()

    def _run(self, task: Callable[[Hook], None]) -> None:
        self.reason = failure_reason(lambda: task(self))

    def __enter__(self) -> Self:
        self._thread.start()
        while self._thread.is_alive() and not self._paused.wait(0.001):
            pass
        self.was_paused = self._paused.is_set()
        return self

    def __exit__(self, *_: object) -> None:
        self._go.set()
        self._thread.join()


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
        found = [object_meta for batch in obstore.list(self._memory, folder.path or None) for object_meta in batch]
        depth = folder.path.count("/") + 1 if folder.path else 0
        for object_meta in found:
            if is_recursive or object_meta["path"].count("/") == depth:
                location = dataclasses.replace(folder, path=object_meta["path"])
                yield StoredObject(location=location, size_bytes=object_meta["size"])

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


class OwnerStates:
    """The states of owners, as the operator's endpoint reports them to setup tasks."""

    def __init__(self) -> None:
        self.states: dict[str, OwnerState] = {}

    def owner(self, *, job_uid, namespace, cluster):
        del namespace, cluster
        return self.states.get(job_uid, OwnerState.ACTIVE)

    def post_plan(self, plan, digest):
        """Setup's last act."""


class SharedOutput:
    """An output, and the jobs that write it.

    Args:
        job_folder: Its folders.
        scheme: "file" or "s3".
    """

    def __init__(self, job_folder, scheme: str) -> None:
        self.job_folder = job_folder
        self.owners = OwnerStates()
        self.memory = MemoryStore()
        self.storage = HookedStorage(self.memory, Hook())
        base = f"file://{job_folder.folder}" if scheme == "file" else "s3://bucket"
        self.input, self.output = f"{base}/in/a", f"{base}/out"

    def job(self, name: str, namespace: str = "demo") -> OutputJob:
        """A new job over the same input to the same output."""
        return OutputJob(self, name, namespace)

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

    def success_uid(self) -> str | None:
        """The UID in `_SUCCESS`."""
        layout = self.job("reader").layout()
        if self.storage.size(layout.success) is None:
            return None
        return msgspec.json.decode(self.storage.read(layout.success))["job_uid"]


class OutputJob:
    """One job, whose maps are replaced: each leaves a part that names the job."""

    def __init__(self, outputs: SharedOutput, name: str, namespace: str) -> None:
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
        task = self.outputs.job_folder.task(spec)
        task.storage = HookedStorage(self.outputs.memory, hook or Hook())
        task.client = self.outputs.owners
        return task

    def setup(self, hook: Hook | None = None) -> None:
        """Run the setup task."""
        setup_task.run(self.task(self.spec, hook))

    def maps(self) -> None:
        """Leave what the maps of the job leave."""
        task = self.task(self.spec)
        for index in range(PARTS):
            content = f"{self.name} {index}".encode()
            task.storage.write(task.layout.data(TaskType.MAP, index, 1), content)
            record = CommitRecord(
                task=f"m-{index:05d}", attempt=1, pod_uid="p", digest="d", size_bytes=len(content), records=1
            )
            task.storage.write(task.layout.commit(TaskType.MAP, index), msgspec.json.encode(record))

    def commit(self, hook: Hook | None = None) -> None:
        """Run the commit task."""
        spec = msgspec.structs.replace(self.spec, task_type=TaskType.COMMIT, maps=PARTS)
        commit_task.run(self.task(spec, hook))

    def clean_up(self, hook: Hook | None = None) -> None:
        """Run the cleanup task."""
        commit_task.clean_up(self.task(msgspec.structs.replace(self.spec, task_type=TaskType.CLEANUP), hook))

    def run(self) -> Reason | None:
        """Run the whole job; return why it failed."""
        return failure_reason(lambda: (self.setup(), self.maps(), self.commit()))


def failure_reason(work: Callable[[], object]) -> Reason | None:
    """Do the work; return why it failed, None if it did not."""
    try:
        work()
    except TaskError as error:
        return error.reason
    return None
