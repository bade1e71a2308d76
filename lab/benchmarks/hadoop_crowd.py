"""What many Hadoop clusters cost the operator: 100 MRClusters with 2,000 transient nodes on fake nodes.

    python -m benchmarks.hadoop_crowd [--clusters 100] [--few 10] [--transient 20] [--minutes 5] [--nodes 60]

A real API server with the chart's roles and policies; the operator is a separate process with its own account; KWOK
starts pods, and a model of Hadoop is behind the real agent of each master, which reports over TLS every 5 seconds. All
clusters grow by GSP under a load that lasts. First a few clusters, the baseline: when all have all their transient
nodes, the operator is measured for some minutes. Then the others are created, and it is measured again. Prints for both
the operator's CPU time per cluster and minute, reports and API requests per minute (the audit log's, by account), and
the ratio per cluster; and the same of growing. About 18 minutes on two cores.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import support
from boathouse.cluster import catalogue, client, config
from boathouse.resources import names
from boathouse.services.mrcluster.model import MRCLUSTERS
from boathouse_e2e import lab
from boathouse_e2e.hadoop_pods import HadoopPods
from boathouse_e2e.spec import ClusterSpec

if TYPE_CHECKING:
    import argparse

LEAD_WITHIN_S: Final = 120
GROW_WITHIN_S: Final = 1800
LOOK_S: Final = 10.0
REPORT_S: Final = 5.0
TASKS: Final = 1000
TASK_S: Final = 1e6
TOKEN_S: Final = 12 * 3600
NODE_MONITOR_S: Final = 600
"""KWOK renews the leases of many nodes late, and starts all pods of a node anew when one was too late."""
SMALL: Final = {"cpu": "100m", "memory": "1Gi"}


def mrcluster(name: str, transient: int) -> dict[str, Any]:
    """Return a cluster with one core node, which grows by GSP."""
    volume = {"size": "256Mi", "emptyDir": True}
    return {
        "apiVersion": names.API_VERSION,
        "kind": MRCLUSTERS.kind,
        "metadata": {"name": name, "namespace": lab.NAMESPACE},
        "spec": {
            "image": "hadoop:dev",
            "master": {"resources": {"cpu": "100m", "memory": "1408Mi"}, "volume": volume},
            "core": {"count": 1, "resources": SMALL, "volume": volume},
            "transient": {"maximum": transient, "resources": SMALL, "scratch": "1Gi"},
            "resizing": {"policy": "GSP"},
            "dataPolicy": "Delete",
        },
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Counters at a moment, or between two of them."""

    at_s: float
    cpu_s: float
    reports: int
    requests: collections.Counter[str]

    def since(self, earlier: Figures) -> Figures:
        """Return what was added since an earlier moment."""
        return Figures(
            at_s=self.at_s - earlier.at_s,
            cpu_s=self.cpu_s - earlier.cpu_s,
            reports=self.reports - earlier.reports,
            requests=self.requests - earlier.requests,
        )

    def per_cluster_s(self, clusters: int) -> float:
        """Return the CPU seconds per cluster and minute."""
        return self.cpu_s / clusters / self.at_s * 60


class Crowd:
    """The clusters, their models and the operator.

    Args:
        place: The cluster.
        api: A client with all rights.
        operator: The operator, which runs.
        given: The options.
    """

    def __init__(
        self, place: lab.Lab, api: client.ApiClient, operator: lab.Operator, given: argparse.Namespace
    ) -> None:
        self._place, self._api, self._operator, self._given = place, api, operator, given
        self._requests: collections.Counter[str] = collections.Counter()
        self._loaded: set[str] = set()
        self.created = 0
        self.model = HadoopPods(
            api,
            place.folder / "masters",
            token_of=self._token_of,
            ports=lambda: [operator.port],
            namespace=lab.NAMESPACE,
            look_s=LOOK_S,
            report_s=REPORT_S,
        )

    async def _token_of(self, pod: dict[str, Any]) -> str:
        account = pod["spec"].get("serviceAccountName", "default")
        kind = catalogue.Resource(plural=f"serviceaccounts/{account}/token", kind="TokenRequest", view=dict)
        metadata = pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {"audiences": [names.TOKEN_AUDIENCE], "expirationSeconds": TOKEN_S, "boundObjectRef": bound}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str((await self._api.create(kind, request, lab.NAMESPACE))["status"]["token"])

    async def grow(self, clusters: int) -> None:
        """Have so many clusters, with all the transient nodes that they may have, and print what that took."""
        before = self.read()
        for number in range(self.created, clusters):
            await self._api.create(
                MRCLUSTERS.untyped(), mrcluster(f"crowd-{number:03}", self._given.transient), lab.NAMESPACE
            )
        new, self.created = clusters - self.created, clusters
        deadline = time.monotonic() + GROW_WITHIN_S
        while (nodes := self._nodes()) < clusters * self._given.transient:
            if time.monotonic() > deadline or not self._operator.lives:
                raise SystemExit(f"only {nodes} transient nodes: see {self._place.folder}")
            support.say(f"    {clusters} clusters, {nodes} transient nodes (load {os.getloadavg()[0]:.0f})")
            self._load()
            await asyncio.sleep(LOOK_S)
        grown = self.read().since(before)
        cpu_ms = grown.cpu_s / (new * (self._given.transient + 2)) * 1e3
        support.say(f"==> {new} clusters grew in {grown.at_s:.0f} s: {cpu_ms:.1f} ms of the operator's CPU per pod")

    def _nodes(self) -> int:
        """Return the transient nodes whose programs run."""
        return sum(
            sum(host.startswith("t") for host in hadoop.yarn.known) for hadoop in list(self.model.hadoops.values())
        )

    def _load(self) -> None:
        """Give each new cluster its load."""
        for uid, hadoop in self.model.hadoops.items():
            if uid not in self._loaded:
                self._loaded.add(uid)
                hadoop.yarn.submit(f"{uid}-1", [TASK_S] * TASKS, time.time())

    def read(self) -> Figures:
        """Return the counters now."""
        for event in self._place.new_audit_events():
            if event.get("stage") == "ResponseComplete" and event["user"]["username"] == lab.ACCOUNT:
                reference = event.get("objectRef") or {}
                what = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
                self._requests[f"{event['verb']} {what}"] += 1
        return Figures(
            at_s=time.monotonic(),
            cpu_s=support.cpu_s(self._operator.pid),
            reports=self.model.reports,
            requests=self._requests.copy(),
        )

    async def measure(self) -> Figures:
        """Let the minutes pass, and print what they took."""
        await asyncio.sleep(60)  # the last changes of sizes are written
        before = self.read()
        await asyncio.sleep(60 * self._given.minutes)
        found = self.read().since(before)
        minutes, clusters = found.at_s / 60, self.created
        most = ", ".join(f"{what} {count / minutes:.0f}" for what, count in found.requests.most_common(6))
        support.say(
            f"==> {clusters} clusters, {self._nodes()} transient nodes (load {os.getloadavg()[0]:.0f}): "
            f"{1e3 * found.per_cluster_s(clusters):.0f} ms of the operator's CPU per cluster and minute, "
            f"{found.reports / minutes:.0f} reports and {found.requests.total() / minutes:.0f} API requests per minute "
            f"({most}); {support.rss_mib(self._operator.pid):.0f} MiB resident"
        )
        return found


async def leading(place: lab.Lab, operator: lab.Operator) -> None:
    """Wait until the operator leads."""
    deadline = time.monotonic() + LEAD_WITHIN_S
    while '"became leader"' not in operator.log.read_text():
        if not operator.lives or time.monotonic() > deadline:
            raise SystemExit(f"the operator did not come to lead: see {place.folder}")
        await asyncio.sleep(0.2)


async def run(place: lab.Lab, given: argparse.Namespace) -> None:
    """Measure a few clusters, and all."""
    admin = config.from_kubeconfig(place.cluster.kubeconfig)
    async with client.ApiClient(admin) as api:
        with place.operator() as operator:
            operator.start()
            await leading(place, operator)
            crowd = Crowd(place, api, operator, given)
            playing = asyncio.create_task(crowd.model.run())
            try:
                found = []
                for clusters in (given.few, given.clusters):
                    await crowd.grow(clusters)
                    found.append((await crowd.measure()).per_cluster_s(clusters))
            finally:
                if playing.done():
                    playing.result()
                await support.cancel(playing)
    support.say(f"ratio {found[1] / found[0]:.2f}: CPU per cluster of {given.clusters} over that of {given.few}")
    for violation in crowd.model.violations:
        support.say(f"MISSED {violation}")
    raise SystemExit(1 if crowd.model.violations else 0)


def main() -> None:
    """Start the cluster, and run all."""
    given = support.options(__doc__ or "", clusters=100, few=10, transient=20, minutes=5, nodes=60)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that the cluster is taken down
    folder = Path(tempfile.mkdtemp(prefix="boathouse-bench-crowd-"))
    support.say(f"==> {given.clusters} clusters on {given.nodes} fake nodes; logs in {folder}")
    spec = ClusterSpec(
        nodes=0,
        kwok_nodes=given.nodes,
        controller_manager_args=support.FAST,
        node_monitor_grace_period_s=NODE_MONITOR_S,
    )
    with lab.laboratory(folder, spec) as place:
        asyncio.run(run(place, given))


if __name__ == "__main__":
    main()
