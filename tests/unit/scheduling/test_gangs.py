"""Drivers start with their minimum of executors, for which room stays reserved until the driver creates them."""

import contextlib
import json

import msgspec
import pytest
from msgspec.structs import replace

from boathouse.cluster import store, views, wire
from boathouse.resources import names
from boathouse.scheduling import gauges, reservations
from boathouse_policies import model
from boathouse_policies.framework import gathering
from tests.builders import manifests
from tests.builders.operators import desks
from tests.builders.operators.applications import App, DriverDesk


@contextlib.asynccontextmanager
async def desk(*nodes: str, **options):
    """A desk with nodes of four cores that carries operations out."""
    world = DriverDesk(**options)
    for node in nodes or ("n1",):
        world.node(node)
    async with world.writing():
        yield world


async def test_a_driver_starts_with_room_reserved_for_its_minimum():
    async with desk() as world:
        app = App(minimum=3)
        world.submit_application(app)
        assert await world.decide() == [("create", "a-driver n1")]
        assert world.reserved(app) == ["n1", "n1", "n1"]
        assert world.used() == 4000


async def test_a_driver_does_not_start_without_room_for_its_minimum():
    async with desk() as world:
        world.submit("demo/t", cpu_milli=1000)
        await world.decide()
        app = App(minimum=3)
        world.submit_application(app)
        assert await world.decide() == [("create", "t n1")]
        assert (world.reserved(app), world.reason(app)) == ([], "Gang")


async def test_reserved_room_is_not_given_to_others():
    async with desk() as world:
        world.submit_application(App(minimum=3))
        await world.decide()
        world.submit("demo/t")
        assert await world.decide() == [("create", "a-driver n1")]


async def test_an_executor_takes_a_reserved_place():
    async with desk("n1", "n2") as world:
        app = App(minimum=5)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1))
        (request,) = await world.decide()
        assert request[1].startswith("uid-a-exec-1 ")
        row = world.row("demo/a-exec-1")
        assert row.operation.task_class.id == row.task.task_class
        assert len(world.reserved(app)) == 4
        assert world.used() == 6000


async def test_the_age_of_the_oldest_reservation_is_a_gauge():
    async with desk() as world:
        found = {gauge.name: gauge for gauge in gauges.SchedulerGauges(world.scheduler).all()}
        oldest = found["boathouse_oldest_reservation_age_seconds"].read
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        assert oldest() == 0.0
        world.now_s += 60
        assert oldest() == 60.0
        await world.start_driver(app)
        world.show(app.executor_pod(1))
        await world.decide()
        assert oldest() == 0.0


async def test_submitting_an_application_again_keeps_its_reservations():
    async with desk() as world:
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1))
        await world.decide()
        world.submit_application(app)
        await world.decide()
        assert world.reserved(app) == ["n1", "n1"]


async def test_a_driver_that_could_not_be_created_gives_its_reservations_back():
    async with desk() as world:
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        await world.answer("create", "a-driver n1", PermissionError("no"))
        world.submit("demo/t", cpu_milli=4000)
        assert await world.decide() == [("create", "t n1")]
        assert world.reserved(app) == []


async def test_executors_beyond_the_minimum_are_elastic():
    async with desk("n1", "n2") as world:
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        for number in (1, 2, 3):
            world.show(app.executor_pod(number))
        await world.decide()
        assert world.used() == 4000


async def started(world: DriverDesk, app: App) -> App:
    """Start the driver of an application, for whose minimum room is reserved then."""
    world.submit_application(app)
    ((_, what),) = await world.decide()
    await world.start_driver(app, what.partition(" ")[2])
    return app


async def test_an_executor_that_is_larger_than_expected_takes_as_many_reserved_places_as_cover_it():
    async with desk() as world:
        app = await started(world, App(minimum=3))
        world.show(app.executor_pod(1, cpu=2))
        world.submit("demo/t0", "demo/t1", "demo/t2")
        assert await world.decide() == [("bind", "uid-a-exec-1 n1")]
        assert world.reserved(app) == ["n1"]


async def test_an_executor_for_which_no_reserved_places_have_room_leaves_them_to_others():
    async with desk() as world:
        app = await started(world, App(minimum=2, cpu=1))
        world.show(app.executor_pod(1, cpu=4))
        world.submit("demo/t0", "demo/t1", "demo/t2")
        await world.decide()
        assert (world.used(), world.reserved(app)) == (4000, [])


async def test_an_executor_that_admission_gave_a_selector_takes_a_place_on_a_node_of_that_kind_only():
    async with desk("n1", "n2") as world:
        for name in ("n1", "n2"):
            world.node(name, labels={"zone": name})
        app = await started(world, App(minimum=7))
        for number, node in enumerate(("n1", "n2", "n3")):
            world.show(app.executor_pod(number, node_selector={"zone": node}))
        await world.decide()
        assert [world.row(f"demo/a-exec-{number}").operation is not None for number in range(3)] == [True, True, False]
        assert len(world.reserved(app)) == 4


async def test_large_executors_of_a_small_minimum_do_not_go_before_all_that_waits():
    async with desk("n1", "n2") as world:
        app = await started(world, App(minimum=4, cpu=1))
        world.submit("demo/t0", "demo/t1", "demo/t2", "demo/t3", cpu_milli=1000)
        for number in range(4):
            world.show(app.executor_pod(number, cpu=4))
        await world.decide()
        assert [world.row(f"demo/t{number}").operation is not None for number in range(4)] == [True] * 4


async def test_elastic_executors_do_not_take_what_is_reserved_for_another_application():
    async with desk() as world:
        first, second = App("a", minimum=0), App("b", minimum=2)
        world.submit_application(first)
        await world.decide()
        await world.start_driver(first)
        world.submit_application(second)
        assert ("create", "b-driver n1") in await world.decide()
        world.show(first.executor_pod(1))
        assert await world.decide() == [("create", "b-driver n1")]


async def test_executors_are_charged_to_the_queue_of_their_driver_whatever_their_labels_say():
    queues = [model.Queue.of(model.QueueName(name)) for name in ("default", "q", "other")]
    async with desk() as world:
        world.scheduler.set_queues(queues)
        app = App(minimum=1, queue=model.QueueName("q"))
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1, labels={"boathouse.dev/queue": "other"}))
        await world.decide()
        assert (world.used("q"), world.used("other")) == (2000, 0)


def _of_another_namespace(pod):
    return replace(pod, metadata=replace(pod.metadata, namespace="other"))


def _of_another_scheduler(pod):
    return replace(pod, spec=replace(pod.spec, scheduler_name="default-scheduler"))


@pytest.mark.parametrize("forged", [_of_another_namespace, _of_another_scheduler])
@pytest.mark.parametrize("node", ["", "n1"])
async def test_a_pod_of_another_namespace_or_scheduler_is_no_executor_whatever_owner_it_says(forged, node):
    async with desk() as world:
        app = App(minimum=2, queue=model.QueueName("q"))
        world.scheduler.set_queues([model.Queue.of(model.QueueName(name)) for name in ("default", "q")])
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1, "n1"))
        world.show(forged(app.executor_pod(2, node)))
        assert await world.decide() == []
        assert (world.used("q"), world.reserved(app)) == (3000, ["n1"])


async def test_executors_that_are_listed_before_their_driver_are_charged_once_it_is_there():
    async with desk() as world:
        app = App(minimum=2, queue=model.QueueName("q"))
        world.scheduler.set_queues([model.Queue.of(model.QueueName(name)) for name in ("default", "q")])
        world.show(app.executor_pod(1, "n1"))
        world.show(app.executor_pod(2))
        assert (world.used("q"), world.used()) == (0, 1000)
        world.show(app.driver_pod())
        assert (world.used("q"), world.used()) == (2000, 0)
        assert await world.decide() == []  # nobody has submitted the application yet
        world.submit_application(app)
        assert await world.decide() == [("bind", "uid-a-exec-2 n1")]
        assert world.reserved(app) == []


async def test_a_restart_reserves_as_much_as_before():
    async with desk() as world:
        app = App(minimum=3)
        world.show(app.driver_pod())
        world.show(app.executor_pod(1, "n1"))
        world.submit("demo/t0", "demo/t1", "demo/t2")
        world.submit_application(app)
        assert await world.decide() == []
        assert world.reserved(app) == ["n1", "n1"]


def annotated(app: App, node: str, **reserved: int) -> wire.PodView:
    """A driver's pod that says where room was reserved for its executors."""
    pod = app.driver_pod(node)
    annotations = {names.ANNOTATION_RESERVED: json.dumps(reserved)}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


async def test_a_driver_is_created_with_the_nodes_that_are_reserved_for_its_executors():
    async with desk() as world:
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        operation = world.row(app.driver).operation
        annotations = world.scheduler.executor._reserved(operation)
        assert annotations == {names.ANNOTATION_RESERVED: '{"n1": 3}'}


async def test_a_restart_reserves_room_on_the_nodes_of_before():
    async with desk("n1", "n2", "n3") as world:
        app = App(minimum=3)
        world.show(annotated(app, "n1", n2=2, n3=1))
        world.show(app.executor_pod(1, "n3"))
        world.submit_application(app)
        await world.decide()
        assert world.reserved(app) == ["n2", "n2"]


async def test_after_a_restart_nothing_is_placed_before_reservations_are_known():
    async with desk() as world:
        app = App(minimum=3)
        world.show(annotated(app, "n1", n1=3))
        world.submit("demo/t")
        assert await world.decide() == []
        world.submit_application(app)
        assert await world.decide() == []
        assert world.reserved(app) == ["n1", "n1", "n1"]


async def test_after_a_restart_an_executor_without_a_node_keeps_the_room_that_was_reserved_for_it():
    async with desk() as world:
        app = App(minimum=1, cpu=3)
        world.show(annotated(app, "n1", n1=1))
        world.show(app.executor_pod(1))
        world.submit("demo/t")
        assert await world.decide() == []
        world.submit_application(app)
        assert await world.decide() == [("bind", f"{app.executor_pod(1).metadata.uid} n1")]


async def test_a_driver_that_nobody_submits_holds_the_others_up_for_some_seconds_only():
    async with desk() as world:
        world.show(annotated(App(minimum=3), "n1", n1=3))
        world.submit("demo/t")
        await world.decide()
        world.now_s += reservations.RESTORE_S
        assert await world.decide() == [("create", "t n1")]


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"n1": "x"}'])
async def test_an_annotation_that_cannot_be_read_reserves_nothing(text):
    pod = annotated(App(), "n1")
    annotations = {names.ANNOTATION_RESERVED: text}
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations)
    assert manifests.TRANSFORM_POD(msgspec.structs.replace(pod, metadata=metadata)).reserved == ()


async def test_executors_of_a_driver_that_ended_are_not_bound():
    async with desk() as world:
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        pod = await world.start_driver(app)
        world.delete(pod)
        world.show(app.executor_pod(1))
        assert await world.decide() == []
        assert world.reserved(app) == []


async def test_a_pending_executor_is_not_bound_once_its_driver_ended():
    async with desk() as world:
        app = App(minimum=1, cpu=3)
        world.submit_application(app)
        await world.decide()
        pod = await world.start_driver(app)
        world.show(app.executor_pod(1, cpu=4))
        assert await world.decide() == []
        world.delete(pod)
        assert await world.decide() == []
        assert world.row("demo/a-exec-1").task is None


async def test_executors_of_an_earlier_attempt_are_not_bound():
    async with desk() as world:
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        later = App(minimum=1)
        later.name = "a2"
        world.submit_application(later)
        world.show(app.executor_pod(1))
        assert await world.decide() == [("create", "a2-driver n1")]


async def test_executors_of_an_application_that_was_withdrawn_are_not_bound():
    async with desk() as world:
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1))
        world.scheduler.withdraw(app.job.id)
        assert await world.decide() == []


async def test_a_pod_whose_controller_does_not_exist_is_not_bound():
    async with desk() as world:
        world.show(App().executor_pod(1))
        assert await world.decide() == []


async def test_an_expired_reservation_ends_and_executors_come_as_elastic_ones():
    async with desk() as world:
        app = App(minimum=2)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.submit_application(app, expected=0)
        await world.decide()
        assert (world.reserved(app), world.used()) == ([], 1000)
        world.show(app.executor_pod(1))
        assert await world.decide() == [("bind", "uid-a-exec-1 n1")]


async def test_a_lost_executor_has_room_reserved_for_the_next_one():
    async with desk() as world:
        app = App(minimum=1)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        lost = app.executor_pod(1, "n1")
        world.show(lost)
        await world.decide()
        world.delete(lost)
        world.submit("demo/t0", "demo/t1", "demo/t2")
        assert len(await world.decide()) == 2
        assert world.reserved(app) == ["n1"]


async def test_reservations_move_when_their_node_is_deleted():
    async with desk("n1") as world:
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        big = App("b", minimum=1, cpu=2)
        world.node("n2")
        world.submit_application(big)
        await world.decide()
        assert world.reserved(big) == ["n2"]
        world.node("n3")
        world.delete_node("n2")
        await world.decide()
        assert world.reserved(app) == ["n1", "n1", "n1"]


async def test_a_bind_that_fails_keeps_its_place_and_is_tried_again_later():
    async with desk() as world:
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        world.show(app.executor_pod(1))
        await world.decide()
        await world.answer("bind", "uid-a-exec-1 n1", TimeoutError("late"))
        assert await world.decide() == []
        assert len(world.reserved(app)) == 3
        world.now_s += 60
        await world.decide()
        assert world.row("demo/a-exec-1").operation is not None
        assert len(world.reserved(app)) == 2


async def test_reservations_move_when_their_node_is_cordoned():
    async with desk("n1", "n2") as world:
        app = App(minimum=2, cpu=2, driver_cpu=3)
        world.submit_application(app)
        await world.decide()
        await world.start_driver(app)
        assert world.reserved(app) == ["n2", "n2"]
        world.node("n3")
        await world.decide()
        assert world.reserved(app) == ["n2", "n2"]
        world.node("n2", unschedulable=True)
        await world.decide()
        assert world.reserved(app) == ["n3", "n3"]


# What never fits


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (App(driver_cpu=5), "the driver requests 5 cpu"),
        (App(cpu=5), "an executor requests 5 cpu"),
        (App(minimum=8), "all nodes have room for the driver and 7 of them"),
        (App(minimum=3, cpu=2, driver_cpu=4), "all nodes have room for the driver and 2 of them"),
    ],
)
async def test_a_gang_that_is_larger_than_the_cluster_never_fits(app, words):
    async with desk("n1", "n2") as world:
        world.submit_application(app)
        assert await world.decide() == []
        found = world.scheduler.diagnosis(app.job.id)
        assert found.reason == "NeverFits"
        assert words in found.message


async def test_a_gang_that_never_fitted_starts_when_there_is_another_node():
    async with desk() as world:
        app = App(minimum=5)
        world.submit_application(app)
        await world.decide()
        assert world.reason(app) == "NeverFits"
        await world.decide()  # it is judged once more: since it waits, the nodes have not been compared
        world.node("n2")
        assert await world.decide() == []
        assert world.scheduler.decider._reservations.next_s() == reservations.JUDGE_EVERY_S
        world.now_s += reservations.JUDGE_EVERY_S
        assert len(await world.decide()) == 1
        assert len(world.reserved(app)) == 5


async def test_a_gang_above_the_limit_of_its_queue_never_fits_until_the_limit_is_raised():
    async with desk() as world:
        app = App(minimum=3)
        world.scheduler.set_queues([model.Queue.of(app.queue, limits={"cpu": 3000})])
        world.submit_application(app)
        await world.decide()
        assert world.reason(app) == "NeverFits"
        world.scheduler.set_queues([model.Queue.of(app.queue, limits={"cpu": 4000})])
        world.now_s += 2
        assert await world.decide() == [("create", "a-driver n1")]


async def test_reservations_count_for_the_limit_of_the_queue():
    async with desk("n1", "n2") as world:
        app = App(minimum=2)
        world.scheduler.set_queues([model.Queue.of(app.queue, limits={"cpu": 4000})])
        world.submit_application(app)
        await world.decide()
        world.submit("demo/t0", "demo/t1")
        assert len(await world.decide()) == 2


# Quotas


async def test_a_gang_above_a_quota_does_not_start_and_says_so():
    async with desk() as world:
        app = App(minimum=3)
        world.quota(pods="3")
        world.submit_application(app)
        assert await world.decide() == []
        assert world.reason(app) == "ExceedsQuota"


async def test_a_gang_waits_for_what_others_use_of_a_quota():
    async with desk() as world:
        app = App(minimum=3)
        world.quota(cpu="4", used={"cpu": "1"})
        world.submit_application(app)
        assert await world.decide() == []
        assert world.reason(app) == "QuotaExceeded"
        world.quota(cpu="4", used={"cpu": "0"})
        assert await world.decide() == [("create", "a-driver n1")]


async def test_a_gang_starts_when_a_quota_that_it_exceeds_is_deleted():
    async with desk() as world:
        world.quota(pods="3")
        world.submit_application(App(minimum=3))
        assert await world.decide() == []
        world.delete_quota()
        assert await world.decide() == [("create", "a-driver n1")]


async def test_a_gang_that_requests_what_only_dynamic_allocation_offers_says_so():
    async with desk() as world:
        gpus = views.DeviceClassView(
            metadata=wire.ObjectMeta(name="gpu"), spec=views.DeviceClassSpec(extended_resource_name="example.com/gpu")
        )
        world.scheduler.intake.on_device_class(store.Added(key="gpu", new=gpus))
        app = App(minimum=1, extended={"example.com/gpu": 1})
        world.submit_application(app)
        await world.decide()
        message = world.scheduler.diagnosis(app.job.id).message
        assert "DeviceClass gpu offers example.com/gpu by dynamic resource allocation" in message
        world.scheduler.intake.on_device_class(store.Deleted(key="gpu", old=gpus))
        world.node("n2")
        world.now_s += 2
        await world.decide()
        assert "DeviceClass" not in world.scheduler.diagnosis(app.job.id).message


async def test_two_gangs_do_not_share_what_a_quota_has_left():
    async with desk("n1", "n2") as world:
        first, second = App("a", minimum=2), App("b", minimum=2)
        world.quota(**{"requests.cpu": "5"})
        world.submit_application(first)
        world.submit_application(second)
        assert await world.decide() == [("create", "a-driver n1")]
        assert world.reason(second) == "QuotaExceeded"
        assert world.refused == [("demo/b-driver", "n2", "QuotaExceeded")]


@pytest.mark.parametrize(
    "pods", [{"scheduling_gates": ({"name": "later"},)}, {"node_selector": {"kubernetes.io/hostname": "none"}}]
)
async def test_no_more_is_reserved_than_a_quota_has_left_whatever_pods_a_driver_creates(pods):
    async with desk("n1", "n2", "n3") as world:
        world.quota(**{"requests.cpu": "8"})
        first, second = await started(world, App("a", minimum=2, cpu=2)), App("b", minimum=1, cpu=2)
        for number in range(2):
            world.show(first.executor_pod(number, cpu=1, **pods))
        world.quota(used={"requests.cpu": "3"}, **{"requests.cpu": "8"})
        world.submit_application(second)
        await world.decide()
        reserved = 2 * len(world.reserved(first)) + 2 * len(world.reserved(second))
        created = 3 + (world.row(str(second.driver)).operation is not None)
        assert reserved + created <= 8


async def test_a_reservation_that_expired_is_no_more_part_of_a_quota():
    async with desk("n1", "n2") as world:
        first, second = App("a", minimum=2), App("b", minimum=2)
        world.quota(**{"requests.cpu": "5"})
        world.submit_application(first)
        await world.decide()
        await world.start_driver(first)
        world.quota(used={"requests.cpu": "1"}, **{"requests.cpu": "5"})
        world.submit_application(second)
        assert await world.decide() == []
        world.submit_application(first, expected=0)
        assert ("create", "b-driver n2") in await world.decide()


# Gangs and small tasks


async def flood(world: DriverDesk, app: App, rounds: int) -> bool:
    """Keep a node full of tasks of one core, of which one ends at a time; return whether the driver starts."""
    running = [f"f{number}" for number in range(4)]
    world.submit(*(f"demo/{name}" for name in running), job_id="flood")
    await world.decide()
    world.submit_application(app)
    for number in range(4, 4 + rounds):
        running.append(f"f{number}")
        world.submit(*(f"demo/{name}" for name in running), job_id="flood")
        for verb, what in await world.decide():
            if what.startswith("a-driver"):
                return True
            if verb == "create":
                name = what.partition(" ")[0]
                pod = made(name, number)
                await world.answer(verb, what, pod)
                world.show(pod)
        ended = running.pop(0)
        world.delete(made(ended, number + 1000))
        world.now_s += 10
    return False


def made(name: str, revision: int) -> wire.PodView:
    return desks.task_pod(f"demo/{name}", node="n1", revision=revision)


async def test_a_gang_is_not_starved_by_small_tasks():
    async with desk(pending_ahead=0) as world:
        assert await flood(world, App(minimum=3), rounds=12)


async def test_a_drained_reservation_is_released_after_a_time_and_the_next_gang_has_its_turn():
    async with desk("n1", "n2", pending_ahead=0) as world:
        first, second = App("a", minimum=3), App("b", minimum=2)
        running = [desks.task_pod(f"demo/t{n}", node=f"n{n % 2 + 1}", revision=5) for n in range(8)]
        for pod in running:
            world.show(pod)
        world.submit_application(first)
        await world.decide()
        world.now_s += 1
        world.submit_application(second)
        await world.decide()
        assert world.draining() == []
        world.now_s += gathering.PATIENCE_S - 1
        await world.decide()
        assert world.draining() == ["a"]
        world.delete(running[0])
        assert await world.decide() == []
        assert world.kept() == ["n1"]
        began_s = world.now_s
        world.now_s = began_s + 599.9
        await world.decide()
        assert (world.draining(), world.kept()) == (["a"], ["n1"])
        world.now_s = began_s + 600
        await world.decide()
        assert (world.draining(), world.kept()) == (["b"], ["n1"])


async def test_above_the_fair_part_of_its_namespace_a_gang_has_released_room_for_a_minute_and_then_none_for_as_long():
    async with desk("n1", "n2", pending_ahead=0) as world:
        running = [desks.task_pod(f"demo/t{n}", node=f"n{n % 2 + 1}", revision=5) for n in range(8)]
        for pod in running:
            world.show(pod)
        app = App(minimum=7)
        world.submit_application(app)
        world.scheduler.submit(*_of_a_third_namespace(), desks.Factory())
        await world.decide()
        world.now_s += gathering.PATIENCE_S + 1
        for pod in running[:7]:
            world.delete(pod)
            world.now_s += 1
            await world.decide()
        assert len(world.kept()) == 7
        world.now_s += gathering.ABOVE_PART_S + 1
        for _ in range(3):
            world.now_s += 1
            await world.decide()
        assert (world.draining(), world.kept()) == ([], [])
        world.now_s += gathering.ABOVE_PART_S - 10
        await world.decide()
        assert world.draining() == []


def _of_a_third_namespace():
    """A job of a namespace that waits for a node of its own."""
    job = model.Job(id=model.JobId("third"), queue=desks.QUEUE, submitted_s=0, namespace=model.NamespaceName("third"))
    size = model.Resources(cpu_milli=4000, memory_bytes=1 << 20)
    whole = model.TaskClass(id=model.ClassId("third/map"), job=job.id, resources=size)
    return job, [whole], [model.Task(id=model.TaskId("third/t"), task_class=whole.id)]


async def test_without_reserving_for_it_small_tasks_starve_a_gang(monkeypatch):
    monkeypatch.setattr(gathering, "PATIENCE_S", 1e9)
    async with desk(pending_ahead=0) as world:
        assert not await flood(world, App(minimum=3), rounds=12)


async def test_the_factory_of_a_driver_gets_the_resources_chosen_for_its_executors():
    async with desk() as world:
        app = App(minimum=2, cpu=1)
        world.submit_application(app)
        await world.decide()
        executor, entry = world.scheduler.executor, world.scheduler.state.jobs.entry(app.job.id)
        assert executor._expected(entry, app.driver) == app.classes[1].resources
        assert executor._expected(entry, model.TaskId("demo/other")) is None


async def test_a_profile_that_reserves_nodes_for_gangs_replaces_the_reservation_of_released_room():
    async with desk(profile="ikayak") as world:
        world.submit("demo/t", cpu_milli=1000)
        await world.decide()
        app = App(minimum=3)
        world.submit_application(app)
        await world.decide()
        world.now_s += gathering.PATIENCE_S + 1
        await world.decide()
        assert world.draining() == []
        assert world.scheduler.state.queue.reserved.keys() == {"n1"}
        await world.decide()
        assert "nodes have been reserved for it for" in world.scheduler.diagnosis(app.job.id).message
        assert [one["reason"] for one in world.published] == ["Reserved"]


@pytest.mark.parametrize(("profile", "waits"), [("ikayak", True), ("fair", False)])
async def test_a_profile_that_keeps_account_of_running_tasks_waits_for_their_jobs(profile, waits):
    async with desk(profile=profile) as world:
        running = App("r", minimum=0)
        world.show(running.driver_pod("n1", phase="Running"))
        world.submit("demo/t")
        assert (await world.decide() == []) is waits
        world.submit_application(running)
        assert await world.decide() == [("create", "t n1")]


async def test_tasks_whose_job_is_not_submitted_are_not_waited_for_for_long():
    async with desk(profile="ikayak") as world:
        world.show(App("r", minimum=0).driver_pod("n1", phase="Running"))
        world.submit("demo/t")
        assert await world.decide() == []
        world.now_s += reservations.LEARN_S
        assert await world.decide() == [("create", "t n1")]
