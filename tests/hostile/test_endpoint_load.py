"""Load on the progress endpoint by a tenant's own pod: the Lease is renewed in time, and another tenant's job ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import json
import os
import pathlib
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.services.mrjob import splits
from boathouse_e2e import hostile, quota
from boathouse_task import contract
from tests.hostile.form import Attack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.siege import Siege

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]
CORES = 0.5
"""CPU seconds a second that the generator has."""
_PATIENCE_S = 90


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the generator does.

    Attributes:
        addresses: From how many addresses, as from so many pods.
        most_reviews: TokenReviews that it may cause.
        long: Only in the whole campaign.
        plan: Whether posts are the costliest plan that is read to its end; else zeros.
    """

    name: str
    mode: str
    count: int
    seconds: int = 10
    addresses: int = 1
    most_reviews: int = 20
    plan: bool = False
    long: bool = False

    def case(self) -> Any:
        """The load as a parameter of a test."""
        return pytest.param(self, id=self.name.replace(" ", "-"), marks=[pytest.mark.long] if self.long else [])


LOADS = (
    Load(name="eight posts of 64 MiB at once", mode="posts", count=8),
    Load(name="eight posts of the costliest plan at once", mode="posts", count=8, plan=True, long=True),
    Load(name="10,000 idle connections from 40 addresses", mode="idle", count=10_000, addresses=40, seconds=15),
    Load(
        name="endless headers on 300 connections to all ports from 40 addresses",
        mode="headers",
        count=300,
        addresses=40,
    ),
    Load(name="wrong tokens on 50 connections", mode="tokens", count=50, most_reviews=1000),
    Load(name="wrong tokens from 50 addresses", mode="tokens", count=50, addresses=50, most_reviews=1000, long=True),
)


@dataclasses.dataclass(frozen=True, slots=True)
class SetupPod:
    """A setup pod of the attacker's that runs and does as its image likes."""

    name: str
    job_uid: str
    token_file: pathlib.Path


@pytest.fixture
async def setup_pod(siege: Siege, tmp_path: pathlib.Path) -> SetupPod:
    """A job of the attacker's whose setup task never ends, and its own token."""
    made = await siege.attacker.create(hostile.job("loader"))
    uid = made["metadata"]["uid"]

    async def runs() -> bool:
        pods = (await siege.admin.list(catalogue.PODS, hostile.ATTACKER, labels=f"{names.LABEL_JOB_UID}={uid}")).items
        return [pod_view.status.phase for pod_view in pods] == ["Running"]

    await siege.until(runs, "the attacker's setup pod runs")
    (pod,) = (await siege.admin.list(catalogue.PODS, hostile.ATTACKER, labels=f"{names.LABEL_JOB_UID}={uid}")).items
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod.metadata.name}")
    token = siege.lab.cluster.run(
        *("create", "token", "default", "-n", hostile.ATTACKER, f"--audience={names.TOKEN_AUDIENCE}"),
        *(*bound, f"--bound-object-uid={pod.metadata.uid}"),
    )
    file = tmp_path / "token"
    file.write_text(token.strip())
    return SetupPod(pod.metadata.name, uid, file)


@contextlib.contextmanager
def loading(siege: Siege, load: Load, pod: SetupPod) -> Iterator[Any]:
    """The generator as a process with its quota."""
    job = f"/v1/jobs/{hostile.ATTACKER}/{pod.job_uid}"
    target = f"{job}/plan" if load.mode == "posts" else f"{job}/tasks/{pod.name}/orders"
    command = [
        *(sys.executable, "-m", "boathouse_e2e.endpoint_load", load.mode, f"--port={siege.operator.port}"),
        *(f"--target={target}", f"--token-file={pod.token_file}", f"--count={load.count}"),
        *(f"--seconds={load.seconds}", f"--addresses={load.addresses}"),
    ]
    command += [f"--plain-port={port}" for port in (siege.operator.metrics_port, siege.operator.health_port)]
    if load.plan:
        body = pod.token_file.with_name("plan.gz")
        body.write_bytes(costliest_plan())
        command.append(f"--body-file={body}")
    with quota.process(command, cores=CORES, name=f"boathouse-load-{os.getpid()}") as running:
        yield running


def costliest_plan() -> bytes:
    """A plan as large as the endpoint reads, of as many values as it decodes, that makes a small body."""
    hosts = b"[" + b",".join([b'"a-node"'] * splits.MAX_HOSTS) + b"]"
    sets = b",".join([hosts] * (splits.MAX_VALUES // splits.MAX_HOSTS - 10))
    json = b'{"splits":[],"location_sets":[' + sets + b"]}"
    return gzip.compress(json + b" " * (contract.PLAN_MAX_BYTES - len(json)), 6)


@pytest.mark.parametrize("load", [load.case() for load in LOADS])
async def test_under_load_on_the_endpoint_the_lease_is_renewed_in_time(siege, setup_pod, record, load):
    siege.lab.new_audit_events()
    before_s = cpu_s(siege.operator.pid)
    with loading(siege, load, setup_pod) as generator:
        await siege.victim_finishes()
        assert await asyncio.to_thread(is_alive, siege.operator.health_port)
        output, _ = await asyncio.to_thread(generator.communicate, timeout=_PATIENCE_S)
    seen = json.loads(output)
    assert seen["answers"] if load.mode != "idle" else seen["opened"] > load.count / 10, seen
    counts = await siege.judge(Attack(name=load.name, most_reviews=load.most_reviews))
    assert counts.lease_gap_s < siege.lab.chart_config["lease"]["renewDeadlineSeconds"], counts
    used = {"operator_cpu_s": cpu_s(siege.operator.pid) - before_s, "load": seen}
    record(attack=load.name, **dataclasses.asdict(counts), **used)


def is_alive(port: int) -> bool:
    """Whether one of the probes succeeds after which a kubelet would restart the container (`failureThreshold`)."""
    return any(probe(port) == 200 for _ in range(3))


def probe(port: int) -> int:
    """The status that a kubelet's probe gets, 0 if the connection is closed without an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return int(answer.status)
    except OSError:
        return 0


def cpu_s(pid: int) -> float:
    """CPU time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
