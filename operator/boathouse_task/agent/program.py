"""Program of the container `agent`: `boathouse-task agent`."""

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from boathouse_task.agent import agent
from boathouse_task.agent.agent import Agent
from boathouse_task.agent.agent_client import AgentClient
from boathouse_task.agent.canary import Canary
from boathouse_task.agent.failpoints import AGENT
from boathouse_task.agent.map_reduce import MapReduce
from boathouse_task.agent.name_node import NameNode
from boathouse_task.agent.resource_manager import ResourceManager
from boathouse_task.agent.rest import Rest
from boathouse_task.cluster_contract import AgentSpec
from boathouse_task.environment import Environment
from boathouse_task.progress import Endpoint

_SMALL_BYTES: Final = 1024 * 1024
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
        agent.run(build(spec, environment, lambda: all(each.listens for each in canaries)), stopped.wait)


def build(spec: AgentSpec, environment: Environment, canary: Callable[[], bool]) -> Agent:
    """Return the agent of a pod.

    Args:
        spec: its parameters.
        environment: of the pod.
        canary: returns whether the ports for the test of the network listen.

    Raises:
        TaskError: InternalError: the progress URL is not one.
        OSError: the master's volume cannot be read or written.
    """
    endpoint = Endpoint(spec.progress_url, spec.namespace, spec.cluster_uid, environment)
    return Agent(
        spec,
        NameNode(Rest("NameNode", spec.name_node_port), spec.domain),
        _resource_manager(spec) if spec.has_compute else None,
        AgentClient(endpoint, environment),
        resolve=agent.addresses,
        canary=canary,
    )


def _resource_manager(spec: AgentSpec) -> ResourceManager:
    port = spec.resource_manager_port
    map_reduce = MapReduce(
        Rest("ResourceManager", port, most_bytes=_SMALL_BYTES),
        Rest("JobHistoryServer", spec.history_port, most_bytes=_SMALL_BYTES),
    )
    return ResourceManager(Rest("ResourceManager", port), map_reduce, spec)
