"""Lines and objects that no API server should send: each leads to a new LIST or to a stand-in, none ends the watch."""

from __future__ import annotations

import json

import pytest

from boathouse.cluster import boundary, wire
from tests.builders import manifests
from tests.builders.operators.informers import cached, following, stored

WITHOUT_IDENTITY = {
    "an event without an object": {"type": "ADDED"},
    "an event without a type": {"object": {"metadata": {"name": "x", "resourceVersion": "9"}}},
    "an event that is a list": [],
    "an object without metadata": {"type": "ADDED", "object": {}},
    "an object that is null": {"type": "MODIFIED", "object": None},
    "an empty resourceVersion": {"type": "ADDED", "object": {"metadata": {"name": "x", "resourceVersion": ""}}},
    "a resourceVersion of letters": {"type": "DELETED", "object": {"metadata": {"name": "x", "resourceVersion": "v9"}}},
    "a bookmark without an object": {"type": "BOOKMARK"},
    "a bookmark without identity": {"type": "BOOKMARK", "object": {}},
    "a bookmark of a list": {"type": "BOOKMARK", "object": []},
    "an error whose code is a text": {"type": "ERROR", "object": {"code": "gone"}},
    "an error that is a text": {"type": "ERROR", "object": "gone"},
    "an unknown type": {"type": "RENAMED", "object": {"metadata": {"name": "x", "resourceVersion": "9"}}},
}
LINES = {name: json.dumps(line).encode() for name, line in WITHOUT_IDENTITY.items()} | {
    "bytes that are no UTF-8": b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}',
    "very deep JSON": b'{"type":"ADDED","object":' + b"[" * 100_000,
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_a_line_without_an_identity_leads_to_a_list(api, client, eventually, line):
    async with following(api, client) as (followed, _):
        api.watches.send_line("pods", line + b"\n")
        await eventually(lambda: followed.stats.lists == 2)
        api.add(manifests.pod("after"))
        await eventually(lambda: cached(followed) == stored(api))


def fails_for_poison(pod):
    if pod.metadata.name == "poison":
        raise KeyError("poison")
    return pod


async def test_a_stand_in_takes_the_place_of_what_the_transform_rejects(api, client, eventually):
    aside = boundary.Boundary()
    api.add(manifests.pod("poison", node="n1"))
    async with following(api, client, aside=aside, transform=fails_for_poison) as (followed, _):
        api.set_phase("demo/poison", "Running")
        api.add(manifests.pod("good"))
        await eventually(lambda: cached(followed) == stored(api))
        stand_in = followed.objects.get("demo/poison")
        assert (type(stand_in), stand_in.spec.node_name) == (wire.UnreadablePod, "n1")
        assert type(followed.objects.get("demo/good")) is wire.PodView
    assert aside.counts == {("Pod", boundary.Reason.STORING): 1}
