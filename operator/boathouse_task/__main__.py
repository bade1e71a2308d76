"""`boathouse-task`: run the task of a pod, or a whole job on this machine.

Without arguments it runs the task in the variable BOATHOUSE_TASK. `boathouse-task local` runs a whole job.
`boathouse-task agent` is the agent in the master's pod of a Hadoop cluster.
"""

import argparse
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

import msgspec

from boathouse_task import cluster_contract, contract, environment, local, runner
from boathouse_task.contract import Reason, TaskResult, TaskSpec
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError, say
from boathouse_task.processes import Processes, background

_GRACE_S = 3.0
_OVER = b"\0"  # not the number of a signal
_ORDERS = {
    None: (contract.TASK_ENV, "to run a job on this machine, see boathouse-task local --help"),
    "agent": (cluster_contract.AGENT_ENV, "the operator sets it in the pods of masters"),
    "client": (cluster_contract.CLIENT_ENV, "the operator sets it in the pods of clients"),
}
"""The variable of each command with its order, and what to do without it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "local":
        return local.run(options)
    variable, advice = _ORDERS[options.command]
    order, surroundings = os.environ.get(variable), environment.from_variables(os.environ)
    if order is None:
        parser.error(f"{variable} is not set; {advice}")
    if options.command is None:
        return run_pod(order, surroundings)
    keep_small()
    if options.command == "agent":
        from boathouse_task.agent import agent  # tasks do not need it

        agent.run_pod(order, surroundings)
    else:
        from boathouse_task import hadoop_client  # tasks do not need it

        hadoop_client.run_pod(order, surroundings)
    return contract.EXIT_SUCCEEDED


def run_pod(order: str, surroundings: Environment) -> int:
    """Run a pod's task in a thread, so that SIGTERM is handled at once in every state of the task."""
    keep_small()
    processes = Processes()
    results: list[TaskResult] = []
    # The end of the task and a signal both write a byte to a pipe. An exception of a signal handler would be raised
    # only when the main thread runs next, and a signal does not always wake it from a lock.
    wait, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake)

    def work() -> None:
        try:
            results.append(_run(order, surroundings, processes))
        finally:
            os.write(wake, _OVER)

    worker = background("task", work)
    cause = os.read(wait, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if cause == _OVER:
        worker.join()
    else:
        processes.stop_all(_GRACE_S)
        ended = TaskError(Reason.TERMINATED, "the pod was stopped (SIGTERM) before the task ended")
        results[:] = [runner.failure(ended)]
    status = _finish(results[0], surroundings)
    if worker.is_alive():
        sys.stderr.flush()
        os._exit(status)  # the thread may be in a request for minutes
    return status


def _run(order: str, surroundings: Environment, processes: Processes) -> TaskResult:
    try:
        spec = msgspec.json.decode(order, type=TaskSpec)
    except msgspec.DecodeError as error:
        return runner.failure(
            TaskError(
                Reason.INTERNAL_ERROR,
                f"{contract.TASK_ENV} cannot be read: {error}; use an operator and a task image of the same version",
            )
        )
    say(f"{contract.attempt_name(spec.task_type, spec.index, spec.attempt)} of {spec.namespace}/{spec.job_name} begins")
    return runner.run(spec, surroundings, processes)


_M_ARENA_MAX = -8
_M_MMAP_THRESHOLD = -3


def keep_small() -> None:
    """Make glibc return memory: use one heap, and separate mappings for large blocks (40 MiB instead of 50)."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


def _finish(result: TaskResult, surroundings: Environment) -> int:
    with contextlib.suppress(OSError):
        surroundings.termination_log_path.write_bytes(runner.encode(result))
    say(
        f"succeeded, winner is attempt {result.winner_attempt}"
        if result.succeeded
        else f"{result.reason}: {result.message}"
    )
    return runner.exit_status(result)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="boathouse-task", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("agent", help="run the agent of a Hadoop cluster, in the pod of its master")
    commands.add_parser("client")
    local.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
