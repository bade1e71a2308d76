"""Print the functions of the operator that a pod passes through, from a run on the fake API server of the tests.

    python -m benchmarks.hops [bind | commit] [--write]

`bind`: from the watch event of a pod without a node to its bind request. `commit`: from the split plan that a setup
task posts to the job's last write of its status, with the job's pods created and ended in between.

A hop is a named function of `operator/boathouse` that the pod enters: an argument, a result or a function that it calls
carries the name of the pod or of its job. Each function counts once, at its first call. These do not count:

- leaf computations: methods that return a value by their annotation and call no hop, and functions of a module that
  return a value, with everything below them;
- closures and dunder methods;
- everything below a verb of the API client;
- functions that were running before the first hop.

A method that takes the pod in and returns nothing counts. The operator of `commit` is wired by the tests: the calls in
between that `leader.py` makes are missing.

`--write` compares the paths of `benchmarks/hop_paths.py` with the run and writes them to docs/architecture.md. These
tables leave out what `hop_paths` lists as beside the path.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import dataclasses
import functools
import logging
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import structlog
from aiohttp import web

from benchmarks import hop_paths
from boathouse import scheduling
from boathouse.services.mrjob.progress import routes
from boathouse.services.progress import server
from boathouse.telemetry import metrics as telemetry
from boathouse_policies import profiles
from boathouse_task import contract
from tests.builders import manifests
from tests.builders.operators import mrjobs, schedulers
from tests.wire import fake_api, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import CodeType, FrameType

OPERATOR = f"{Path(scheduling.__file__).parents[1]}/"
CLIENT = str(Path(OPERATOR, "cluster", "client.py"))
BELOW_THE_CLIENT = tuple(str(Path(OPERATOR, "cluster", name)) for name in ("transport.py", "http.py", "streams.py"))
DEPTH = 4
"""How deep arguments and results are searched for the pod."""
MARK = "hop-pod"


@dataclasses.dataclass(slots=True, eq=False)
class Call:
    """What is known of a function of the operator.

    Attributes:
        returns: Whether it returns a value.
        carries: Whether an argument or a result carried the pod.
        below: Functions that carried the pod and that it called, directly or not.
    """

    name: str
    returns: bool
    carries: bool = False
    below: set[Call] = dataclasses.field(default_factory=set)

    @property
    def keeps(self) -> bool:
        """Whether the pod goes on from here, although the function calls nothing that counts."""
        return self.carries and not self.returns

    @property
    def is_hop(self) -> bool:
        """Whether it counts."""
        return self.keeps or any(call.keeps for call in self.below)


class Trace:
    """Records calls of the operator's functions between `start` and `stop`.

    Args:
        mark: Text that identifies the pod and its job.
        first: Name of the function that begins the trace, as `cluster.client.ApiClient.bind`.
        last: Name of the function that ends it; empty for the last one that is recorded.
    """

    def __init__(self, mark: str, *, first: str, last: str = "") -> None:
        self._mark = mark
        self._first = first
        self._last = last
        self._calls: dict[CodeType, Call] = {}
        self._before: set[FrameType] = set()
        self._began = False
        self._ended = False

    def start(self) -> None:
        """Record calls from now on, in this thread and in those that are started later."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def stop(self) -> None:
        """Record no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def hops(self) -> list[str]:
        """Return the names of the hops in the order of their first calls."""
        return [call.name for call in self._calls.values() if call.is_hop]

    def calls(self) -> set[str]:
        """Return the names of all functions that were called."""
        return {call.name for call in self._calls.values()}

    def leaves(self) -> list[str]:
        """Return the names of the functions that carry the pod and do not count."""
        return [call.name for call in self._calls.values() if call.carries and not call.is_hop]

    def _profile(self, frame: FrameType, event: str, value: Any) -> None:
        if self._ended or event not in {"call", "return"} or not _is_candidate(frame.f_code):
            return
        if event == "call" and not any(map(_ends_the_path, _callers(frame))):
            self._enter(frame)
        elif event == "return" and frame.f_code in self._calls and _has(value, self._mark, DEPTH):
            self._note(frame, self._calls[frame.f_code])

    def _enter(self, frame: FrameType) -> None:
        name = _name(frame.f_code)
        if not self._began:
            if name != self._first:
                return
            self._began = True
            self._before = set(_callers(frame))
        call = self._calls.setdefault(frame.f_code, Call(name, _is_leaf(frame.f_code)))
        if any(_has(value, self._mark, DEPTH) for value in _arguments(frame)):
            self._note(frame, call)
            self._ended = name == self._last

    def _note(self, frame: FrameType, call: Call) -> None:
        """Note that a function carries the pod, and tell its callers."""
        call.carries = True
        for caller in _callers(frame):
            known = self._calls.get(caller.f_code)
            if known is not None and caller not in self._before and known is not call:
                known.below.add(call)


def _name(code: CodeType) -> str:
    folder = Path(code.co_filename).relative_to(OPERATOR).with_suffix("")
    return f"{'.'.join(folder.parts)}.{code.co_qualname}"


def _is_candidate(code: CodeType) -> bool:
    """Say whether a code object is a named function of the operator."""
    if not code.co_filename.startswith(OPERATOR) or code.co_filename in BELOW_THE_CLIENT:
        return False
    return "<" not in code.co_qualname and not code.co_name.startswith("__")


def _callers(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back


def _ends_the_path(caller: FrameType) -> bool:
    """Say whether what a function calls is below a hop: a verb of the client, or a computation of a module."""
    code = caller.f_code
    return code.co_filename == CLIENT or (
        code.co_filename.startswith(OPERATOR) and code.co_qualname == code.co_name and _returns_a_value(code)
    )


def _is_leaf(code: CodeType) -> bool:
    """Say whether a function only returns a value; a verb of the client sends what it is given."""
    return code.co_filename != CLIENT and _returns_a_value(code)


@functools.cache
def _returns_a_value(code: CodeType) -> bool:
    """Say whether a function's annotation names a result."""
    annotation = _annotations(code.co_filename).get((code.co_name, code.co_firstlineno))
    return annotation not in {None, "None"}


@functools.cache
def _annotations(path: str) -> dict[tuple[str, int], str]:
    """Return the annotated result of each function of a file, by its name and first line."""
    found = {}
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            first = min(line.lineno for line in (node, *node.decorator_list))
            found[node.name, first] = ast.unparse(node.returns)
    return found


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names if name not in {"self", "cls"}]


def _has(value: Any, mark: str, depth: int) -> bool:
    """Say whether a value, or what it consists of, has the mark in a text."""
    match value:
        case str():
            return mark in value
        case bytes():
            return mark.encode() in value
        case _:
            return depth > 0 and any(_has(part, mark, depth - 1) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    """Return what a collection, a dataclass or a struct consists of."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, msgspec.Struct):
        names = list(value.__struct_fields__)
    else:
        return []
    return [getattr(value, name, None) for name in names]


class Placing:
    """The scheduler behind the operator of the tests, which end it with their world."""

    def __init__(self, scheduler: Any) -> None:
        self.submit, self.withdraw, self.diagnosis = scheduler.submit, scheduler.withdraw, scheduler.diagnosis

    def kill(self) -> None:
        """Leave the scheduler running."""


class Kubelet(mrjobs.Kubelet):
    """Posts the split plan to the progress endpoint, as a setup task does, and records from there on."""

    def __init__(self, api: fake_api.FakeApi, operator: mrjobs.Operator, trace: Trace) -> None:
        super().__init__(api, splits=1)
        self.operator, self.trace = operator, trace
        self.url = ""
        self._fake = api
        self._posting: set[asyncio.Task[None]] = set()

    def _step(self, key: str, pod: dict[str, Any]) -> None:
        if not key.endswith("-setup-a1"):
            super()._step(key, pod)
        elif not self._posting:
            self._posting.add(asyncio.create_task(self._post(key, pod["metadata"]["ownerReferences"][0]["uid"])))

    async def _post(self, key: str, uid: str) -> None:
        assert self.operator is not None
        orders = self.operator.orders
        await waiting.eventually(lambda: orders.wants_plan(uid) and self._is_live(uid, key))
        headers = {"Authorization": f"Bearer {self._fake.issue_token(key)}"}
        self.trace.start()
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{self.url}/v1/jobs/demo/{uid}/plan", data=msgspec.json.encode(self._plan)) as answer,
        ):
            answer.raise_for_status()
            digest = (await answer.json())["digest"]
        result = contract.TaskResult(outcome="succeeded", winner_attempt=1, digest=digest)
        self._fake.end_pod(key, message=msgspec.json.encode(result).decode())

    def _is_live(self, uid: str, key: str) -> bool:
        assert self.operator is not None
        pod = self.operator.pods.find(uid, key.partition("/")[2])
        return pod is not None and pod.state.is_live


@contextlib.asynccontextmanager
async def endpoint(client: Any, operator: mrjobs.Operator) -> AsyncIterator[str]:
    """Serve the operator's progress endpoint without TLS; give its URL."""
    progress = server.ProgressServer(client, telemetry.Metrics())
    tasks = routes.TaskRoutes(
        orders=operator.orders,
        reports=operator.reports,
        pods=operator.pods,
        plans=operator.plans,
        owners=None,
        on_plan=operator.controllers.mark,
    )
    progress.add(tasks.find, tasks.routes())
    runner = web.AppRunner(progress.application, auto_decompress=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def commit() -> Trace:
    """Trace a job of one map and one reduce from its posted split plan to its end."""
    trace = Trace("wordcount", first="services.progress.server._claim")
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(fake_api.FakeApi())
        client = await stack.enter_async_context(api.client())
        api.add(manifests.node("n1", cpu="16", memory="64Gi"))
        world = await stack.enter_async_context(schedulers.scheduling(api, profile=profiles.build("fair")))
        operator = mrjobs.Operator(api, client, scheduler=Placing(world.scheduler))
        kubelet = Kubelet(api, operator, trace)
        kubelet.url = await stack.enter_async_context(endpoint(client, operator))
        api.add(mrjobs.mrjob(numReduceTasks=1))
        tasks = [asyncio.create_task(operator.run()), asyncio.create_task(kubelet.run())]
        await waiting.eventually(lambda: _is_over(api, world.scheduler) or any(task.done() for task in tasks))
        trace.stop()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
    return trace


def _is_over(api: fake_api.FakeApi, scheduler: Any) -> bool:
    """Return whether the job succeeded and the reconcile that wrote this has withdrawn it from the scheduler."""
    job = api.get("mrjobs", mrjobs.KEY)
    if job is None or job.get("status", {}).get("phase") != "Succeeded":
        return False
    return not scheduler.may_create(job["metadata"]["uid"])


async def bind() -> Trace:
    """Trace a pod from its watch event to its bind request."""
    trace = Trace(MARK, first="cluster.reflector.Reflector._line", last="cluster.client.ApiClient.bind")
    async with fake_api.FakeApi() as api:
        api.add(manifests.node("n1", cpu="4", memory="8Gi"))
        async with schedulers.scheduling(api, profile=profiles.build("fair")) as world:
            await waiting.eventually(world.at_rest)
            trace.start()
            api.add(manifests.pod(MARK, cpu="1"))
            await waiting.eventually(world.placed)
            trace.stop()
    return trace


def show(title: str, trace: Trace) -> None:
    """Print a trace."""
    hops = trace.hops()
    print(f"{title}: {len(hops)} hops")
    for number, name in enumerate(hops, 1):
        print(f"{number:4} {name}")
    print("not counted, as leaves: " + ", ".join(trace.leaves()) + "\n")


async def main() -> None:
    """Print the trace that the command line names, or write it to the page; both traces by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("trace", nargs="?", choices=("bind", "commit"), help="(default: both)")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/architecture.md")
    given = parser.parse_args()
    traces = (("watch event to bind", bind, hop_paths.BIND), ("posted split to commit", commit, hop_paths.COMMIT))
    for title, run, path in traces:
        if given.trace not in {None, path.title}:
            continue
        trace = await run()
        if given.write:
            try:
                path.check(trace.hops(), trace.calls())
                hop_paths.write(path, trace.hops())
            except hop_paths.PathError as error:
                sys.exit(str(error))
        else:
            show(title, trace)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(main())
