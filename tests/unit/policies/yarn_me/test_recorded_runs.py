"""The learned penalty models predict recorded runs of the task runtime with sizes that they have not seen.

`lab/benchmarks/task_memory.py` recorded them on a machine with other work, so a run time is the CPU time of an attempt.
"""

import json
import pathlib
import statistics

import pytest

from boathouse_policies import model, run_times

RECORDED = json.loads((pathlib.Path(__file__).parents[4] / "data/task-memory.json").read_text())["runs"]
MOST_ERROR = 0.2
MOST_ERROR_OF_SPILLS = 0.7
"""Of a reduce: output of a map that is being fetched takes part of the buffer and is not spilled with the rest."""


def runs_of(stage):
    """The runs of a stage by memory, the most memory first."""
    own = [run for run in RECORDED if run["stage"] == stage]
    return {
        memory: [run for run in own if run["memoryBytes"] == memory]
        for memory in dict.fromkeys(run["memoryBytes"] for run in own)
    }


UNDERSIZED = [(stage, memory) for stage in ("map", "reduce") for memory in list(runs_of(stage))[1:]]


def learner_without(stage, left_out):
    """A learner that knows all runs but those with one size; and the stage, in the learner's terms."""
    by_memory = runs_of(stage)
    ideal = next(iter(by_memory))
    asked = run_times.Stage(
        job=model.JobId("job"), program="demo/program", step=0, stage=model.Stage(stage),
        ideal_bytes=ideal, least_bytes=min(by_memory), slowdown=0.5,
    )  # fmt: skip
    learner = run_times.Learner()
    for memory, runs in by_memory.items():
        for run in runs if memory != left_out else ():
            used = run_times.MemoryUse(
                memory_bytes=memory, spilled_bytes=run["spilledBytes"],
                spill_bytes_per_s=run["spillBytesPerSecond"], peak_bytes=run["peakBytes"],
            )  # fmt: skip
            less = memory < ideal
            learner.learn(asked, seconds=run["cpuSeconds"], input_bytes=run["inputBytes"], less=less, used=used)
    return learner, asked


@pytest.mark.parametrize(("stage", "memory"), UNDERSIZED)
def test_a_size_that_was_left_out_is_predicted(stage, memory):
    learner, asked = learner_without(stage, left_out=memory)
    runs = runs_of(stage)[memory]
    measured_s = statistics.median(run["cpuSeconds"] for run in runs)
    predicted_s, _ = learner.estimates(asked, runs[0]["inputBytes"]).run(memory)
    assert predicted_s == pytest.approx(measured_s, rel=MOST_ERROR)


@pytest.mark.parametrize("memory", [memory for stage, memory in UNDERSIZED if stage == "reduce"])
def test_the_spills_of_a_reduce_are_predicted(memory):
    learner, asked = learner_without("reduce", left_out=memory)
    runs = runs_of("reduce")[memory]
    measured = statistics.median(run["spilledBytes"] for run in runs)
    predicted = learner.estimates(asked, runs[0]["inputBytes"]).spilled_bytes(model.Resources(memory_bytes=memory))
    assert predicted == pytest.approx(measured, rel=MOST_ERROR_OF_SPILLS)
