"""The profiles that learn, chosen by the chart's value `profile`, on a real cluster."""

import pytest

from boathouse.resources import names
from boathouse_e2e import install
from e2e.tests import conftest, harness

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.long]


@pytest.fixture
def profile(installed, request):
    """Boathouse with the profile that the test asks for, and nothing learnt; afterwards with the default."""
    install.install(installed, conftest.VALUES | {"profile": request.param})
    forget = ("delete", "configmap", "boathouse-learned", "-n", names.OPERATOR_NAMESPACE, "--ignore-not-found")
    installed.run(*forget)
    yield request.param
    install.install(installed, conftest.VALUES)


@pytest.mark.parametrize("profile", ["fspy", "srjf"], indirect=True)
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
    return next((item for item in items if item["metadata"]["name"] == "boathouse-learned"), None)
