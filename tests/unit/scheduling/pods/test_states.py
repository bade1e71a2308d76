"""All pairs of a state and a trigger, written out."""

import pytest

from boathouse.scheduling.pods import states
from boathouse.scheduling.pods.states import LedgerAction, PodState, Trigger

ORIGINS = (None, *PodState)
CODES = dict(zip(("--", "PL", "CR", "PE", "BI", "BO", "CO", "RE", "EN", "GO"), ORIGINS, strict=True))
ACTIONS = dict(zip(("", "a", "o", "f"), LedgerAction, strict=True))

# Rows: triggers. Columns: origins (-- for no row). Cells: the next state and the ledger action (assume, observe,
# free). A dot is an impossible pair.
EXPECTED = """
                --  PL  CR  PE  BI  BO  CO  RE  EN  GO
SUBMITTED       PL  .   .   .   .   .   .   .   .   .
DECIDED         .   CRa .   BIa .   .   .   .   .   .
DECIDED_AHEAD   .   CR  .   .   .   .   .   .   .   .
ACCEPTED        .   .   BO  .   BO  .   .   .   .   .
ACCEPTED_AHEAD  .   .   PE  .   .   .   .   .   .   .
REFUSED         .   .   PLf .   .   PLf .   .   .   .
RETURNED        .   .   PEf .   PEf PEf .   .   .   .
SHOWN_PENDING   PE  PE  CR  PE  BI  BO  PEf PEf PEf PE
SHOWN_PLACED    COo COo COo COo COo COo COo COo COo COo
SHOWN_RESIZING  REo REo REo REo REo REo REo REo REo REo
SHOWN_ENDING    ENo ENo ENo ENo ENo ENo ENo ENo ENo ENo
ENDED           .   GOf GOf GOf GOf GOf GOf GOf GOf GOf
"""


def _cells():
    _, header, *lines = EXPECTED.splitlines()
    for line in lines:
        trigger, *cells = line.split()
        for column, cell in zip(header.split(), cells, strict=True):
            yield pytest.param(CODES[column], Trigger[trigger], cell, id=f"{column}-{trigger}")


@pytest.mark.parametrize(("origin", "trigger", "cell"), list(_cells()))
def test_every_pair_leads_where_the_grid_says(origin, trigger, cell):
    if cell == ".":
        with pytest.raises(states.ImpossibleTransition):
            states.after(origin, trigger)
        return
    assert states.after(origin, trigger) == (CODES[cell[:2]], ACTIONS[cell[2:]])


def test_the_grid_names_every_trigger_and_state():
    assert len(list(_cells())) == len(Trigger) * len(ORIGINS)


def test_an_impossible_transition_names_the_state_and_the_trigger():
    with pytest.raises(states.ImpossibleTransition, match="a pod planned cannot become accepted"):
        states.after(PodState.PLANNED, Trigger.ACCEPTED)


def test_the_ledger_assumes_only_what_gets_an_operation_and_confirms_only_what_is_on_its_node():
    for state, action in states.TRANSITIONS.values():
        if action is LedgerAction.ASSUME:
            assert state in states.WITH_OPERATION
        if action is LedgerAction.OBSERVE:
            assert state in states.ON_NODE
