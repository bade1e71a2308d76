"""Requests to the progress endpoint by the token of a pod of the attacker's, with any body."""

from __future__ import annotations

import dataclasses
import io
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST
from boathouse_e2e import hostile
from boathouse_task.cluster_contract import AgentReport, HdfsFigures, YarnFigures

if TYPE_CHECKING:
    from tests.hostile.siege import Siege

_TIMEOUT_S = 15


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A pod whose token the attacker has.

    Attributes:
        uid: The cluster that it belongs to.
        pod: Its name.
    """

    siege: Siege
    uid: str
    pod: str
    token: str
    authorities: str

    async def post(self, body: bytes, *, uid: str = "", pod: str = "", namespace: str = hostile.ATTACKER) -> int:
        """Post a report for a cluster and a pod; returns the HTTP status, 0 if the connection was closed."""
        path = f"/v1/jobs/{namespace}/{uid or self.uid}/cluster/{pod or self.pod}/report"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        context = ssl.create_default_context(cadata=self.authorities)
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        url, sent = f"https://localhost:{self.siege.operator.port}{path}", io.BytesIO(body)
        async with aiohttp.ClientSession() as session:
            try:
                async with session.post(url, data=sent, headers=headers, ssl=context, timeout=timeout) as answer:
                    await answer.read()
                    return answer.status
            except aiohttp.ClientConnectionError:
                return 0


async def sender(siege: Siege, uid: str, host: str) -> Sender:
    """Return the pod of a host, once it runs, with a token for the operator: the attacker's image has taken it."""
    labels = f"{names.LABEL_JOB_UID}={uid},{LABEL_HOST}={host}"

    async def runs() -> bool:
        return any(pod.status.phase == "Running" for pod in await siege.pods(labels=labels))

    await siege.until(runs, f"the pod of {host} runs")
    (pod,) = await siege.pods(labels=labels)
    return await sender_of(siege, uid, pod.metadata.name)


async def sender_of(siege: Siege, uid: str, pod: str) -> Sender:
    """Return a pod of the attacker's with a token for the operator."""
    token = siege.lab.cluster.run(
        *("create", "token", "default", "-n", hostile.ATTACKER, f"--audience={names.TOKEN_AUDIENCE}"),
        *("--bound-object-kind=Pod", f"--bound-object-name={pod}"),
    ).strip()

    async def authorities() -> str:
        bundles = await siege.admin.list(catalogue.CONFIG_MAPS.untyped(), hostile.ATTACKER)
        found = [bundle for bundle in bundles.items if bundle["metadata"]["name"] == names.PROGRESS_CA_CONFIG_MAP]
        return str(found[0]["data"][names.PROGRESS_CA_KEY]) if found else ""

    await siege.until(authorities, "the namespace has the authorities")
    return Sender(siege=siege, uid=uid, pod=pod, token=token, authorities=await authorities())


def report(**fields: Any) -> bytes:
    """Return a report that the endpoint accepts, of a cluster that works."""
    hdfs = HdfsFigures(cluster_id="CID-attacker", started_s=1, safe_mode=False, free_bytes=2**40)
    yarn = YarnFigures(started_s=1, up_s=1000, memory_mb=4096)
    nodes = [(f"c{number}", "L", "R", 0, 2048, 0, 2**40, 0) for number in range(2)]
    whole = AgentReport(refreshed=True, hdfs=hdfs, yarn=yarn)
    return msgspec.json.encode({**msgspec.to_builtins(whole), "nodes": nodes, **fields})
