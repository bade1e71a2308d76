"""`boathouse logs`: what the pods of a job wrote, the daemons of an MRCluster, and the containers of its jobs.

YARN's containers are no pods. While an application runs, its logs are files of the NodeManagers; afterwards the
JobHistoryServer reads them from HDFS. Both are asked through the API server, with the user's own rights. Whatever they
answer is of the cluster's image: names are checked before they become a part of a path.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST, PLURAL, Role
from boathouse_cli import kinds, model, mrclusters, mrjobs, sparkapps
from boathouse_cli.errors import CommandError, ExitCode, StartingError, UsageError
from boathouse_cli.gateway import Gateway, split_lines

MASTER: Final = Role.MASTER.value
RESOURCE_MANAGER_PORT: Final = 8088
NODE_MANAGER_PORT: Final = 8042
HISTORY_PORT: Final = 19888
MOST_JSON_BYTES: Final = 16 << 20
STARTING_TRIES: Final = 30
"""A JobHistoryServer may start later than the cluster's first job ends."""
STARTING_PAUSE_S: Final = 2.0
_HEAD_LINES: Final = 12
_FOOT_LINES: Final = 6
"""Lines that YARN writes around a log have an end among these."""
_CONTAINER: Final = re.compile(r"container_(e[0-9]{1,10}_)?[0-9]{1,20}_[0-9]{1,10}_[0-9]{1,10}_[0-9]{1,20}")
_FILE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log of a container, on a host; without one the JobHistoryServer has it."""

    container: str
    name: str
    host: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Options of `logs`; None is an option that the user left out."""

    task: str | None = None
    executor: int | None = None
    attempt: int | None = None
    host: str | None = None
    container: str | None = None
    follow: bool = False
    tail: int | None = None

    def check(self, kind: kinds.Kind) -> None:
        """Refuse options of another kind, with those of this one."""
        is_cluster, is_spark, is_mrjob = (kind is known for known in (kinds.MRCLUSTER, kinds.SPARKAPP, kinds.MRJOB))
        is_of_job = (self.task, self.executor, self.attempt) != (None, None, None)
        follows_all = self.follow and self.container is None
        for is_refused, advice in (
            (is_cluster and is_of_job, "--task, --executor and --attempt are for jobs: pass HOST and --container"),
            (is_cluster and follows_all, "--follow requires --container, such as -c namenode"),
            (not is_cluster and self.host is not None, "HOST is for MRClusters: leave it out"),
            (is_spark and self.task is not None, "--task is for MRJobs: pass --executor N, or nothing for the driver"),
            (is_spark and self.container is not None, "--container is for MRClusters and jobs on them: leave it out"),
            (
                is_mrjob and self.executor is not None,
                "--executor is for SparkApps: pass --task, such as --task m-00000",
            ),
            (is_mrjob and self.follow and self.task is None, "--follow requires --task, such as --task m-00000"),
        ):
            if is_refused:
                raise UsageError(advice)

    def wanted(self, kind: kinds.Kind) -> str | None:
        """The task whose pods are meant; None for all."""
        if kind is kinds.SPARKAPP:
            return model.DRIVER if self.executor is None else f"{model.EXECUTOR}-{self.executor}"
        return self.task

    def of(self, kind: kinds.Kind, pods: Sequence[model.TaskPod]) -> list[model.TaskPod]:
        """The pods that are meant; of one task without an attempt, its last."""
        task = self.wanted(kind)
        order = sorted(pods, key=lambda pod: (pod.created_s, pod.attempt, pod.task))
        found = [pod for pod in order if task in (None, pod.task) and self.attempt in (None, pod.attempt)]
        return found if task is None else found[-1:]


def of_cluster(gateway: Gateway, cluster: model.Job, selection: Selection) -> Iterator[str]:
    """Yield the lines of the containers of a node, by default of the master, with the container's name."""
    pods, host, container = _pods(gateway, cluster.uid), selection.host or MASTER, selection.container
    if host not in pods:
        raise CommandError(
            f"{cluster.title} has no node {host} with a pod (there are: {', '.join(sorted(pods)) or 'none'}): "
            f"see `boathouse explain {cluster.title}`",
            ExitCode.NOT_FOUND,
        )
    raw = pods[host]
    present = [container_spec["name"] for container_spec in raw["spec"]["containers"]]
    if container is not None and container not in present:
        raise UsageError(f"{host} of {cluster.title} has no container {container}: choose of {', '.join(present)}")
    for name in present if container is None else [container]:
        prefix = f"{name}: " if container is None else ""
        pod = raw["metadata"]["name"]
        yield from gateway.log(pod, name, tail=selection.tail, follow=selection.follow, prefix=prefix)


def of_job(gateway: Gateway, job: mrjobs.MRJob, selection: Selection) -> Iterator[str]:
    """Yield what the client of a job printed, and what containers of YARN wrote; with an ID, what that one wrote."""
    container, tail = selection.container, selection.tail
    if container is None:
        pods = map(model.task_pod, gateway.pods(f"{names.LABEL_JOB_UID}={job.uid}"))
        for pod in sorted((pod for pod in pods if pod.task == model.CLIENT), key=lambda pod: pod.attempt):
            yield from gateway.log(pod.name, pod.container, tail=tail, prefix=f"{pod.task}-a{pod.attempt}: ")
    if not job.applications:
        return
    hosts = _pods(gateway, gateway.get(PLURAL, job.cluster)["metadata"]["uid"])
    nodes = {host: pod["metadata"]["name"] for host, pod in hosts.items()}
    if MASTER not in nodes:
        raise CommandError(f"the master of mrcluster/{job.cluster} has no pod: see `boathouse explain {job.title}`")
    for application in job.applications:
        if re.fullmatch(r"application_[0-9]{1,20}_[0-9]{1,10}", application.id):
            listed = _aggregated if application.has_ended else _running
            for file in listed(gateway, nodes, application):
                if container in {None, file.container}:
                    yield from _of_file(gateway, nodes, file, tail)


def _pods(gateway: Gateway, uid: str) -> dict[str, model.Raw]:
    pods = gateway.pods(f"{names.LABEL_JOB_UID}={uid},{LABEL_HOST}")
    return {pod["metadata"]["labels"][LABEL_HOST]: pod for pod in pods}


def _running(gateway: Gateway, nodes: Mapping[str, str], application: mrjobs.Application) -> Iterator[LogFile]:
    """Yield the logs of an application that runs, from the NodeManagers of its containers."""
    path = f"ws/v1/cluster/apps/{application.id}/appattempts"
    attempts = _found(_asked(gateway, nodes[MASTER], RESOURCE_MANAGER_PORT, path), "appAttemptId")
    for attempt in sorted({str(entry["appAttemptId"]) for entry in attempts}):
        if not re.fullmatch(r"appattempt_[0-9]{1,20}_[0-9]{1,10}_[0-9]{1,10}", attempt):
            continue
        found = _asked(gateway, nodes[MASTER], RESOURCE_MANAGER_PORT, f"{path}/{attempt}/containers")
        for report in _found(found, "containerId"):
            host = re.split(r"[.:]", str(report.get("nodeId") or report.get("assignedNodeId") or ""), maxsplit=1)[0]
            container = str(report["containerId"])
            if host in nodes and _CONTAINER.fullmatch(container):
                yield from _of_container(gateway, nodes, host, container)


def _of_container(gateway: Gateway, nodes: Mapping[str, str], host: str, container: str) -> Iterator[LogFile]:
    """Yield the logs of a container that runs; none if it has just ended."""
    try:
        listed = _asked(gateway, nodes[host], NODE_MANAGER_PORT, f"ws/v1/node/containers/{container}/logs")
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
    else:
        yield from _files(listed, host)


def _aggregated(gateway: Gateway, nodes: Mapping[str, str], application: mrjobs.Application) -> Iterator[LogFile]:
    """Yield the logs of an application that has ended, which YARN has collected in HDFS."""
    path = f"ws/v1/history/aggregatedlogs?appid={application.id}"
    try:
        yield from _files(_asked(gateway, nodes[MASTER], HISTORY_PORT, path), "")
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
        raise CommandError(
            f"there are no logs of {application.id} yet, or no more ({error}): YARN collects them some seconds after "
            "its end",
            ExitCode.NOT_FOUND,
        ) from error


def _files(listed: Any, host: str) -> Iterator[LogFile]:
    seen: set[tuple[str, str]] = set()
    for container_logs in _found(listed, "containerId"):
        container = str(container_logs["containerId"])
        for file in _found(container_logs.get("containerLogInfo"), "fileName"):
            name = str(file["fileName"])
            if not (_CONTAINER.fullmatch(container) and _FILE.fullmatch(name)) or (container, name) in seen:
                continue
            seen.add((container, name))
            if str(file.get("fileSize", "")) != "0":
                yield LogFile(container=container, name=name, host=host)


def _of_file(gateway: Gateway, nodes: Mapping[str, str], file: LogFile, tail: int | None) -> Iterator[str]:
    part = f"containerlogs/{file.container}/{file.name}"
    if file.host:
        answer = gateway.proxied(nodes[file.host], NODE_MANAGER_PORT, f"ws/v1/node/{part}")
    else:
        answer = gateway.proxied(nodes[MASTER], HISTORY_PORT, f"ws/v1/history/{part}")
    lines: Iterable[str] = _contents(line.decode(errors="replace") for line in split_lines(answer))
    if tail is not None:
        lines = collections.deque(lines, maxlen=tail)
    for line in lines:
        yield f"{file.container} {file.name}: {line}"


def _contents(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a log without what YARN writes before and after it."""
    rest = iter(lines)
    head = list(itertools.islice(rest, _HEAD_LINES))
    begin = next((n + 1 for n, line in enumerate(head) if line.rstrip() == "LogContents:"), 0)
    last: collections.deque[str] = collections.deque()
    for line in itertools.chain(head[begin:], rest):
        last.append(line)
        if len(last) > _FOOT_LINES:
            yield last.popleft()
    yield from itertools.takewhile(lambda line: not line.startswith("End of LogType:"), last)


def _asked(gateway: Gateway, pod: str, port: int, path: str) -> Any:
    """Return a JSON answer of a web server of Hadoop; wait a minute for one that starts."""
    for _ in range(STARTING_TRIES):
        with contextlib.suppress(StartingError):
            return _answer(gateway, pod, port, path)
        time.sleep(STARTING_PAUSE_S)
    return _answer(gateway, pod, port, path)


def _answer(gateway: Gateway, pod: str, port: int, path: str) -> Any:
    text = bytearray()
    for chunk in gateway.proxied(pod, port, path):
        text += chunk
        if len(text) > MOST_JSON_BYTES:
            text.clear()
            break
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError(f"port {port} of pod/{pod} answered no JSON of at most 16 MiB: see its log") from None


def _found(document: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a document that have a key. A list of one is an object in some versions of Hadoop."""
    left = collections.deque([document])
    while left:
        element = left.popleft()
        if isinstance(element, dict) and key in element:
            yield element
        elif isinstance(element, dict | list):
            left.extend(element.values() if isinstance(element, dict) else element)


def show(gateway: Gateway, kind: kinds.Kind, name: str, selection: Selection) -> None:
    """Print the logs of the pods that are meant."""
    job = kinds.job(gateway, kind, name)
    if isinstance(job, mrclusters.MRCluster):
        lines = of_cluster(gateway, job, selection)
    elif isinstance(job, mrjobs.MRJob) and job.cluster:
        if selection.task is not None or selection.attempt is not None or selection.follow:
            raise UsageError(
                "--task, --attempt and --follow are for jobs whose tasks have pods: pass --container ID, or nothing "
                "for all containers of the job"
            )
        lines = of_job(gateway, job, selection)
    elif selection.container is not None:
        raise UsageError(f"{job.title} does not run on an MRCluster: leave --container out")
    else:
        lines = _of_pods(gateway, kind, job, selection)
    for line in lines:
        print(line)


def _of_pods(gateway: Gateway, kind: kinds.Kind, job: model.Job, selection: Selection) -> Iterator[str]:
    chosen = selection.of(kind, kinds.pods(gateway, kind, job))
    wanted = selection.wanted(kind)
    if not chosen:
        if _last_lines(job, selection):
            return
        attempt = "" if selection.attempt is None else f", attempt {selection.attempt}"
        raise CommandError(
            f"{job.title} has no pod of {wanted or 'any task'}{attempt}: see `boathouse explain {job.title}`",
            ExitCode.NOT_FOUND,
        )
    for pod in chosen:
        prefix = "" if wanted else f"{pod.task}-a{pod.attempt}: "
        yield from gateway.log(pod.name, pod.container, tail=selection.tail, follow=selection.follow, prefix=prefix)


def _last_lines(job: model.Job, selection: Selection) -> bool:
    """Print what the status keeps of a driver whose pod is gone; return whether there is anything."""
    if not isinstance(job, sparkapps.SparkApp) or not job.last_log or selection.executor is not None:
        return False
    if selection.attempt not in {None, *(attempt.number for attempt in job.attempts[-1:])}:
        return False
    print(f"the driver's pod is gone; the last lines of the last driver that failed ({job.title}):", file=sys.stderr)
    print(job.last_log.rstrip("\n"))
    return True
