"""What other objects say of a job."""

import pytest

from boathouse.cluster import errors
from boathouse.services.frame import related_objects
from boathouse.services.frame.related_objects import RelatedObjects


class Api:
    """Holds the PriorityClass `high`, and the service account and the ConfigMap `there`."""

    def __init__(self) -> None:
        self.reads = []

    async def get(self, _resource, name, _namespace=None):
        self.reads.append(name)
        if name == "secret":
            raise errors.Forbidden(403, "Forbidden", "")
        if name not in {"high", "there"}:
            raise errors.NotFound(404, "NotFound", "")
        return {"value": 1000, "data": {"key": "value"}}


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
    for number in range(3 * related_objects.KEPT):
        await related.priority(f"p{number}")
    assert len(related._priorities._known) <= related_objects.KEPT


async def test_a_namespace_that_is_gone_is_not_terminating(api):
    assert not await RelatedObjects(api, lambda: 0.0).is_terminating("gone")


async def test_an_account_that_is_missing_is_read_again_sooner_than_one_that_exists(api):
    now_s = 0.0
    related = RelatedObjects(api, lambda: now_s)
    assert [await related.has_account("demo", name) for name in ("there", "absent", "there", "absent")] == [
        True,
        False,
    ] * 2
    now_s = 11.0
    assert [await related.has_account("demo", name) for name in ("there", "absent")] == [True, False]
    assert api.reads == ["there", "absent", "absent"]


async def test_an_account_that_may_not_be_read_is_assumed_to_exist(api):
    assert await RelatedObjects(api, lambda: 0.0).has_account("demo", "secret")


async def test_a_missing_config_map_and_a_missing_key_are_named(api):
    related = RelatedObjects(api, lambda: 0.0)
    asked = [("there", "key"), ("there", None), ("there", "k"), ("absent", None)]
    assert [await related.missing_config_map("demo", *each) for each in asked] == [
        "",
        "",
        'ConfigMap "there" has no key "k"',
        'there is no ConfigMap "absent"',
    ]
