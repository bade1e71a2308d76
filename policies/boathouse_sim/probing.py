"""Probing jobs as simulated jobs: what a job is like on a sample of its input (FSPY, III.A; Algorithm 1).

A policy that predicts sizes says of each job that comes whether it wants a probe (`needs_probe`). Where the workload
can answer it (`JobSpec.probe`), the job's arrival submits its probing job: one task, an uber task, that waits in line,
takes its time and room, and reports counters at its end. The job itself does not wait for it.

A probe's task maps and reduces f_p of the input one after the other: f_p·(SE_m + SE_r) after its own start.
"""

import numpy as np

from boathouse_policies.fspy import Config, prediction
from boathouse_sim.work import JobSpec, Phase

MOST_SPLITS = Config().sampled_splits


def job(spec: JobSpec) -> JobSpec:
    """Return the probing job of a job that has a probe."""
    assert spec.probe is not None
    return JobSpec(
        id=f"{spec.id}-probe", phases=(spec.probe,), program=spec.program, stated=False, namespace=spec.namespace
    )


def probe(
    measured: prediction.Features,
    times: prediction.TotalTimes,
    *,
    container: Phase,
    split_bytes: int,
    rng: np.random.Generator,
) -> Phase:
    """Return the task of a probing job, whose splits `rng` chooses: all but the last are of `split_bytes`.

    It takes the whole job's features as a probe would have them, errors and all, and what the whole job takes. The
    container's `duration_ms` passes before the task does anything.
    """
    last = round(measured.map_input_bytes) - (measured.maps - 1) * split_bytes
    splits = [split_bytes] * (measured.maps - 1) + [max(1, last)]
    fraction = prediction.sample(splits, reducers=measured.reduces, most_splits=MOST_SPLITS, rng=rng).fraction
    return Phase(
        kind="probe",
        tasks=1,
        duration_ms=container.duration_ms + round(fraction * (times.map_s + times.reduce_s) * 1000),
        mem_ideal_mb=container.mem_ideal_mb,
        cores=container.cores,
        counters=tuple(counters_of(measured, fraction).items()),
    )


def counters_of(measured: prediction.Features, fraction: float) -> dict[str, float]:
    """Return the counters of a probing job that reads this fraction: the inverse of `scaled`, for simulated probes."""
    counted = zip(prediction.AMOUNTS, measured.amounts().tolist(), strict=True)
    amounts = {str(counter): amount * fraction for counter, amount in counted}
    return {str(prediction.Counter.SAMPLED_FRACTION): fraction, **amounts}
