"""The status of an application: it is restored as it was written, and a part that cannot be read costs no other."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.resources.sparkapp.status import Attempt, FailureCounts
from boathouse.services.frame.status_codec import stripped
from boathouse.services.sparkapp import model
from boathouse.services.sparkapp.model import AppState

TIMES = st.none() | st.integers(1, 4 * 10**9).map(float)
TEXTS = st.sampled_from(["", "DriverLost"])
ATTEMPTS = st.builds(Attempt, number=st.integers(1, 9), application_id=TEXTS, start_s=TIMES, end_s=TIMES, reason=TEXTS)
STATES = st.builds(
    AppState,
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    queue=TEXTS,
    start_s=TIMES,
    attempt=st.integers(9, 99),
    failures=st.builds(FailureCounts, application=st.integers(0, 9), retry_s=TIMES),
    past_attempts=st.lists(ATTEMPTS, max_size=5).map(tuple),
    last_log=TEXTS,
)


@settings(max_examples=40)
@given(STATES)
def test_a_state_is_restored_from_what_the_api_server_keeps_of_its_status(state):
    status = model.to_status(state)
    assert model.from_status(json.loads(json.dumps(stripped(status)))) == state
    assert model.from_status(status) == state


@pytest.mark.parametrize("text", ["soon", 7, ""])
def test_a_time_that_cannot_be_read_costs_neither_its_attempt_nor_the_failures(text):
    status = {
        "pastAttempts": [{"number": 3, "applicationId": "a", "startTime": text}],
        "failures": {"application": 2, "infrastructure": -1, "retryTime": text},
    }
    state = model.from_status(status)
    assert (state.attempt, state.past_attempts[0].start_s) == (3, None)
    assert state.failures == FailureCounts(application=2)
