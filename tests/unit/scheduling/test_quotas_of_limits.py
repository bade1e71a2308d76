"""Quotas that count limits: a driver starts only when those of its executors are within them too."""

import pytest

from boathouse.scheduling.pods import translate
from tests.builders.operators.applications import App
from tests.unit.scheduling.test_admitted import ExpectingFactory, MutatingDesk, manifest, submit_application


def limited(body, **limits):
    resources = body["spec"]["containers"][0]["resources"]
    resources["requests"]["ephemeral-storage"] = "0"
    resources["limits"] = {name.replace("_", "-"): one for name, one in limits.items()}
    return body


class LimitedFactory(ExpectingFactory):
    """Builds drivers and executors with limits of two cores and 1Gi each."""

    def build(self, task, resources, node, _expected=None):
        return limited(super().build(task, resources, node), cpu="2", ephemeral_storage="1Gi")

    def build_expected(self, _expected):
        return limited(manifest("executor", ""), cpu="2", ephemeral_storage="1Gi")


def starts(desk):
    return [name for name, _, _ in desk.created]


@pytest.mark.parametrize(
    ("line", "least", "message"),
    [
        ("limits.cpu", "6", "request 6 limits.cpu, and quota small allows 5"),
        ("limits.ephemeral-storage", "3Gi", "request 3Gi limits.ephemeral-storage, and quota small allows 2Gi"),
    ],
)
async def test_a_driver_waits_for_a_quota_of_limits_that_its_executors_need(line, least, message):
    async with MutatingDesk().writing() as desk:
        app = App(minimum=2)
        less = {"6": "5", "3Gi": "2Gi"}[least]
        desk.quota(**{line: less})
        submit_application(desk, app, LimitedFactory)
        await desk.settle()
        assert (starts(desk), desk.reason(app)) == ([], "ExceedsQuota")
        assert message in desk.scheduler.diagnosis(app.job.id).message
        desk.quota(**{line: least})
        await desk.settle()
        assert starts(desk) == ["a-driver"]


async def test_limits_that_another_driver_was_promised_are_not_given_twice():
    async with MutatingDesk().writing() as desk:
        desk.quota(**{"limits.cpu": "5"})
        submit_application(desk, App("a", minimum=1), LimitedFactory)
        submit_application(desk, App("b", minimum=1), LimitedFactory)
        await desk.settle()
        assert starts(desk) == ["a-driver"]


def test_a_limit_that_a_container_lacks_is_not_counted():
    assert translate.manifest_limits(limited(manifest(), cpu="2")) == {"limits.cpu": 2000}
    assert translate.manifest_limits(manifest()) == {}
