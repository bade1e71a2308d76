"""Guards of an output: one job owns it, and `_SUCCESS` says whose it is."""

from __future__ import annotations

from boathouse.resources import names
from boathouse.services.mrjob.planning import cleanup
from boathouse_task import ownership, storage
from boathouse_task.contract import OwnerState, Reason
from tests.builders import mrjobs
from tests.builders.task_outputs import SharedOutput, failure_reason
from tests.builders.tasks import JobFolder
from tests.wire.guards import Guard


def outputs(folder):
    job_folder = JobFolder(folder)
    job_folder.write_input("a", b"line\n")
    return SharedOutput(job_folder, "file")


# Scenarios: each returns what broke


async def two_jobs_with_one_output(_api, tmp_path):
    place = outputs(tmp_path)
    first, second = place.job("first"), place.job("second")
    first.setup()
    reasons = [second.run(), failure_reason(lambda: (first.maps(), first.commit()))]
    return [] if reasons == [Reason.OUTPUT_EXISTS, None] else [f"the two jobs ended with {reasons}"]


async def a_former_owner_that_commits_after_the_takeover(_api, tmp_path):
    place = outputs(tmp_path)
    former, next_one = place.job("former"), place.job("next")
    former.setup()
    place.owners.states[former.uid] = OwnerState.ENDED
    next_one.setup()
    former.maps()
    failure_reason(former.commit)
    return sorted(place.writers())


async def a_success_of_another_job_in_between(_api, tmp_path):
    place = outputs(tmp_path)
    job = place.job("one")
    job.setup()
    job.maps()
    task = job.task(job.spec)
    whole = ownership.require

    def require(of):
        task.storage.write(task.layout.success, b"")
        whole(of)

    ownership.require = require
    try:
        failure_reason(job.commit)
    finally:
        ownership.require = whole
    return [] if task.storage.read(task.layout.success) == b"" else ["another writer's _SUCCESS was replaced"]


async def a_former_owner_that_still_promotes(_api, tmp_path):
    place = outputs(tmp_path)
    former, next_one = place.job("former"), place.job("next")
    former.setup()
    former.maps()
    place.owners.states[former.uid] = OwnerState.ENDED
    next_one.setup()
    task = former.task(former.spec)
    part = task.layout.data("map", 0, 1)  # its commit was past every check when it was taken for dead
    failure_reason(lambda: task.storage.move(part, task.layout.part(0), 8))
    return sorted(place.writers())


async def a_deleted_job_whose_folder_cannot_be_removed(_api, _tmp_path):
    running = mrjobs.mapping(mrjobs.job(cleanUp="OnDelete"))
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [names.FINALIZER]}
    deleted = mrjobs.job(cleanUp="OnDelete", metadata=metadata)
    begun = mrjobs.desired(deleted, state=running, after_s=0)
    late = mrjobs.desired(deleted, state=begun.state, after_s=700)
    return ["the job never goes"] if late.cleaning else []


# Guards, and how each is broken


def without_the_check_at_setup(patch):
    patch.setattr(ownership, "acquire", lambda _task: None)


def without_the_check_at_commit(patch):
    patch.setattr(ownership, "require", lambda _task: None)


def without_an_exclusive_success(patch):
    whole = storage.Storage.create

    def create(self, location, content):
        if not location.path.endswith("_SUCCESS"):
            return whole(self, location, content)
        self.write(location, content)
        return True

    patch.setattr(storage.Storage, "create", create)


def without_disarming(patch):
    patch.setattr(storage.Storage, "remove_folder", lambda _storage, _folder: None)


def without_giving_up(patch):
    patch.setattr(cleanup, "GIVE_UP_S", float("inf"))


GUARDS = {
    "owner-at-setup": Guard(two_jobs_with_one_output, without_the_check_at_setup),
    "owner-at-commit": Guard(a_former_owner_that_commits_after_the_takeover, without_the_check_at_commit),
    "exclusive-success": Guard(a_success_of_another_job_in_between, without_an_exclusive_success),
    "finalizer-gives-up": Guard(a_deleted_job_whose_folder_cannot_be_removed, without_giving_up),
    "former-owner-disarmed": Guard(a_former_owner_that_still_promotes, without_disarming),
}
