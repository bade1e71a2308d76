"""`boathouse-task`: run the task of a pod, or a whole job on this machine.

Without arguments it runs the task in the variable BOATHOUSE_TASK. `boathouse-task local` runs a whole job.
`boathouse-task agent` is the agent in the master's pod of a Hadoop cluster.
"""

import argparse
import contextlib
import ctypes
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from boathouse_task import client_contract, cluster_contract, contract, environment, local, runner
from boathouse_task.contract import FileSource, Partitioner, Reason, S3Config, TaskResult, TaskSpec
from boathouse_task.environment import Environment
from boathouse_task.errors import TaskError
from boathouse_task.processes import Processes

_GRACE_S = 3.0
_OVER = b"\0"  # not the number of a signal
_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi)?")
_UNITS = {None: 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "local":
        return _local(options)
    if options.command == "agent":
        return _agent(parser)
    if options.command == "client":
        return _client(parser)
    order = os.environ.get(contract.TASK_ENV)
    if order is None:
        parser.error(f"{contract.TASK_ENV} is not set; to run a job on this machine, see boathouse-task local --help")
    return run_pod(order, environment.from_variables(os.environ))


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

    worker = threading.Thread(target=work, name="task", daemon=True)
    worker.start()
    if os.read(wait, 1) == _OVER:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        worker.join()
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.stop_all(_GRACE_S)
        ended = TaskError(Reason.TERMINATED, "the pod was stopped (SIGTERM) before the task ended", user_error=False)
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
        message = f"{contract.TASK_ENV} cannot be read: {error}; use an operator and a task image of the same version"
        return runner.failure(TaskError(Reason.INTERNAL_ERROR, message, user_error=False))
    name = contract.attempt_name(spec.task_type, spec.index, spec.attempt)
    _say(f"{name} of {spec.namespace}/{spec.job_name} begins")
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
    _say(
        f"succeeded, winner is attempt {result.winner_attempt}"
        if result.succeeded
        else f"{result.reason}: {result.message}"
    )
    return runner.exit_status(result)


def _say(text: str) -> None:
    sys.stderr.write(f"boathouse-task: {text}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="boathouse-task", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("agent", help="run the agent of a Hadoop cluster, in the pod of its master")
    commands.add_parser("client")
    job = commands.add_parser(
        "local",
        help="run a whole MapReduce job on this machine, with the code of the task pods",
        description="Runs a job of Hadoop Streaming's kind on this machine, one task after another, by the code that"
        " runs in the task pods.",
        epilog="Example: boathouse-task local --input books/ --output /tmp/counts --mapper 'python3 mapper.py' "
        "--reducer 'python3 reducer.py' --file mapper.py --file reducer.py --reduces 2",
    )
    job.add_argument(
        "--input",
        action="append",
        required=True,
        help="file, folder or glob, as a path or URL (s3://, hdfs://HOST:PORT/, file:///); may be repeated",
    )
    job.add_argument("--output", required=True, help="folder that does not exist yet, as a path or URL")
    job.add_argument("--mapper", required=True, help="command that reads lines and writes KEY<TAB>VALUE lines")
    job.add_argument("--combiner", help="command that reads and writes sorted KEY<TAB>VALUE lines inside the map task")
    job.add_argument(
        "--reducer",
        help="command that reads sorted KEY<TAB>VALUE lines (default: none, the mapper's output is the result)",
    )
    job.add_argument("--reduces", type=int, default=1, help="number of reduce tasks (default: 1)")
    job.add_argument(
        "--file",
        action="append",
        default=[],
        help="executable file to copy to the commands' working folder; may be repeated",
    )
    job.add_argument(
        "--partitioner", default="HashPartitioner", help="HashPartitioner (default) or KeyFieldBasedPartitioner"
    )
    job.add_argument("--partitioner-options", default="", help="options of KeyFieldBasedPartitioner, such as -k1,2")
    job.add_argument(
        "--key-field-separator", default="\t", help="separator of the key fields in the options (default: TAB)"
    )
    job.add_argument("--key-fields", type=int, default=1, help="number of TAB-separated fields of the key (default: 1)")
    job.add_argument("--split-size", type=_size, default="64Mi", help="maximum split size (default: 64Mi)")
    job.add_argument(
        "--memory",
        type=_size,
        default="512Mi",
        help="memory limit of a task; sorting uses about half (default: 512Mi)",
    )
    job.add_argument("--endpoint-url", help="S3 endpoint; the keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    job.add_argument("--region", default="us-east-1", help="S3 region (default: us-east-1)")
    return parser


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 64Mi")
    return int(found[1]) * _UNITS[found[2]]


def _agent(parser: argparse.ArgumentParser) -> int:
    order = os.environ.get(cluster_contract.AGENT_ENV)
    if order is None:
        parser.error(f"{cluster_contract.AGENT_ENV} is not set; the operator sets it in the pods of masters")
    from boathouse_task.agent import program  # tasks do not need it

    keep_small()
    program.run_pod(order, environment.from_variables(os.environ))
    return contract.EXIT_SUCCEEDED


def _client(parser: argparse.ArgumentParser) -> int:
    order = os.environ.get(client_contract.CLIENT_ENV)
    if order is None:
        parser.error(f"{client_contract.CLIENT_ENV} is not set; the operator sets it in the pods of clients")
    from boathouse_task import hadoop_client  # tasks do not need it

    keep_small()
    hadoop_client.run_pod(order, environment.from_variables(os.environ))
    return contract.EXIT_SUCCEEDED


def _local(options: argparse.Namespace) -> int:
    spec = local.job_spec(
        inputs=[_url(text) for text in options.input],
        output=_url(options.output),
        mapper=shlex.split(options.mapper),
        combiner=shlex.split(options.combiner or ""),
        reducer=shlex.split(options.reducer or ""),
        reduces=options.reduces,
        files=[FileSource(name=Path(path).name, path=str(Path(path).absolute())) for path in options.file],
        partitioner=Partitioner(
            type=options.partitioner,
            options=options.partitioner_options,
            key_field_separator=options.key_field_separator,
            num_key_fields=options.key_fields,
        ),
        split_max_bytes=options.split_size,
        s3=S3Config(endpoint_url=options.endpoint_url, region=options.region),
    )
    with tempfile.TemporaryDirectory(prefix="boathouse-") as folder:
        try:
            result = local.run_job(spec, local.local_environment(Path(folder), os.environ, options.memory), _tell)
        except local.JobFailed as failed:
            return runner.exit_status(failed.result)
    _say(
        f"the output is {spec.output_url}, {result.bytes_total} bytes\n"
        + "\n".join(local.counter_lines(result.counters))
    )
    return contract.EXIT_SUCCEEDED


def _url(text: str) -> str:
    """Return a path as a URL."""
    return text if "://" in text else f"file://{Path(text).absolute()}"


def _tell(task: str, result: TaskResult) -> None:
    seconds = (result.timings[-1].end_ms - result.timings[0].start_ms) / 1000 if result.timings else 0.0
    if result.succeeded:
        _say(f"{task} done in {seconds:.1f} s")
    else:
        _say(
            f"{task} failed: {result.reason}: {result.message}"
            + (f"\n{result.stderr_tail}" if result.stderr_tail else "")
        )


if __name__ == "__main__":
    sys.exit(main())
