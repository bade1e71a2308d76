"""Other objects on which a job depends."""

import asyncio
from types import SimpleNamespace

import pytest

from boathouse.cluster import errors
from boathouse.services.frame import pod_life, related_objects
from boathouse.services.frame.related_objects import RelatedObjects

NOT_MOUNTED = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'


class ObjectServer:
    """Holds the PriorityClass `high`, service account and ConfigMap `there`, and ConfigMaps `large*` of 1 MiB."""

    def __init__(self) -> None:
        self.reads = []

    async def get(self, _resource, name, _namespace=None):
        self.reads.append(name)
        if name == "secret":
            raise errors.Forbidden(403, "Forbidden", "")
        if name.startswith("large"):
            return {"data": {"key": "v" * 1024 * 1024}}
        if name not in {"high", "there"}:
            raise errors.NotFound(404, "NotFound", "")
        return {"value": 1000, "data": {"key": "value"}}

    async def list_page(self, _resource, _namespace, *, fields, limit):
        self.reads.append(fields)
        return SimpleNamespace(items=[{"reason": "FailedMount", "note": NOT_MOUNTED}][:limit])


@pytest.fixture
def server():
    return ObjectServer()


async def test_the_value_of_a_priority_class_is_cached_for_a_minute(server):
    now_s = 0.0
    related = RelatedObjects(server, lambda: now_s)
    assert [await related.priority("high") for _ in range(3)] == [1000] * 3
    now_s = 61.0
    await related.priority("high")
    assert server.reads == ["high"] * 2


async def test_a_class_that_does_not_exist_has_no_value(server):
    related = RelatedObjects(server, lambda: 0.0)
    assert (await related.priority("none"), await related.priority("")) == (0, 0)
    assert server.reads == ["none"]


async def test_missing_objects_of_a_pods_volumes_are_read_again_after_ten_seconds(server):
    now_s = 0.0
    related = RelatedObjects(server, lambda: now_s)
    found = [await related.missing_in_volumes("demo", "uid") for _ in range(3)]
    assert [(problem.reason, problem.message) for problem in found] == [("SecretNotFound", NOT_MOUNTED)] * 3
    now_s = 11.0
    await related.missing_in_volumes("demo", "uid")
    assert server.reads == ["regarding.uid=uid"] * 2


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (NOT_MOUNTED, "SecretNotFound"),
        ('MountVolume.SetUp failed for volume "c" : configmap "conf" not found', "ConfigMapNotFound"),
        ('MountVolume.SetUp failed for volume "k" : references non-existent secret key: a', "SecretNotFound"),
        ('MountVolume.SetUp failed for volume "pvc-1" : rpc error: code = Internal', None),
    ],
)
def test_a_kubelets_event_says_what_is_missing(note, reason):
    found = pod_life.mount_problem([{"reason": "Scheduled"}, {"reason": "FailedMount", "note": note}])
    assert (found and found.reason) == reason


def test_once_its_image_is_pulled_nothing_is_missing():
    assert pod_life.mount_problem([{"reason": "FailedMount", "note": NOT_MOUNTED}, {"reason": "Pulling"}]) is None


async def test_the_cache_has_a_limit(server):
    related = RelatedObjects(server, lambda: 0.0)
    for number in range(3000):
        await related.priority(f"p{number}")
    assert related._priorities.used_bytes <= related_objects.MAX_BYTES


async def test_a_namespace_that_is_gone_is_not_terminating(server):
    assert not await RelatedObjects(server, lambda: 0.0).is_terminating("gone")


async def test_an_account_that_is_missing_is_read_again_sooner_than_one_that_exists(server):
    now_s = 0.0
    related = RelatedObjects(server, lambda: now_s)
    assert [await related.has_account("demo", name) for name in ("there", "absent", "there", "absent")] == [
        True,
        False,
    ] * 2
    now_s = 11.0
    assert [await related.has_account("demo", name) for name in ("there", "absent")] == [True, False]
    assert server.reads == ["there", "absent", "absent"]


async def test_an_account_that_may_not_be_read_is_assumed_to_exist(server):
    assert await RelatedObjects(server, lambda: 0.0).has_account("demo", "secret")


async def test_a_missing_config_map_and_a_missing_key_are_named(server):
    related = RelatedObjects(server, lambda: 0.0)
    assert await related.missing_keys("demo", [("there", "key"), ("there", "k"), ("absent", "k")]) == [
        "",
        'ConfigMap "there" has no key "k"',
        'there is no ConfigMap "absent"',
    ]
    missing = [await related.missing_config_map("demo", name) for name in ("there", "absent")]
    assert missing == ["", 'there is no ConfigMap "absent"']


async def test_a_config_map_is_read_once_however_many_files_and_jobs_name_it(server):
    now_s = 0.0
    related = RelatedObjects(server, lambda: now_s)
    wanted = [("there", f"key-{number}") for number in range(492)]
    await asyncio.gather(*(related.missing_keys("demo", wanted) for _ in range(10)))
    assert server.reads == ["there"]
    now_s = 6.0
    await related.missing_keys("demo", wanted)
    assert server.reads == ["there"] * 2


async def test_hundreds_of_different_large_config_maps_of_a_namespace_are_read_within_its_budget(server):
    seconds = [0.0]
    related = RelatedObjects(server, lambda: seconds[-1])
    wanted = [(f"large-{number}", "key") for number in range(492)]
    while seconds[-1] < 60:
        seconds.append(seconds[-1] + 6)
        assert not any(await related.missing_keys("greedy", wanted))
    assert len(server.reads) <= 64 + 60
    assert await related.missing_keys("modest", [("large-0", "key"), ("absent", "k")]) == [
        "",
        'there is no ConfigMap "absent"',
    ]


async def test_a_namespace_that_read_too_much_is_told_again_what_is_missing_after_a_while(server):
    now_s = 0.0
    related = RelatedObjects(server, lambda: now_s)
    await related.missing_keys("demo", [(f"large-{number}", "key") for number in range(64)])
    assert await related.missing_config_map("demo", "absent") == ""
    now_s = 2.0
    assert await related.missing_config_map("demo", "absent") == 'there is no ConfigMap "absent"'
