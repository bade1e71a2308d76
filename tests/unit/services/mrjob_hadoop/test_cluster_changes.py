"""Changes of clusters reconcile the jobs that they concern, and no others."""

from __future__ import annotations

import dataclasses

from tests.builders import mrjobs
from tests.builders.mrclusters import cluster_facts
from tests.builders.simulated_hadoop_job import CLUSTER, SimulatedHadoopJob


def collect_marks(job: SimulatedHadoopJob) -> list[str]:
    """Return the jobs that are marked from now on."""
    found: list[str] = []
    job.jobs._mark = found.append  # type: ignore[assignment]
    return found


async def test_a_change_or_the_deletion_of_its_cluster_reconciles_a_job() -> None:
    job = SimulatedHadoopJob()
    await job.reconcile()
    found = collect_marks(job)
    job.directory.put(dataclasses.replace(CLUSTER, is_ready=False))
    job.directory.forget(CLUSTER.uid)
    assert found == [mrjobs.UID, mrjobs.UID]


async def test_changes_of_other_clusters_reconcile_no_job() -> None:
    job = SimulatedHadoopJob()
    await job.reconcile()
    found = collect_marks(job)
    job.directory.put(cluster_facts(uid="c-2", name="lake", namespace="other"))
    job.directory.forget("c-2")
    assert found == []
