"""Names: within their bounds, valid, and different for different attempts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.services.sparkapp.model import AttemptNames
from tests.builders.sparkapps import UID

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
PARTS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)
OBJECT_NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join)
ATTEMPTS = st.integers(1, 10**6)
UIDS = st.uuids().map(str)


def attempt_names(name=None, uid=UID, attempt=1):
    return AttemptNames(application=name or "pi", uid=uid, attempt=attempt)


@settings(max_examples=40)
@given(OBJECT_NAMES, UIDS, ATTEMPTS)
def test_every_name_is_a_dns_label_within_its_bound(name, uid, attempt):
    names = attempt_names(name, uid, attempt)
    for text in (names.driver_pod, names.config_map, names.service):
        assert len(text) <= 63
        assert LABEL.fullmatch(text)
    assert len(names.executor_prefix) <= 38
    assert LABEL.fullmatch(names.executor_prefix)
    assert len(f"{names.executor_prefix}-exec-{2**31 - 1}") <= 63
    assert len(names.application_id) <= 63


@settings(max_examples=40)
@given(OBJECT_NAMES, OBJECT_NAMES, UIDS, ATTEMPTS, ATTEMPTS)
def test_no_two_attempts_have_a_name_in_common(one, other, uid, first, second):
    a, b = attempt_names(one, uid, first), attempt_names(other, uid, second)
    if (one, first) == (other, second):
        return
    assert a.driver_pod != b.driver_pod
    assert a.config_map != b.config_map
    assert a.executor_prefix != b.executor_prefix
    if first != second:
        assert a.application_id != b.application_id


def test_an_application_that_is_created_again_has_other_names():
    old, new = attempt_names(), attempt_names(uid="1" + UID[1:])
    assert old.driver_pod != new.driver_pod
    assert old.application_id != new.application_id


@pytest.mark.parametrize(("first", "second"), [("a" * 60, "a" * 59 + "b"), ("a.b", "a-b")], ids=["long", "dots"])
def test_names_that_would_be_truncated_or_replaced_to_the_same_differ(first, second):
    a, b = attempt_names(first), attempt_names(second)
    assert a.driver_pod != b.driver_pod
    assert a.executor_prefix != b.executor_prefix


def test_a_short_name_is_kept():
    names = attempt_names("word-count", attempt=3)
    assert names.driver_pod == "word-count-0a1b2c3d-a3-driver"
    assert names.executor_prefix == "word-count-0a1b2c3d-a3"
    assert names.service == "word-count-0a1b2c3d-ui"
    assert names.application_id == "spark-0a1b2c3d4e5f6789abcdef0123456789-3"
