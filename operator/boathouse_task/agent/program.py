"""Program of the container `agent`: `boathouse-task agent`.

The operator connects to two ports to find out whether NetworkPolicies are enforced. No policy allows the canary port,
so a connection to it shows that they are not. The policies allow the control port for the operator: if it cannot
connect to this one either, the canary shows nothing.
"""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable

import msgspec

from boathouse_task.agent.agent import Agent, AgentClient, addresses
from boathouse_task.agent.host_files import AGENT
from boathouse_task.agent.name_node import NameNode
from boathouse_task.agent.resource_manager import MapReduce, ResourceManager
from boathouse_task.cluster_contract import AgentSpec
from boathouse_task.environment import Environment
from boathouse_task.processes import background
from boathouse_task.progress import Endpoint
from boathouse_task.rest import Rest


class Canary:
    """Accepts connections on a port of all addresses (0: any port) and closes them at once."""

    def __init__(self, port: int) -> None:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        self._server = socket.create_server(("", port), family=family, dualstack_ipv6=dual)
        self._thread = background("canary", self._run)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self._server.getsockname()[1]
        return port

    @property
    def listens(self) -> bool:
        """Whether it accepts connections."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):  # it wakes the thread
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()


_SMALL_BYTES = 1024 * 1024
"""Limit of responses about one job."""


def run_pod(order: str, environment: Environment) -> None:
    """Run an agent until SIGTERM.

    Raises:
        TaskError: InternalError: the progress URL is not one.
        msgspec.DecodeError: the order is not an `AgentSpec`.
        OSError: the master's volume cannot be read or written, or a port of the canary is in use.
        ValueError: the environment names a failpoint that does not exist.
    """
    AGENT.arm(environment.variables)
    spec = msgspec.json.decode(order, type=AgentSpec)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
    with contextlib.ExitStack() as stack:
        canaries = [
            stack.enter_context(contextlib.closing(Canary(port))) for port in (spec.canary_port, spec.control_port)
        ]
        made = build(spec, environment, lambda: all(canary.listens for canary in canaries))
        while not stopped.wait(made.step()):
            pass


def build(spec: AgentSpec, environment: Environment, canary: Callable[[], bool]) -> Agent:
    """Return the agent of a pod. `canary` returns whether the ports for the test of the network listen.

    Raises:
        TaskError: InternalError: the progress URL is not one.
        OSError: the master's volume cannot be read or written.
    """
    endpoint = Endpoint(spec.progress_url, spec.namespace, spec.cluster_uid, environment)
    manager = None
    if spec.has_compute:
        map_reduce = MapReduce(
            Rest("ResourceManager", spec.resource_manager_port, most_bytes=_SMALL_BYTES),
            Rest("JobHistoryServer", spec.history_port, most_bytes=_SMALL_BYTES),
        )
        manager = ResourceManager(Rest("ResourceManager", spec.resource_manager_port), map_reduce, spec)
    name_node = NameNode(Rest("NameNode", spec.name_node_port), spec.domain)
    return Agent(spec, name_node, manager, AgentClient(endpoint, environment), resolve=addresses, canary=canary)
