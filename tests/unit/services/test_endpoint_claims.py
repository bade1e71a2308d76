"""The claims of tokens and the plans that setup tasks send, before they are checked."""

import base64
import gzip
import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from boathouse.services.mrjob import splits as mrjob_splits
from boathouse.services.progress import auth
from boathouse_task import contract
from boathouse_task.contract import Plan, Split

NOW_S = 1_000_000.0
POD = {"namespace": "demo", "pod": {"name": "p", "uid": "u"}}


def encoded_token(**changes):
    payload = {"iss": "https://k", "aud": ["boathouse.dev"], "exp": NOW_S + 600, "kubernetes.io": POD} | changes
    return ".".join(["e30", base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("="), "signature"])


def caller_of(text):
    return auth.read_claims(text, "boathouse.dev", NOW_S)


def test_a_projected_token_names_its_pod():
    assert caller_of(encoded_token()) == auth.Caller(namespace="demo", pod_name="p", pod_uid="u")
    assert caller_of(encoded_token(aud="boathouse.dev")) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["https://kubernetes.default.svc"]},
        {"exp": NOW_S - 3600},
        {"exp": "never"},
        {"iss": None},
        {"kubernetes.io": {"namespace": "demo"}},
        {"kubernetes.io": {"namespace": "demo", "pod": {"name": "p"}}},
    ],
)
def test_a_token_that_no_review_would_accept_claims_nothing(changes):
    assert caller_of(encoded_token(**changes)) is None


def test_a_node_whose_clock_is_behind_is_tolerated():
    assert caller_of(encoded_token(exp=NOW_S - 30)) is not None


@given(st.text(max_size=200))
def test_what_is_no_token_claims_nothing(text):
    assert caller_of(text) is None
    assert caller_of(f"e30.{text}.s") is None


@pytest.mark.parametrize("payload", ["[" * 3000, '{"iss":' * 900])
def test_a_payload_of_many_levels_claims_nothing(payload):
    assert caller_of(f"e30.{base64.urlsafe_b64encode(payload.encode()).decode()}.s") is None


def test_a_token_longer_than_a_header_claims_nothing():
    assert caller_of(encoded_token(more="x" * auth.MAX_TOKEN_CHARS)) is None


# Plans

PLAN = Plan(splits=[Split(url="s3://b/k", offset_bytes=0, length_bytes=1, size_bytes=1)], bytes_total=1)


def test_a_plan_is_read_plain_and_compressed():
    body = msgspec.json.encode(PLAN)
    for content, gzipped in ((body, False), (gzip.compress(body), True)):
        found, _ = mrjob_splits.read_posted(content, gzipped=gzipped)
        assert (found.plan, found.digest) == (PLAN, contract.plan_digest(PLAN))
        assert found.json_bytes == len(body)


def test_the_largest_plan_that_a_job_may_have_is_accepted():
    url = "s3://bucket/" + "k" * 480
    splits = [Split(url=f"{url}{n}", offset_bytes=2**40, length_bytes=2**26, size_bytes=2**41) for n in range(40_000)]
    plan = Plan(splits=splits, bytes_total=2**41)
    assert len(mrjob_splits.read_posted(msgspec.json.encode(plan), gzipped=False)[0].plan.splits) == 40_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"splits":[],"location_sets":[' + b"[]," * mrjob_splits.MAX_CONTAINERS + b"[]]}",
        b'{"splits":[],"location_sets":[[' + b'"a",' * mrjob_splits.MAX_VALUES + b'"a"]]}',
        b'{"splits":[],"x":[' + b"{}," * mrjob_splits.MAX_CONTAINERS + b"{}]}",
    ],
    ids=["arrays", "strings", "objects"],
)
def test_a_plan_of_more_values_than_any_job_needs_is_not_decoded(body):
    assert len(body) < contract.PLAN_MAX_BYTES
    with pytest.raises(mrjob_splits.TooLargeError):
        mrjob_splits.read_posted(body, gzipped=False)


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", gzip.compress(b"{}")[:-4], gzip.compress(b'{"splits":[]}')[:15], gzip.compress(b"[" * 5000)],
    ids=["empty", "no gzip", "without its end", "cut", "many levels"],
)
def test_what_is_no_compressed_plan_is_refused(body):
    with pytest.raises(ValueError, match=r"."):
        mrjob_splits.read_posted(body, gzipped=True)


@pytest.mark.parametrize(
    "change",
    [{"locations": 0}, {"length_bytes": -1}, {"size_bytes": 2**63}, {"offset_bytes": 2**200}],
    ids=["location", "negative", "64 bits", "large"],
)
def test_a_plan_that_would_break_its_job_is_refused(change):
    split = msgspec.structs.replace(PLAN.splits[0], **change)
    with pytest.raises(ValueError, match=r"split|number"):
        mrjob_splits.read_posted(msgspec.json.encode(Plan(splits=[split])), gzipped=False)
