"""Outputs of others: a job that names another namespace's output neither gets it nor spoils it."""

from boathouse_e2e import hostile, kubelets
from tests.hostile.form import Attack

SMALL = kubelets.Shape(maps=2, reduces=0, cpu="50m")


def names_the_victims_output(names):
    """Jobs of the attacker's with the output of a job of the victim's that runs."""

    async def act(siege):
        name, ledger = await siege.victim_begins(held=True)

        async def running():
            pods = await siege.pods(hostile.VICTIM, "boathouse.dev/task-type=map")
            return len(pods) == ledger.shape.maps

        await siege.until(running, "the victim's maps run")
        for job_name in names:
            await siege.submit(hostile.job(job_name, maps=SMALL.maps, output=f"s3://b/{name}"), SMALL)
        for job_name in names:
            await siege.until(lambda job_name=job_name: siege.has_ended(job_name), "the attacker's job has ended")
            failed = [one for one in (await siege.status(job_name))["conditions"] if one["type"] == "Failed"]
            assert [(one["status"], one["reason"]) for one in failed] == [("True", "OutputExists")]
        ledger.held = False
        await siege.victim_ends(name, ledger)

    return act


ATTACKS = (
    Attack(name="a job with the output of another namespace's job", act=names_the_victims_output(["thief"])),
    Attack(
        name="ten jobs with the output of another namespace's job",
        act=names_the_victims_output([f"thief-{n}" for n in range(10)]),
        most_writes=400,
        most_events=400,
        long=True,
    ),
)
