"""The learned state, which is read from a ConfigMap that may hold anything."""

import asyncio
import base64
import dataclasses
import gzip
import json
import random
import tracemalloc
from unittest import mock

import pytest

from boathouse.cluster import errors
from boathouse.services import learned
from boathouse_policies import fspy, profiles, run_times
from tests.builders import mrjobs
from tests.builders.bombs import bomb


class Api:
    """Holds one ConfigMap."""

    def __init__(self, plain=b"", packed=None):
        packed = gzip.compress(plain) if packed is None else packed
        self.found = {"binaryData": {learned.KEY: base64.b64encode(packed).decode()}}

    async def get(self, *_):
        if self.found is None:
            raise errors.NotFound(404, "NotFound", "")
        return self.found

    async def replace(self, _resource, _name, manifest, _namespace):
        self.found = manifest


class Part:
    """Remembers one number."""

    def __init__(self, value=1):
        self.value = value

    def dump(self):
        return {"value": self.value}

    def load(self, state):
        self.value = state["value"]
        if not isinstance(self.value, int):
            raise OverflowError("half way")


def saved_parts(api):
    return json.loads(gzip.decompress(base64.b64decode(api.found["binaryData"][learned.KEY])))


async def load_and_save(api, **parts):
    """Load these parts as a new leader, and save them."""
    saved = learned.SavedState(api, "ns", parts, lambda: True)
    await saved.load()
    await saved.save()


async def load(plain=b"", packed=None, **parts):
    await learned.SavedState(Api(plain, packed), "ns", parts, lambda: True).load()


async def test_a_part_that_cannot_be_dumped_keeps_its_last_dump_and_costs_no_other_part():
    a, b, api = Part(1), Part(2), Api()
    saved = learned.SavedState(api, "ns", {"a": a, "b": b}, lambda: True)
    await saved.save()
    a.value, b.value = {1, object()}, 3
    await saved.save()
    assert saved_parts(api) == {"a": {"value": 1}, "b": {"value": 3}}


async def test_a_part_that_cannot_be_dumped_since_the_start_keeps_what_an_earlier_leader_saved():
    a, b, api = Part(), Part(), Api(b'{"a": {"value": 7}, "b": {"value": 8}}')
    saved = learned.SavedState(api, "ns", {"a": a, "b": b}, lambda: True)
    await saved.load()
    a.value, b.value = {1, object()}, 9
    await saved.save()
    assert saved_parts(api) == {"a": {"value": 7}, "b": {"value": 9}}


async def test_a_part_that_is_too_large_costs_no_other_part(monkeypatch):
    monkeypatch.setattr(learned, "MAX_BYTES", 200)
    large, small, api = Part(list(range(1000))), Part(2), Api()
    await learned.SavedState(api, "ns", {"a": large, "b": small}, lambda: True).save()
    assert saved_parts(api) == {"b": {"value": 2}}


async def test_a_change_of_the_profile_keeps_what_the_other_one_learned():
    api = Api(b'{"a": {"value": 7}, "b": {"value": 8}}')
    await load_and_save(api, b=Part(), c=Part(3))
    await load_and_save(api, c=Part())
    part = Part()
    await load_and_save(api, a=part)
    assert part.value == 7
    assert saved_parts(api) == {"b": {"value": 8}, "c": {"value": 3}, "a": {"value": 7}}


async def test_a_leader_that_stops_saves_what_it_learned_since_the_last_save():
    api, part = Api(b'{"a": {"value": 7}}'), Part()
    saved = learned.SavedState(api, "ns", {"a": part}, lambda: True)
    await saved.load()
    part.value = 9
    await saved.save_last()
    assert saved_parts(api) == {"a": {"value": 9}}


async def test_a_leader_that_stops_before_it_has_read_what_was_saved_writes_nothing():
    api = Api(b'{"a": {"value": 7}}')
    await learned.SavedState(api, "ns", {"a": Part(1)}, lambda: True).save_last()
    assert saved_parts(api) == {"a": {"value": 7}}


async def test_a_leader_stops_though_the_last_save_is_refused_or_gets_no_response(monkeypatch):
    monkeypatch.setattr(learned, "LAST_S", 0.01)
    api = Api(b"{}")
    saved = learned.SavedState(api, "ns", {"a": Part()}, lambda: True)
    await saved.load()
    api.replace = lambda *_: asyncio.sleep(10)
    await saved.save_last()
    api.replace = mock.AsyncMock(side_effect=errors.Forbidden(403, "Forbidden", "no"))
    await saved.save_last()


async def test_the_sizes_of_the_saved_parts_are_known():
    saved = learned.SavedState(
        Api(b'{"a": {"value": 7}, "b": {"value": 8}, "c": {}}'), "ns", {"b": Part()}, lambda: True
    )
    await saved.load()
    assert saved.sizes() == {("b",): len('{"value": 8}'), ("other",): len('{"value": 7}')}


async def test_models_outlive_the_profiles_that_do_not_use_them():
    api, learned_uber = Api(b"{}"), []
    for name in ("fspy", "boathouse", "fair", "fspy"):
        parts = {learned.key(observer): observer for observer in profiles.build(name).observers}
        saved = learned.SavedState(api, "ns", parts, lambda: True)
        await saved.load()
        if order := parts.get("fspy/SizeBased"):
            learned_uber.append(order.predictor.uber_s("ns/k"))
            order.predictor.learn_uber("ns/k", 7.0)
        await saved.save()
    assert learned_uber == [None, 7.0, 7.0]


@pytest.mark.parametrize("name", profiles.names())
def test_no_two_observers_of_a_profile_are_saved_under_one_name(name):
    observers = profiles.build(name).observers
    assert len({learned.key(observer) for observer in observers}) == len(observers)


async def test_the_oldest_part_of_another_profile_is_dropped_first_if_all_are_too_large(monkeypatch):
    monkeypatch.setattr(learned, "MAX_BYTES", 400)
    text = random.Random(0).randbytes(100).hex()
    api = Api(json.dumps({"old": {"x": text + "1"}, "new": {"x": text[::-1]}}).encode())
    await load_and_save(api, a=Part(), b=Part(5))
    assert set(saved_parts(api)) == {"old", "new", "a", "b"}
    monkeypatch.setattr(learned, "MAX_BYTES", 200)
    await load_and_save(api, a=Part(2), b=Part(5))
    assert set(saved_parts(api)) == {"new", "a", "b"}


async def test_parts_of_other_profiles_are_few_small_and_not_empty(monkeypatch):
    monkeypatch.setattr(learned, "MAX_UNREAD_BYTES", 1000)
    monkeypatch.setattr(learned, "MAX_UNREAD", 3)
    parts = {"large": {"x": "x" * 2000}, "n" * 2000: {"x": 1}, "empty": {}}
    api = Api(json.dumps({f"p{n}": {"x": n} for n in range(6)} | parts).encode())
    await load_and_save(api, a=Part())
    assert set(saved_parts(api)) == {"p3", "p4", "p5", "a"}


async def test_each_part_continues_from_its_dump():
    a, b = Part(), Part()
    await load(b'{"a": {"value": 7}, "b": {"value": 8}}', a=a, b=b)
    assert (a.value, b.value) == (7, 8)


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"value": "x"}',
        b"[]",
        b'"text"',
        b'{"value": 1e999}',
        b'{"value": ' + b"9" * 5000 + b"}",
        b'{"value": {"x": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"value": 5, "more": [' + b"0," * 600_000 + b"0]}",
        b'{"value": 5, "more": "' + b"x" * 5000 + b'"}',
        b"{}",
        b"null",
    ],
    ids=["type", "list", "text", "infinite", "5000 digits", "nested", "too many", "too long", "empty", "null"],
)
async def test_a_part_that_is_malformed_costs_that_part_and_leaves_it_as_it_was(hostile):
    a, b = Part(), Part()
    await load(b'{"a": ' + hostile + b', "b": {"value": 8}}', a=a, b=b)
    assert (a.value, b.value) == (1, 8)


@pytest.mark.parametrize(
    ("plain", "packed"),
    [
        (b"", b"no gzip"),
        (b"[" * 100_000, None),
        (b"[1]", None),
        (b"not json", None),
        (b"", gzip.compress(b'{"a": {"value": 7}}')[:-9]),
        (b'{"a": {"value": 7}, "x": "' + b"x" * learned.MAX_PLAIN_BYTES + b'"}', None),
    ],
    ids=["no gzip", "nested", "list", "no json", "cut off", "too large"],
)
async def test_a_state_that_cannot_be_read_is_left_behind(plain, packed):
    a = Part()
    await load(plain, packed, a=a)
    assert a.value == 1


async def test_a_bomb_takes_no_memory():
    packed = bomb(400)
    tracemalloc.start()
    await load(packed=packed)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * learned.MAX_PLAIN_BYTES


async def test_a_config_map_without_the_key_is_left_behind():
    api, a = Api(), Part()
    api.found = {"data": {"x": "y"}}
    await learned.SavedState(api, "ns", {"a": a}, lambda: True).load()
    assert a.value == 1


# --- the learner of run times


@pytest.fixture
def learner(job):
    """Return a learner that knows one run of the job's maps."""
    found = run_times.Learner()
    found.learn(mrjobs.map_program(job), seconds=10, input_bytes=100, less=False)
    return found


def duration_s(learner, job):
    return learner.estimates(mrjobs.map_program(job), 100).duration_s(None)


def test_run_times_of_one_namespace_are_unknown_in_another(learner, job):
    assert duration_s(learner, job) == 10
    assert duration_s(learner, dataclasses.replace(job, namespace="other")) is None


def test_a_namespace_with_many_programs_displaces_only_its_own(learner, job):
    for number in range(1000):
        noisy = dataclasses.replace(job, namespace="noisy", image=f"i{number}")
        learner.learn(mrjobs.map_program(noisy), seconds=1, input_bytes=1, less=False)
    assert duration_s(learner, job) == 10
    assert len(learner.dump()["full"]) == 1 + run_times.NAMESPACE_KEPT


def test_many_namespaces_stay_within_the_bound_of_all(learner, job):
    for number in range(1000):
        noisy = dataclasses.replace(job, namespace=f"n{number % 10}", image=f"i{number}")
        learner.learn(mrjobs.map_program(noisy), seconds=1, input_bytes=1, less=False)
    assert duration_s(learner, job) == 10
    assert len(learner.dump()["full"]) == run_times.PROGRAMS_KEPT


def test_a_dump_is_loaded_without_impossible_values(learner, job):
    dumped = json.loads(json.dumps(learner.dump()))
    (key,) = dumped["full"]
    ns, program, *_ = key.split("/")
    wrong = [[1, "x", 2], [0, 1, 1], [1, -1, 1], [1, 1e300, 1], [99, 1, 1], [1, 1], "x", None, [1, 1, 1e40]]
    dumped["full"] |= {f"{ns}/{number}/0/map": values for number, values in enumerate(wrong)}
    dumped["full"] |= {f"{program}/0/map": [1, 1, 1], "x" * 500 + "/0/0/map": [1, 1, 1]}
    dumped["less"] = ["nonsense"]
    loaded = run_times.Learner()
    loaded.load(dumped)
    assert list(loaded.dump()["full"]) == [key]
    assert duration_s(loaded, job) == 10


@pytest.mark.parametrize(
    "hostile",
    [
        {"jobs": {"j": {"used": "abc"}}},
        {"jobs": {"j": {"used": -5}}},
        {"jobs": {"j": {"totals": {"c": 1e300}, "features": [1]}}},
        {"predictor": {"maps": None}},
        {"jobs": []},
    ],
    ids=str,
)
async def test_a_hostile_dump_of_fspy_leaves_it_as_it_was(hostile):
    (order,) = fspy.build().observers
    order.predictor.learn_uber("ns/k", 7.0)
    before = order.dump()
    await load(json.dumps({"fspy": hostile}).encode(), fspy=order)
    assert order.dump() == before


@pytest.mark.parametrize("odd", [{"uber": {"k": [1]}}, {"kinds": {"k": "text"}}, {"uber": []}], ids=str)
async def test_what_cannot_be_read_of_a_dump_of_fspy_is_left_out_and_the_rest_takes_the_place_of_what_was(odd):
    (order,) = fspy.build().observers
    order.predictor.learn_uber("ns/k", 7.0)
    await load(json.dumps({"fspy": {"predictor": {"apps": {"ns/k": [1, 5]}, **odd}}}).encode(), fspy=order)
    assert (order.predictor.uber_s("ns/k"), order.predictor.apps.mean("ns/k")) == (None, 5.0)


async def test_sums_of_fspy_that_cannot_be_divided_by_are_left_out():
    (order,) = fspy.build().observers
    zeros = {"predictor": {"kinds": {"k": [0] * 7, "short": [1]}, "uber": {"k": [0, 5], "n": [1, -1]}}}
    await load(json.dumps({"fspy": zeros}).encode(), fspy=order)
    assert order.predictor.recall("k", input_bytes=5, maps=1, reduces=1) is None
    assert order.predictor.uber_s("k") is None
