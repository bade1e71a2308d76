"""Predictions of a job's size in its status, and the phases of its probe."""

import dataclasses

import pytest

from boathouse.resources.mrjob.status import Prediction
from boathouse.resources.names import ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import job_state
from boathouse.services.mrjob.planning import predictions
from boathouse.services.mrjob.planning.observation import SizeView
from boathouse_policies import fspy, model
from boathouse_task.contract import Timing
from tests.builders import mrjobs
from tests.builders.frame import condition_of

SIZE_PREDICTED = ConditionType.SIZE_PREDICTED
GIB = 1 << 30
FOUND = fspy.Prediction(
    seconds={model.Stage.MAP: 30.0, model.Stage.REDUCE: 8.0}, byte_seconds=20 * GIB, source=fspy.Source.PROBE
)
PROBE_REQUESTED = SizeView(prediction=None, wants_probe=True, patience_s=600)


JOB = mrjobs.job(numReduceTasks=2)


@pytest.fixture
def predict():
    """Return a function that updates the prediction of a job at a time after the probe was recorded."""
    mapping = mrjobs.mapping(JOB)

    def predict(view, *, state=mapping, later_s=0, used_byte_s=0.0, of=JOB):
        return predictions.predicted(state, of, view, used_byte_s, mrjobs.CREATED_S + 1000 + later_s)

    return predict


@pytest.fixture
def pending(predict):
    return predict(PROBE_REQUESTED)


def probe(state):
    return state.prediction.probe, state.prediction.reason


def view_of_probe(pod):
    return SizeView(prediction=None, probe=pod, patience_s=600)


def test_a_job_that_is_not_probed_has_no_prediction(predict):
    state = predict(SizeView(prediction=None))
    assert (state.prediction, condition_of(state, SIZE_PREDICTED)) == (None, None)


def test_a_probe_is_recorded_before_it_runs(pending):
    assert (probe(pending), condition_of(pending, SIZE_PREDICTED)) == (("Pending", None), ("False", "Probing"))


def test_a_probe_that_succeeds_says_how_much_it_read(predict, pending):
    running = predict(view_of_probe(mrjobs.attempt_pod("probe")), state=pending)
    pod = mrjobs.succeeded_pod("probe", counters={"Boathouse": {"Sampled bytes": 25}})
    done = predict(view_of_probe(pod), state=running)
    assert (probe(running)[0], probe(done)[0], done.prediction.sampled_fraction) == ("Running", "Succeeded", 0.25)
    assert condition_of(done, SIZE_PREDICTED) == ("False", "Learning")


@pytest.mark.parametrize(
    ("state", "later_s"), [(PodLife.UNPLACED, 600), (PodLife.STARTING, 600), (PodLife.RUNNING, 1200)]
)
def test_a_probe_has_a_time_limit(predict, pending, state, later_s):
    view = view_of_probe(mrjobs.attempt_pod("probe", state=state, node=None if state is PodLife.UNPLACED else "n1"))
    assert probe(predict(view, state=pending, later_s=later_s))[0] in {"Pending", "Running"}
    late = predict(view, state=pending, later_s=later_s + 1)
    assert (probe(late), condition_of(late, SIZE_PREDICTED)) == (("Failed", "ProbeTimeout"), ("False", "ProbeFailed"))


def test_a_probe_whose_pod_was_lost_has_failed(predict, pending):
    running = predict(view_of_probe(mrjobs.attempt_pod("probe")), state=pending)
    assert probe(predict(view_of_probe(None), state=running)) == ("Failed", "PodLost")
    assert probe(predict(view_of_probe(None), state=pending)) == ("Pending", None)


def test_a_probe_fails_with_the_reason_of_its_task(predict, pending):
    failed = predict(view_of_probe(mrjobs.failed_pod("probe")), state=pending)
    assert probe(failed) == ("Failed", "UserCommandFailed")
    assert probe(predict(PROBE_REQUESTED, state=failed)) == ("Failed", "UserCommandFailed")


def test_a_probe_is_withdrawn_with_its_job(predict, pending):
    suspended = mrjobs.job(suspend=True)
    assert probe(predict(view_of_probe(mrjobs.attempt_pod("probe")), state=pending, of=suspended)) == (
        "Withdrawn",
        None,
    )
    assert predict(PROBE_REQUESTED, of=suspended).prediction is None


def test_a_prediction_is_for_each_task_and_the_first_one_stays(predict):
    state = predict(SizeView(prediction=FOUND))
    size = state.prediction
    assert (size.map_seconds, size.reduce_seconds, size.memory_seconds, size.source) == (10, 4, 20, "Probe")
    assert condition_of(state, SIZE_PREDICTED) == ("True", "Probe")
    for source in (fspy.Source.PROBE, fspy.Source.STATED):
        later = fspy.Prediction(seconds={}, byte_seconds=0, source=source)
        assert predict(SizeView(prediction=later), state=state).prediction == size


def test_run_times_of_its_own_tasks_predict_nothing(predict):
    stated = SizeView(prediction=dataclasses.replace(FOUND, source=fspy.Source.STATED))
    assert predict(stated).prediction.source == "Stated"
    one_map = mrjobs.desired(JOB, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(JOB)).state
    assert predict(stated, state=one_map).prediction is None


def test_the_error_is_known_at_the_end(predict):
    state = predict(SizeView(prediction=FOUND), used_byte_s=10 * GIB)
    state = predict(SizeView(prediction=FOUND), state=state, used_byte_s=6 * GIB)
    assert (state.prediction.used_memory_seconds, state.prediction.error) == (16, None)
    over = predict(SizeView(prediction=None), state=dataclasses.replace(state, phase="Succeeded"))
    assert over.prediction.error == 0.25


def test_the_sizes_of_maps_and_reduces_are_their_run_times_by_memory():
    size = model.Resources(memory_bytes=GIB)
    timings = {"timings": [Timing("wait", 0, 5000), Timing("read", 5000, 7000)]}
    won = dataclasses.replace(mrjobs.succeeded_pod("m-0", **timings), resources=size)
    assert (
        mrjobs.desired(JOB, won, mrjobs.attempt_pod("m-1"), state=mrjobs.mapping(JOB)).settlement.used_byte_s == 2 * GIB
    )
    setup = dataclasses.replace(mrjobs.succeeded_pod("setup", **timings), resources=size)
    assert mrjobs.desired(JOB, setup).settlement.used_byte_s == 0


def test_a_status_has_all_parts_of_a_prediction_and_is_read_back(pending):
    status = job_state.to_status(pending)["prediction"]
    assert (status["probe"], status["reason"]) == ("Pending", None)
    assert job_state.from_status(job_state.to_status(pending), reduces=2).prediction == Prediction(probe="Pending")
    assert job_state.from_status({"prediction": {"probe": "Sideways"}}, reduces=2).prediction is None
