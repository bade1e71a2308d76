"""The operator dies by SIGKILL before and after each write for a Hadoop cluster, three times in a row.

The cluster comes up, grows, shrinks, rolls and loses its master as its spec says: no host has two pods, no block is
lost, and HDFS is formatted once. A job on it has one application at a time.
"""

from __future__ import annotations

import pytest

from boathouse.resources.mrcluster import names
from tests.faults import clusters

pytestmark = pytest.mark.apiserver

IN_A_ROW = 3
IS_CREATED = {
    "mrcluster.status": (1, 2),
    "mrcluster.network-policy": (1, 2),
    "mrcluster.service": (1,),
    "mrcluster.config-map": (1,),
    "mrcluster.claim": (1, 3),
    "mrcluster.orders": (1, 2),
    "mrcluster.submit": (1,),
    "scheduler.create": (1, 2),
}
GROWS = {
    "mrcluster.status": (1, 2),
    "mrcluster.orders": (1,),
    "mrcluster.claim": (1,),
    "mrcluster.submit": (1,),
    "scheduler.create": (1, 2),
}
SHRINKS = {"mrcluster.status": (1, 2), "mrcluster.orders": (1, 2), "mrcluster.delete-pod": (1,)}
ROLLS = {
    "mrcluster.status": (1,),
    "mrcluster.config-map": (1, 2),
    "mrcluster.delete-pod": (1, 2),
    "mrcluster.submit": (1,),
    "scheduler.create": (1,),
}
LOSES_ITS_MASTER = {"mrcluster.status": (1,), "mrcluster.submit": (1,), "scheduler.create": (1,)}
RUNS_A_JOB = {
    "mrjob.status": (1, 2),
    "mrjob.tags": (1, 2),
    "mrjob.submit": (1,),
    "mrjob.leave": (1,),
    "scheduler.create": (1,),
}
STOPS_A_JOB = {"mrjob.status": (1,), "mrjob.tags": (1,), "mrjob.kill-application": (1,), "mrjob.delete-pod": (1,)}
WRITES = {
    write for life in (IS_CREATED, GROWS, SHRINKS, ROLLS, LOSES_ITS_MASTER, RUNS_A_JOB, STOPS_A_JOB) for write in life
} | {"mrcluster.expire"}
"""Each has its deaths in this module."""
DYNAMIC = {"transient": {"minimum": 2, "maximum": 3}}
OTHER_SETTINGS = {"hdfs": {"settings": {"dfs.namenode.handler.count": "20"}}}
LOAD_S = (3.0,) * 12
"""Tasks of an application that nodes must not lose."""
ROLLED_WITHIN_S = 400
SHORT = {
    "shrinks-after-mrcluster.orders:1",
    "job-after-mrjob.leave:1",
    "network-after-mrcluster.network-policy:1",
}


def cases(life, writes):
    """Return the failpoints of a life; a few are in the short form."""
    found = [
        f"{moment}-{write}:{passage}"
        for write, passages in writes.items()
        for passage in passages
        for moment in ("before", "after")
    ]
    return [
        pytest.param(failpoint, marks=() if f"{life}-{failpoint}" in SHORT else pytest.mark.long) for failpoint in found
    ]


@pytest.fixture
async def trial(laboratory):
    async with clusters.trying(laboratory) as one:
        yield one


async def create_ready_cluster(trial, operator, *, core=2, transient=0, **spec):
    """A cluster becomes ready, and its operator ends."""
    await trial.start_cluster(core={"count": core}, transient={"minimum": transient, "maximum": 3}, **spec)
    operator.start()
    await trial.until(trial.has(core=core, transient=transient), "the cluster is ready")
    operator.kill()


async def dies_until(trial, operator, failpoint, *, core, transient, record_property, most=IN_A_ROW):
    """The operator dies at a failpoint until the cluster is as wanted; then another one goes on."""
    kills = await trial.deaths(operator, failpoint, most=most, unless=trial.has(core=core, transient=transient))
    operator.start()
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


@pytest.mark.parametrize("failpoint", cases("is-created", IS_CREATED))
async def test_a_cluster_is_created_once_whenever_the_operator_dies(trial, failpoint, record_property):
    await trial.start_cluster()
    with trial.operator() as operator:
        await dies_until(trial, operator, failpoint, core=2, transient=0, record_property=record_property)
        await trial.judge_cluster(core=2, transient=0)


@pytest.mark.parametrize("failpoint", cases("grows", GROWS))
async def test_a_cluster_grows_to_its_size_whenever_the_operator_dies(trial, failpoint, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        trial.write_blocks(20)
        await trial.patch({"core": {"count": 3}, **DYNAMIC})
        await dies_until(trial, operator, failpoint, core=3, transient=2, record_property=record_property)
        await trial.judge_cluster(core=3, transient=2)


@pytest.mark.parametrize("failpoint", cases("shrinks", SHRINKS))
async def test_transient_nodes_leave_without_a_lost_task_whenever_the_operator_dies(trial, failpoint, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator, transient=2)
        application = trial.load(*LOAD_S)
        await trial.until(lambda: trial.hadoop.yarn.containers("t1"), "a transient node has containers")
        await trial.patch({"transient": {"minimum": 0}})
        await dies_until(trial, operator, failpoint, core=2, transient=0, record_property=record_property)
        await trial.until(lambda: application.has_ended, "the application has ended")
        assert (application.state, application.lost) == ("FINISHED", 0)
        await trial.judge_cluster(core=2, transient=0)


@pytest.mark.parametrize("failpoint", cases("shrinks-core", SHRINKS))
async def test_a_core_node_leaves_without_a_lost_block_whenever_the_operator_dies(trial, failpoint, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        await trial.patch({"core": {"count": 3}})
        operator.start()
        await trial.until(trial.has(core=3, transient=0), "the cluster has three core nodes")
        operator.kill()
        trial.write_blocks(40)
        await trial.patch({"core": {"count": 2}})
        await dies_until(trial, operator, failpoint, core=2, transient=0, record_property=record_property)
        await trial.judge_cluster(core=2, transient=0)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("failpoint", cases("rolls", ROLLS))
async def test_new_settings_reach_one_node_after_the_other_whenever_the_operator_dies(
    trial, failpoint, record_property
):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator, transient=1)
        trial.write_blocks(20)
        await trial.patch(OTHER_SETTINGS)
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW, unless=trial.is_rolled_out)
        operator.start()
        await trial.until(trial.is_rolled_out, "all nodes have the settings", patience_s=ROLLED_WITHIN_S)
        await trial.judge_cluster(core=2, transient=1)
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


@pytest.mark.parametrize("failpoint", cases("loses-its-master", LOSES_ITS_MASTER))
async def test_a_lost_master_is_created_again_on_its_volume_whenever_the_operator_dies(
    trial, failpoint, record_property
):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        trial.write_blocks(20)
        application = trial.load(*LOAD_S)
        await trial.kill_pod("master")
        await dies_until(trial, operator, failpoint, core=2, transient=0, record_property=record_property)
        await trial.until(lambda: application.has_ended, "the application has ended")
        assert (application.state, application.lost) == ("FINISHED", 0)
        await trial.judge_cluster(core=2, transient=0)


@pytest.mark.parametrize("failpoint", cases("job", RUNS_A_JOB))
async def test_a_job_runs_as_one_application_whenever_the_operator_dies(trial, failpoint, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        job = await trial.submit_job()
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW, unless=trial.job_is(job, "Succeeded"))
        operator.start()
        await trial.until(trial.job_is(job, "Succeeded", "Failed"), "the job has ended")
        await judge_job(trial, job, finals=["FINISHED"])
        await trial.judge_cluster(core=2, transient=0)
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


@pytest.mark.parametrize("failpoint", cases("stop", STOPS_A_JOB))
async def test_a_suspended_jobs_application_is_killed_whenever_the_operator_dies(trial, failpoint, record_property):
    trial.clients.program.tasks_s = (600.0,) * 4
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        job = await trial.submit_job()
        operator.start()
        await trial.until(trial.job_is(job, "Map"), "the application runs")
        operator.kill()
        await trial.patch_job(job, suspend=True)
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW, unless=is_closed(trial, job))
        operator.start()
        await trial.until(is_closed(trial, job), "the attempt has ended")
        trial.clients.program.tasks_s = (0.5,) * 4
        await trial.patch_job(job, suspend=False)
        await trial.until(trial.job_is(job, "Succeeded", "Failed"), "the job has ended")
        await judge_job(trial, job, finals=["KILLED", "FINISHED"])
        await trial.judge_cluster(core=2, transient=0)
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


def is_closed(trial, job):
    """Whether the last attempt of a job has ended."""

    async def holds():
        return bool((await trial.job_status(job)).get("hadoop", {}).get("ended"))

    return holds


async def judge_job(trial, job, *, finals):
    """Demand that a job succeeded with these applications, the last of which counts."""
    status = await trial.job_status(job)
    assert status["phase"] == "Succeeded", status
    assert [application.state for application in trial.applications()] == finals
    assert status["counters"] == {"Tasks": {"map": len(trial.clients.program.tasks_s)}}


@pytest.mark.long
async def test_a_client_that_fails_before_it_submits_is_followed_by_another(trial):
    trial.clients.program.loses = frozenset({1})
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        operator.start()
        job = await trial.submit_job()
        await trial.until(trial.job_is(job, "Succeeded", "Failed"), "the job has ended")
        assert (await trial.job_status(job))["failures"]["infrastructure"] == 1
        await judge_job(trial, job, finals=["FINISHED"])
        await trial.judge_cluster(core=2, transient=0)


@pytest.mark.long
async def test_a_job_is_deleted_with_its_application_whenever_the_operator_dies(trial, record_property):
    trial.clients.program.tasks_s = (600.0,) * 4
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        job = await trial.submit_job()
        operator.start()
        await trial.until(trial.job_is(job, "Map"), "the application runs")
        operator.kill()
        await trial.delete_job(job)
        kills = await trial.deaths(operator, "after-mrjob.kill-application", most=IN_A_ROW)
        operator.start()
        await trial.until(trial.job_gone(job), "the job is deleted")
        assert [application.state for application in trial.applications()] == ["KILLED"]
        await trial.judge_cluster(core=2, transient=0)
    record_property("kills", kills)
    assert kills


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_cluster_expires_with_all_that_was_made_for_it(trial, moment, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator, ttlSecondsAfterIdle=60)
        most = IN_A_ROW if moment == "before" else 1  # then the cluster is deleted
        kills = await trial.deaths(operator, f"{moment}-mrcluster.expire", most=most)
        operator.start()
        await trial.until(trial.gone, "the cluster is deleted")
        await trial.until(trial.nothing_owned, "all that was made for it is gone")
    record_property("kills", kills)
    assert kills == most


@pytest.mark.parametrize("failpoint", cases("network", {"mrcluster.network-policy": (1, 2)}))
async def test_network_policies_are_those_of_the_spec_whenever_the_operator_dies(trial, failpoint, record_property):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        first = await trial.policies()

        async def are_stricter():
            found = await trial.policies()
            return found.keys() == first.keys() and found != first

        await trial.patch({"networkPolicy": "Cluster"})
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW, unless=are_stricter)
        operator.start()
        await trial.until(are_stricter, "only pods of Boathouse reach the cluster")
        await trial.patch({"networkPolicy": "None"})

        async def are_gone():
            return not await trial.policies()

        await trial.until(are_gone, "the NetworkPolicies are gone")
        await trial.judge_cluster(core=2, transient=0)
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


@pytest.mark.long
async def test_the_volume_of_a_master_that_is_emptied_is_not_formatted(trial):
    with trial.operator() as operator:
        await create_ready_cluster(trial, operator)
        operator.start()
        trial.hadoop.hdfs.cluster_id = ""
        await trial.kill_pod("master")

        async def is_degraded():
            conditions = (await trial.status()).get("conditions") or ()
            return any(
                (one["type"], one["reason"]) == ("Degraded", names.Reason.NAME_VOLUME_EMPTY) for one in conditions
            )

        await trial.until(is_degraded, "the cluster says that the volume is empty")
        assert len(trial.hadoop.formats) == 1


@pytest.mark.long
async def test_a_cluster_grows_with_its_load_and_shrinks_without_a_lost_task(trial):
    resizing = {"policy": "GSP", "periodSeconds": 5, "drainTimeoutSeconds": 60}
    with trial.operator() as operator:
        await trial.start_cluster(transient={"maximum": 2}, resizing=resizing)
        operator.start()
        await trial.until(trial.has(core=2, transient=0), "the cluster is ready")
        application = trial.load(*(10.0,) * 40)
        await trial.until(trial.has(core=2, transient=2), "the cluster has grown")
        await trial.until(lambda: application.has_ended, "the application has ended")
        assert (application.state, application.lost) == ("FINISHED", 0)
        await trial.judge_cluster(core=2, transient=0)
