"""The evaluation of ILA's three forms of model: on samples of the live engine that they were not fitted to."""

import pytest

from boathouse_lab.reproduce.ila import modelling

EXPONENTIAL, LINEAR = "exponential", "linear"


@pytest.fixture(scope="module")
def accuracies():
    return modelling.evaluate(modelling.Case(seed=3, jobs=20, hosts=4, relative=True))


def test_each_form_is_judged_for_each_kind_of_task(accuracies):
    kinds = (modelling.IO_BOUND, modelling.CPU_BOUND, modelling.OVERALL)
    assert set(accuracies) == {(family, kind) for family in (EXPONENTIAL, LINEAR, "quadratic") for kind in kinds}
    counts = [accuracies[EXPONENTIAL, kind].samples for kind in kinds]
    assert counts[0] + counts[1] == counts[2]


def test_the_exponential_form_errs_less_than_the_linear_one(accuracies):
    assert accuracies[EXPONENTIAL, modelling.OVERALL].error < accuracies[LINEAR, modelling.OVERALL].error
    assert accuracies[EXPONENTIAL, modelling.OVERALL].r2 > accuracies[LINEAR, modelling.OVERALL].r2


def test_too_few_jobs_are_refused():
    with pytest.raises(ValueError, match="too few"):
        modelling.evaluate(modelling.Case(seed=0, jobs=1, hosts=1))
