"""The split plan in ConfigMaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.services.mrjob import shards
from boathouse_task import contract

SPLITS = st.lists(
    st.builds(
        contract.Split,
        url=st.text(max_size=20),
        offset_bytes=st.integers(0, 2**40),
        length_bytes=st.integers(0, 2**40),
        size_bytes=st.integers(0, 2**40),
        locations=st.integers(-1, 0),
    ),
    max_size=30,
)


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_BYTES", 64)


def plan(splits=20):
    return contract.Plan(
        splits=[
            contract.Split(url=f"s3://b/{n * n * 7919}", offset_bytes=n, length_bytes=n, size_bytes=n)
            for n in range(splits)
        ]
    )


@given(SPLITS)
def test_a_plan_reads_back_from_its_shards(build, splits):
    kept = shards.keep(contract.Plan(splits=splits, location_sets=[["n1"]], bytes_total=5))
    assert shards.read(shards.manifests(build.job(), 0, kept)).plan == kept.plan


@pytest.mark.usefixtures("small_shards")
def test_a_large_plan_is_cut_and_each_shard_is_owned_and_numbered(build):
    made = shards.manifests(build.job(), 0, shards.keep(plan()))
    assert len(made) > 2
    assert made[1]["metadata"]["name"] == "wordcount-0a1b2c3d-s0-plan-001"
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in made} == {build.UID}
    assert shards.read(made).plan == plan()


@pytest.mark.usefixtures("small_shards")
def test_an_incomplete_plan_is_no_plan(build):
    made = shards.manifests(build.job(), 0, shards.keep(plan()))
    assert shards.read(made[:-1]) is None
    assert shards.read([made[1], made[0], *made[2:]]) is None


@pytest.mark.usefixtures("small_shards")
def test_shards_of_two_plans_are_no_plan(build):
    ours = shards.manifests(build.job(), 0, shards.keep(plan(20)))
    theirs = shards.manifests(build.job(), 0, shards.keep(plan(21)))
    assert shards.read([ours[0], *theirs[1 : len(ours)]]) is None
    assert not shards.same(ours[0], theirs[0])


def test_a_plan_that_somebody_changed_is_no_plan(build):
    (made,) = shards.manifests(build.job(), 0, shards.keep(plan()))
    (other,) = shards.manifests(build.job(), 0, shards.keep(plan(3)))
    assert shards.read([made | {"binaryData": other["binaryData"]}]) is None


def test_the_largest_plan_stays_below_the_api_servers_bound(build):
    made = shards.manifests(build.job(), 0, shards.keep(plan(40_000)))
    assert max(len(each["binaryData"][shards.KEY]) for each in made) < 256 * 1024
