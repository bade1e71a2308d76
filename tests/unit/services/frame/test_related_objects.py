"""What other objects say of a job."""

import pytest

from boathouse.cluster import errors
from boathouse.services.frame import related_objects
from boathouse.services.frame.related_objects import RelatedObjects


class Api:
    """Holds the PriorityClass `high`."""

    def __init__(self) -> None:
        self.reads = []

    async def get(self, _resource, name):
        self.reads.append(name)
        if name != "high":
            raise errors.NotFound(404, "NotFound", "")
        return {"value": 1000}


@pytest.fixture
def api():
    return Api()


async def test_the_value_of_a_priority_class_is_cached_for_a_minute(api):
    now_s = 0.0
    related = RelatedObjects(api, lambda: now_s)
    assert [await related.priority("high") for _ in range(3)] == [1000] * 3
    now_s = 61.0
    await related.priority("high")
    assert api.reads == ["high"] * 2


async def test_a_class_that_does_not_exist_has_no_value(api):
    related = RelatedObjects(api, lambda: 0.0)
    assert (await related.priority("none"), await related.priority("")) == (0, 0)
    assert api.reads == ["none"]


async def test_the_cache_has_a_limit(api):
    related = RelatedObjects(api, lambda: 0.0)
    for number in range(3 * related_objects.PRIORITIES_KEPT):
        await related.priority(f"p{number}")
    assert len(related._priorities) <= related_objects.PRIORITIES_KEPT


async def test_a_namespace_that_is_gone_is_not_terminating(api):
    assert not await RelatedObjects(api, lambda: 0.0).is_terminating("gone")
