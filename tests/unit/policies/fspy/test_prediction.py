"""Features, the two linear models, and what is remembered: eqs 6, 7 and 8."""

import json
import math

import numpy as np
import pytest

from boathouse_policies.fspy import Config
from boathouse_policies.fspy.prediction import Counter, Features, LinearModel, Predictor, TotalTimes, scaled
from boathouse_sim import probing
from tests.builders.core_fspy import ALPHA, BETA, features, many_features, total_times


def trained(seed: int = 1, count: int = 60, **constants) -> Predictor:
    predictor = Predictor(Config(**constants))
    for job in many_features(seed, count):
        predictor.learn(job, total_times(job))
    return predictor


# Rows


def test_the_rows_are_those_of_the_equations():
    job = Features(
        maps=2,
        reduces=3,
        map_input_bytes=5,
        map_function_s=7,
        map_output_bytes=11,
        map_output_records=13,
        reduce_function_s=17,
        reduce_output_bytes=19,
        reduce_input_records=23,
    )
    assert job.map_row().tolist() == [1, 2, 5, 7, 11, 13, 13 * math.log(13)]
    assert job.reduce_row(29).tolist() == [1, 3, 29, 11, 17, 19, 23, 23 * math.log(23)]


def test_a_probes_counters_are_scaled_by_the_fraction_it_read():
    job = features(3)
    found = scaled(probing.counters_of(job, 0.05), maps=job.maps, reduces=job.reduces)
    assert found.amounts() == pytest.approx(job.amounts())
    assert (found.maps, found.reduces) == (job.maps, job.reduces)


@pytest.mark.parametrize("fraction", [None, 0.0, -0.1, 1.5])
def test_a_probe_that_does_not_say_what_it_read_tells_nothing(fraction):
    counters = {} if fraction is None else {Counter.SAMPLED_FRACTION: fraction}
    assert scaled({**counters, Counter.MAP_FUNCTION_S: 3.0}, maps=1, reduces=1) is None


# Least squares


def test_a_law_of_the_models_form_is_found_again():
    predictor = trained()
    assert predictor.maps.coefficients == pytest.approx(ALPHA, rel=1e-3)
    assert predictor.reduces.coefficients == pytest.approx(BETA, rel=1e-3)


def test_jobs_never_seen_are_predicted():
    predictor = trained()
    for job in many_features(2, 20):
        found, actual = predictor.predict(job), total_times(job)
        assert found.map_s == pytest.approx(actual.map_s, rel=1e-4)
        assert found.reduce_s == pytest.approx(actual.reduce_s, rel=1e-4)


def test_uncertain_observations_count_less():
    model = LinearModel(1)
    model.update(np.ones(1), 10.0, variance=1.0)
    model.update(np.ones(1), 20.0, variance=4.0)
    assert model.predict(np.ones(1)) == pytest.approx((10 / 1 + 20 / 4) / (1 / 1 + 1 / 4))


def test_weights_are_the_inverse_of_the_number_of_tasks():
    predictor = Predictor(Config())
    job = features(1)
    predictor.learn(job, total_times(job))
    assert predictor.maps.dump()["squares"][0] == pytest.approx(1 / job.maps)
    assert predictor.reduces.dump()["squares"][0] == pytest.approx(1 / job.reduces)


def test_what_was_learnt_long_ago_may_count_less():
    model = LinearModel(1, forgetting=0.5)
    for value in (0.0, 0.0, 7.0):
        model.update(np.ones(1), value)
    assert model.predict(np.ones(1)) == pytest.approx(4.0)


def test_too_few_observations_give_some_answer_not_an_error():
    model = LinearModel(3)
    model.update(np.array([1.0, 2.0, 0.0]), 10.0)
    assert model.predict(np.array([1.0, 2.0, 0.0])) == pytest.approx(10.0)


# Predictor


def test_nothing_is_predicted_before_enough_was_learnt():
    assert trained(count=15).predict(features()) is None
    assert trained(count=16).predict(features()) is not None


def test_the_function_time_is_the_least_that_is_predicted():
    predictor = Predictor(Config(least_jobs=1))
    job = features(1)
    predictor.learn(job, TotalTimes(map_s=1e-3, reduce_s=1e-3))
    assert predictor.predict(job) == TotalTimes(map_s=job.map_function_s, reduce_s=job.reduce_function_s)


def test_a_job_of_maps_alone_needs_no_reduce_model():
    predictor = Predictor(Config(least_jobs=2))
    for job in many_features(1, 5):
        predictor.learn(job._replace(reduces=0), TotalTimes(map_s=9.0, reduce_s=0.0))
    assert predictor.reduces.seen == 0
    assert predictor.predict(features()._replace(reduces=0)).reduce_s == 0
    assert predictor.predict(features()) is None


def test_a_program_is_recalled_by_input():
    predictor, job = Predictor(Config()), features(1)
    predictor.remember("wordcount", job)
    found = predictor.recall("wordcount", input_bytes=3 * job.map_input_bytes, maps=8, reduces=2)
    assert found.amounts() == pytest.approx(3 * job.amounts())
    assert (found.maps, found.reduces) == (8, 2)
    assert predictor.recall("sort", input_bytes=1e9, maps=8, reduces=2) is None


def test_the_program_unused_for_longest_is_forgotten():
    predictor, job = Predictor(Config(kinds_kept=2)), features(1)
    predictor.remember("a", job)
    predictor.remember("b", job)
    predictor.recall("a", input_bytes=1.0, maps=1, reduces=1)
    predictor.remember("c", job)
    known = [kind for kind in "abc" if predictor.recall(kind, input_bytes=1.0, maps=1, reduces=1)]
    assert known == ["a", "c"]


def test_uber_jobs_take_the_mean_of_their_program_or_of_all():
    predictor = Predictor(Config())
    assert predictor.uber_s("a") is None
    predictor.learn_uber("a", 10.0)
    predictor.learn_uber("a", 20.0)
    predictor.learn_uber("b", 60.0)
    assert (predictor.uber_s("a"), predictor.uber_s("b"), predictor.uber_s("c")) == (15.0, 60.0, 30.0)


def test_a_dump_predicts_as_before_and_is_small():
    before, job = trained(), features()
    before.remember("sort", job)
    before.learn_uber("sort", 4.0)
    before.apps.add("team/pagerank", 1, 8e9)
    text = json.dumps(before.dump())
    after = Predictor(Config())
    after.load(json.loads(text))
    assert after.predict(job) == before.predict(job)
    assert after.recall("sort", input_bytes=5.0, maps=1, reduces=1) == before.recall(
        "sort", input_bytes=5.0, maps=1, reduces=1
    )
    assert after.uber_s("sort") == 4.0
    assert after.apps.mean("team/pagerank") == 8e9
    assert len(text) < 4000


def test_a_dump_of_other_models_is_ignored():
    model = LinearModel(3)
    model.load({"seen": 5, "squares": [1.0], "products": [1.0]})
    assert model.seen == 0


# The best model of a program


def competing(*errors: float, kind: str = "ns/a") -> Predictor:
    """A predictor that knows its linear models, and a program whose times per byte differ from job to job by errors."""
    predictor = Predictor(Config(best_model=True))
    for job in many_features(1, 60):
        predictor.learn(job, total_times(job), "ns/others")
    for error in errors:
        job = features(3)
        predictor.learn(job, TotalTimes(map_s=error * job.map_input_bytes / 1e3, reduce_s=0.0), kind)
    return predictor


def test_a_program_whose_times_follow_its_input_is_predicted_by_them():
    predictor, job = competing(*[1.0] * 8), features(3)
    assert predictor.standing("ns/a") == (1, pytest.approx(0.0, abs=1e-6))
    assert predictor.predict(job, "ns/a").map_s == pytest.approx(job.map_input_bytes / 1e3)
    assert predictor.predict(job, "ns/new") == predictor.predict(job)


def test_a_program_that_the_linear_models_know_is_predicted_by_those():
    assert competing().standing("ns/others")[0] == 0


def test_the_papers_profile_compares_nothing():
    predictor = trained()
    predictor.learn(features(3), total_times(features(3)), "ns/a")
    assert predictor.standing("ns/a") is None
    assert predictor.dump()["rates"] == {}


def test_what_is_best_survives_a_restart():
    before, after = competing(*[1.0] * 8), Predictor(Config(best_model=True))
    after.load(json.loads(json.dumps(before.dump())))
    assert after.predict(features(3), "ns/a") == before.predict(features(3), "ns/a")


@pytest.mark.parametrize("rates", [None, [], {"ns/a": 1}, {"ns/a": [1, 2]}, {"ns/a": [0, 1, 1]}, {"ns/a": [1, -1, 1]}])
def test_rates_that_are_none_are_left_out(rates):
    predictor = Predictor(Config(best_model=True))
    predictor.load({"rates": rates})
    assert predictor.dump()["rates"] == {}
