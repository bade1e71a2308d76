"""The split plan in ConfigMaps."""

import gzip

import pytest
from hypothesis import given, strategies as st

from boathouse.services.mrjob import splits as mrjob_splits
from boathouse_task import contract
from tests.builders import mrjobs
from tests.builders.bombs import bomb

SPLITS = st.lists(
    st.builds(
        contract.Split,
        url=st.text(max_size=20),
        offset_bytes=st.integers(0, 2**40),
        length_bytes=st.integers(0, 2**40),
        size_bytes=st.integers(0, 2**40),
        locations=st.integers(-1, 0),
    ),
    max_size=8,
)


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(mrjob_splits, "SHARD_BYTES", 64)


def plan_in(manifests):
    """Return the plan that ConfigMaps hold."""
    digest = mrjob_splits.digest_of(manifests[0])
    pieces = [mrjob_splits.piece(manifest, mrjobs.job(), digest) for manifest in manifests]
    complete = len(pieces) == mrjob_splits.count_of(manifests[0]) and None not in pieces
    return mrjob_splits.read_stored(pieces, digest) if complete else None


@given(SPLITS)
def test_a_plan_reads_back_from_its_shards(splits):
    kept = mrjob_splits.encode(contract.Plan(splits=splits, location_sets=[["n1"]], bytes_total=5))
    assert plan_in(mrjob_splits.config_maps(mrjobs.job(), 0, kept)).plan == kept.plan


@pytest.mark.usefixtures("small_shards")
def test_a_large_plan_is_cut_and_each_shard_is_owned_and_numbered():
    made = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan()))
    assert len(made) > 2
    assert made[1]["metadata"]["name"] == "wordcount-0a1b2c3d-s0-plan-001"
    assert {shard["metadata"]["ownerReferences"][0]["uid"] for shard in made} == {mrjobs.UID}
    assert plan_in(made).plan == mrjobs.split_plan()


@pytest.mark.usefixtures("small_shards")
def test_an_incomplete_plan_is_no_plan():
    made = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan()))
    assert plan_in(made[:-1]) is None
    assert plan_in([made[1], made[0], *made[2:]]) is None


@pytest.mark.usefixtures("small_shards")
def test_shards_of_two_plans_are_no_plan():
    ours = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan(20)))
    theirs = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan(21)))
    assert plan_in([ours[0], *theirs[1 : len(ours)]]) is None
    assert not mrjob_splits.same(ours[0], theirs[0])


def test_a_changed_plan_is_rejected():
    (made,) = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan()))
    (other,) = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan(3)))
    assert plan_in([made | {"binaryData": other["binaryData"]}]) is None


def test_the_largest_plan_stays_below_the_api_servers_bound():
    made = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan(40_000)))
    assert max(len(shard["binaryData"][mrjob_splits.KEY]) for shard in made) < 256 * 1024


def test_a_shard_counts_only_if_the_job_owns_it_and_nobody_can_change_it():
    (made,) = mrjob_splits.config_maps(mrjobs.job(), 0, mrjob_splits.encode(mrjobs.split_plan()))
    metadata = made["metadata"]
    forged = [
        made | {"immutable": False},
        {name: value for name, value in made.items() if name != "immutable"},
        made | {"metadata": metadata | {"ownerReferences": []}},
        made | {"metadata": metadata | {"ownerReferences": [{"uid": "another", "kind": "MRJob"}]}},
        made | {"metadata": metadata | {"annotations": {}}},
        made | {"binaryData": {}},
        made | {"binaryData": {mrjob_splits.KEY: "A" * 2**20}},
    ]
    assert [mrjob_splits.piece(shard, mrjobs.job(), mrjob_splits.digest_of(made)) for shard in forged] == [None] * len(
        forged
    )
    assert mrjob_splits.piece(made, mrjobs.job(), mrjob_splits.digest_of(made))


@pytest.mark.parametrize("text", ["9999999", "9" * 5000, "²", "-1", "1.5", ""], ids=lambda text: text[:8])
def test_the_number_of_shards_is_bounded(text):
    assert mrjob_splits.count_of({"metadata": {"annotations": {"boathouse.dev/plan-shards": text}}}) == 0


def test_a_bomb_and_nested_arrays_are_no_plan():
    nested = b"[" * 100_000, b'{"splits":' + b"[" * 5000 + b"]" * 5000 + b"}"
    for packed in (bomb(200), *map(gzip.compress, nested)):
        assert mrjob_splits.read_stored([packed], "d") is None


@pytest.mark.parametrize(
    "split",
    [
        {"offset_bytes": -1},
        {"length_bytes": 2**63},
        {"size_bytes": -1},
        {"locations": 7},
        {"url": "s3://b/" + "x" * mrjob_splits.MAX_URL},
    ],
    ids=lambda split: next(iter(split)),
)
def test_a_plan_with_a_split_that_cannot_be_is_none(split):
    kept = mrjob_splits.encode(contract.Plan(splits=[mrjobs.split(**split)]))
    assert mrjob_splits.read_stored(kept.pieces, kept.digest) is None


def test_a_plan_of_too_many_splits_is_none():
    kept = mrjob_splits.encode(mrjobs.split_plan(40_001))
    assert mrjob_splits.read_stored(kept.pieces, kept.digest) is None


def test_a_set_of_many_hosts_is_no_plan_of_the_runtime():
    hosts = [f"c{number}" for number in range(mrjob_splits.MAX_HOSTS + 1)]
    assert mrjob_splits.fault(contract.Plan(splits=[], location_sets=[hosts[1:]])) == ""
    assert "more than 16 hosts" in mrjob_splits.fault(contract.Plan(splits=[], location_sets=[hosts]))
