"""The agent's program against a NameNode, a ResourceManager, a JobHistoryServer and an endpoint that are fake."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from boathouse_e2e import lab as free_ports
from boathouse_task import __main__
from boathouse_task.agent.agent import Canary
from boathouse_task.cluster_contract import AGENT_ENV, AgentOrders, AgentReport, Leaving, Version
from tests.builders.agents import APPLICATION, DOMAIN, Daemon, agent_spec
from tests.builders.task_servers import Endpoint, Request

PROGRAM = """
import sys
from boathouse_task import contract
contract.TOKEN_PATH, contract.CA_PATH = sys.argv[1:]
from boathouse_task.__main__ import main
sys.exit(main(["agent"]))
"""


class Operator(Endpoint):
    """The endpoint. The container `refresh` carries out its requests whenever a report arrives."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.orders = AgentOrders(next_s=2)
        self.reports: queue.Queue[AgentReport] = queue.Queue()

    def response(self, request: Request) -> tuple[int, bytes]:
        assert request.path == "/v1/jobs/demo/uid-1/cluster/hdp-master-1a2b/report"
        for file in (self.folder / "refresh").glob("*.want"):
            file.with_suffix(".done").write_text(f"{file.read_text().strip()} 0\n")
        self.reports.put(msgspec.json.decode(request.body, type=AgentReport))
        return 200, msgspec.json.encode(self.orders)

    def report(self, version: Version, *, refreshed: bool = False) -> AgentReport:
        """Wait for a report of orders."""
        while True:
            report = self.reports.get()
            if report.version == version and report.refreshed >= refreshed:
                return report


class AgentProgram:
    """The agent's program, its cluster and its operator.

    Args:
        folder: for all files.
        stack: ends the servers.
    """

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.operator = Operator(folder)
        self.manager = Daemon.resource_manager(apps="rm-apps-finished")
        daemons = (Daemon.name_node(), self.manager, Daemon.history())
        ports = [stack.enter_context(daemon.serving()) for daemon in daemons]
        self.canary_ports = free_ports.free(2)
        self.spec = agent_spec(
            folder,
            progress_url=stack.enter_context(self.operator.serving(folder)),
            name_node_port=ports[0],
            resource_manager_port=ports[1],
            history_port=ports[2],
            canary_port=self.canary_ports[0],
            control_port=self.canary_ports[1],
        )

    @contextlib.contextmanager
    def running(self, failpoint: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """Runs an agent."""
        variables = {
            **os.environ,
            AGENT_ENV: msgspec.json.encode(self.spec).decode(),
            "BOATHOUSE_POD_NAME": "hdp-master-1a2b",
            "BOATHOUSE_AGENT_FAILPOINT": failpoint,
            "RES_OPTIONS": "timeout:1 attempts:1",
        }
        files = [str(self.folder / "token"), str(self.folder / "ca.crt")]
        with subprocess.Popen([sys.executable, "-c", PROGRAM, *files], env=variables) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def program(tmp_path):
    with contextlib.ExitStack() as stack:
        yield AgentProgram(tmp_path, stack)


def test_an_agent_reports_takes_orders_and_carries_them_out(program):
    leaving = [Leaving("t0", 300), Leaving("c1", stores=True)]
    with program.running():
        first = program.operator.report(Version(0, 0))
        program.operator.orders = AgentOrders(
            next_s=2, version=Version(1, 7), leaving=leaving, tags=["uid-3-1"], kill=["application_1_0001"]
        )
        report = program.operator.report(Version(1, 7), refreshed=True)
    assert [node.host for node in first.nodes] == ["c0", "c1", "t0"]
    assert (first.hdfs.cluster_id, first.yarn.memory_mb, first.canary) == ("CID-6a2f", 3072, True)
    assert report.tags["uid-3-1"][0].id == APPLICATION
    assert report.tags["uid-3-1"][0].counters
    assert "/ws/v1/cluster/apps/application_1_0001/state?user.name=hadoop" in program.manager.paths()
    assert (program.folder / "agent" / "dfs.exclude").read_text() == f"c1.{DOMAIN}\n"


@pytest.mark.parametrize("failpoint", ["after-file:3", "before-refresh-request:3", "after-report"])
def test_orders_are_carried_out_by_the_next_agent_if_one_is_killed_between_two_writes(program, failpoint):
    program.operator.orders = AgentOrders(next_s=2, version=Version(1, 7), leaving=[Leaving("t0", 300)])
    with program.running(failpoint) as process:
        assert process.wait() == -signal.SIGKILL
    with program.running():
        assert program.operator.report(Version(1, 7), refreshed=True).error == ""
    assert f"t0.{DOMAIN}" in (program.folder / "agent" / "yarn.exclude.xml").read_text()


def test_an_agent_ends_with_its_pod_and_answers_on_the_canarys_ports_until_then(program):
    with program.running() as process:
        program.operator.report(Version(0, 0))
        for port in program.canary_ports * 3:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                assert connection.recv(1) == b""
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def test_an_agent_without_its_variable_says_so(monkeypatch, capsys):
    monkeypatch.delenv(AGENT_ENV, raising=False)
    with pytest.raises(SystemExit):
        __main__.main(["agent"])
    assert f"{AGENT_ENV} is not set" in capsys.readouterr().err


def test_a_canary_that_is_closed_listens_no_more():
    canary = Canary(0)
    assert canary.listens
    canary.close()
    assert not canary.listens
