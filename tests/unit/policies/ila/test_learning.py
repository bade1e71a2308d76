"""Online adaptation of ILA's model: when it is fitted, and how good it says it is."""

import math

import numpy as np
import pytest

from boathouse_policies import ila
from boathouse_policies.ila import fitting, learning, profiling
from boathouse_policies.ila.profiling import Profiles
from tests.builders import core
from tests.builders.core_ila import constant, linear, mean_error, metric_rows, samples


def learn_samples(learner, some):
    """The learner after these samples; how often its model changed."""
    table = np.concatenate([some.rows, some.slowdown[None]]).T.tolist()
    return sum(
        learner.observe(row[: profiling.SYSTEM], profiling.Demand(*row[profiling.SYSTEM : profiling.ALL]), row[-1])
        for row in table
    )


def test_the_model_is_fitted_at_every_hundred_observations():
    learner = ila.Learner(ila.Config())
    assert learn_samples(learner, samples(count=99)) == 0
    assert learn_samples(learner, samples(count=101)) == 2


def test_what_is_observed_replaces_what_stood_for_the_offline_training():
    learner, some = ila.Learner(ila.Config()), samples(count=600)
    before = mean_error(learner.model, some)
    learn_samples(learner, some)
    assert mean_error(learner.model, samples(seed=9)) < before / 3


def test_situations_that_were_never_observed_stay_as_they_were_thought_to_be():
    learner, some = ila.Learner(ila.Config()), samples(count=400)
    learn_samples(learner, some.of(~some.io_bound))
    first = learning.first_samples()
    unseen = first.of(first.io_bound)
    assert mean_error(learner.model, unseen) < 0.2


def test_the_error_is_that_of_observations_not_seen_before():
    learner = ila.Learner(ila.Config(first_error=0.12))
    learner.model = constant(2.0)
    made = metric_rows(100)
    learn_samples(learner, fitting.Samples(made, np.full(100, 4.0)))
    assert learner.error == pytest.approx(0.12 + 0.3 * (0.5 - 0.12))


@pytest.mark.parametrize("predicted", [40.0, 1e12, math.inf])
def test_a_model_with_an_error_beyond_reason_is_dropped_with_what_it_was_fitted_to(predicted):
    learner = ila.Learner(ila.Config())
    learner.model = constant(predicted)
    assert learn_samples(learner, fitting.Samples(metric_rows(100), np.full(100, 2.0))) == 1
    assert learner.model is ila.Learner(ila.Config()).model
    assert (learner.error, len(learner._newest[0])) == (ila.Config().first_error, 0)


def test_variables_are_selected_anew_after_one_fit_then_four_then_sixteen_while_the_error_is_large(monkeypatch):
    selected = []

    def fit(*_args, before, **_more):
        selected.append(before is None)
        return constant(2.0)

    monkeypatch.setattr(fitting, "fit", fit)
    learner = ila.Learner(ila.Config(first_error=0.9))
    learn_samples(learner, fitting.Samples(metric_rows(2200), np.full(2200, 9.0)))
    assert [number for number, is_selected in enumerate(selected) if is_selected] == [0, 1, 5, 21]


def test_only_the_newest_of_each_kind_count():
    learner = ila.Learner(ila.Config(window=50))
    old, new = metric_rows(400), metric_rows(400, seed=1)
    learn_samples(learner, fitting.Samples(old, linear(3.0, c_a=1.0).predict(old)))
    newer = fitting.Samples(new, linear(1.0, c_a=1.0).predict(new))
    learn_samples(learner, newer)
    assert mean_error(learner.model, newer) < 0.2


def test_what_stands_for_the_offline_training_is_the_same_at_every_start():
    assert learning.first_samples() is learning.first_samples()
    assert len(learning.first_samples()) == 256
    assert learning.first_samples().io_bound.any()
    assert not learning.first_samples().io_bound.all()


def test_the_run_time_alone_is_what_neighbours_do_not_explain():
    profiles, job = Profiles(ila.Config()), core.job()
    profiles.submitted(job, (core.task_class(job),))
    known = profiles.get(core.task_class(job).id)
    for run_s in (20.0, 22.0, 18.0, 20.0):
        known.ended_beside(run_s, 2.0)
        assert known.alone_s is None
    known.ended_beside(20.0, 2.0)
    assert known.alone_s == pytest.approx(10.0)
    profiles.forget(job.id)
    assert profiles.get(known.task_class.id) is None
