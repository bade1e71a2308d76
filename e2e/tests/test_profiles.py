"""The profiles that learn, chosen by the chart's value `profile`, on a real cluster."""

import json

import pytest

from boathouse.resources import names, quantity
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import install
from e2e.tests import conftest, harness

pytestmark = pytest.mark.cluster

LARGE = "1536Mi"
NO_REDUCE = {"reducer": None, "numReduceTasks": None}
ELASTIC = {
    "command": ["sh", "-c", "sleep 10; cat"],
    "resources": {"requests": {"cpu": "50m", "memory": LARGE}},
    "elasticMemory": {"min": "96Mi", "slowdownPercent": 20},
}


@pytest.fixture
def profile(installed, request):
    """Boathouse with the profile that the test asks for, and nothing learnt; afterwards with the default."""
    install.install(installed, conftest.VALUES | {"profile": request.param})
    forget = ("delete", "configmap", "boathouse-learned", "-n", names.OPERATOR_NAMESPACE, "--ignore-not-found")
    installed.run(*forget)
    yield request.param
    install.install(installed, conftest.VALUES)


@pytest.mark.parametrize("profile", ["fspy", pytest.param("srjf", marks=pytest.mark.long)], indirect=True)
def test_jobs_run_under_a_profile_that_learns(profile, place):
    data = harness.text(1_000_000)
    place.put("in/a.txt", data)
    for name in ("first", "second"):
        place.succeed(place.start(name))
        assert harness.pairs(place.parts(name)) == harness.counted(data)
    kept = harness.until(lambda: _learnt(place), f"what {profile} learnt is kept")
    assert kept["metadata"]["namespace"] == names.OPERATOR_NAMESPACE


def _learnt(place):
    items = place.cluster.get("configmaps", "-n", names.OPERATOR_NAMESPACE)["items"]
    return next((each for each in items if each["metadata"]["name"] == "boathouse-learned"), None)


@pytest.mark.parametrize("profile", ["yarn-me"], indirect=True)
def test_a_full_cluster_starts_maps_with_less_memory_and_says_so(profile, place):
    place.put("probe/a.txt", b"a\n")
    for index in range(12):
        place.put(f"in/{index:02}.txt", b"%d\n" % index)
    place.succeed(place.start("known", mapper=ELASTIC, input=[place.url("probe")], **NO_REDUCE))
    place.start("squeezed", mapper=ELASTIC, **NO_REDUCE)

    def says_so():
        told = place.look("squeezed").condition(names.ConditionType.SCHEDULED)
        return told is not None and "less memory than they requested" in told.message

    harness.until(says_so, "the job says that some of its maps run with less memory")
    place.succeed("squeezed")
    assert sorted(b"".join(place.parts("squeezed").values()).split()) == sorted(b"%d" % i for i in range(12))
    maps = [
        pod for pod in place.raw_pods("squeezed") if pod["metadata"]["labels"][mrjob_names.LABEL_TASK_TYPE] == "map"
    ]
    limits = [quantity.units(pod["spec"]["containers"][0]["resources"]["limits"]["memory"]) for pod in maps]
    print(f"{profile}: memory limits of the maps: {sorted(limits)}")
    assert max(limits) == quantity.units(LARGE)
    assert min(limits) < quantity.units(LARGE) / 2
    for pod, limit in zip(maps, limits, strict=True):
        notes = pod["metadata"]["annotations"]
        assert (names.ANNOTATION_IDEAL_MEMORY in notes) == (limit < quantity.units(LARGE)), json.dumps(notes)
    events = place.gateway.events(reason="MemoryShrunk")
    assert any("instead of 1536Mi" in event["message"] for event in events)
