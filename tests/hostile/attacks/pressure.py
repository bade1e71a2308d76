"""Work without end: refusals, deletions and changes of mind, each of which the operator answers with a write."""

from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import hostile, kubelets
from boathouse_e2e.hostile import job
from tests.hostile.form import Attack

JOB = "restless"
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"count/pods": "1"}},
}
REFUSED_PER_S = 2.0
BURST = 6
OBSERVED_S = 8


def behind_a_quota(maps):
    """A job of many maps in a namespace whose quota its setup pod uses up."""
    shape = kubelets.Shape(maps=maps, reduces=0, cpu="50m")

    async def act(siege):
        await siege.admin.create(hostile.QUOTAS, QUOTA, hostile.ATTACKER)
        await siege.submit(job(JOB, maps=maps), shape)
        await siege.until(lambda: hostile.counts(siege.seen()).refused_creates, "the quota has refused a map")

    return act


async def is_refused_seldom(siege):
    """Refusals are counted over a time: at most 2 a second, beside the first few."""
    await siege.until(siege.passes(OBSERVED_S), "refusals were counted for a while")
    moments = hostile.refused_creates_s(siege.seen())
    lasted_s = max(moments) - min(moments)
    assert len(moments) <= BURST + REFUSED_PER_S * lasted_s, f"{len(moments)} in {lasted_s:.1f} s"


async def runs_a_job(siege):
    shape = kubelets.Shape(maps=20, reduces=0, cpu="50m")
    uid = await siege.submit(job(JOB, maps=20), shape)
    siege.attacked.jobs[uid].held = True
    await siege.until(lambda: siege.pods(labels="boathouse.dev/task-type=map"), "the attacker's maps run")


async def deletes_its_tasks(siege):
    await siege.attacker.delete_pods("boathouse.dev/task-type=map")


async def changes_its_mind(siege):
    for suspend in (True, False):
        await siege.attacker.api.patch(MRJOBS, JOB, {"spec": {"suspend": suspend}}, hostile.ATTACKER)


async def continues(siege):
    """The attack goes on for a while after the victim's job, so that what it costs can be seen."""
    await siege.until(siege.passes(OBSERVED_S), "the attack went on for a while")


async def makes_and_deletes_jobs(siege):
    for number in range(10):
        await siege.attacker.create(job(f"short-{number}"))
    for number in range(10):
        await siege.attacker.api.delete(MRJOBS, f"short-{number}", hostile.ATTACKER)


ATTACKS = (
    Attack(
        name="2,000 maps behind a full quota",
        act=behind_a_quota(2_000),
        holds=is_refused_seldom,
        most_refused=60,
        most_writes=200,
    ),
    Attack(
        name="40,000 maps behind a full quota",
        act=behind_a_quota(40_000),
        holds=is_refused_seldom,
        most_refused=120,
        most_writes=250,
        long=True,
    ),
    Attack(
        name="a tenant that deletes its task pods in a loop",
        act=runs_a_job,
        again=deletes_its_tasks,
        holds=continues,
        most_writes=600,
        most_events=300,
    ),
    Attack(
        name="a job that is suspended and resumed in a loop",
        act=runs_a_job,
        again=changes_its_mind,
        holds=continues,
        most_writes=600,
        most_events=300,
    ),
    Attack(
        name="jobs that are created and deleted in a loop",
        again=makes_and_deletes_jobs,
        holds=continues,
        most_writes=600,
        most_events=300,
        long=True,
    ),
)
