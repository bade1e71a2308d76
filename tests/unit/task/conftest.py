"""What most tests of tasks need: a folder for jobs, an HDFS, a clock."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from boathouse_task import hdfs
from tests.builders.task_hdfs import NameNode
from tests.builders.tasks import JobFolder, SleepingClock, memory_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one: the many files of small jobs cost less CPU time than on a disk."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        yield Path(folder)


@pytest.fixture
def job_folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path)


@pytest.fixture
def clock() -> SleepingClock:
    return SleepingClock()


@pytest.fixture
def name_node(monkeypatch: pytest.MonkeyPatch) -> NameNode:
    """The NameNode of each cluster that a task connects to."""
    name_node = NameNode()
    monkeypatch.setattr(hdfs, "_client", lambda _address, _name: name_node)
    return name_node
