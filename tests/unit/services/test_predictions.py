"""What a job's status says of its size, and where its probe is."""

import dataclasses

import pytest

from boathouse.resources.mrjob.status import Prediction
from boathouse.resources.names import ConditionType
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.planning import predictions
from boathouse.services.mrjob.planning.observation import SizeView
from boathouse.services.mrjob.state import job_state
from boathouse_policies import fspy, model
from boathouse_task.contract import Timing

GIB = 1 << 30
FOUND = fspy.Prediction(
    seconds={model.Stage.MAP: 30.0, model.Stage.REDUCE: 8.0}, byte_seconds=20 * GIB, source=fspy.Source.PROBE
)
WANTED = SizeView(prediction=None, wants_probe=True, patience_s=600)


@pytest.fixture
def job(build):
    return build.job(numReduceTasks=2)


@pytest.fixture
def see(build, job):
    """Return a function that looks at a job at a time after the probe was recorded."""
    mapping = build.mapping(job)

    def look(view, *, state=mapping, later_s=0, used_byte_s=0.0, of=job):
        return predictions.predicted(state, of, view, used_byte_s, build.CREATED_S + 1000 + later_s)

    return look


@pytest.fixture
def pending(see):
    return see(WANTED)


def probe(state):
    return state.prediction.probe, state.prediction.reason


def told(state):
    condition = state.condition(ConditionType.SIZE_PREDICTED)
    return condition.status, condition.reason


def of_probe(pod):
    return SizeView(prediction=None, probe=pod, patience_s=600)


def test_a_job_that_is_not_probed_has_no_prediction(see):
    state = see(SizeView(prediction=None))
    assert (state.prediction, state.condition(ConditionType.SIZE_PREDICTED)) == (None, None)


def test_a_probe_is_recorded_before_it_runs(pending):
    assert (probe(pending), told(pending)) == (("Pending", None), ("False", "Probing"))


def test_a_probe_that_succeeds_says_how_much_it_read(build, see, pending):
    running = see(of_probe(build.pod("probe")), state=pending)
    pod = build.won("probe", counters={"Boathouse": {"Sampled bytes": 25}})
    done = see(of_probe(pod), state=running)
    assert (probe(running)[0], probe(done)[0], done.prediction.sampled_fraction) == ("Running", "Succeeded", 0.25)
    assert told(done) == ("False", "Learning")


@pytest.mark.parametrize(
    ("state", "later_s"), [(PodLife.UNPLACED, 600), (PodLife.STARTING, 600), (PodLife.RUNNING, 1200)]
)
def test_a_probe_does_not_take_for_ever(build, see, pending, state, later_s):
    view = of_probe(build.pod("probe", state=state, node=None if state is PodLife.UNPLACED else "n1"))
    assert probe(see(view, state=pending, later_s=later_s))[0] in {"Pending", "Running"}
    late = see(view, state=pending, later_s=later_s + 1)
    assert (probe(late), told(late)) == (("Failed", "ProbeTimeout"), ("False", "ProbeFailed"))


def test_a_probe_whose_pod_was_lost_has_failed(build, see, pending):
    running = see(of_probe(build.pod("probe")), state=pending)
    assert probe(see(of_probe(None), state=running)) == ("Failed", "PodLost")
    assert probe(see(of_probe(None), state=pending)) == ("Pending", None)


def test_a_probe_fails_with_the_reason_of_its_task(build, see, pending):
    failed = see(of_probe(build.failed("probe")), state=pending)
    assert probe(failed) == ("Failed", "UserCommandFailed")
    assert probe(see(WANTED, state=failed)) == ("Failed", "UserCommandFailed")


def test_a_probe_is_withdrawn_with_its_job(build, see, pending):
    suspended = build.job(suspend=True)
    assert probe(see(of_probe(build.pod("probe")), state=pending, of=suspended)) == ("Withdrawn", None)
    assert see(WANTED, of=suspended).prediction is None


def test_a_prediction_is_for_each_task_and_the_first_one_stays(see):
    state = see(SizeView(prediction=FOUND))
    size = state.prediction
    assert (size.map_seconds, size.reduce_seconds, size.memory_seconds, size.source) == (10, 4, 20, "Probe")
    assert told(state) == ("True", "Probe")
    for source in (fspy.Source.PROBE, fspy.Source.STATED):
        later = fspy.Prediction(seconds={}, byte_seconds=0, source=source)
        assert see(SizeView(prediction=later), state=state).prediction == size


def test_run_times_of_its_own_tasks_predict_nothing(build, see, job):
    known = SizeView(prediction=dataclasses.replace(FOUND, source=fspy.Source.STATED))
    assert see(known).prediction.source == "Stated"
    one_map = build.look(job, build.won("m-0"), state=build.mapping(job)).state
    assert see(known, state=one_map).prediction is None


def test_the_error_is_known_at_the_end(build, see):
    state = see(SizeView(prediction=FOUND), used_byte_s=10 * GIB)
    state = see(SizeView(prediction=FOUND), state=state, used_byte_s=6 * GIB)
    assert (state.prediction.used_memory_seconds, state.prediction.error) == (16, None)
    over = see(SizeView(prediction=None), state=build.replace(state, phase="Succeeded"))
    assert over.prediction.error == 0.25


def test_the_sizes_of_maps_and_reduces_are_their_run_times_by_memory(build, job):
    size = model.Resources(memory_bytes=GIB)
    timings = {"timings": [Timing("wait", 0, 5000), Timing("read", 5000, 7000)]}
    won = build.replace(build.won("m-0", **timings), resources=size)
    assert build.look(job, won, build.pod("m-1"), state=build.mapping(job)).used_byte_s == 2 * GIB
    setup = build.replace(build.won("setup", **timings), resources=size)
    assert build.look(job, setup).used_byte_s == 0


def test_a_status_has_all_parts_of_a_prediction_and_is_read_back(pending):
    status = job_state.to_status(pending)["prediction"]
    assert (status["probe"], status["reason"]) == ("Pending", None)
    assert job_state.from_status(job_state.to_status(pending), reduces=2).prediction == Prediction(probe="Pending")
    assert job_state.from_status({"prediction": {"probe": "Sideways"}}, reduces=2).prediction is None
