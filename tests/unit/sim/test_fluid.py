"""Orders on one fluid resource, against theory and against schedsim's published figures."""

from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from boathouse_sim import fluid, swim
from boathouse_sim.fluid import Order

TRACE = Path(__file__).resolve().parents[3] / "data" / "traces" / "FB-2009_samples_24_times_1hr_0.tsv"


def mean_sojourn_s(order, arrivals, sizes):
    arrivals, sizes = np.array(arrivals, float), np.array(sizes, float)
    return float((fluid.finish_s(order, arrivals, sizes) - arrivals).mean())


@pytest.mark.parametrize(
    ("order", "schedsim_s"),
    [(Order.FIFO, 11_135), (Order.PS, 75.2), (Order.SRPT, 32.5), (Order.FSP, 32.8)],
    ids=str,
)
def test_a_day_at_facebook_has_the_mean_sojourn_that_schedsim_gives(order, schedsim_s):
    jobs = swim.read_swim(TRACE)
    arrivals = [job.submit_s for job in jobs]
    assert mean_sojourn_s(order, arrivals, fluid.sizes_s(jobs, load=0.9)) == pytest.approx(schedsim_s, rel=0.01)


@pytest.mark.parametrize(
    ("order", "ends"),
    [
        pytest.param(Order.FIFO, [10, 12], id="fifo: the long one ends first"),
        pytest.param(Order.PS, [12, 5], id="ps: 1 s alone, then half each until the short one ends at 5 s"),
        pytest.param(Order.SRPT, [12, 3], id="srpt: the short one passes"),
        pytest.param(Order.FSP, [12, 3], id="fsp: processor sharing would end the short one first"),
    ],
)
def test_a_short_job_behind_a_long_one(order, ends):
    assert fluid.finish_s(order, np.array([0.0, 1.0]), np.array([10.0, 2.0])).tolist() == ends


workloads = strategies.lists(
    strategies.tuples(strategies.integers(0, 50), strategies.integers(1, 30)), min_size=1, max_size=25
).map(lambda jobs: tuple(np.array(column, float) for column in zip(*sorted(jobs), strict=True)))


@hypothesis.given(workloads)
def test_no_order_ends_a_job_later_under_fsp_than_under_processor_sharing(workload):
    assert (fluid.finish_s(Order.FSP, *workload) <= fluid.finish_s(Order.PS, *workload) + 1e-6).all()


@hypothesis.given(workloads)
def test_no_order_has_a_smaller_mean_than_srpt(workload):
    means = {order: mean_sojourn_s(order, *workload) for order in Order}
    assert min(means.values()) >= means[Order.SRPT] - 1e-6


@hypothesis.given(workloads)
def test_every_order_is_busy_until_the_same_end(workload):
    ends = [fluid.finish_s(order, *workload).max() for order in Order]
    assert ends == pytest.approx([ends[0]] * len(ends))


def test_a_line_that_is_no_swim_is_named(tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text("job0\t1\t1\t5\t5\t5\njob1\tsoon\t1\t5\t5\t5\n")
    with pytest.raises(swim.TraceError, match=r"bad.tsv, line 2.*soon"):
        swim.read_swim(bad)
