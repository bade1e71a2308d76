"""One owner for an output: whatever is killed, paused or taken for dead, the output is one job's."""

import msgspec
import pytest

from boathouse_task import ownership
from boathouse_task.contract import OwnerState, Reason
from boathouse_task.errors import TaskError
from tests.builders.task_outputs import KillAt, Killed, Paused, SharedOutput, failure_reason

SCHEMES = ["file", "s3"]
MOST = 60
"""More operations than a task has."""


@pytest.fixture(params=SCHEMES)
def outputs(job_folder, request):
    return shared_output(job_folder, request.param)


def shared_output(job_folder, scheme, number=0):
    job_folder.write_input("a", b"line\n")
    made = SharedOutput(job_folder, scheme)
    made.output += str(number)
    if scheme == "s3":
        made.storage.write(made.job("any").layout().output.at("in/a"), b"line\n")
    return made


def test_a_job_owns_its_output_until_it_has_ended(outputs):
    job = outputs.job("one")
    job.setup()
    assert outputs.names() == ["_temporary/owner-00001"]
    job.maps()
    job.commit()
    assert outputs.names() == ["_SUCCESS", "part-00000", "part-00001"]


def test_the_second_of_two_jobs_with_one_output_fails(outputs):
    first = outputs.job("first")
    first.setup()
    with pytest.raises(
        TaskError, match=r"belongs to job demo/first \(mark .*/out0/_temporary/owner-00001\)"
    ) as refused:
        outputs.job("second").setup()
    assert (refused.value.reason, refused.value.user_error) == (Reason.OUTPUT_EXISTS, True)
    first.maps()
    first.commit()
    assert outputs.success_uid() == first.uid


def test_a_job_of_another_namespace_is_not_named(outputs):
    outputs.job("secret-plans", namespace="others").setup()
    with pytest.raises(TaskError, match="belongs to another job") as refused:
        outputs.job("second").setup()
    assert "secret-plans" not in refused.value.message
    assert "others" not in refused.value.message


def test_another_attempt_of_setup_finds_its_own_mark(outputs):
    job = outputs.job("one")
    job.setup()
    job.setup()
    assert outputs.names() == ["_temporary/owner-00001"]


def test_a_job_that_has_ended_is_succeeded_by_the_next_generation_and_its_folder_is_removed(outputs):
    former, next_one = outputs.job("former"), outputs.job("next")
    former.setup()
    former.maps()
    outputs.owners.states[former.uid] = OwnerState.ENDED
    next_one.setup()
    assert outputs.names() == ["_temporary/owner-00001", "_temporary/owner-00002"]
    assert not list(outputs.storage.files(former.layout().work))
    next_one.maps()
    next_one.commit()
    assert outputs.names() == ["_SUCCESS", "part-00000", "part-00001"]


@pytest.mark.parametrize("state", [OwnerState.OUTSIDE, OwnerState.ACTIVE])
def test_an_owner_whose_end_is_not_confirmed_stays_the_owner(outputs, state):
    former = outputs.job("former")
    former.setup()
    outputs.owners.states[former.uid] = state
    assert failure_reason(outputs.job("next").setup) is Reason.OUTPUT_EXISTS
    assert outputs.names() == ["_temporary/owner-00001"]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"job_uid":"../../x","namespace":"demo","name":"n"}'])
def test_a_mark_that_says_nothing_is_respected(outputs, content):
    job = outputs.job("one")
    outputs.storage.write(job.layout().owner(3), content)
    with pytest.raises(TaskError, match="its owner is unknown; set another output, or delete the mark"):
        job.setup()


def test_an_output_with_too_many_marks_keeps_its_last_owner(outputs, monkeypatch):
    monkeypatch.setattr(ownership, "_MAX_GENERATIONS", 2)
    for job in (outputs.job("first"), outputs.job("second")):
        job.setup()
        outputs.owners.states[job.uid] = OwnerState.ENDED
    with pytest.raises(TaskError, match=r"owner-00002\): there are 2 marks"):
        outputs.job("third").setup()


def test_a_run_outside_of_a_cluster_confirms_nothing(outputs):
    outputs.job("first").setup()
    task = outputs.job("second").task(outputs.job("second").spec)
    task.client = None
    with pytest.raises(TaskError, match="a run outside of a cluster cannot determine"):
        ownership.acquire(task)


def test_an_output_that_exists_keeps_no_mark(outputs):
    outputs.job("first").run()
    before = outputs.names()
    assert outputs.job("second").run() is Reason.OUTPUT_EXISTS
    assert outputs.names() == before


def test_a_job_whose_output_was_taken_over_does_not_commit(outputs):
    former, next_one = outputs.job("former"), outputs.job("next")
    former.setup()
    outputs.owners.states[former.uid] = OwnerState.ENDED
    next_one.setup()
    former.maps()  # a task that nobody can stop writes on
    assert failure_reason(former.commit) is Reason.OUTPUT_EXISTS
    assert outputs.writers() == set()


def test_a_job_of_an_older_version_commits_without_a_mark(outputs):
    job = outputs.job("old")
    job.maps()
    job.commit()
    assert outputs.names() == ["_SUCCESS", "part-00000", "part-00001"]


def test_a_success_that_is_not_the_jobs_is_left_alone(outputs):
    job = outputs.job("one")
    job.setup()
    job.maps()
    outputs.storage.write(job.layout().success, b"")  # as Hadoop's
    assert failure_reason(job.commit) is Reason.OUTPUT_EXISTS
    assert outputs.storage.read(job.layout().success) == b""
    assert outputs.writers() == set()


def test_success_is_not_declared_over_parts_of_others(outputs):
    job = outputs.job("one")
    job.setup()
    job.maps()
    outputs.storage.write(job.layout().part(7), b"stranger 7")
    with pytest.raises(TaskError, match=r"something else writes to the output: .*/part-00007 is not this"):
        job.commit()
    assert outputs.success_uid() is None


def test_a_failed_jobs_cleanup_removes_its_folder_and_its_mark_only(outputs):
    job, other = outputs.job("one"), outputs.job("other")
    job.setup()
    job.maps()
    other.maps()  # an older version's, without a mark
    job.clean_up()
    job.clean_up()
    assert outputs.names() == []
    assert not list(outputs.storage.files(job.layout().work))
    assert list(outputs.storage.files(other.layout().work))


# Two jobs, one output: every kill and every pause


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("task", ["setup", "commit"])
def test_whatever_is_killed_one_of_two_jobs_succeeds_and_the_other_finds_the_output_taken(job_folder, scheme, task):
    kills = 0
    for number in range(1, MOST):
        outputs = shared_output(job_folder, scheme, number)
        first, second = outputs.job("first"), outputs.job("second")
        if task == "commit":
            first.setup()
            first.maps()
        hook = KillAt(number)
        killed = was_killed(lambda job=first, hook=hook: getattr(job, task)(hook))
        kills += killed
        seconds = second.run()
        firsts = first.run() if task == "setup" else failure_reason(first.commit)
        assert sorted([seconds, firsts], key=str) == [None, Reason.OUTPUT_EXISTS]
        assert outputs.writers() == {"second" if seconds is None else "first"}
        assert len(outputs.names()) == 3
        if not killed:
            break
    assert kills > 10


def was_killed(work):
    try:
        work()
    except Killed:
        return True
    return False


def assert_unmixed(outputs, former, next_one, reason):
    """The parts are of one job; a former owner that was disarmed in the midst of promoting declares no success."""
    if reason is None:
        assert (outputs.success_uid(), outputs.writers()) == (next_one.uid, {"next"})
    else:
        assert reason is Reason.OUTPUT_EXISTS
        assert outputs.writers() == {"former"}
        assert outputs.success_uid() in (former.uid, None)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("task", ["setup", "commit"])
def test_a_former_owner_that_resumes_after_it_was_taken_for_dead_mixes_nothing_in(job_folder, scheme, task):
    taken = 0
    for number in range(1, MOST):
        outputs = shared_output(job_folder, scheme, number)
        former, next_one = outputs.job("former"), outputs.job("next")
        if task == "commit":
            former.setup()
            former.maps()
        with Paused(getattr(former, task), number) as paused:
            outputs.owners.states[former.uid] = OwnerState.ENDED
            reason = next_one.run()
        assert_unmixed(outputs, former, next_one, reason)
        taken += reason is None
        if not paused.was_paused:
            break
    assert number > 10
    assert taken > 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_former_owner_that_commits_while_its_output_is_taken_over_mixes_nothing_in(job_folder, scheme):
    reasons = set()
    for number in range(1, MOST):
        outputs = shared_output(job_folder, scheme, number)
        former, next_one = outputs.job("former"), outputs.job("next")
        former.setup()
        former.maps()
        outputs.owners.states[former.uid] = OwnerState.ENDED
        with Paused(next_one.setup, number) as paused:
            committed = failure_reason(former.commit)
        reasons |= {paused.reason, committed}
        if paused.reason is None:
            next_one.maps()
            next_one.commit()
        assert_unmixed(outputs, former, next_one, paused.reason)
        if not paused.was_paused:
            break
    assert number > 10
    assert reasons >= {None, Reason.OUTPUT_EXISTS}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("task", ["setup", "commit"])
def test_two_attempts_of_one_task_at_once_end_with_one_good_output(job_folder, scheme, task):
    for number in range(1, MOST):
        outputs = shared_output(job_folder, scheme, number)
        job = outputs.job("one")
        if task == "commit":
            job.setup()
            job.maps()
        with Paused(getattr(job, task), number) as paused:
            assert failure_reason(getattr(job, task)) is None
            if task == "setup":
                job.maps()
        assert paused.reason is not Reason.OUTPUT_EXISTS
        if task == "setup" or paused.reason is not None:
            job.commit()  # another attempt, as after any failure that is not the job's
        assert outputs.success_uid() == job.uid
        assert outputs.names() == ["_SUCCESS", "part-00000", "part-00001"]
        if not paused.was_paused:
            break
    assert number > 10


@pytest.mark.parametrize("scheme", SCHEMES)
def test_jobs_that_take_an_output_over_at_once_never_both_own_it(job_folder, scheme):
    for number in range(1, MOST):
        outputs = shared_output(job_folder, scheme, number)
        dead, one, two = outputs.job("dead"), outputs.job("one"), outputs.job("two")
        dead.setup()
        outputs.owners.states[dead.uid] = OwnerState.ENDED
        with Paused(one.setup, number) as paused:
            dead.clean_up()  # its mark goes while somebody takes it over
            reason = failure_reason(two.setup)
        owners = [job for job, why in ((one, paused.reason), (two, reason)) if why is None]
        assert len(owners) <= 1
        for job in owners:
            job.maps()
            job.commit()
            assert outputs.success_uid() == job.uid
        if not paused.was_paused:
            break
    assert number > 10


def test_the_marks_content_names_the_job_and_its_cluster(outputs):
    job = outputs.job("one")
    job.setup()
    mark = msgspec.json.decode(outputs.storage.read(job.layout().owner(1)))
    assert mark == {"job_uid": job.uid, "namespace": "demo", "name": "one", "cluster": "here"}
