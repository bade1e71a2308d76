"""The additive model of interference."""

import json

import numpy as np
import pytest

from boathouse_policies.ila import additive, fitting, profiling
from boathouse_policies.ila.learning import first_samples

NAMES = profiling.NAMES


def samples(count=400) -> fitting.Samples:
    """Half of the tasks compute: 5 times slower by the CPUs beyond 60 %; half are at the disk: 3 times by its use."""
    random = np.random.default_rng(3)
    rows = np.zeros((profiling.ALL, count))
    rows[profiling.C_A], rows[profiling.R_A] = random.random((2, count))
    computes = np.arange(count) % 2 == 0
    rows[profiling.T_C], rows[profiling.T_R] = computes, 0.2 * ~computes
    slowdown = 1.0 + computes * 5.0 * np.maximum(rows[profiling.C_A] - 0.6, 0.0) + ~computes * 3.0 * rows[profiling.R_A]
    return fitting.Samples(rows, slowdown)


def sample(**of: float) -> np.ndarray:
    return np.array([[of.get(name, 0.0)] for name in NAMES])


@pytest.mark.parametrize(
    ("metric", "slowdown"),
    [
        ({"t_c": 1.0, "c_a": 0.4}, 1.0),
        ({"t_c": 1.0, "c_a": 0.9}, 2.5),
        ({"t_c": 1.0, "r_a": 1.0}, 1.0),
        ({"t_r": 0.2, "r_a": 0.5}, 2.5),
        ({"t_r": 0.2, "c_a": 0.9}, 1.0),
    ],
)
def test_a_task_minds_the_neighbours_of_its_own_resource(metric, slowdown):
    assert additive.fit(samples()).predict(sample(**metric))[0] == pytest.approx(slowdown, abs=0.1)


def test_more_neighbours_never_make_a_task_faster():
    model = additive.fit(first_samples())
    for name in ("c_a", "r_a", "w_u"):
        predicted = [model.predict(sample(t_c=0.5, t_r=0.1, **{name: use}))[0] for use in np.linspace(0.0, 2.0, 9)]
        assert predicted == sorted(predicted)


def test_a_task_on_a_node_is_predicted_as_its_sample():
    model, rows = additive.fit(first_samples()), first_samples().rows[:, :5]
    for place in range(5):
        weights = model.weights(profiling.Demand(*rows[profiling.SYSTEM :, place]))
        parts = model.parts(rows[: profiling.SYSTEM])
        assert weights.predict(parts)[place] == pytest.approx(model.predict(rows)[place])
        assert weights.at(parts[:, place].tolist()) == pytest.approx(model.predict(rows)[place])


def test_without_samples_nobody_is_slowed_down():
    assert additive.fit(fitting.Samples.of_rows([])).dump() == additive.NOBODY.dump()


def test_it_survives_a_restart():
    model = additive.fit(samples())
    after = additive.Additive.load(json.loads(json.dumps(model.dump())))
    assert after.dump() == model.dump()


@pytest.mark.parametrize("state", [None, {}, {"computing": [1.0]}, {**additive.NOBODY.dump(), "moving": [-1.0] * 5}])
def test_what_is_no_dump_is_none(state):
    assert additive.Additive.load(state) is None
