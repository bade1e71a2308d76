"""Which pending gangs show themselves to a cluster autoscaler, and with how many placeholders."""

import dataclasses

import pytest

from boathouse.cluster import store
from boathouse.resources.config import AutoscalingConfig
from boathouse.scheduling import gangs, showing
from boathouse_policies import model
from tests.builders import core_elastic
from tests.builders.operators.applications import App, DriverDesk

DELAY_S = 1.0


class ShowingDesk(DriverDesk):
    """A desk whose scheduler decides which gangs show themselves."""

    def __init__(self, **options):
        super().__init__(**options)
        self.shown = showing.ShownGangs(self.scheduler.state)

    def counts(self):
        """Return the number of placeholders by job, without jobs that have none."""
        found = self.shown.decide()
        return {str(job): len(one.placeholders) for job, one in found.items() if one.placeholders}

    async def after_a_while(self):
        """Let gangs wait for so long that they show themselves; return the number of placeholders by job."""
        for _ in range(2):
            await self.decide()
            self.now_s += DELAY_S
            self.shown.decide()
            self.now_s += DELAY_S
        return self.counts()

    def placeholder(self, app, number, *, is_gone=False):
        """Show a placeholder, or its end."""
        pod = app.placeholder_pod(number)
        known = self.scheduler.transform_pod(pod)
        change = store.Deleted(key=known.id, old=known) if is_gone else store.Added(key=known.id, new=known)
        self.scheduler.intake.on_pod(change)
        self.scheduler.state.placeholders.on_pod(change)


@pytest.fixture
async def desk():
    made = ShowingDesk()
    async with made.writing():
        yield made


async def test_a_gang_shows_itself_whole_where_there_is_no_node(desk):
    app = App(minimum=3)
    desk.submit_application(app)
    await desk.decide()
    assert desk.counts() == {}  # it may get a node at once
    assert await desk.after_a_while() == {"a": 3}
    assert desk.shown.decide()[app.job.id].with_driver


async def test_a_gang_that_is_larger_than_the_cluster_shows_itself(desk):
    desk.node("n1")
    desk.submit_application(App(minimum=30))
    assert await desk.after_a_while() == {"a": 30}
    assert desk.reason(App()) == "NeverFits"


async def test_a_gang_that_waits_for_the_room_of_others_shows_itself(desk):
    desk.node("n1")
    desk.submit("demo/t", cpu_milli=3000)
    await desk.decide()
    desk.submit_application(App(minimum=2))
    assert await desk.after_a_while() == {"a": 2}
    assert desk.reason(App()) == "Gang"


async def test_no_node_cures_a_limit_of_the_queue_or_a_quota(desk):
    desk.scheduler.set_queues([model.Queue.of("default", limits={"cpu": 2000}), model.Queue.of("free")])
    desk.submit_application(App("above", minimum=3))
    desk.submit_application(App("within", minimum=1, queue=model.QueueName("free")))
    assert await desk.after_a_while() == {"within": 1}
    desk.quota(pods="1")
    assert await desk.after_a_while() == {}


async def test_no_node_cures_a_queue_that_is_not_there(desk):
    desk.submit_application(App(minimum=1, queue=model.QueueName("missing")))
    assert await desk.after_a_while() == {}
    assert desk.reason(App()) == "UnknownQueue"


async def test_a_gang_does_not_wait_for_what_its_own_pods_take_of_the_quota(desk):
    app = App(minimum=2)
    desk.quota(used={"pods": "3"}, pods="3")
    desk.submit_application(app)
    desk.show(app.driver_pod(""))
    for number in range(2):
        desk.placeholder(app, number)
    assert await desk.after_a_while() == {"a": 2}


async def test_another_gang_waits_for_what_they_take(desk):
    desk.quota(used={"pods": "3"}, pods="3")
    for number in range(2):
        desk.placeholder(App("other", minimum=2), number)
    desk.submit_application(App(minimum=2))
    assert await desk.after_a_while() == {}
    assert desk.reason(App()) == "QuotaExceeded"


async def test_a_gang_with_too_many_executors_shows_none():
    desk = ShowingDesk(autoscaling=AutoscalingConfig(max_placeholders_per_application=2))
    desk.submit_application(App("small", minimum=2))
    desk.submit_application(App("large", minimum=3))
    assert await desk.after_a_while() == {"small": 2}
    assert "would need 3 placeholders, more than the limit 2" in desk.scheduler.diagnosis(model.JobId("large")).message
    assert "placeholders" not in desk.scheduler.diagnosis(model.JobId("small")).message


async def test_namespaces_take_turns_within_the_limit_of_all():
    desk = ShowingDesk(autoscaling=AutoscalingConfig(max_placeholders=4))
    for number in range(3):
        desk.submit_application(App(f"a{number}", minimum=2, submitted_s=float(number)))
    assert await desk.after_a_while() == {"a0": 2, "a1": 2}
    assert "limit of all placeholders" in desk.scheduler.diagnosis(model.JobId("a2")).message
    entries = [desk.scheduler.state.jobs.entry(model.JobId(f"a{number}")) for number in range(3)]
    entries[2].namespace = "another"
    assert desk.counts() == {"a0": 2, "a2": 2}


class ElasticApp(App):
    """An application whose executors may get less memory."""

    @property
    def classes(self):
        driver, executor = super().classes
        size = dataclasses.replace(executor.resources, memory_bytes=1 << 30)
        estimates = core_elastic.elastic_estimates(size, 60.0)
        return [driver, dataclasses.replace(executor, resources=size, estimates=estimates)]


async def test_a_driver_that_names_memory_which_is_chosen_later_has_a_placeholder():
    desk = ShowingDesk(profile="yarn-me")
    app = ElasticApp(minimum=2)
    desk.submit_application(app)
    assert await desk.after_a_while() == {"a": 3}
    found = desk.shown.decide()[app.job.id]
    assert [name for name, is_driver in found.placeholders.items() if is_driver] == ["demo/a-placeholder-driver"]
    assert not found.with_driver


async def test_a_cluster_of_fixed_size_shows_none():
    desk = ShowingDesk(autoscaling=AutoscalingConfig(enabled=False))
    desk.submit_application(App())
    assert await desk.after_a_while() == {}


async def begun(desk, app):
    """Show a gang, and let it begin."""
    desk.submit_application(app)
    assert await desk.after_a_while() == {app.name: app.minimum}
    for number in range(app.minimum):
        desk.placeholder(app, number)
    desk.node("n1")
    desk.now_s += 30
    await desk.decide()
    await desk.start_driver(app)
    await desk.decide()


async def test_placeholders_go_one_by_one_as_the_driver_creates_its_executors(desk):
    app = App(minimum=3)
    await begun(desk, app)
    assert desk.counts() == {"a": 3}
    desk.show(app.executor_pod(1, node="n1"))
    assert desk.counts() == {"a": 2}
    desk.placeholder(app, 1, is_gone=True)
    desk.show(app.executor_pod(2, node="n1"))
    assert desk.counts() == {"a": 1}  # that of number 0
    desk.show(app.executor_pod(3, node="n1"))
    assert desk.counts() == {}


async def test_a_gang_that_has_begun_gets_no_further_placeholders(desk):
    app = App(minimum=3)
    await begun(desk, app)
    desk.placeholder(app, 0, is_gone=True)
    assert desk.counts() == {"a": 2}
    assert not desk.shown.decide()[app.job.id].creates


async def test_placeholders_give_way_where_the_quota_has_no_room_for_both(desk):
    app = App(minimum=3)
    await begun(desk, app)
    desk.quota(used={"pods": "4"}, pods="6")
    assert desk.counts() == {}
    desk.quota(used={"pods": "4"}, pods="7")
    assert desk.counts() == {"a": 3}


async def test_a_new_leader_keeps_placeholders_until_their_gang_is_judged(desk):
    app = App(minimum=2)
    desk.placeholder(app, 0)
    desk.submit_application(app)
    assert desk.counts() == {"a": 1}
    assert not desk.shown.decide()[app.job.id].creates


def test_a_placeholder_has_a_name_that_follows_from_the_executor_for_which_it_stands():
    assert gangs.of_executor(model.TaskId("demo/a#7")) == "demo/a-placeholder-7"
