"""CPU time and rate of submissions: SparkApps with Boathouse against `spark-submit --deploy-mode cluster`.

    python -m benchmarks.spark_submissions [--applications 100] [--submissions 4] [--rounds 3]
        [--pyspark build/pyspark]

Both submit the same application to the same API server, whose fake nodes have room for all. A submission begins when
the SparkApp is applied, or when `spark-submit` is started, and ends when the driver's pod has a node. Rounds alternate.

Boathouse is the operator itself (`python -m boathouse`, with an administrator's credentials). Its CPU time counts from
the first SparkApp until 5 s after the last driver was admitted, so statuses of starting drivers are included. The CPU
time of `spark-submit` is that of its processes; as many run at once as there are CPUs, and kube-scheduler binds their
drivers. Exits with 1 if the operator uses more than 1/50 of the CPU time. About five minutes on two cores.

Needs Java 17 and a virtual environment with pyspark (`make pyspark`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from benchmarks import load, spark_mix, spark_submit, support
from boathouse.cluster import errors

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

AIM = 1 / 50
SETTLED_S = 5.0
LIMIT_S = 120
"""For each submission."""
PUBLISHED = "published for Kubeflow's Spark operator: 80 with spark-submit, 300 to 380 without"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Submissions of one side.

    Attributes:
        count: How many there were.
        seconds: From the first submission to the last driver with a node.
        cpu_s: CPU time of all.
    """

    count: int
    seconds: float
    cpu_s: float

    @property
    def cpu_ms(self) -> float:
        """CPU time of a submission in milliseconds."""
        return 1e3 * self.cpu_s / self.count

    @property
    def per_minute(self) -> float:
        """Submissions per minute."""
        return 60 * self.count / self.seconds

    @override
    def __str__(self) -> str:
        """Return both figures."""
        return f"{self.cpu_ms:7.0f} ms of CPU each, {self.per_minute:6.0f} submissions a minute"


def sparkapp(name: str) -> dict[str, Any]:
    """Return the application as a SparkApp."""
    spec = {
        "type": "Python",
        "mainApplicationFile": spark_submit.PYTHON_FILE,
        "arguments": ["10"],
        "driver": {"cores": 1, "memory": "512m"},
        "executor": {"cores": 1, "memory": "512m", "instances": 1},
    }
    return spark_mix.manifest("SparkApp", name, support.NAMESPACE, spec)


class Submissions:
    """The rounds, on one cluster."""

    def __init__(
        self, pods: support.Bulk, spark: spark_submit.SparkSubmit, ours: load.Operator, arguments: argparse.Namespace
    ) -> None:
        self._pods, self._spark, self._ours, self._arguments = pods, spark, ours, arguments

    async def boathouse(self, number: int) -> Round:
        """Apply SparkApps."""
        count, pid = self._arguments.applications, self._ours.process.pid
        apps = [sparkapp(f"r{number}-app-{i}") for i in range(count)]
        calls = [partial(self._pods.api.create, spark_mix.APPS, app, support.NAMESPACE) for app in apps]
        began_cpu_s = support.cpu_s(pid)
        seconds = await self._until_placed(count, lambda: spark_mix.all_of(calls))
        await asyncio.sleep(SETTLED_S)
        return Round(count=count, seconds=seconds, cpu_s=support.cpu_s(pid) - began_cpu_s)

    async def spark_submit(self, number: int) -> Round:
        """Run `spark-submit`, as many at once as there are CPUs."""
        count, cpu_s, at_once = self._arguments.submissions, 0.0, asyncio.Semaphore(os.cpu_count() or 1)

        async def submit(name: str) -> None:
            nonlocal cpu_s
            async with at_once:
                cpu_s += await asyncio.to_thread(self._spark.run, name)

        async def submit_all() -> None:
            async with asyncio.TaskGroup() as group:
                for i in range(count):
                    group.create_task(submit(f"r{number}-plain-{i}"))

        seconds = await self._until_placed(count, submit_all)
        return Round(count=count, seconds=seconds, cpu_s=cpu_s)

    async def _until_placed(self, count: int, submit: Callable[[], Awaitable[None]]) -> float:
        async with self._pods.stopwatch(count, limit_s=LIMIT_S * count) as watch:
            watch.start()
            await submit()
        return count / watch.rate

    async def clear(self) -> None:
        """Delete all SparkApps and pods."""
        for app in (await self._pods.read_all(spark_mix.APPS)).items:
            with contextlib.suppress(errors.NotFound):
                await self._pods.api.delete(spark_mix.APPS, app["metadata"]["name"], support.NAMESPACE)
        await self._pods.clear()


async def rounds(run: Submissions, count: int) -> list[tuple[Round, Round]]:
    """Run both sides in turn; return theirs and ours of each round."""
    found = []
    for number in range(count):
        support.say(f"==> round {number + 1} of {count}")
        theirs = await run.spark_submit(number)
        support.say(f"    spark-submit {theirs}")
        await run.clear()
        ours = await run.boathouse(number)
        support.say(f"    Boathouse    {ours}")
        await run.clear()
        found.append((theirs, ours))
    return found


def report(found: list[tuple[Round, Round]]) -> bool:
    """Print medians and the ratio; return whether the aim is reached."""
    theirs, ours = (list(side) for side in zip(*found, strict=True))
    support.say("")
    for name, side in (("spark-submit", theirs), ("Boathouse", ours)):
        cpu_ms, rate = (statistics.median(getattr(one, what) for one in side) for what in ("cpu_ms", "per_minute"))
        support.say(f"{name}: {cpu_ms:.1f} ms of CPU for a submission, {rate:.0f} submissions a minute (medians)")
    ratios = [mine.cpu_ms / other.cpu_ms for other, mine in found]
    ratio = statistics.median(ratios)
    spread = f"1/{1 / max(ratios):.0f} to 1/{1 / min(ratios):.0f}"
    support.say(f"ratio of CPU 1/{1 / ratio:.0f} (median of {len(ratios)} rounds; {spread}); the aim is 1/50 at most")
    support.say(f"submissions a minute {PUBLISHED}")
    return ratio <= AIM


async def main(arguments: argparse.Namespace) -> None:
    """Run all rounds and print the ratio."""
    folder = Path(tempfile.mkdtemp(prefix="boathouse-bench-submissions-"))
    home = spark_submit.home_of(Path(arguments.pyspark))
    support.say(f"==> logs in {folder}")
    with support.cluster("submissions", arguments.nodes) as cluster:
        cluster.run("create", "namespace", load.SYSTEM)
        cluster.run("apply", "--server-side", "-f", str(load.CRDS))
        async with support.bulk(cluster.kubeconfig) as pods:
            await pods.prepare()
            account = {"metadata": {"name": spark_submit.ACCOUNT}}
            await pods.api.create(spark_mix.ACCOUNTS, account, support.NAMESPACE)
            kubeconfig = spark_submit.kubeconfig_of(cluster, folder, support.NAMESPACE)
            spark = spark_submit.SparkSubmit(home, kubeconfig, folder, support.NAMESPACE)
            given = {"task": {"image": "none"}, "spark": {"image": spark_submit.IMAGE}}
            with spark_mix.operator(folder, cluster.kubeconfig, given) as (ours, _):
                await load.leading(ours)
                found = await rounds(Submissions(pods, spark, ours, arguments), arguments.rounds)
    raise SystemExit(not report(found))


if __name__ == "__main__":
    asyncio.run(
        main(
            support.options(__doc__ or "", applications=100, submissions=4, rounds=3, nodes=8, pyspark="build/pyspark")
        )
    )
