"""Clients of jobs on modelled Hadoop clusters: where no kubelet runs, they ask for leave and submit an application.

A client acts as its two containers would, as far as Boathouse sees it: it asks with the token of its pod, submits with
the tag in its settings, and ends with its application.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names
from boathouse.services.mrjob.hadoop.observation import TASK_TYPE
from boathouse.services.mrjob.on_cluster import TAGS
from boathouse_e2e import played_pods
from boathouse_task.cluster_contract import CLIENT_ENV, ClientSpec
from boathouse_task.contract import TaskResult
from boathouse_task.environment import Environment
from boathouse_task.progress import Endpoint, Unavailable
from boathouse_task.rest import RestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from boathouse_e2e.hadoop_master import Hadoop
    from boathouse_e2e.hadoop_model import Application

Pod = dict[str, Any]
_PODS: Final = catalogue.PODS.untyped()
_STEP_S: Final = 0.2
_TIMEOUT_S: Final = 10.0
_REFUSED: Final = frozenset({403, 409})
_LOST: Final = 20
_LEAVE: Final = 200


@dataclasses.dataclass(slots=True)
class Program:
    """What the jobs do.

    Attributes:
        tasks_s: Seconds of the tasks of each application.
        loses: Attempts whose clients fail before they submit.
    """

    tasks_s: Sequence[float] = (0.5,) * 6
    loses: frozenset[int] = frozenset()


class HadoopClients:
    """Plays the clients of a namespace.

    Args:
        api: Client of the API server.
        hadoops: Returns the programs of each cluster, by UID.
        ask: Asks for leave to submit; returns the HTTP status, 0 without a response.
        namespace: The namespace.
        clock: Epoch seconds.

    Attributes:
        program: What the jobs do.
        submitted: The applications by the UID of the pod that submitted them.
    """

    def __init__(
        self,
        api: client.ApiClient,
        hadoops: Callable[[], Mapping[str, Hadoop]],
        ask: Callable[[Pod, ClientSpec], Awaitable[int]],
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._hadoops, self._ask = api, hadoops, ask
        self._namespace, self._clock = namespace, clock
        self.program = Program()
        self.submitted: dict[str, Application] = {}
        self._playing: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Play each client that runs, until cancelled."""
        label = f"{names.LABEL_TASK_TYPE}={TASK_TYPE}"
        try:
            while True:
                with contextlib.suppress(*played_pods.PASSING):
                    self._look((await self._api.list(_PODS, self._namespace, labels=label)).items)
                await asyncio.sleep(_STEP_S)
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*self._playing.values(), return_exceptions=True)

    def _look(self, pods: Sequence[Pod]) -> None:
        running = {pod["metadata"]["uid"]: pod for pod in pods if played_pods.runs(pod)}
        for uid, task in list(self._playing.items()):
            if task.done():
                task.result()
            elif uid not in running:  # killed, with its program
                task.cancel()
                del self._playing[uid]
        for uid, pod in running.items():
            if uid not in self._playing:
                self._playing[uid] = asyncio.create_task(self._play(pod))

    async def _play(self, pod: Pod) -> None:
        """Be the containers of a client from their start to their end."""
        order = client_spec(pod)
        if order.attempt in self.program.loses:
            await self._end(pod, _LOST, "StorageError")
        elif not await self._has_leave(pod, order):
            await self._end(pod, _LOST, "ProgressUnavailable")
        else:
            application = await self._submit(pod, order)
            while not application.has_ended:  # noqa: ASYNC110 # the model is pure
                await asyncio.sleep(_STEP_S)
            await self._end(pod, 0 if application.state == "FINISHED" else 1)

    async def _has_leave(self, pod: Pod, order: ClientSpec) -> bool:
        while (status := await self._ask(pod, order)) != _LEAVE:
            if status in _REFUSED:
                return False
            await asyncio.sleep(_STEP_S)
        return True

    async def _submit(self, pod: Pod, order: ClientSpec) -> Application:
        """Submit as soon as the cluster's master runs."""
        cluster = await self._cluster_of(pod)
        while True:
            hadoop = self._hadoops().get(cluster)
            if hadoop is not None:
                with contextlib.suppress(RestError):
                    hadoop.name_node()
                    break
            await asyncio.sleep(_STEP_S)
        name = hadoop.yarn.submit(order.settings[TAGS], self.program.tasks_s, self._clock())
        application = self.submitted[pod["metadata"]["uid"]] = hadoop.yarn.applications[name]
        return application

    async def _cluster_of(self, pod: Pod) -> str:
        """Return the UID of the cluster whose settings a pod has mounted."""
        settings = next(volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if volume["name"] == "conf")
        while True:
            with contextlib.suppress(*played_pods.PASSING):
                found = await self._api.get(catalogue.CONFIG_MAPS.untyped(), settings, self._namespace)
                return str(found["metadata"]["ownerReferences"][0]["uid"])
            await asyncio.sleep(_STEP_S)

    async def _end(self, pod: Pod, exit_code: int, reason: str = "") -> None:
        metadata = pod["metadata"]
        result = TaskResult(outcome="failed", reason=reason)
        message = msgspec.json.encode(result).decode() if reason else ""
        status = played_pods.ended(names.CONTAINER, exit_code, message)
        while True:
            with contextlib.suppress(*played_pods.PASSING):
                await played_pods.write(self._api, self._namespace, metadata["name"], metadata["uid"], status)
                return
            await asyncio.sleep(_STEP_S)


def client_spec(pod: Pod) -> ClientSpec:
    """Return the parameters of a client's pod."""
    spec = pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()))
    variables = (variable for container in containers for variable in container.get("env", ()))
    order = next(variable["value"] for variable in variables if variable["name"] == CLIENT_ENV)
    return msgspec.json.decode(order.replace("$$(", "$("), type=ClientSpec)


class Leave:
    """Asks the operators for leave as the container `runtime` does.

    Args:
        folder: For tokens and authorities.
        token_of: Returns a token that is bound to a pod.
        authorities: Returns what the namespace's pods trust.
        ports: Returns the ports of the operators' progress endpoints on localhost.
    """

    def __init__(
        self,
        folder: Path,
        *,
        token_of: Callable[[Pod], Awaitable[str]],
        authorities: Callable[[], Awaitable[str]],
        ports: Callable[[], Sequence[int]],
    ) -> None:
        self._folder, self._token_of, self._authorities, self._ports = folder, token_of, authorities, ports

    async def ask(self, pod: Pod, order: ClientSpec) -> int:
        """Return the status of the first operator that answers; 0: none does, or the pod is gone."""
        folder = self._folder / pod["metadata"]["uid"]
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if not (folder / "token").exists():
                (folder / "token").write_text(await self._token_of(pod))
            (folder / "ca.crt").write_text(await self._authorities())
        except (errors.NotFound, *played_pods.PASSING):
            return 0
        environment = Environment(token_path=folder / "token", ca_path=folder / "ca.crt")
        for port in self._ports():
            endpoint = Endpoint(f"https://localhost:{port}", order.namespace, order.job_uid, environment)
            path = f"tasks/{pod['metadata']['name']}/leave"
            try:
                await asyncio.to_thread(endpoint.request, "POST", path, b"{}", _TIMEOUT_S)
            except Unavailable as error:
                if error.status:
                    return error.status
            else:
                return _LEAVE
        return 0
