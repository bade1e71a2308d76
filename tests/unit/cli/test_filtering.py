import typing

import pytest

from boathouse.resources.mrcluster import status as mrcluster_status
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.resources.sparkapp import status as sparkapp_status
from boathouse_cli import kinds, reading
from boathouse_cli.errors import CommandError
from boathouse_cli.reading import Filter
from tests.builders import cli

JOBS = [
    cli.mrjob("map", phase="Map", queue="etl"),
    cli.sparkapp("runs", phase="Running", queue="etl"),
    cli.sparkapp("new", queue="gold"),
    cli.sparkapp("failed", phase="Failed", queue="gold"),
]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (Filter(), ["map", "runs", "new", "failed"]),
        (Filter(queues=("etl",)), ["map", "runs"]),
        (Filter(states=("Failed", "map")), ["map", "failed"]),
        (Filter(states=("pending",)), ["new"]),
        (Filter(states=("active",), queues=("gold",)), ["new"]),
        (Filter(states=("finished",)), ["failed"]),
    ],
)
def test_jobs_are_chosen_by_queue_and_state(chosen, names):
    chosen.check()
    assert [job.name for job in map(kinds.read, JOBS) if chosen.takes(job)] == names


def test_kinds_are_chosen_by_any_of_their_names():
    assert Filter(of_kinds=("mrj", "sparkapps")).chosen_kinds() == [kinds.MRJOB, kinds.SPARKAPP]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(Filter(of_kinds=("pod",)), "not an object of Boathouse"), (Filter(states=("faild",)), '"faild" is no state')],
)
def test_unknown_kinds_and_states_are_refused(wrong, message):
    with pytest.raises(CommandError, match=message):
        wrong.check()


def test_the_states_are_the_phases_of_the_custom_resources():
    phases = [typing.get_args(module.Phase) for module in (mrjob_status, sparkapp_status, mrcluster_status)]
    assert {phase for of_kind in phases for phase in of_kind} == set(reading.PHASES)
