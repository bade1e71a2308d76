"""The files of an agent."""

from pathlib import Path

import pytest

from boathouse_task.agent.host_files import HostFiles
from tests.builders.agents import agent_spec


@pytest.fixture
def host_files(tmp_path: Path) -> HostFiles:
    return HostFiles(agent_spec(tmp_path))
