"""A reduce in a cgroup of its own, whose CPU limit is really that of a suspended container."""

import contextlib
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from boathouse_task import contract, counters
from boathouse_task.contract import SuspendOrder
from tests.builders.task_servers import credentials
from tests.builders.task_suspensions import RESULT, SuspendingEndpoint, reduce_output, reduce_spec
from tests.builders.tasks import start_pod, termination

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


class RealCgroup:
    """A cgroup of the kernel.

    Args:
        folders: Its folders: of the controllers cpu and cpuacct in cgroup v1, one in v2.
        view: A folder that shows it as a container sees its own cgroup.
    """

    def __init__(self, folders: list[Path], view: Path) -> None:
        self._folders, self.folder = folders, view
        self._is_v2 = len(folders) == 1

    @classmethod
    def create(cls, view: Path) -> "RealCgroup":
        """A new cgroup.

        Raises:
            OSError: This user or this kernel may not.
        """
        name = f"boathouse-{uuid.uuid4().hex[:8]}"
        if (ROOT / "cgroup.controllers").exists():
            folder = ROOT / name
            folder.mkdir()
            view.symlink_to(folder)
            return cls([folder], view)
        folders = [(ROOT / controller).resolve() / name for controller in ("cpu", "cpuacct")]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        view.mkdir()
        (view / "cpu").symlink_to(folders[0])
        return cls(folders, view)

    def add(self, pid: int) -> None:
        """Moves a process into it."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def limit(self, milli: int) -> None:
        """Sets its CPU limit."""
        quota_us = milli * PERIOD_US // 1000
        if self._is_v2:
            (self._folders[0] / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (self._folders[0] / "cpu.cfs_quota_us").write_text(str(quota_us))

    def used_s(self) -> float:
        """CPU time of its processes."""
        if self._is_v2:
            words = (self._folders[0] / "cpu.stat").read_text().split()
            return int(words[words.index("usage_usec") + 1]) / 1e6
        return int((self._folders[1] / "cpuacct.usage").read_text()) / 1e9

    def remove(self) -> None:
        """Removes it, once its processes have ended."""
        for folder in dict.fromkeys(self._folders):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()


@pytest.fixture
def cgroup(tmp_path) -> Iterator[RealCgroup]:
    try:
        found = RealCgroup.create(tmp_path / "cgroup")
        found.limit(1000)
    except OSError as error:
        pytest.skip(f"this user cannot make a cgroup with a CPU limit: {error}")
    yield found
    found.remove()


@contextlib.contextmanager
def suspended_reduce(job_folder, cgroup):
    """A reduce that has paused and whose limit is 10m; yields its process, its endpoint and its parameters."""
    endpoint = SuspendingEndpoint(SuspendOrder(id="7-1", for_s=60.0))
    with endpoint.serving(job_folder.folder) as url:
        spec = reduce_spec(job_folder, url)
        paths = {**credentials(job_folder.folder), "cgroup_path": cgroup.folder}
        pod = start_pod(job_folder, msgspec.json.encode(spec), **paths)
        cgroup.add(pod.pid)
        try:
            endpoint.acknowledged.wait()
            cgroup.limit(10)
            time.sleep(0.5)
            yield pod, endpoint, spec
        finally:
            pod.kill()


def test_a_suspended_reduce_sleeps_sends_nothing_and_gives_the_right_output(job_folder, cgroup):
    with suspended_reduce(job_folder, cgroup) as (pod, endpoint, spec):
        requests, before_s, start_s = len(endpoint.requests), cgroup.used_s(), time.monotonic()
        time.sleep(3)
        rate = (cgroup.used_s() - before_s) / (time.monotonic() - start_s)
        assert len(endpoint.requests) == requests
        assert not sockets(pod.pid)
        cgroup.limit(1000)
        _, result = termination(job_folder, pod)
    assert rate <= 0.010
    assert result.succeeded
    assert result.counters[counters.BOATHOUSE][counters.SUSPENDED_MILLISECONDS] >= 3000
    assert reduce_output(job_folder, spec) == RESULT


def test_sigterm_ends_a_suspended_reduce_with_the_cpu_time_of_its_grace_period(job_folder, cgroup):
    with suspended_reduce(job_folder, cgroup) as (pod, _, _):
        before_s = cgroup.used_s()
        pod.send_signal(signal.SIGTERM)
        status, _ = termination(job_folder, pod)
    assert status == contract.EXIT_TERMINATED
    assert cgroup.used_s() - before_s < 30 * 0.010


def sockets(pid: int) -> list[str]:
    """The open sockets of a process."""
    links = (str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir())
    return [link for link in links if link.startswith("socket:")]
