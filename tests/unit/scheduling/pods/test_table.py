"""The pod table: what each event does to a row and to the ledger."""

import pytest

from boathouse.cluster import wire
from boathouse.scheduling.pods.states import ImpossibleTransition
from boathouse_policies import framework, model
from tests.builders import manifests
from tests.builders.operators.pod_tables import CLASS, JOB, PodWorld, shown, task_id

ASSUMED, CONFIRMED = framework.State.ASSUMED, framework.State.CONFIRMED
N0 = model.NodeName("n0")


@pytest.fixture
def world():
    world = PodWorld()
    yield world
    world.check()


def _must(operation):
    assert operation is not None
    return operation


def test_a_task_is_created_bound_and_confirmed(world):
    world.submit(0)
    operation = _must(world.decide())
    assert (world.state(), world.counted()) == ("creating", ASSUMED)
    world.table.accept(operation)
    assert (world.state(), world.counted()) == ("bound", ASSUMED)
    world.table.observe(shown(node="n0"))
    assert (world.state(), world.counted()) == ("confirmed", CONFIRMED)


def test_a_pod_created_ahead_is_bound_later(world):
    world.submit(0)
    operation = _must(world.decide_ahead())
    assert world.decide() is None
    world.table.accept_ahead(operation, shown())
    assert [row.id for row in world.table.waiting()] == [task_id(0)]
    world.decide()
    assert world.state() == "binding"


def test_a_watch_that_is_faster_than_the_answer_voids_the_operation(world):
    world.submit(0)
    operation = _must(world.decide())
    world.table.observe(shown(node="n0"))
    assert not operation.is_current
    assert not world.table.refuse(operation)
    assert world.counted() is CONFIRMED


def test_a_refused_operation_frees_its_room_and_counts_a_failure(world):
    world.submit(0)
    (change,) = world.table.refuse(_must(world.decide()), has_failed=True)
    assert [freed.node for freed in change.freed] == ["n0"]
    assert (world.state(), world.row().failures) == ("planned", 1)


def test_a_refused_operation_of_a_pod_that_a_watch_showed_meanwhile_leaves_it_pending(world):
    world.submit(0)
    operation = _must(world.decide())
    world.table.observe(shown())
    assert world.state() == "creating"
    world.table.refuse(operation)
    assert world.state() == "pending"


def test_a_lost_node_voids_what_was_decided_for_it(world):
    world.submit(0)
    world.table.observe(shown(1, uid="uid-1"))
    operations = _must(world.decide(0)), _must(world.decide(1))
    queues, changes = world.table.remove_node(N0)
    assert queues == {"default"}
    assert [change.operation for change in changes] == list(operations)
    assert (world.state(0), world.state(1)) == ("planned", "pending")
    assert not any(operation.is_current for operation in operations)


def test_a_placement_that_is_not_written_yet_is_outdated_when_its_pod_changes(world):
    world.submit(0)
    row = world.row()
    task = model.Task(id=row.id, task_class=CLASS.id)
    create = model.Create(task=task, task_class=CLASS, job=JOB, node=N0, resources=CLASS.resources)
    world.table.observe(shown())
    assert world.table.decide(row, create) == "Outdated"


def test_a_pod_that_ended_holds_nothing_and_its_task_is_not_scheduled_again(world):
    world.submit(0)
    world.table.observe(shown(node="n0"))
    (change,) = world.table.left(shown(node="n0", revision=11))
    assert (world.state(), world.counted(), change.job) == ("gone", None, JOB.id)
    assert world.submit(0) == [task_id(0)]
    assert not world.table.of_job(JOB.id)
    assert world.decide() is None


def test_the_end_of_an_earlier_pod_of_the_name_changes_nothing(world):
    world.table.observe(shown(uid="new", revision=20))
    assert not world.table.end(shown(uid="old", revision=11, phase="Failed"))
    assert world.state() == "pending"


def test_a_pod_of_another_uid_ends_the_one_before(world):
    world.table.observe(shown(node="n0", is_task=False))
    changes = world.table.observe(shown(node="n1", uid="new", revision=20, is_task=False))
    assert [freed.node for change in changes for freed in change.freed] == ["n0"]
    assert world.ledger.account(task_id(0)).uid == "new"


def test_an_answer_that_is_older_than_the_watch_has_no_effect(world):
    world.table.observe(shown(node="n0", is_task=False))
    row = world.row()
    world.table.left(shown(node="n0", revision=11, is_task=False))
    assert not world.table.answered(row, shown(node="n0", is_task=False))
    assert world.state() is None


def test_a_reservation_that_is_taken_back_reports_its_room_once(world):
    world.submit(0)
    world.table.reserve(world.row(), world.placement())
    assert (world.free_milli(), world.table.take_released()) == (63000, [])
    world.table.unreserve(world.row())
    assert (world.free_milli(), world.row().reserved) == (64000, None)
    assert [freed.node for freed in world.table.take_released()] == ["n0"]
    world.table.unreserve(world.row())
    assert world.table.take_released() == []


@pytest.mark.parametrize("how", ["decided", "shown", "withdrawn", "not submitted again"])
def test_a_reservation_ends_with_the_task_that_it_is_for(world, how):
    world.submit(0, 1)
    world.table.reserve(world.row(), world.placement())
    if how == "decided":
        _must(world.decide(node="n1"))
    elif how == "shown":
        world.table.observe(shown(node="n1"))
    elif how == "withdrawn":
        world.table.withdraw(JOB.id)
    else:
        world.submit(1)
    assert [freed.node for freed in world.table.take_released()] == ["n0"]
    assert world.free_milli() == 64000


def test_the_loss_of_a_node_ends_the_reservations_there(world):
    world.submit(0)
    world.table.reserve(world.row(), world.placement())
    assert world.table.remove_node(N0) == ({"default"}, [])
    assert world.row().reserved is None
    world.table.unreserve(world.row())
    assert world.table.take_released() == []


def test_an_answer_shows_what_the_watch_has_not_shown_yet(world):
    world.table.observe(shown(is_task=False))
    (change,) = world.table.answered(world.row(), shown(node="n0", revision=11, is_task=False))
    assert (change.before, world.state()) == ("pending", "confirmed")


@pytest.mark.parametrize("revision", [9, 10, 11])
def test_an_answer_has_no_effect_if_the_watch_has_shown_a_newer_version_of_the_pod(world, revision):
    world.table.observe(shown(node="n0", is_task=False))
    answer = shown(node="n1", revision=revision, is_task=False)
    assert bool(world.table.answered(world.row(), answer)) is (revision >= 10)
    assert world.ledger.account(task_id(0)).node == ("n1" if revision >= 10 else "n0")


def test_an_answer_about_a_pod_that_the_watch_has_shown_to_end_has_no_effect(world):
    world.submit(0)
    world.table.observe(shown(node="n0"))
    world.table.left(shown(node="n0", revision=11))
    assert world.table.answered(world.row(), shown(node="n0", revision=12)) == []
    assert (world.state(), world.counted()) == ("gone", None)


@pytest.mark.parametrize(("revision", "is_shown"), [(19, False), (21, True)])
def test_an_answer_about_another_pod_of_the_name_counts_if_it_is_newer_than_the_watch(world, revision, is_shown):
    world.table.observe(shown(uid="old", revision=20, is_task=False))
    requested = world.row()
    requested.uid, asked = "old", world.row()
    answer = shown(uid="new", node="n0", revision=revision, is_task=False)
    assert bool(world.table.answered(asked, answer)) is is_shown
    assert world.state() == ("confirmed" if is_shown else "pending")


def test_an_answer_about_a_predecessor_has_no_effect_on_its_successor(world):
    world.table.observe(shown(uid="old", is_task=False))
    requested = world.row()
    world.table.left(shown(uid="old", revision=11, is_task=False))
    world.table.observe(shown(uid="new", revision=12, is_task=False))
    requested.uid = "old"
    assert world.table.answered(requested, shown(uid="old", node="n0", revision=13, is_task=False)) == []
    assert (world.row().uid, world.state()) == ("new", "pending")


@pytest.mark.parametrize("uid", ["uid-0", "old"])
def test_an_answer_that_shows_the_end_of_a_pod_ends_that_pod_only(world, uid):
    world.table.observe(shown(node="n0", is_task=False))
    changes = world.table.answered(world.row(), shown(uid=uid, revision=12, is_task=False, phase="Failed"))
    assert bool(changes) is (uid == "uid-0")
    assert world.state() == (None if uid == "uid-0" else "confirmed")


def test_an_answer_about_a_task_that_the_watch_has_passed_shows_its_end(world):
    world.table.observe(shown(1, node="n0", uid="uid-1", revision=20))
    world.submit(0)
    operation = _must(world.decide())
    world.table.refuse(operation)
    world.table.answered(operation.row, shown(node="n1", revision=15))
    assert world.state() == "gone"


def test_a_watch_that_is_behind_an_answer_changes_nothing_until_it_shows_more(world):
    former, small = shown(node="n0"), (manifests.container(cpu="500m"),)
    world.table.observe(former)
    answer = shown(node="n0", revision=12, containers=small)
    world.table.answered(world.row(), answer)
    behind = shown(node="n0", revision=11, phase="Running")
    assert not world.table.observe(behind, former)
    assert world.row().facts is answer
    large = shown(node="n0", revision=13)
    world.table.observe(large, behind)
    assert world.table.holders.top("cpu", "demo").named == (("mrjob/demo/job", 1000),)


def test_a_list_of_a_restored_etcd_may_show_a_pod_without_its_node(world):
    world.table.observe(shown(node="n0", revision=20))
    world.table.observe(shown(revision=12), shown(node="n0", revision=20))
    assert (world.state(), world.counted()) == ("pending", None)


def test_a_version_without_accounted_changes_is_stored_without_a_transition(world):
    former, pod = shown(node="n0"), shown(node="n0", revision=11, phase="Running")
    world.table.observe(former)
    assert not world.table.observe(pod, former)
    assert world.row().facts is pod


def test_holders_are_counted_on_nodes_that_exist(world):
    held = world.table.holders
    world.table.observe(shown(node="n0"))
    world.table.observe(shown(1, node="n9", uid="uid-1"))
    assert held.top("cpu", "demo").named == (("mrjob/demo/job", 1000),)
    world.table.remove_node(N0)
    assert not held.top("cpu", "demo").named
    for name in ("n0", "n9"):
        world.table.set_node(model.Node(name=model.NodeName(name), allocatable=CLASS.resources))
    assert held.top("cpu", "demo").named == (("mrjob/demo/job", 2000),)
    world.table.left(shown(node="n0"))
    assert held.top("cpu", "demo").named == (("mrjob/demo/job", 1000),)


def test_a_pod_that_is_resized_is_counted_once(world):
    former, small = shown(node="n0"), manifests.container(cpu="500m")
    world.table.observe(former)
    world.table.observe(shown(node="n0", revision=11, containers=(small,)), former)
    assert world.table.holders.top("cpu", "demo").named == (("mrjob/demo/job", 500),)


def test_a_withdrawn_task_without_a_pod_is_removed_and_one_with_a_pod_stays(world):
    world.submit(0, 1)
    world.table.observe(shown(1, node="n0", uid="uid-1"))
    world.table.withdraw(JOB.id)
    assert (world.state(0), world.state(1)) == (None, "confirmed")


def test_a_withdrawn_create_in_flight_is_removed_when_it_is_refused(world):
    world.submit(0)
    operation = _must(world.decide())
    world.table.withdraw(JOB.id)
    assert world.state() == "creating"
    world.table.refuse(operation)
    assert world.state() is None


def test_a_name_that_an_earlier_job_used_is_free_for_another(world):
    world.submit(0)
    world.table.observe(shown(node="n0"))
    world.table.left(shown(node="n0", revision=11))
    other = model.JobId("other")
    assert not world.table.submit(other, [model.Task(id=task_id(0), task_class=CLASS.id)])
    assert (world.state(), world.row().job) == ("planned", other)


@pytest.mark.parametrize("node", ["", "n0"])
@pytest.mark.parametrize("is_decided", [False, True])
def test_a_task_is_deferred_while_a_foreign_pod_has_its_name(world, node, is_decided):
    world.submit(0)
    operation = world.decide() if is_decided else None
    change = world.table.observe(shown(node=node, is_task=False))[-1]
    assert (change.affects, world.row().job, world.table.displaced(JOB.id)) == (JOB.id, None, world.row())
    assert operation is None or not operation.is_current
    change = world.table.left(shown(node=node, is_task=False, revision=11))[-1]
    assert (change.affects, world.state(), world.table.displaced(JOB.id)) == (JOB.id, "planned", None)


def test_a_task_whose_name_is_taken_leaves_the_pod_to_its_owner(world):
    world.table.observe(shown(is_task=False))
    assert world.submit(0) == []
    assert (world.row().job, list(world.table.of_job(JOB.id))) == (None, [])
    world.table.withdraw(JOB.id)
    world.table.left(shown(is_task=False, revision=11))
    assert world.state() is None


def test_the_end_of_a_foreign_pod_of_the_same_name_does_not_end_a_task(world):
    world.submit(0)
    world.table.end(shown(is_task=False))
    assert (world.state(), world.submit(0)) == ("planned", [])


def test_a_pending_pod_is_listed_where_it_is_nominated_until_it_is_not_pending(world):
    facts = _with_status(shown(is_task=False, scheduler="other"), wire.PodStatus(nominated_node_name="n0"))
    world.table.observe(facts)
    assert (len(world.table.nominations), world.ledger.free(N0)[0]) == (1, 64000)
    (change,) = world.table.left(facts)
    assert (len(world.table.nominations), [freed.node for freed in change.freed]) == (0, ["n0"])


def _with_status(facts, status):
    fields = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return type(facts)(**fields | {"status": status})


def test_an_impossible_transition_changes_nothing(world):
    world.submit(0)
    operation = _must(world.decide())
    world.table.accept(operation)
    operation.row.operation = operation
    with pytest.raises(ImpossibleTransition):
        world.table.accept(operation)
    operation.row.operation = None
